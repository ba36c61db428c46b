"""The one exception that means "the user can mend this", and what a system refuses to users."""

import errno
import functools
import os
import sys
from collections.abc import Callable

# What a user can mend; anything else that the system refuses is ours to mend.
_USERS = (
    *("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EFBIG", "EIO", "ESTALE", "EMFILE"),
    *("ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ELOOP", "ENAMETOOLONG", "EXDEV", "EMLINK"),
)
USERS_TO_MEND = frozenset(getattr(errno, name) for name in _USERS if hasattr(errno, name))

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
    """Wrap a command's entry point: an `InputError` prints its sentence and exits with 2.

    So does an `OSError` that the user can mend, such as a name that is too long or a full disk.
    """

    @functools.wraps(command)
    def wrapped(*args, **kwargs):
        try:
            return command(*args, **kwargs)
        except InputError as error:
            sentence = str(error)
        except OSError as error:
            if error.errno is None or error.errno not in USERS_TO_MEND:
                raise
            where = f": {error.filename}" if error.filename else ""
            sentence = f"{os.strerror(error.errno).lower()}{where}"
        print(visible(f"error: {sentence}"), file=sys.stderr)
        sys.exit(2)

    return wrapped
