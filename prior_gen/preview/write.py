"""Writing of the preview: pictures, a page and the numbers behind them."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from prior_gen.preview.curriculum import realised, rows_outside
from prior_gen.preview.difficulty import BASELINES, ScoredTask, score_tasks, summarise
from prior_gen.preview.examples import choose_examples, choose_pairs
from prior_gen.preview.figure_curriculum import draw_curriculum
from prior_gen.preview.figure_difficulty import draw_difficulty, groups_of
from prior_gen.preview.figure_pairs import draw_pairs
from prior_gen.preview.figure_tags import draw_extensions, draw_tags
from prior_gen.preview.figure_tasks import draw_tasks
from prior_gen.preview.page import build_page
from prior_gen.preview.sample import Sample, take_sample
from prior_gen.preview.style import house_style
from prior_gen.preview.tags import TagCounts, extension_counts, tag_counts
from prior_gen.structure import SOURCES
from puicl_config import InputError, ProgressReport, nearest_there, write_atomically
from shard_io import Store, told_as_shard_error

PAGE, NUMBERS = "index.html", "preview.json"


def write_preview(
    folder: Path | Store, out: Path, tasks: int = 160, seed: int = 0
) -> dict[str, Any]:
    """Write pictures of what `folder` holds to `out`: index.html, one PNG per figure, preview.json.

    Only reads shards and generates none. `tasks` is the number of tasks scored for difficulty. The
    result depends only on the folder's content, `tasks`, `seed` and the versions of the software.
    Everything is computed before anything is written. Returns the content of preview.json.

    Raises `InputError` if `folder` has no finished part or `out` is unsuitable (not a folder, not
    writable, or inside `folder`), and `ShardError` if a part is damaged or writing fails.
    """
    _check_out(folder, out)
    sample = take_sample(folder, seed)
    n_tasks = min(tasks, sample.n_tasks)
    extensions = extension_counts(sample)
    # The number of threads could change the order of a sum, and with it the last digit.
    with ThreadpoolController().limit(limits=1), house_style():
        with ProgressReport("prior-gen preview", n_tasks, "tasks") as progress:
            scored = score_tasks(sample, n_tasks, progress.advance)
        columns, examples = choose_examples(sample)
        pictures = [
            draw_tasks(sample, columns, examples),
            *(draw_pairs(one, number) for number, one in enumerate(choose_pairs(examples), 1)),
            draw_curriculum(sample),
            draw_difficulty(sample, scored),
            draw_tags(sample),
        ]
        if extensions:
            pictures.append(draw_extensions(extensions))
    numbers = collect_numbers(sample, scored, extensions)
    files = {f"{picture.name}.png": picture.png for picture in pictures}
    files[NUMBERS] = (json.dumps(numbers, indent=1, allow_nan=False) + "\n").encode()
    files[PAGE] = build_page(sample, numbers, pictures).encode()
    with told_as_shard_error(out):
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomically(out / name, content)
    return numbers


def collect_numbers(
    sample: Sample, scored: Sequence[ScoredTask], extensions: TagCounts | None
) -> dict[str, Any]:
    """Everything that the pictures show, as JSON values; an AUC that is NaN becomes null."""
    eta_rows, pi_rows = rows_outside(sample)
    groups = groups_of(sample, scored)
    manifest = sample.reader.manifest
    return {
        "plan_digest": manifest.plan_digest,
        "split": manifest.split,
        "slice": manifest.slice and manifest.slice.where,
        "seed": sample.seed,
        "stages": sample.published_stages,
        "stages_sampled": list(sample.stages),
        "parts": len(sample.published),
        "parts_sampled": sample.parts_opened,
        "missing_parts": [part.name for part in sample.missing],
        "microbatches_sampled": len(sample.seen),
        "tasks_sampled": sample.n_tasks,
        "tasks_scored": len(scored),
        "curriculum": [
            {**asdict(stage), "causal_share": stage.causal_share if stage.with_scm else None}
            for stage in realised(sample)
        ],
        "rows_outside_the_plan": {"eta": eta_rows, "pi": pi_rows},
        "tags": {tag.name: asdict(tag) for tag in tag_counts(sample)},
        "extensions": extensions and asdict(extensions),
        "difficulty": {
            "tasks": [
                {
                    "address": list(task.address),
                    "task": task.task,
                    "source": task.source,
                    "auc": {k: None if np.isnan(v) else v for k, v in task.auc.items()},
                }
                for task in scored
            ],
            "by_stages": [
                {"stages": [group[0], group[-1]], **_summaries(scored, stages=set(group))}
                for group in groups
            ],
            "by_source": {
                source: _summaries(scored, source=source)
                for source in SOURCES
                if any(task.source == source for task in scored)
            },
        },
    }


def _summaries(scored: Sequence[ScoredTask], stages=None, source=None) -> dict[str, Any]:
    chosen = [
        task
        for task in scored
        if (stages is None or task.stage in stages) and (source is None or task.source == source)
    ]
    summaries = {name: summarise([task.auc[name] for task in chosen]) for name in BASELINES}
    return {name: summary and asdict(summary) for name, summary in summaries.items()}


def _check_out(folder: Path | Store, out: Path) -> None:
    try:
        if (out.exists() or out.is_symlink()) and not out.is_dir():
            raise InputError(
                f"--out {out} is a file, or a link to nothing; give a folder for the pictures"
            )
        there = nearest_there(out)
        if not there.is_dir():
            raise InputError(f"--out {out}: {there} is a file")
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror}") from None
    if not os.access(there, os.W_OK):  # before minutes of scoring
        raise InputError(f"--out {out}: {there} cannot be written to")
    if isinstance(folder, Path) and folder.resolve() in (out.resolve(), *out.resolve().parents):
        raise InputError(
            f"--out {out} lies in the folder of shards {folder}, which holds nothing else; "
            "give another folder"
        )
