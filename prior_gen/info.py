"""Figures on what a folder of shards holds, and commands that make what it lacks."""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from prior_gen.stages import share_of
from prior_gen.structure import has_scm
from puicl_config import InputError
from shard_io import PartId, ShardReader, Store, as_ranges, command_for, open_shards, store_of

_COUNTED = (
    "hidden_layers",
    "hidden_width",
    "sigma_noise",
    "input_distribution",
    "causal",
    "source",
    "label_position",
    "ordering",
)
_MEASURED = ("n_features", "n_labeled", "n_unlabeled", "eta")


def describe_shards(folder: Path | Store) -> dict[str, Any]:
    """Plan, storage, counts, missing parts and the distribution of tags, as JSON values.

    Counts cover what is stored. In a slice, the distribution of tags covers the surviving
    microbatches, each once. Tags of an SCM are counted only for microbatches that have one. Little
    more than the tags is read. `tags` is empty for tars behind a URL, which would have to be
    downloaded completely. Raises `ShardError` if `folder` holds no whole manifest.
    """
    reader = open_shards(folder)
    manifest, published = reader.manifest, reader.published_parts()
    entries = reader.entries(published)
    stages = sorted({part.stage for part in published})
    lacking = reader.missing_parts(range(1, manifest.config.prior.total_stages + 1))
    counts: dict[str, Counter] = {name: Counter() for name in (*_COUNTED, "activations")}
    extended: Counter = Counter()
    measured: dict[str, list[float]] = {name: [] for name in (*_MEASURED, "pi")}
    for tags_of_part in _tags(reader, published):
        for tags in tags_of_part:
            if has_scm(tags):
                for name in _COUNTED:
                    counts[name][str(tags[name])] += 1
                counts["activations"].update(tags["activations"])
            extended.update(["extended", *tags["extensions"]] if "extensions" in tags else ["none"])
            for name in _MEASURED:
                measured[name].append(tags[name])
            measured["pi"].extend(tags["pi"])
    if set(extended) - {"none"}:
        counts["extensions"] = extended
    return {
        "plan_digest": manifest.plan_digest,
        "split": manifest.split,
        "storage": manifest.storage.model_dump(mode="json"),
        "slice": manifest.slice.to_plain(reader.layout) if manifest.slice else None,
        "plan": manifest.config.prior.model_dump(mode="json"),
        "stages": stages,
        "parts": len(published),
        "missing_stages": sorted({part.stage for part in lacking} - set(stages)),
        "missing_parts": [part.name for part in lacking if part.stage in stages],
        "microbatches": sum(entry.n_microbatches for entry in entries),
        "tasks": sum(entry.n_tasks for entry in entries),
        "rows": sum(entry.n_rows for entry in entries),
        "cells": sum(entry.n_cells for entry in entries),
        "bytes": sum(entry.n_bytes for entry in entries),
        "commands": commands_for(reader, stages, lacking),
        "tags": {
            **{name: dict(sorted(counter.items())) for name, counter in counts.items() if counter},
            **{
                name: {
                    "min": float(np.min(values)),
                    "mean": float(np.mean(values)),
                    "max": float(np.max(values)),
                }
                for name, values in measured.items()
                if values
            },
        },
    }


def commands_for(reader: ShardReader, begun: Sequence[int], lacking: Sequence[PartId]) -> list[str]:
    """Commands to paste into a shell that make what the folder lacks.

    `begun` are the stages that have parts, `lacking` all missing parts. Empty for slices and for
    folders that cannot be written to.
    """
    if reader.manifest.slice or not can_be_written(reader.folder):
        return []
    commands = []
    if any(part.stage in begun for part in lacking):
        commands.append(f"prior-gen repair {shlex.quote(str(reader.folder))}")
    if others := sorted({part.stage for part in lacking} - set(begun)):
        commands.append(command_for(reader.folder, others))
    return commands


def owed_by_shares(reader: ShardReader, stages: Sequence[int], shares: int) -> dict[int, int]:
    """Missing parts of each share i, for an array of `shares` jobs `--part-range i/n`.

    Shares that lack nothing are left out.
    """
    wanted = [part for stage in stages for part in reader.layout.parts_of_stage(stage)]
    missing = set(reader.missing_parts(stages))
    owed = {
        i: sum(part in missing for part in share_of(wanted, (i, shares)))
        for i in range(1, min(shares, len(wanted)) + 1)
    }
    return {i: count for i, count in owed.items() if count}


def can_be_written(folder: Path | Store) -> bool:
    """Whether `folder` is of a kind that can be written to: not a read-only URL."""
    try:
        store_of(folder).check_writable()
    except InputError:
        return False
    return True


def _tags(reader: ShardReader, parts: Sequence[PartId]) -> Iterable[list[dict[str, Any]]]:
    if isinstance(reader.folder, Path):
        return (reader.tags(part) for part in parts)
    if reader.manifest.storage.format != "zarr":
        return []
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(reader.tags, parts))


def spoken_ranges(numbers: Iterable[int]) -> str:
    """[1, 2, 3, 7] as `1-3, 7`; an empty list as `none`."""
    return as_ranges(numbers).replace(",", ", ") or "none"
