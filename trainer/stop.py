"""When a run should end before its last step."""

import math
import signal
import time


class StopRequest:
    """Whether SIGTERM or SIGINT came, or the time is up."""

    def __init__(self, max_seconds: float | None):
        self._deadline = time.monotonic() + max_seconds if max_seconds else math.inf
        self._signalled = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def __call__(self) -> bool:
        """True once this process should stop at the end of the step."""
        return self._signalled or time.monotonic() > self._deadline

    def _note(self, *_) -> None:
        self._signalled = True
