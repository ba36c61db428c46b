"""The `prior-gen` command."""

from typing import Annotated, Literal

import joblib
import typer

from prior_gen.estimate import estimate, measure
from prior_gen.folder_commands import HOW_TO_GO_ON, Jobs, add_folder_commands
from prior_gen.generator import GenerationResult, generate_shards
from prior_gen.info import as_ranges
from prior_gen.seeding import Split
from prior_gen.stages import (
    WHOLE,
    PartRange,
    parse_part_range,
    parse_stages,
    share_of,
    tail_stages,
)
from prior_gen.stopping import stops_with, take_sigterm_for_ctrl_c
from puicl_config import Config, InputError, duration, exit_on_input_error, load_config, plan_digest
from shard_io import Layout, folder_of, open_shards

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Generate the synthetic PU tasks of a plan into shards, and look after them.",
)
add_folder_commands(app)


@app.callback(invoke_without_command=True)
def generate(
    context: typer.Context,
    stages: Annotated[
        str | None, typer.Option(help="Stages to generate, such as 1-100 or 1-3,7.")
    ] = None,
    tail: Annotated[bool, typer.Option("--tail", help="The stages above the curriculum.")] = False,
    part_range: Annotated[
        str | None,
        typer.Option(help="Only share i of n of the parts, as i/n from 1/n to n/n.", metavar="i/n"),
    ] = None,
    out: Annotated[
        str, typer.Option(help="Folder of the shards, or s3://bucket/prefix.")
    ] = "shards",
    config: Annotated[str, typer.Option(help="Config: a path or a shipped name.")] = "paper",
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Override, section.key=value; repeatable.")
    ] = None,
    shard_format: Annotated[
        Literal["zarr", "webdataset"] | None,
        typer.Option("--format", help="Overrides shards.format."),
    ] = None,
    split: Annotated[
        Literal["train", "heldout"], typer.Option(help="Seed domain; heldout is never trained on.")
    ] = "train",
    jobs: Jobs = None,
    backend: Annotated[
        Literal["loky", "dask", "ray"], typer.Option(help="Where the workers live.")
    ] = "loky",
    address: Annotated[
        str | None, typer.Option(help="Join this Dask scheduler or Ray cluster.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be made.")
    ] = False,
) -> None:
    """Generate the parts of some stages that OUT lacks; run it again to go on."""
    if context.invoked_subcommand:
        return
    overrides = list(overrides or [])
    if shard_format:
        overrides.append(f"shards.format={shard_format}")
    settings = load_config(config, overrides)
    if stages is None and not tail:
        raise InputError(f"give --stages 1-{settings.prior.stages} (or another range), or --tail")
    wanted = parse_stages(stages, settings.prior) if stages else []
    if tail:
        wanted = sorted({*wanted, *tail_stages(settings.prior)})
    share = parse_part_range(part_range) if part_range else WHOLE
    if dry_run:
        _show_estimate(settings, wanted, split, share, jobs)
        return
    with stops_with(HOW_TO_GO_ON):
        result = generate_shards(
            settings, folder_of(out), wanted, split, jobs, backend, address, share
        )
    _show_result(out, result)
    if share != WHOLE:
        _show_what_others_owe(out, wanted)


def main() -> None:
    """Entry point of `prior-gen`."""
    take_sigterm_for_ctrl_c()
    exit_on_input_error(app)()


def _show_result(out: str, result: GenerationResult) -> None:
    tasks = sum(entry.n_tasks for entry in result.written)
    size = sum(entry.n_bytes for entry in result.written)
    already = f", {result.skipped} parts were there" if result.skipped else ""
    print(
        f"{out}: wrote {len(result.written)} parts with {tasks} tasks, {size / 1e6:.1f} MB, in "
        f"{duration(result.seconds)} ({tasks / result.seconds:.0f} tasks/s){already}"
    )


def _show_what_others_owe(out: str, stages: list[int]) -> None:
    missing = open_shards(out).missing_parts(stages)
    if missing:
        print(
            f"{out}: {len(missing)} parts of these stages are still missing; "
            f"`prior-gen info {out}` names them"
        )


def _show_estimate(
    settings: Config, stages: list[int], split: Split, share: PartRange, jobs: int | None
) -> None:
    layout = Layout(settings.prior, settings.shards.parts_per_stage)
    parts = share_of([part for stage in stages for part in layout.parts_of_stage(stage)], share)
    size = estimate(settings, parts, split)
    print(
        f"plan {plan_digest(settings.prior)[:16]}: stages {as_ranges(stages)}, {size.parts:,} "
        f"parts, {size.microbatches:,} microbatches, {size.tasks:,} tasks, about "
        f"{size.rows:,.0f} rows, {size.cells:,.0f} cells, {size.bytes / 1e9:.3g} GB uncompressed"
    )
    if not parts:
        return
    cost = measure(settings, parts, split, size)
    workers = min(jobs or joblib.cpu_count(), len(parts))
    print(
        f"from {cost.sampled} microbatches made here: about {duration(cost.seconds / workers)} "
        f"with {workers} {'worker' if workers == 1 else 'workers'}, about {cost.bytes / 1e9:.3g} "
        f"GB on disk as {settings.shards.format}"
    )
