"""Ctrl-C and SIGTERM: work that cannot be torn apart ends by itself, then the signal counts."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# What asks a run to end: these, a terminal that is closed, and what Slurm is often told to send
# some time before its limit. Windows lacks the last two.
STOPS = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1")
    if hasattr(signal, name)
)


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


def take_sigterm_for_ctrl_c() -> None:
    """Make SIGTERM raise `Terminated`, which is a `KeyboardInterrupt`."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)


@contextlib.contextmanager
def stops_with(sentence: str) -> Iterator[None]:
    """On Ctrl-C or SIGTERM say `sentence` and exit with 130 or 143, as shells expect."""
    try:
        yield
    except KeyboardInterrupt as stop:
        print(f"stopped; {sentence}", file=sys.stderr)
        sys.exit(128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT))


@contextlib.contextmanager
def signals_deferred(stop: Callable[[], None] = lambda: None) -> Iterator[None]:
    """While inside, the first Ctrl-C or SIGTERM calls `stop`, which should end the block soon.

    The signal takes its usual effect after the block; a second one takes it at once. Processes
    started inside do not get these signals at all. Signals without a handler of Python's, and
    threads other than the main one, are left alone.
    """
    # Windows has no masks; there, processes of one console all get its Ctrl-C.
    masks = hasattr(signal, "pthread_sigmask")
    if not masks or threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Callable[[int, FrameType | None], object]] = {
        number: handler
        for number, handler in ((number, signal.getsignal(number)) for number in _SIGNALS)
        if callable(handler)
    }
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        if len(caught) > 1:
            before[number](number, frame)
        stop()

    for number in before:
        signal.signal(number, note)
    # Child processes inherit the mask of the thread that starts them. A thread that blocks
    # nothing takes the signals; Python then calls `note` in the main thread.
    over = threading.Event()
    receiver = threading.Thread(target=over.wait, daemon=True)
    receiver.start()
    signal.pthread_sigmask(signal.SIG_BLOCK, before)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, before)
        over.set()
        receiver.join()
    if caught:
        signal.raise_signal(caught[0])


def leave_signals_to_parent() -> None:
    """In a worker process: terminals and schedulers signal whole groups; its parent decides."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


def await_end_of(parent: int) -> None:
    """Return once the process `parent`, which started this one, is gone, however it ended."""
    while os.getppid() == parent:
        time.sleep(0.2)
