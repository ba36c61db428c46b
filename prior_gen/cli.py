"""The `prior-gen` command."""

import re
import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.core import TyperGroup

from prior_gen.estimate import compressed, estimate, measure, worker_count
from prior_gen.folder_commands import HOW_TO_GO_ON, Jobs, add_folder_commands
from prior_gen.generator import (
    GenerationResult,
    check_space,
    free_space,
    generate_shards,
    look_ahead,
    manifest_here,
)
from prior_gen.info import spoken_ranges
from prior_gen.settings import Overrides, read_settings
from prior_gen.stages import (
    WHOLE,
    PartRange,
    parse_part_range,
    parse_stages,
    tail_stages,
)
from puicl_config import (
    Config,
    InputError,
    Split,
    counted,
    duration,
    exit_on_input_error,
    idle_in_prior,
    plan_digest,
    version_printer,
    volume,
)
from puicl_config.workers import check_backend, stops_with, take_sigterm_for_ctrl_c
from shard_io import Store, as_ranges, folder_of, open_shards

_VERSION = version_printer("prior-gen")


class _Command(TyperGroup):
    """The `prior-gen` command group.

    An override given as an argument, as the trainer takes them, is refused with a hint at `--set`.
    """

    def resolve_command(self, ctx, args):
        if args and re.fullmatch(r"[a-z_]+(\.\w+)+=.*", args[0], re.DOTALL):
            raise InputError(
                f"{args[0]} is not a command; to override the config, give --set {args[0]}"
            )
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Command,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Generate the synthetic PU tasks of a plan as shards, and manage folders of shards.",
)
add_folder_commands(app)


@app.callback(invoke_without_command=True)
def generate(
    context: typer.Context,
    stages: Annotated[
        str | None, typer.Option(help="Stages to generate, such as 1-100 or 1-3,7.")
    ] = None,
    tail: Annotated[
        bool, typer.Option("--tail", help="Generate the stages after the curriculum.")
    ] = False,
    part_range: Annotated[
        str | None,
        typer.Option(
            help="Generate only share i of n of the parts, from 1/n to n/n.", metavar="i/n"
        ),
    ] = None,
    out: Annotated[
        str, typer.Option(help="Folder of the shards, or s3://bucket/prefix.")
    ] = "shards",
    config: Annotated[
        str, typer.Option(help="Config: a path, a shipped name, or DIR/manifest.json.")
    ] = "paper",
    overrides: Overrides = None,
    shard_format: Annotated[
        Literal["zarr", "webdataset"] | None,
        typer.Option("--format", help="Format of the shards; overrides shards.format."),
    ] = None,
    split: Annotated[
        Literal["train", "heldout"] | None,
        typer.Option(
            help="Seed domain: train, or heldout, which is never trained on. Default: train, or "
            "that of DIR/manifest.json."
        ),
    ] = None,
    jobs: Jobs = None,
    backend: Annotated[
        Literal["loky", "dask", "ray"], typer.Option(help="Where the workers run.")
    ] = "loky",
    address: Annotated[
        str | None, typer.Option(help="Join this Dask scheduler or Ray cluster.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only say what would be generated, and how long it takes."),
    ] = False,
    _: Annotated[
        bool,
        typer.Option("--version", callback=_VERSION, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Generate those parts of the given stages that OUT lacks; run it again to resume."""
    if context.invoked_subcommand:
        return
    overrides = list(overrides or [])
    if shard_format:
        overrides.append(f"shards.format={shard_format}")
    settings, usual_split = read_settings(config, overrides)
    split = split or usual_split
    if stages is None and not tail:
        raise InputError(f"give --stages 1-{settings.prior.stages} (or another range), or --tail")
    wanted = parse_stages(stages, settings.prior) if stages is not None else []
    if tail:
        wanted = sorted({*wanted, *tail_stages(settings.prior)})
    share = WHOLE if part_range is None else parse_part_range(part_range)
    for idle in idle_in_prior(settings.prior):
        print(f"note: {idle}")
    if dry_run:
        check_backend(backend, address)
        with stops_with("nothing was written"):
            _show_estimate(settings, folder_of(out), wanted, split, share, jobs, address)
        return
    with stops_with(HOW_TO_GO_ON):
        result = generate_shards(
            settings, folder_of(out), wanted, split, jobs, backend, address, share
        )
    _show_result(out, result)
    if share != WHOLE:
        _show_what_others_owe(out, wanted, shares=share[1])


def main() -> None:
    """Entry point of `prior-gen`."""
    take_sigterm_for_ctrl_c()
    exit_on_input_error(app)()


def _show_result(out: str, result: GenerationResult) -> None:
    tasks = sum(entry.n_tasks for entry in result.written)
    size = sum(entry.n_bytes for entry in result.written)
    already = f", {counted(result.skipped, 'part')} there already" if result.skipped else ""
    print(
        f"{out}: wrote {counted(len(result.written), 'part')} with {counted(tasks, 'task')}, "
        f"{volume(size)}, in {duration(result.seconds)} "
        f"({tasks / result.seconds:.0f} tasks/s){already}"
    )


def _show_what_others_owe(out: str, stages: list[int], shares: int) -> None:
    missing = open_shards(out).missing_parts(stages)
    if missing:
        text = as_ranges(stages)
        print(
            f"{out}: these stages still lack {counted(len(missing), 'part')}; `prior-gen info "
            f"{shlex.quote(out)} --stages {text} --shares {shares}` names the shares that owe them"
        )


def _sampled(count: float) -> str:
    """Format a count with three significant digits, since it comes from a sample."""
    return f"{float(f'{count:.3g}'):,.0f}"


def _show_estimate(
    settings: Config,
    folder: Path | Store,
    stages: list[int],
    split: Split,
    share: PartRange,
    jobs: int | None,
    address: str | None,
) -> None:
    """Print what a run would make and how long it would take.

    With the `address` of a cluster, whose number of workers is unknown, time is that of one worker.
    """
    todo = look_ahead(folder, manifest_here(settings, split), stages, share)
    parts = todo.missing
    size = estimate(settings, parts, split)
    print(
        f"plan {plan_digest(settings.prior)[:16]}: stages {spoken_ranges(stages)}, "
        f"{counted(size.parts, 'part')}, {counted(size.microbatches, 'microbatch')}, "
        f"{counted(size.tasks, 'task')}, about {_sampled(size.rows)} rows, "
        f"{_sampled(size.cells)} cells, {volume(size.bytes)} "
        "uncompressed"
    )
    if todo.present:
        exist = "part exists" if todo.present == 1 else "parts exist"
        print(f"{folder}: {todo.present:,} more {exist} already and would be kept")
    if not parts:
        return
    cost = measure(settings, parts, split, size)
    workers = None if address else worker_count(jobs, len(parts), size.tasks)
    who = counted(workers, "worker") if workers else "one worker"
    if cost is None:
        print(
            f"a microbatch holds about {size.cells / size.microbatches:.3g} cells: too many to "
            "make some for an estimate of the time"
        )
    else:
        print(
            f"from {counted(cost.sampled, 'microbatch')} made here: about "
            f"{duration(cost.seconds / (workers or 1))} with {who}, about {volume(cost.bytes)} "
            f"on disk as {settings.shards.format}"
        )
    if not isinstance(folder, Path):
        print(f"{folder}: free space cannot be checked behind a URL")
        return
    check_space(folder, compressed(size, cost))
    print(f"{folder}: {volume(free_space(folder))} are free there")
