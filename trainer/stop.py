"""When a run should end before its last step."""

import math
import os
import signal
import threading
import time
from typing import Self

from puicl_config.workers import STOPS, await_end_of
from trainer.launcher import launcher


class StopRequest:
    """Whether one of `STOPS` came, or the time is up; entered, they mean that alone.

    `breaks_off`: a signal breaks the step at hand off. Who sent it may not wait for its end:
    torchrun kills after 30 seconds.
    """

    def __init__(self, max_seconds: float | None, breaks_off: bool = False):
        self._deadline = time.monotonic() + max_seconds if max_seconds else math.inf
        self._signalled = False
        self.breaks_off = breaks_off

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in _heeded()}
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """True once this process should stop at the end of the step."""
        return self._signalled or time.monotonic() > self._deadline

    def at_once(self) -> bool:
        """True once this process should break off what it does."""
        return self.breaks_off and self._signalled

    def _note(self, *_) -> None:
        self._signalled = True


def heed_end_of_torchrun() -> None:
    """Where torchrun started this process, take its end, however it ended, for SIGTERM.

    Else processes whose torchrun was killed would train on, unseen, and hold the run's folder; or,
    where that was while they started, wait half an hour for a meeting place that is gone.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    parent = launcher()

    def watch() -> None:
        await_end_of(parent)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _heeded() -> list[signal.Signals]:
    """`STOPS` without SIGHUP where that is ignored: `nohup` asked for it."""
    return [
        number
        for number in STOPS
        if number.name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN
    ]
