"""The `prior-gen` command."""

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from prior_gen.estimate import estimate
from prior_gen.generator import generate_shards, write_parts
from prior_gen.info import as_ranges, describe_shards
from prior_gen.seeding import Split
from prior_gen.stages import parse_stages, tail_stages
from puicl_config import Config, InputError, duration, exit_on_input_error, load_config, plan_digest
from shard_io import Layout, PartId, open_shards, stray_files, verify_part

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Generate the synthetic PU tasks of a plan into shards, and look after them.",
)
Folder = Annotated[Path, typer.Argument(help="Folder of shards.", metavar="DIR")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; default: all cores.")]


@app.callback(invoke_without_command=True)
def generate(
    context: typer.Context,
    stages: Annotated[
        str | None, typer.Option(help="Stages to generate, such as 1-100 or 1-3,7.")
    ] = None,
    tail: Annotated[bool, typer.Option("--tail", help="The stages above the curriculum.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the shards.")] = Path("shards"),
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
    if dry_run:
        _show_estimate(settings, wanted, split)
        return
    with _says_how_to_go_on():
        result = generate_shards(settings, out, wanted, split, jobs, backend, address)
    tasks = sum(entry.n_tasks for entry in result.written)
    size = sum(entry.n_bytes for entry in result.written)
    already = f", {result.skipped} parts were there" if result.skipped else ""
    print(
        f"{out}: wrote {len(result.written)} parts with {tasks} tasks, {size / 1e6:.1f} MB, in "
        f"{duration(result.seconds)} ({tasks / result.seconds:.0f} tasks/s){already}"
    )


@app.command()
def info(
    folder: Folder,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Say what a folder holds: stages, tasks, bytes, tags and config."""
    facts = describe_shards(folder)
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    table = Table(title=str(folder), show_header=False)
    table.add_row("plan", facts["plan_digest"][:16])
    table.add_row("split", facts["split"])
    table.add_row("storage", ", ".join(f"{k}={v}" for k, v in facts["storage"].items()))
    table.add_row("stages", as_ranges(facts["stages"]))
    table.add_row("missing parts of these", ", ".join(facts["missing_parts"]) or "none")
    for key in ("parts", "microbatches", "tasks", "rows", "cells"):
        table.add_row(key, f"{facts[key]:,}")
    table.add_row("bytes on disk", f"{facts['bytes'] / 1e6:,.1f} MB")
    for name, values in facts["tags"].items():
        table.add_row(name, ", ".join(f"{key} {_short(count)}" for key, count in values.items()))
    Console().print(table)


@app.command()
def verify(folder: Folder) -> None:
    """Re-read and re-hash every file; exit with 1 if anything is wrong."""
    reader = open_shards(folder)
    parts = reader.published_parts()
    problems = [
        *filter(None, (verify_part(folder, part) for part in parts)),
        *(f"{name} is missing" for name in _missing(folder)),
        *stray_files(folder),
    ]
    for problem in problems:
        print(problem)
    if problems:
        print(f"{folder}: {len(problems)} problems; `prior-gen repair {folder}` mends bad parts")
        sys.exit(1)
    print(f"{folder}: {len(parts)} parts are whole and match their digests")


@app.command()
def repair(folder: Folder, jobs: Jobs = None) -> None:
    """Generate again exactly the bad parts, and the missing ones of stages begun."""
    reader = open_shards(folder)
    bad = [part for part in reader.published_parts() if verify_part(folder, part)]
    missing = [part for part in _missing_ids(folder) if part not in bad]
    with _says_how_to_go_on():
        result = write_parts(reader.manifest, folder, sorted([*bad, *missing]), jobs)
    for problem in stray_files(folder):
        print(f"left alone: {problem}")
    print(f"{folder}: made {len(result.written)} parts again")


@app.command()
def preview(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path("results/preview"),
    tasks: Annotated[
        int, typer.Option(min=1, help="Tasks scored for difficulty; most of the time goes there.")
    ] = 160,
    seed: Annotated[int, typer.Option(min=0, help="Of what is sampled.")] = 0,
) -> None:
    """Draw what a folder holds: tasks, curriculum, tags and how hard it is, on one page."""
    # Imported here: scikit-learn and matplotlib would cost every other command seconds.
    from prior_gen.preview import write_preview

    numbers = write_preview(folder, out, tasks, seed)
    missing = len(numbers["missing_parts"])
    print(
        f"{out / 'index.html'}: {len(numbers['stages_sampled'])} stages of plan "
        f"{numbers['plan_digest'][:16]}, {numbers['microbatches_sampled']:,} microbatches sampled, "
        f"{numbers['tasks_scored']:,} tasks scored"
        + (f"; {missing:,} parts of the stages begun are missing" if missing else "")
    )


def main() -> None:
    """Entry point of `prior-gen`."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    exit_on_input_error(app)()


@contextlib.contextmanager
def _says_how_to_go_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print(
            "stopped; published parts are whole: run the same command again to go on",
            file=sys.stderr,
        )
        sys.exit(130)


def _missing_ids(folder: Path) -> list[PartId]:
    reader = open_shards(folder)
    begun = sorted({part.stage for part in reader.published_parts()})
    return reader.missing_parts(begun)


def _missing(folder: Path) -> list[str]:
    return [part.name for part in _missing_ids(folder)]


def _show_estimate(settings: Config, stages: list[int], split: Split) -> None:
    layout = Layout(settings.prior, settings.shards.parts_per_stage)
    parts = [part for stage in stages for part in layout.parts_of_stage(stage)]
    size = estimate(settings, parts, split)
    print(
        f"plan {plan_digest(settings.prior)[:16]}: stages {as_ranges(stages)}, {size.parts:,} "
        f"parts, {size.microbatches:,} microbatches, {size.tasks:,} tasks, about "
        f"{size.rows:,.0f} rows, {size.cells:,.0f} cells, {size.bytes / 1e9:.3g} GB uncompressed"
    )


def _short(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
