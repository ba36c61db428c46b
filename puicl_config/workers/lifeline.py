"""The line between a run and its worker processes: when it goes dead, they drop their part.

A local socket, because it works on every system and closes with the process that holds it,
however that process ends.
"""

import contextlib
import os
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from puicl_config.workers.stopping import await_end_of, leave_signals_to_parent

Result = TypeVar("Result")

# Time a worker whose run was killed gets to take its half-written files away.
_SECONDS_TO_TIDY = 10.0

_dropping = threading.Event()
_working = threading.Lock()


class Dropped(Exception):
    """The run is over: what is being made is left unfinished."""


class Lifeline:
    """The run's end. `cut` makes every worker, and this process, drop what it makes."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._lines: list[socket.socket] = []
        self._lock = threading.RLock()  # `cut` may interrupt itself, as a signal's handler
        self._is_cut = False
        threading.Thread(target=self._answer, daemon=True).start()

    @property
    def ends(self) -> tuple[int, int]:
        """What a worker needs to `hold` it: a port, and the process that holds the other end."""
        return self._server.getsockname()[1], os.getpid()

    @property
    def is_cut(self) -> bool:
        """Whether everybody was told to drop their part."""
        return self._is_cut

    def cut(self) -> None:
        """Make everybody drop their part; whoever calls later is told at once."""
        with self._lock:
            self._is_cut = True
            _dropping.set()
            for line in self._lines:
                line.close()

    def close(self) -> None:
        """Give the port back; workers, which must be at rest, go on living."""
        with self._lock:
            if self._is_cut:
                _dropping.clear()
            self._is_cut = True
            for line in self._lines:
                line.close()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for calls
        self._server.close()

    def _answer(self) -> None:
        while True:
            try:
                line, _ = self._server.accept()
            except OSError:
                return  # closed
            with self._lock:
                if self._is_cut:
                    line.close()
                else:
                    self._lines.append(line)


def hold(port: int, parent: int) -> None:
    """In a worker process of `parent`, at its start: listen on the line from now on."""
    leave_signals_to_parent()
    try:
        line = socket.create_connection(("127.0.0.1", port))
    except OSError:  # the run is over already
        line = None
    threading.Thread(target=_listen, args=(line, parent), daemon=True).start()


def drop_if_told() -> None:
    """Raise `Dropped` where the run is over; to be called between pieces of work."""
    if _dropping.is_set():
        raise Dropped


@dataclass(frozen=True)
class Failure:
    """What a worker's task raised, and where, told to the run instead of thrown at it."""

    error: Exception
    traceback: str


def unless_dropped(work: Callable[..., Result], *arguments: object) -> Result | Failure | None:
    """`work(*arguments)`, or None where the run ended first; the wrapper of a worker's task.

    An exception is an answer like any other: one that reached joblib would have it kill the other
    workers, which could not put their half-written files away.
    """
    with _working, contextlib.suppress(Dropped):
        drop_if_told()
        try:
            return work(*arguments)
        except Dropped:
            raise
        except Exception as error:
            return Failure(error, traceback.format_exc())
    return None


@contextlib.contextmanager
def lifeline() -> Iterator[Lifeline]:
    """A line that lasts as long as the block."""
    line = Lifeline()
    try:
        yield line
    finally:
        line.close()


def _listen(line: socket.socket | None, parent: int) -> None:
    if line:
        with contextlib.suppress(OSError):
            line.recv(1)
    _dropping.set()
    # An idle worker waits for orders that a killed run never gives: it ends by itself.
    await_end_of(parent)
    _working.acquire(timeout=_SECONDS_TO_TIDY)
    os._exit(1)
