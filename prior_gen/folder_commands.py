"""The commands of `prior-gen` that work on an existing folder of shards."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from prior_gen.convert import convert_shards
from prior_gen.generator import check_canary, write_parts
from prior_gen.info import can_be_written, describe_shards, owed_by_shares, spoken_ranges
from prior_gen.rebuild import rebuild_manifest
from prior_gen.regenerate import regenerate_parts
from prior_gen.settings import Overrides, read_settings
from prior_gen.stages import parse_stages
from puicl_config import InputError, ProgressReport, counted, plan_digest, visible, volume
from puicl_config.speaking import speak
from puicl_config.workers import stops_with
from shard_io import (
    BELONGS_NOWHERE,
    MANIFEST,
    ManifestLost,
    PartId,
    Store,
    absent_parts,
    as_ranges,
    bad_parts,
    command_for,
    folder_of,
    local_folder,
    open_shards,
    problems_of,
    repairing,
    slice_shards,
    store_of,
    stray_files,
    sweep_staging,
)

Folder = Annotated[str, typer.Argument(help="Folder of shards, or its URL.", metavar="DIR")]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Processes; default: one per core, fewer for little work.")
]
_NAMED = 12
HOW_TO_GO_ON = "published parts are whole: run the same command again to go on"


def add_folder_commands(app: typer.Typer) -> None:
    """Add the commands of this file to `app`."""
    for command in (info, verify, repair, convert, preview):
        app.command()(command)
    app.command("slice")(slice_)


@stops_with("nothing was changed")
def info(
    place: Folder,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    stages: Annotated[
        str | None, typer.Option(help="Stages that an array of jobs generates.")
    ] = None,
    shares: Annotated[
        int | None,
        typer.Option(
            min=1, help="The n of the array's --part-range i/n: only list what each job still owes."
        ),
    ] = None,
) -> None:
    """Show what a folder holds and lacks: stages, parts, tasks, bytes and tags."""
    folder = folder_of(place)
    if (stages is None) != (shares is None):
        raise InputError("--stages and --shares go together: give those that the array began with")
    if stages is not None and shares is not None:
        _show_shares(folder, stages, shares, as_json)
        return
    facts = describe_shards(folder)
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    table = Table(title=visible(str(folder)), show_header=False)

    def add(name: str, value: str) -> None:
        table.add_row(visible(name), visible(value))

    add("plan", facts["plan_digest"][:16])
    add("split", facts["split"])
    if facts["slice"]:
        add("slice of this plan", facts["slice"]["where"])
    add("storage", ", ".join(f"{k}={v}" for k, v in facts["storage"].items()))
    add("stages", spoken_ranges(facts["stages"]))
    add("stages not begun", spoken_ranges(facts["missing_stages"]))
    add("missing parts of these", _some(facts["missing_parts"]) or "none")
    for key in ("parts", "microbatches", "tasks", "rows", "cells"):
        add(key, f"{facts[key]:,}")
    add("bytes on disk", volume(facts["bytes"]))
    for name, values in facts["tags"].items():
        add(name, ", ".join(f"{key} {_short(count)}" for key, count in values.items()))
    if facts["parts"] and not facts["tags"]:
        add("tags", "not read: the tars behind this URL would be downloaded whole")
    # Names are no markup, such as [red] or :bug:, whatever they look like.
    Console(markup=False, emoji=False).print(table)
    for command in facts["commands"]:
        print(visible(f"makes what is missing: {command}"))


def _show_shares(folder: Path | Store, stages: str, shares: int, as_json: bool) -> None:
    reader = open_shards(folder)
    wanted = parse_stages(stages, reader.manifest.config.prior)
    owed = owed_by_shares(reader, wanted, shares)
    if as_json:
        print(json.dumps({"missing_parts": owed, "array": as_ranges(owed)}, indent=1))
        return
    if not owed:
        print(f"{folder}: nothing is missing of stages {spoken_ranges(wanted)}")
        return
    print(
        f"{folder}: stages {spoken_ranges(wanted)} lack {counted(sum(owed.values()), 'part')}, of "
        f"{counted(len(owed), 'share')}: --array={as_ranges(owed)}"
    )
    for i in owed if can_be_written(folder) else ():
        print(command_for(folder, wanted, f" --part-range {i}/{shares}"))


@stops_with("nothing was changed")
def verify(
    place: Folder,
    regenerate: Annotated[
        int, typer.Option(min=0, help="Also regenerate this many random parts and compare.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed that draws the random parts.")] = 0,
    jobs: Jobs = None,
) -> None:
    """Re-read and re-hash every file; exit with 1 if anything is wrong."""
    folder = folder_of(place)
    parts = open_shards(folder).published_parts()
    with ProgressReport("prior-gen verify", len(parts), "parts") as progress:
        count = _print_all(problems_of(folder, progress.advance))
    again, options = "", ""
    if regenerate:
        chosen, unlike = _generate_again(folder, regenerate, seed, jobs)
        count += _print_all(f"{part.name} differs from what its seeds give" for part in unlike)
        options = f" --regenerate {regenerate} --seed {seed}" if unlike else ""
        same = "its seeds, is the same" if len(chosen) == 1 else "their seeds, are the same"
        again = f"; {len(chosen)} of them, made again from {same}"
    unseen = ""
    if store_of(folder).listing() is None:
        unseen = "; extra files were not looked for, as a web server does not list its folders"
    if count:
        mend = _how_to_mend(folder, count, options) if can_be_written(folder) else ""
        print(f"{folder}: {counted(count, 'problem')}{mend}{unseen}")
        sys.exit(1)
    whole = "is whole and matches its" if len(parts) == 1 else "are whole and match their"
    print(f"{folder}: {counted(len(parts), 'part')} {whole} digests{again}{unseen}")


@stops_with(HOW_TO_GO_ON)
def repair(
    place: Folder,
    regenerate: Annotated[
        int,
        typer.Option(
            min=0, help="Also repair what `verify` with this number and --seed finds different."
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed that draws the random parts.")] = 0,
    config: Annotated[
        str | None,
        typer.Option(help="Config that DIR was made with, to rebuild a lost manifest."),
    ] = None,
    overrides: Overrides = None,
    jobs: Jobs = None,
) -> None:
    """Regenerate exactly the bad parts, and the missing parts of stages that were begun.

    A missing or damaged manifest is first rebuilt from the parts' own entries.
    """
    folder = folder_of(place)
    store_of(folder).check_writable()
    _rebuild_if_lost(folder, config, overrides or [])
    reader = open_shards(folder)
    if isinstance(folder, Path):
        sweep_staging(folder)
    unlike = _generate_again(folder, regenerate, seed, jobs)[1] if regenerate else []
    with ProgressReport("prior-gen repair", len(reader.published_parts()), "parts") as progress:
        bad = bad_parts(folder, progress.advance)
    parts = sorted({*bad, *absent_parts(folder), *unlike})
    if parts:
        check_canary(reader.manifest)
    before = store_of(folder).read(MANIFEST)
    result = write_parts(reader.manifest, folder, parts, jobs)
    if not parts and store_of(folder).read(MANIFEST) != before:
        print(f"{folder}: the manifest says again what the parts' own entries say")
    for problem in stray_files(folder):
        print(visible(f"left alone: {problem}"))
    print(f"{folder}: made {counted(len(result.written), 'part')} again")


def _rebuild_if_lost(folder: Path | Store, config: str | None, overrides: list[str]) -> None:
    """Rebuild the manifest of `folder` if it is missing or damaged.

    Raises `ShardError` if it cannot be rebuilt, and `InputError` if there are overrides without a
    `config`, or if the manifest is whole and `config` is of another plan.
    """
    if overrides and config is None:
        raise InputError("--set overrides a --config: give that, too")
    settings = read_settings(config, overrides)[0] if config is not None else None
    try:
        plan = open_shards(folder).manifest.plan_digest
    except ManifestLost:
        manifest = rebuild_manifest(folder, settings)
        print(f"{folder}: rebuilt the manifest, of {manifest.plan_id}")
        return
    if settings and plan_digest(settings.prior) != plan:
        raise InputError(
            f"{folder} has a whole manifest, of plan {plan[:16]}, and --config is of another plan: "
            "repair takes the folder's own, without --config"
        )


@stops_with(HOW_TO_GO_ON)
def convert(
    source: Annotated[str, typer.Argument(help="Folder of shards, or its URL.", metavar="SRC")],
    out: Annotated[
        str, typer.Argument(help="Folder or s3:// URL of the new shards.", metavar="DST")
    ],
    shard_format: Annotated[
        Literal["zarr", "webdataset"], typer.Option("--format", help="Format of the new shards.")
    ],
    jobs: Jobs = None,
) -> None:
    """Store the same tasks in another format, without computing them again."""
    result = convert_shards(folder_of(source), folder_of(out), shard_format, jobs)
    size = sum(entry.n_bytes for entry in result.written)
    already = f", {counted(result.skipped, 'part')} there already" if result.skipped else ""
    print(f"{out}: stored {counted(len(result.written), 'part')}, {volume(size)}{already}")


@stops_with("run the same command again to go on")
def slice_(
    source: Annotated[str, typer.Argument(help="Folder of shards, or its URL.", metavar="SRC")],
    where: Annotated[
        str, typer.Option(help="Tasks to keep, such as 'causal and n_features <= 10'.")
    ],
    out: Annotated[str, typer.Option(help="Folder of the slice.")],
) -> None:
    """Select a subset of a folder by tags, for an ablation; its data is linked, not copied."""
    manifest = slice_shards(folder_of(source), where, local_folder(out))
    index, layout = manifest.slice, manifest.layout
    assert index is not None, "of a slice"
    for stage, survivors in index.survivors.items():
        print(
            f"stage {stage}: {len(survivors)} of {layout.microbatches_in_stage(stage)} "
            f"microbatches, each read {index.reuse(layout, stage):.3g} times"
        )
    print(visible(f"{out}: the slice of plan {manifest.plan_digest[:16]} where {index.where}"))


@stops_with("nothing was written")
def preview(
    place: Folder,
    out: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path("results/preview"),
    tasks: Annotated[
        int, typer.Option(min=1, help="Tasks scored for difficulty, which takes most of the time.")
    ] = 160,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is sampled.")] = 0,
) -> None:
    """Draw what a folder holds on one page: tasks, curriculum, tags and difficulty."""
    # Imported here, since scikit-learn and matplotlib would delay every other command by seconds.
    from prior_gen.preview import write_preview

    numbers = write_preview(folder_of(place), out, tasks, seed)
    missing = len(numbers["missing_parts"])
    print(
        f"{out / 'index.html'}: {counted(len(numbers['stages_sampled']), 'stage')} of plan "
        f"{numbers['plan_digest'][:16]}, "
        f"{counted(numbers['microbatches_sampled'], 'microbatch')} sampled, "
        f"{counted(numbers['tasks_scored'], 'task')} scored"
        + (f"; the stages begun lack {counted(missing, 'part')}" if missing else "")
    )


def _generate_again(
    folder: Path | Store, count: int, seed: int, jobs: int | None
) -> tuple[list[PartId], list[PartId]]:
    """`regenerate_parts`, which may take minutes, after a line that says so."""
    speak(f"making up to {counted(count, 'part')} again from their seeds", sys.stderr)
    return regenerate_parts(folder, count, seed, jobs)


def _how_to_mend(folder: Path | Store, count: int, options: str) -> str:
    """Say how to fix `count` problems.

    If all are files that belong to no part, only the user can remove them. If there are other
    problems, too, such files may come from a bad part, and `repair` is suggested.
    """
    strays = sum(problem.endswith(BELONGS_NOWHERE) for problem in stray_files(folder))
    if strays == count:
        return f"; remove what {BELONGS_NOWHERE} yourself, repair leaves it alone"
    return f"; {repairing(folder, options)} mends bad parts"


def _print_all(sentences: Iterable[str]) -> int:
    count = 0
    for sentence in sentences:
        print(visible(sentence), flush=True)
        count += 1
    return count


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more (--json lists all)" if more > 0 else "")


def _short(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
