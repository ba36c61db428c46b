"""The one exception that means "the user can mend this"."""

import functools
import sys
from collections.abc import Callable

# Line ends and tabs aside.
_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if chr(n) not in "\n\t"}


def visible(text: str) -> str:
    """`text` for a terminal, which would obey its control characters: those are written as \\x1b.

    Names of columns, files and tasks are whatever somebody has chosen. Bytes of files' names that
    are no UTF-8 are written as \\udc.. .
    """
    return text.encode("utf-8", "backslashreplace").decode().translate(_CONTROLS)


class InputError(ValueError):
    """Bad input, told in one sentence: what was wrong, where, and what would be right."""


def exit_on_input_error(command: Callable) -> Callable:
    """Wrap a command's entry point: an `InputError` prints its sentence and exits with 2."""

    @functools.wraps(command)
    def wrapped(*args, **kwargs):
        try:
            return command(*args, **kwargs)
        except InputError as error:
            print(visible(f"error: {error}"), file=sys.stderr)
            sys.exit(2)

    return wrapped
