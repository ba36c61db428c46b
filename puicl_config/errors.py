"""The exception for errors that the user can fix, and which errors of the system are such."""

import errno
import functools
import os
import sys
from collections.abc import Callable

# System errors that a user can fix; all others are taken for bugs.
_USERS = (
    *("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EFBIG", "EIO", "ESTALE", "EMFILE"),
    *("ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ELOOP", "ENAMETOOLONG", "EXDEV", "EMLINK"),
)
_FIXABLE = frozenset(getattr(errno, name) for name in _USERS if hasattr(errno, name))

# All control characters except line feeds and tabs.
_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if chr(n) not in "\n\t"}


def visible(text: str) -> str:
    """Escape `text` for a terminal: control characters become \\x1b and the like.

    Names of columns, files and tasks can contain anything. Bytes of file names that are not UTF-8
    become \\udc.. .
    """
    return text.encode("utf-8", "backslashreplace").decode().translate(_CONTROLS)


class InputError(ValueError):
    """Bad input; the message says in one sentence what is wrong, where, and what would be right."""


def fixable_reason(error: OSError) -> str | None:
    """The system's words for an error that the user can fix; None for one taken for a bug."""
    if error.errno is None or error.errno not in _FIXABLE:
        return None
    return os.strerror(error.errno).lower()


def exit_on_input_error(command: Callable) -> Callable:
    """Wrap a command's entry point: on `InputError`, print its message to stderr and exit with 2.

    The same goes for an `OSError` that the user can fix, such as a file name that is too long or a
    full disk.
    """

    @functools.wraps(command)
    def wrapped(*args, **kwargs):
        try:
            return command(*args, **kwargs)
        except InputError as error:
            sentence = str(error)
        except OSError as error:
            reason = fixable_reason(error)
            if reason is None:
                raise
            sentence = f"{reason}: {error.filename}" if error.filename else reason
        print(visible(f"error: {sentence}"), file=sys.stderr)
        sys.exit(2)

    return wrapped
