"""A lock that is released in a forked process."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OwnLock:
    """A reentrant lock that each process creates for itself.

    A fork copies a held lock but not the thread that would release it, so the child needs a new
    one.
    """

    def __init__(self):
        self._renew()

    def _renew(self) -> None:
        self._lock, self._process = threading.RLock(), os.getpid()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the lock and hold it inside the context."""
        if self._process != os.getpid():
            self._renew()
        with self._lock:
            yield
