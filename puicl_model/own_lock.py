"""A lock that a forked process finds open."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OwnLock:
    """Held by one thread of this process at a time, by it as often as it asks.

    A fork copies a lock as it stands, but not the thread that would open it. So each process has
    one of its own.
    """

    def __init__(self):
        self._renew()

    def _renew(self) -> None:
        self._lock, self._process = threading.RLock(), os.getpid()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the lock, and hold it within."""
        if self._process != os.getpid():
            self._renew()
        with self._lock:
            yield
