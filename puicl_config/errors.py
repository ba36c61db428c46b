"""The one exception that means "the user can mend this"."""

import functools
import sys
from collections.abc import Callable


class InputError(ValueError):
    """Bad input, told in one sentence: what was wrong, where, and what would be right."""


def exit_on_input_error(command: Callable) -> Callable:
    """Wrap a command's entry point: an `InputError` prints its sentence and exits with 2."""

    @functools.wraps(command)
    def wrapped(*args, **kwargs):
        try:
            return command(*args, **kwargs)
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)

    return wrapped
