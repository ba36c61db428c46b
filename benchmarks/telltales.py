"""What single values of a column say about the share of positives, at natural shares.

    python benchmarks/telltales.py --data unseen --shares results/unseen/natural_shares.csv

Uses the tables and rows of `natural_shares.py`, whose CSV file (`--shares`) has the estimates.
Prints how often the bound of `puicl_model.separation.telltale` is below the true share, which
should be rare; how often it is below the estimate, in which case the fit warns and names it; and
the estimate's error if it were capped by the bound. No network is run: half a minute for 95 tables.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from natural_shares import as_found
from real_tables import read_tables, table_names

from puicl_config import exit_on_input_error
from puicl_model import TablePreprocessor
from puicl_model.separation import telltale


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--shares", type=Path, required=True, help="CSV of natural_shares.py --out")
    parser.add_argument("--rows", type=int, default=1000, help="as given to natural_shares.py")
    arguments = parser.parse_args()
    known = pd.read_csv(arguments.shares).set_index("table")
    lines = []
    for name, table, common in read_tables(arguments.data, table_names(arguments.data)):
        drawn, s, y = as_found(~common, arguments.rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            numbers = TablePreprocessor().fit_transform(table.iloc[drawn])
        found = telltale(numbers, s == 1)
        bound = 1.0 if found is None else found.at_most
        lines.append((name, y.mean(), known.loc[name, "estimate"], bound))
    frame = pd.DataFrame(lines, columns=["table", "share", "estimate", "bound"])
    said = frame[frame["bound"] < frame["estimate"]]
    print(f"{len(frame)} tables; the least bound is {frame['bound'].min():.3f}")
    wrong = frame[frame["bound"] < frame["share"]]
    off = (wrong["share"] - wrong["bound"]).max() if len(wrong) else 0.0
    print(f"below the true share: {len(wrong)}, by {off:.3f} at most")
    print(f"below the estimate: {len(said)} ({', '.join(said['table'])})")
    for which, part in (("all", frame), ("these", said)):
        capped = np.minimum(part["estimate"], part["bound"])
        errors = [(guess - part["share"]).abs().mean() for guess in (part["estimate"], capped)]
        print(f"{which}: share off by {errors[0]:.3f}, no more than the bound {errors[1]:.3f}")


if __name__ == "__main__":
    main()
