"""The lifeline between a run and its worker processes: when it closes, they abandon their part.

It is a local socket, since that works on every system and closes with the process that holds it,
however that process ends.
"""

import contextlib
import os
import socket
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from puicl_config.workers.stopping import await_end_of, leave_signals_to_parent

Result = TypeVar("Result")

# Time for a worker whose run was killed to remove its half-written files.
_SECONDS_TO_TIDY = 10.0

_dropping = threading.Event()
_working = threading.Lock()


class Dropped(Exception):
    """The run is over, and the current part is abandoned."""


class Lifeline:
    """The run's end of the lifeline.

    `cut` makes every worker and this process abandon their current part.
    """

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._lines: list[socket.socket] = []
        self._lock = threading.RLock()  # as a signal handler, `cut` may interrupt itself
        self._is_cut = False
        threading.Thread(target=self._answer, daemon=True).start()

    @property
    def ends(self) -> tuple[int, int]:
        """Arguments for a worker's `hold`: the port, and the id of this process."""
        return self._server.getsockname()[1], os.getpid()

    @property
    def is_cut(self) -> bool:
        """Whether all workers were told to abandon their part."""
        return self._is_cut

    def cut(self) -> None:
        """Make all workers abandon their part, including those that connect later."""
        with self._lock:
            self._is_cut = True
            _dropping.set()
            for line in self._lines:
                line.close()

    def close(self) -> None:
        """Close the port; workers, which must be idle, stay alive."""
        with self._lock:
            if self._is_cut:
                _dropping.clear()
            self._is_cut = True
            for line in self._lines:
                line.close()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for connections
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
    """Connect a new worker process of `parent` to the run's lifeline and listen on it."""
    leave_signals_to_parent()
    try:
        line = socket.create_connection(("127.0.0.1", port))
    except OSError:  # the run is over already
        line = None
    threading.Thread(target=_listen, args=(line, parent), daemon=True).start()


def drop_if_told() -> None:
    """Raise `Dropped` if the run is over; call this between pieces of work."""
    if _dropping.is_set():
        raise Dropped


@dataclass(frozen=True)
class Failure:
    """An exception of a worker's task and its traceback, returned to the run instead of raised."""

    error: Exception
    traceback: str


def unless_dropped(work: Callable[..., Result], *arguments: object) -> Result | Failure | None:
    """Run a worker's task: return `work(*arguments)`, or None if the run ended first.

    An exception is returned as a `Failure`. If it reached joblib, joblib would kill the other
    workers, which could then not remove their half-written files.
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


def _listen(line: socket.socket | None, parent: int) -> None:
    if line:
        with contextlib.suppress(OSError):
            line.recv(1)
    _dropping.set()
    # If the run was killed, an idle worker would wait for its next task forever, so end it here.
    await_end_of(parent)
    _working.acquire(timeout=_SECONDS_TO_TIDY)
    os._exit(1)
