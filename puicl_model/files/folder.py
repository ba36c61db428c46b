"""Score a folder of tables, or a Parquet data set in parts, in parallel and file by file.

Each table's scores are written to the output folder under the table's own name (for a workbook,
with .csv appended). A record for each table is written last and atomically. It identifies the file
that was scored and, if the tables are parts of one table, the labelled positives that were used. A
table without a valid record still has to be scored.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from puicl_config import InputError, visible, write_atomically
from puicl_config.workers import (
    Backend,
    drop_if_told,
    run_all,
    stops_with,
    take_sigterm_for_ctrl_c,
)
from puicl_model.files.decimals import POINTS
from puicl_model.files.formats import write_table
from puicl_model.files.places import (
    SUMMARY,
    Place,
    claim,
    find_tables,
    passed_over,
    watching,
    write_summary,
)
from puicl_model.files.scoring import Options, Scored, score_table, scores_of, split_columns
from puicl_model.labels import labeled_mask
from puicl_model.weights import find_weights, load_model

_HOW_TO_GO_ON = "finished tables are kept: run the same command again to go on"
# Most labelled positives of all parts of one table that are read together with each part.
_MOST_SHARED = 10_000
# Most skipped files that a warning names.
_MOST_NAMED = 5


def score_folder(
    data: Path,
    out: str,
    options: Options,
    jobs: int | None,
    backend: Backend,
    address: str | None,
    one_table: bool,
) -> None:
    """Score every table in `data` that has no scores in the folder `out`, with `jobs` workers.

    one_table: whether the files are parts of one table. Raises `InputError` if there are no tables,
    or `out` holds scores made with other options or files of somebody else that scores would
    replace; also at the end, if some tables could not be scored. These are named, and all others
    are scored.
    """
    places = find_tables(data, Path(out))
    if others := passed_over(data):
        named = ", ".join(others[:_MOST_NAMED]) + ", ..." * (len(others) > _MOST_NAMED)
        print(
            visible(f"warning: passed over {named}: of a folder CSV, Parquet and Excel are read"),
            file=sys.stderr,
        )
    settings = options.as_dict() | {"one_table": one_table, "weights": _weights_digest(options)}
    claim(Path(out), settings, places)
    # Absolute, because workers of a cluster may run in another working directory.
    options = replace(options, model=str(find_weights(options.model).absolute()))
    take_sigterm_for_ctrl_c()
    with stops_with(_HOW_TO_GO_ON):
        shared = share_labeled(places, options) if one_table else None
        if shared is not None:
            # Each part is scored from the positives of all parts: if these change, every part is
            # scored again. So are parts recorded by older versions, whose records lack the digest.
            digest = hashlib.sha256(shared.to_csv().encode()).hexdigest()
            places = [replace(place, shared=digest) for place in places]
        done = {place.name: place.told() or {"error": ""} for place in places}
        missing = [place for place in places if "error" in done[place.name]]
        for place in missing:
            place.record.unlink(missing_ok=True)
        jobs = min(jobs or joblib.cpu_count(), max(len(missing), 1))
        calls = [(place, options, shared) for place in missing]
        with watching(missing, len(places)):
            answers = run_all(score_file, calls, jobs, backend, address)
    done |= dict(zip((place.name for place in missing), answers, strict=True))
    write_summary(Path(out), done)
    failed = [told["error"] for told in done.values() if "error" in told]
    rows = sum(told.get("n_unlabeled", 0) for told in done.values())
    there = f" ({len(places) - len(missing)} were there)" if len(missing) < len(places) else ""
    print(
        f"{out}: {len(places) - len(failed)} of {len(places)} tables scored{there}, {rows:,} "
        f"unlabelled rows; class priors and warnings are in {Path(out) / SUMMARY}"
    )
    for sentence in failed:
        print(visible(sentence), file=sys.stderr)
    if failed:
        raise InputError(
            f"{len(failed)} of {len(places)} tables could not be scored (see above): correct or "
            "remove them and run the same command again"
        )


def score_file(place: Place, options: Options, shared: pd.DataFrame | None) -> dict[str, Any]:
    """Score one table and write its scores, then its record; this is one call of a worker.

    Returns the record. If the table cannot be scored, its "error" is a sentence that says why.
    shared: result of `share_labeled`, or None.
    """
    drop_if_told()
    place.record.parent.mkdir(parents=True, exist_ok=True)
    place.target.parent.mkdir(parents=True, exist_ok=True)
    stamp = place.stamp
    try:
        table = options.read(str(place.source))
        if shared is not None and _all_labeled(table, str(place.source), options):
            # A part with positives only, as in case-control data, has nothing to score.
            scores = scores_of(table, np.ones(len(table), dtype=bool), options.id_column)
            record = {"n_labeled": len(table), "n_unlabeled": 0, "warnings": []}
        else:
            scored = score_table(
                table, str(place.source), options, _others(shared, place), verbose=False
            )
            scores, record = scored.scores, _record_of(scored)
        write_table(scores, str(place.target))
    except InputError as error:
        record = {"error": str(error)}
    except Exception as error:  # no error in one table may stop the others
        first = (str(error).splitlines() or [""])[0]
        record = {"error": f"{place.source}: {type(error).__name__}: {first}"}
    if "error" in record:
        place.target.unlink(missing_ok=True)
    record["stamp"] = stamp
    write_atomically(place.record, (json.dumps(record, indent=1) + "\n").encode())
    return record


def _record_of(scored: Scored) -> dict[str, Any]:
    low, high = scored.classifier.class_prior_interval_
    n_labeled = int(scored.scores["labeled"].sum())
    return {
        "n_labeled": n_labeled,
        "n_unlabeled": len(scored.scores) - n_labeled,
        "class_prior": scored.classifier.class_prior_,
        "low": None if np.isnan(low) else low,
        "high": None if np.isnan(high) else high,
        "warnings": scored.doubts,
    }


class _NoPart(InputError):
    """Raised if parts of one table differ in their columns, or in the notation of numbers."""


def share_labeled(places: Sequence[Place], options: Options) -> pd.DataFrame:
    """Collect the labelled positives of all `places`, with the names of the places as index.

    Returns at most `_MOST_SHARED`, evenly spaced. Skips files that cannot be read, which fail later
    when they are scored. Raises `InputError` if files differ in their columns or in what points in
    numbers mean, or if no file has a labelled positive or an unlabelled row.
    """
    found, first, unlabeled = [], None, False
    points: dict[str, tuple[str, str]] = {}
    for place in places:
        try:
            table = options.read(str(place.source))
            for column, what in table.attrs.get(POINTS, {}).items():
                points.setdefault(column, (what, place.name))
                if points[column][0] != what:
                    files = dict([points[column], (what, place.name)])
                    raise _NoPart(
                        f"column {column}: points separate thousands in {files['thousands']} and "
                        f"mark fractions in {files['fractions']}, although --decimal is a comma: "
                        "write the numbers alike in both"
                    )
            split_columns(table, str(place.source), options)
            # Compare columns of all files, even of those without labelled positives.
            first = first or (place, set(table.columns))
            if set(table.columns) != first[1]:
                odd = min(map(str, set(table.columns) ^ first[1]))
                raise _NoPart(
                    f"{place.name} and {first[0].name} are no parts of one table: only one of them "
                    f"has the column {odd!r}"
                )
            labeled = labeled_mask(table[options.label_column], options.positive)
        except _NoPart:
            raise
        except ValueError:  # no labelled positive, or a file that cannot be read
            unlabeled = True
            continue
        unlabeled = unlabeled or not labeled.all()
        found.append(table[labeled].set_axis([place.name] * int(labeled.sum())))
    if not any(map(len, found)):
        raise InputError("no file has a labelled positive: mark at least one row in one of them")
    if not unlabeled:
        raise InputError("no file has an unlabelled row: there is nothing to classify")
    shared = pd.concat(found)
    return shared.iloc[:: -(-len(shared) // _MOST_SHARED)]


def _all_labeled(table: pd.DataFrame, source: str, options: Options) -> bool:
    split_columns(table, source, options)
    try:
        return bool(labeled_mask(table[options.label_column], options.positive).all())
    except ValueError:  # no labelled positive, or invalid labels: scoring reports which
        return False


def _others(shared: pd.DataFrame | None, place: Place) -> pd.DataFrame | None:
    """The rows of `shared` from other places; None if there are none."""
    if shared is None or (shared.index == place.name).all():
        return None
    return shared[shared.index != place.name]


def _weights_digest(options: Options) -> str:
    """Digest of the weights in use; raises `InputError` if they cannot be read."""
    return load_model(find_weights(options.model))[1]["weights_digest"]
