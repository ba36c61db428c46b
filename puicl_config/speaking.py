"""What is said on the way, which may be lost: work does not end because nobody listens any more."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from puicl_config.errors import visible


@contextlib.contextmanager
def heard_or_not(stream: TextIO | None) -> Iterator[None]:
    """Let what is printed to `stream` inside be lost where that cannot be written to.

    A terminal that was closed, a pipe without a reader, a full disk. What the stream still holds
    is dropped: Python would write it as it ends, fail again, and exit with 120.
    """
    try:
        yield
    except OSError:
        _drop_rest(stream)
    except ValueError:
        if stream is not None and not stream.closed:
            raise


def speak(sentence: str, stream: TextIO | None) -> None:
    """Print a line at once, if anybody can read it."""
    if stream is None:  # `print` would take stdout, where answers may go
        return
    with heard_or_not(stream):
        print(visible(sentence), file=stream, flush=True)


def is_terminal(stream: Any) -> bool:
    """Whether somebody watches `stream`.

    Services have none, or a log in its place that can be written to and nothing else.
    """
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # the latter where it was closed
        return False


def drop_unheard() -> None:
    """Before the process ends: what stdout and stderr hold and cannot write is dropped."""
    for stream in (sys.stdout, sys.stderr):
        with heard_or_not(stream):
            if stream is not None:
                stream.flush()


def _drop_rest(stream: TextIO | None) -> None:
    if stream is None or stream.closed:
        return
    try:
        place = stream.fileno()
    except OSError:  # of no file: it keeps nothing back
        return
    kept, nowhere = os.dup(place), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, place)
        stream.flush()
    finally:
        os.dup2(kept, place)
        os.close(kept)
        os.close(nowhere)
