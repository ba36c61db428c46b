"""Requests to stop a run before its last step: signals, a time limit, the end of torchrun."""

import math
import os
import signal
import threading
import time
from typing import Self

from puicl_config.workers import STOPS, await_end_of
from trainer.launcher import launcher


class StopRequest:
    """Whether a signal of `STOPS` has arrived or the time is up.

    Inside the context these signals only set a flag. With `breaks_off`, a signal also interrupts
    the current step, because its sender may not wait for the end: torchrun kills after 30 seconds.
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
        """True once this process should interrupt its current step."""
        return self.breaks_off and self._signalled

    def _note(self, *_) -> None:
        self._signalled = True


def heed_end_of_torchrun() -> None:
    """If torchrun started this process, send it SIGTERM once torchrun has ended, for any reason.

    Otherwise, processes whose torchrun was killed would train on unnoticed and keep the run's
    folder locked. If it was killed during their start, they would wait half an hour for a
    rendezvous that is gone.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    parent = launcher()

    def watch() -> None:
        await_end_of(parent)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _heeded() -> list[signal.Signals]:
    """`STOPS`, without SIGHUP if it is ignored, as `nohup` arranges."""
    return [
        number
        for number in STOPS
        if number.name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN
    ]
