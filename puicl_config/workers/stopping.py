"""Ctrl-C and SIGTERM: work that must not be interrupted ends before the signal takes effect."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Signals that ask a run to end: the two above, SIGHUP from a closed terminal, and SIGUSR1, which
# Slurm is often told to send some time before its limit. Windows lacks the last two.
STOPS = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1")
    if hasattr(signal, name)
)


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


def take_sigterm_for_ctrl_c() -> None:
    """Make SIGTERM raise `Terminated`, which is a `KeyboardInterrupt`."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)


@contextlib.contextmanager
def stops_with(sentence: str) -> Iterator[None]:
    """On Ctrl-C or SIGTERM, print `sentence` and exit with 130 or 143, as shells expect."""
    try:
        yield
    except KeyboardInterrupt as stop:
        print(f"stopped; {sentence}", file=sys.stderr)
        sys.exit(128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT))


@contextlib.contextmanager
def signals_deferred(stop: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Within this context, the first Ctrl-C or SIGTERM calls `stop`, which should end it soon.

    The signal takes its usual effect after the context; a second one takes effect at once.
    Processes started within the context do not receive these signals. Signals without a Python
    handler, and threads other than the main one, are left alone.
    """
    # Windows has no signal masks; all processes of a console get its Ctrl-C.
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
    # Block the signals in this thread, since child processes inherit the mask of the thread that
    # starts them. Another thread, which blocks nothing, receives the signals; Python then calls
    # `note` in the main thread.
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
    """Ignore `STOPS` in a worker process, and let its parent decide.

    Terminals and schedulers send signals to whole groups of processes.
    """
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


def await_end_of(parent: int) -> None:
    """Return once the parent process `parent` is gone, however it ended."""
    while os.getppid() == parent:
        time.sleep(0.2)
