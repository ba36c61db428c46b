"""Command line of `torchrun trainer/main.py`, and process-wide settings that must come first."""

import errno
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer

from puicl_config import Config, InputError, fixable_reason, from_home, load_config
from puicl_config.speaking import drop_unheard, speak
from shard_io import NoShards, as_ranges
from trainer.fit import fit
from trainer.freed_memory import keep_freed_memory
from trainer.sampler import stages_of_steps
from trainer.stop import heed_end_of_torchrun
from trainer.world import choose_algorithms, join_world, leave_world

# Errors that running the same command again cannot fix.
_NO_PLACE = {
    *(errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOENT, errno.EISDIR, errno.EEXIST)
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")


@app.command()
def train(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            help="section.key=value, such as train.sampler=shuffled.", show_default=False
        ),
    ] = None,
    config: Annotated[str, typer.Option(help="Config: a path or a shipped name.")] = "paper",
    shards: Annotated[
        str, typer.Option(help="Folder of shards, or an s3:// or http(s):// URL.")
    ] = "shards",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run; default: runs/NAME, of the config's name."),
    ] = None,
    more_overrides: Annotated[
        list[str] | None,
        typer.Option("--set", help="The same, written as for prior-gen.", show_default=False),
    ] = None,
) -> None:
    """Train PUICL on pregenerated shards; the same command resumes after any stop."""
    changes = [*(overrides or []), *(more_overrides or [])]
    settings = load_config(config, changes)
    heed_end_of_torchrun()
    torch.set_num_threads(settings.train.threads_per_process)
    keep_freed_memory()
    choose_algorithms(settings.train.deterministic)
    world = join_world(settings.train.device)
    settings = _resolve(settings, world.device.type)
    out = from_home(out) if out else Path("runs") / settings.name
    try:
        fit(settings, shards, out, world)
    except NoShards as error:
        how = _how_to_begin(settings, config, changes, shards)
        raise InputError(f"{error}; {how}") from None
    leave_world()
    drop_unheard()


def main() -> None:
    """Entry point; on bad input, each process affected prints one sentence and exits with 2."""
    try:
        app(standalone_mode=True)
    except InputError as error:
        _exit(str(error))
    except OSError as error:
        reason = fixable_reason(error)
        if reason is None:
            raise
        place = f": {error.filename}" if error.filename else ""
        if error.errno in _NO_PLACE:
            _exit(f"{reason}{place}; give another path")
        _exit(
            f"{reason}{place}; what was saved before, if anything, is whole, and the same command "
            "goes on from there"
        )


def _exit(sentence: str) -> None:
    # Only the process that meets an error can report it. Without torchrun there is no RANK.
    rank = int(os.environ.get("RANK", 0))
    of = f" (process {rank})" if rank else ""
    speak(f"error{of}: {sentence}", sys.stderr)
    sys.exit(2)


def _how_to_begin(settings: Config, config: str, overrides: Sequence[str], shards: str) -> str:
    """Advice for a `--shards` that does not exist yet, phrased as the end of a sentence."""
    if shards.startswith(("http://", "https://")):  # prior-gen cannot write to these
        return "give another --shards"
    prior, train = settings.prior, settings.train
    stages = as_ranges(stages_of_steps(prior, train, 0, prior.total_steps))
    words = ["prior-gen", "--config", config]
    for override in overrides:
        if override.startswith(("prior", "shards")):  # the sections that prior-gen reads
            words += ["--set", override]
    command = shlex.join([*words, "--stages", stages, "--out", shards])
    return f"make them with `{command}`, or give another --shards"


def _resolve(config: Config, device: str) -> Config:
    """Replace each "auto" by its value on this machine, so that the run's digest records it."""
    precision = config.train.precision
    if precision == "auto":
        precision = "bfloat16" if device == "cuda" else "float32"
    train = config.train.model_copy(update={"device": device, "precision": precision})
    return config.model_copy(update={"train": train})
