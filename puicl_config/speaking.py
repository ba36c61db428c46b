"""Messages that may get lost: work does not end because they cannot be printed."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from puicl_config.errors import visible


@contextlib.contextmanager
def heard_or_not(stream: TextIO | None) -> Iterator[None]:
    """Ignore failures to print to `stream` within this context.

    Causes are a closed terminal, a pipe without a reader or a full disk. What the stream still
    buffers is then dropped, since otherwise Python would try to write it at exit, fail again, and
    exit with 120.
    """
    try:
        yield
    except OSError:
        _drop_rest(stream)
    except ValueError:
        if stream is not None and not stream.closed:
            raise


def speak(sentence: str, stream: TextIO | None) -> None:
    """Print a line and flush it; a failure to print is ignored."""
    if stream is None:  # `print` would use stdout, which may carry results
        return
    with heard_or_not(stream):
        print(visible(sentence), file=stream, flush=True)


def is_terminal(stream: Any) -> bool:
    """Whether `stream` is a terminal.

    A service may have None in its place, or a log object that can only be written to.
    """
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # ValueError: the stream is closed
        return False


def drop_unheard() -> None:
    """Flush stdout and stderr before the process ends, and drop what cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        with heard_or_not(stream):
            if stream is not None:
                stream.flush()


def _drop_rest(stream: TextIO | None) -> None:
    if stream is None or stream.closed:
        return
    try:
        place = stream.fileno()
    except OSError:  # not backed by a file, so nothing is buffered
        return
    kept, nowhere = os.dup(place), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, place)
        stream.flush()
    finally:
        os.dup2(kept, place)
        os.close(kept)
        os.close(nowhere)
