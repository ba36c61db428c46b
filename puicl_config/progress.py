"""Progress of long work: a bar on a terminal, elsewhere a plain line every few seconds."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from puicl_config.amounts import duration
from puicl_config.speaking import heard_or_not, is_terminal, speak


class ProgressReport:
    """Count `unit`s up to `total` and show the rate, the time left and a note.

    `done` units were finished before this start: they count for the position, not for the rate.
    Without a terminal, at most one line is printed per `every` seconds, and one at the end.
    """

    def __init__(self, label: str, total: int, unit: str, done: int = 0, every: float = 5.0):
        self.label, self.total, self.unit, self.done = label, total, unit, done
        self._every = every
        self._before = done
        self._start = self._shown = time.monotonic()
        self._bar = None
        if is_terminal(sys.stderr):
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
                # The bar's own lines are on stderr: what goes to a file must stay there.
                redirect_stdout=is_terminal(sys.stdout),
            )
            self._task = self._bar.add_task(label, total=total, completed=done, note="")
            self._bar.start()

    def __enter__(self) -> "ProgressReport":
        return self

    def __exit__(self, *_) -> None:
        if self._bar:
            with heard_or_not(sys.stderr):
                self._bar.stop()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def rate(self) -> float:
        """Units per second since the start."""
        elapsed = self.seconds
        return (self.done - self._before) / elapsed if elapsed > 0 else 0.0

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Count `amount` more units; `note` is shown after the rate."""
        self.done += amount
        rate = self.rate
        note = f"{rate:.4g} {self.unit}/s" + (f", {note}" if note else "")
        if self._bar:
            self._bar.update(self._task, completed=self.done, note=note)
            return
        now = time.monotonic()
        if now - self._shown >= self._every or self.done >= self.total:
            self._shown = now
            left = duration((self.total - self.done) / rate) if rate else "?"
            share = self.done / max(self.total, 1)
            speak(
                f"{self.label}: {self.done}/{self.total} {self.unit} ({share:.0%}), {note}, "
                f"{left} left",
                sys.stderr,
            )


@contextlib.contextmanager
def looking(look: Callable[[], object], every: float) -> Iterator[None]:
    """Call `look` within this context every so many seconds, in a thread, and once at its end."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every):
            look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        look()
