"""Progress of long work: a bar on a terminal, elsewhere a plain line every few seconds."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from puicl_config.speaking import heard_or_not, is_terminal, speak


def duration(seconds: float) -> str:
    """Seconds as `42s`, `3m05s` or `2h07m`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def volume(n_bytes: float) -> str:
    """A number of bytes as `42 bytes`, `1.5 kB`, `512 MB` or `37.6 GB`, to three digits."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= 0.9995 * factor:
            return f"{float(f'{n_bytes / factor:.3g}'):,g} {unit}"
    return f"{n_bytes:.0f} bytes"


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
