"""When a run should end before its last step."""

import math
import signal
import time
from typing import Self


class StopRequest:
    """Whether SIGTERM or SIGINT came, or the time is up; entered, both mean that alone.

    `signalled`: a signal came, and who sent it may not wait for the end of a long step.
    """

    def __init__(self, max_seconds: float | None):
        self._deadline = time.monotonic() + max_seconds if max_seconds else math.inf
        self.signalled = False

    def __enter__(self) -> Self:
        self._before = {
            number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)
        }
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """True once this process should stop at the end of the step."""
        return self.signalled or time.monotonic() > self._deadline

    def _note(self, *_) -> None:
        self.signalled = True
