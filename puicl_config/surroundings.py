"""Facts on the machine and this code that are recorded with results."""

import platform
import subprocess
from pathlib import Path


def cpu_name() -> str:
    """The processor's model, as far as the system tells; may be empty."""
    for line in cpu_facts().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def cpu_facts() -> str:
    """What Linux says of the processors; empty on other systems, or where /proc is hidden."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def git_commit() -> str | None:
    """The checkout's commit, with "-dirty" appended if files differ from it.

    None outside a checkout or if git fails.
    """
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    # Without tags, since a truncated "v1.0-5-g..." would not name a commit.
    what = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    command = ["git", "-C", str(root), *what]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
