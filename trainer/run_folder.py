"""A run's folder, `runs/NAME/`: its lock, and checks that it belongs to this config."""

import contextlib
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from puicl_config import (
    RUN_DIGEST_EXCLUDES,
    Config,
    InputError,
    config_yaml,
    differences,
    first_of,
    load_config,
    plan_of,
    write_atomically,
)
from puicl_config.locks import open_lock, take_lock
from shard_io import MANIFEST, PARTS
from trainer.ledger import read_ledger

# Marks temporary weights files of the trainer: `puicl average` may be writing to the same name
# without holding the lock, and its temporary files must not be swept.
WRITER = "trainer"
# Temporary files of `write_atomically`, for files that only the trainer replaces.
_HALF_WRITTEN = re.compile(
    rf"\.((ledger|metrics)\.jsonl|config\.yaml|environment\.json|model\.(safetensors|json)\.{WRITER})"
    r"\.[0-9a-f]{32}"
)


def lock_run(out: Path, say: Callable[[str], None]) -> IO[str]:
    """Lock the run's folder, created if needed, for this process; returns the open lock file.

    Raises `InputError` if `out` is a file, if another trainer holds the lock, if the lock is a
    symbolic link, or if a new run's folder would lie in a folder of shards. Warns through `say` if
    the file system has no locks.
    """
    if (out.exists() or out.is_symlink()) and not out.is_dir():
        raise InputError(f"{out} is a file, or a link to nothing; give a folder for the run")
    if not (out / "config.yaml").exists():
        whole = out.resolve()
        for folder in (whole, *whole.parents):
            if (folder / MANIFEST).is_file() and (folder / PARTS).is_dir():
                raise InputError(
                    f"--out {out} lies in the folder of shards {folder}, which holds nothing else; "
                    "give another folder for the run"
                )
    out.mkdir(parents=True, exist_ok=True)
    # Opened without truncating: until we hold the lock, the file names its current holder.
    lock = open_lock(out / ".lock")
    try:
        locked = take_lock(lock, wait=False)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read(200).strip()
        lock.close()
        who = f" ({holder})" if holder else ""
        raise InputError(f"another trainer is writing to {out}{who}; give another --out") from None
    if locked:
        _sweep(out)
    with contextlib.suppress(OSError):  # a full disk, which thinning checkpoints may clear
        lock.truncate(0)
        os.write(lock.fileno(), f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    if not locked:
        say(f"{out} is on a file system without locks: see that no other trainer writes there")
    return lock


def _sweep(out: Path) -> None:
    """Remove temporary files that a killed trainer left; call it only while holding the lock."""
    for path in out.iterdir():
        if _HALF_WRITTEN.fullmatch(path.name):
            with contextlib.suppress(OSError):
                path.unlink()


@contextlib.contextmanager
def begun_or_removed(out: Path, made: bool) -> Iterator[None]:
    """Remove the folder, if `made` for this run, when `InputError` leaves it with only a lock."""
    try:
        yield
    except InputError:
        if made and [path.name for path in out.iterdir()] == [".lock"]:
            with contextlib.suppress(OSError):  # another trainer may have started here
                (out / ".lock").unlink()
                out.rmdir()
        raise


def check_same_run(out: Path, config: Config) -> None:
    """Raise `InputError`, naming each differing key, if `out` holds a run of another config.

    Keys outside the run's digest (stopping, logging, loader) may differ. Raises it for an empty
    config.yaml, too.
    """
    path = out / "config.yaml"
    if not path.exists():
        return
    if not path.stat().st_size:
        raise InputError(f"{path} is empty: put the run's config back, or give another --out")
    differing = config_differences(load_config(path), config)
    if differing:
        raise InputError(f"{out} holds another run: {first_of(differing)}; give another --out")


def check_nothing_lost(out: Path) -> None:
    """Raise `InputError` if `out`, which holds no checkpoint, must once have had one.

    Beginning anew would overwrite the record of a run whose checkpoints were removed or are on an
    unmounted disk. A run killed before its first checkpoint has lost nothing.
    """
    folder = out / "checkpoints"
    made = 0
    with contextlib.suppress(InputError):  # a damaged line; those before it have been counted
        for line in read_ledger(out / "ledger.jsonl"):
            made = max(made, line["step"] + 1)
    if folder.is_symlink() and not folder.exists():
        reason = f"{folder} is a link to nothing"
    elif (out / "model.safetensors").exists():
        reason = f"{out} holds a run's weights and none of its checkpoints"
    elif made and made > load_config(out / "config.yaml").train.checkpoint_every:
        reason = f"{out} holds the record of {made} steps and no checkpoint"
    else:
        return
    raise InputError(f"{reason}: put its checkpoints back, or give another --out")


def config_differences(there: Config, here: Config) -> list[str]:
    """Differing keys that can change the result, as `train.seed is 0 there, 1 now`."""
    ignored = {f"train.{key}" for key in RUN_DIGEST_EXCLUDES} | {"name"}
    pairs = differences(_plain(there), _plain(here), Config)
    return [
        f"{key} is {before} there, {now} now"
        for key, (before, now) in sorted(pairs.items())
        if key not in ignored and not key.startswith("shards.")
    ]


def recorded_start(out: Path) -> str | None:
    """`train.init_from` in the run's config.yaml; None also if there is no such file."""
    path = out / "config.yaml"
    return load_config(path).train.init_from if path.exists() else None


def write_config(out: Path, config: Config) -> None:
    """Write the resolved config to the run's config.yaml."""
    write_atomically(out / "config.yaml", config_yaml(config).encode())


def _plain(config: Config) -> dict:
    """The config as plain data, without prior extensions that affect no microbatch."""
    return {**config.model_dump(mode="json"), "prior": plan_of(config.prior)["prior"]}
