"""Real runs of `prior-gen` as processes of their own, and what is left of them."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = "from prior_gen.cli import main; main()"


def launch(*arguments, code: str = CODE, cwd: Path | None = None) -> subprocess.Popen:
    """Start `prior-gen`, or other `code`, in a session of its own, to be read by `communicate`."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


def wait_until(true, seconds: float = 120.0) -> None:
    """Wait until `true()`; fails where it never is."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def entries_of(folder: Path) -> list[Path]:
    """Entries published in a folder, which need not exist yet."""
    return sorted((folder / "entries").glob("*.json"))


def processes_of_session(leader: int) -> list[str]:
    """Command lines of the living processes of a session (Linux)."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it ended meanwhile
    return found
