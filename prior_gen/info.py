"""What a shard folder holds, in numbers."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from shard_io import open_shards

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


def describe_shards(folder: Path) -> dict[str, Any]:
    """Plan, storage, counts, missing parts and the distribution of tags, as JSON values.

    Counts are of what is stored; in a slice, the distribution is of the survivors, each once.
    """
    reader = open_shards(folder)
    manifest, published = reader.manifest, reader.published_parts()
    entries = [reader.entry(part) for part in published]
    stages = sorted({part.stage for part in published})
    lacking = reader.missing_parts(range(1, manifest.config.prior.total_stages + 1))
    counts: dict[str, Counter] = {name: Counter() for name in (*_COUNTED, "activations")}
    extended: Counter = Counter()
    measured: dict[str, list[float]] = {name: [] for name in (*_MEASURED, "pi")}
    for part_id in published:
        part = reader.part(part_id)
        for tags in (part.tags(position) for position in reader.positions(part_id)):
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
        "tags": {
            **{name: dict(sorted(counter.items())) for name, counter in counts.items()},
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


def as_ranges(numbers: list[int]) -> str:
    """[1, 2, 3, 7] as `1-3, 7`."""
    if not numbers:
        return "none"
    pieces, start = [], numbers[0]
    for here, following in zip(numbers, [*numbers[1:], None], strict=True):
        if following != here + 1:
            pieces.append(str(here) if start == here else f"{start}-{here}")
            start = following
    return ", ".join(pieces)
