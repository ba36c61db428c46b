"""Which scalings an ensemble's passes should use, and how many passes there should be.

    python benchmarks/mixtures_of_passes.py --data DIR --splits 6 --passes kept/ \
        "quantile 4, principal 4, rotated_quantile 4, standard 4" "quantile 8, principal 8"

The classifier reads each split of each table of a folder (`real_tables.py`) once, with as many
passes of each scaling as any of the mixtures needs. With --levels it also reads tables that have
levels alone, with as many passes in quantile scaling as the largest mixture has. A mixture is the
mean of log-odds over the first passes of its scalings. Prints means over tables of AUC, accuracy,
|error of the share of positives| and Brier score; after +-, the standard error over splits of the
difference from the first mixture. The folder --passes caches the passes by table and split, so
other mixtures of them cost nothing, and stopping the script loses a table or two at most.
"""

import argparse
import io
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from compare_networks import FIGURES, figures_of
from how_many import count
from joblib import Parallel, delayed
from real_tables import data_digest, digest, read_split, table_names, weights_file
from scipy import special
from where_to import output_folder

from puicl_config import exit_on_input_error, write_atomically
from puicl_model import PUICLClassifier
from puicl_model.contexts import levels_alone
from puicl_model.preprocessing import SCALINGS, TablePreprocessor

Mixture = dict[str, int]
"""How many passes of each scaling."""


@exit_on_input_error
def main() -> None:
    """Measure and print Markdown tables: tables of measurements and, with --levels, all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mixtures", nargs="+", type=mixture, help='"quantile 2, standard 2"')
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=count, default=2)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--levels", action="store_true", help="also tables of levels alone")
    parser.add_argument("--jobs", type=count, default=1)
    parser.add_argument("--passes", type=Path, required=True, help="folder that caches log-odds")
    arguments = parser.parse_args()
    weights_file(arguments.model)
    names = table_names(arguments.data)
    output_folder(arguments.passes, "--passes")
    mixtures = arguments.mixtures
    cells = [
        (name, split)
        for split in range(arguments.first, arguments.first + arguments.splits)
        for name in names
    ]
    measure_one = partial(measure, arguments, mixtures)
    found = Parallel(n_jobs=arguments.jobs)(delayed(measure_one)(*cell) for cell in cells)
    frame = pd.DataFrame(
        [row for rows in found for row in rows],
        columns=["table", "split", "levels", "mixture", *FIGURES],
    )
    show("tables of measurements", frame[~frame["levels"]], mixtures)
    if arguments.levels:
        show("tables of levels alone", frame[frame["levels"]], mixtures)
        show("all tables", frame, mixtures)


def mixture(text: str) -> Mixture:
    """Parse the number of passes of each scaling from text such as "quantile 2, standard 2".

    Raises `argparse.ArgumentTypeError` if a scaling is unknown or a number invalid.
    """
    counts: Mixture = {}
    for part in text.split(","):
        kind, _, n = part.strip().partition(" ")
        if kind not in SCALINGS or not n.strip().isdigit() or not int(n):
            raise argparse.ArgumentTypeError(
                f'"{part.strip()}": write a scaling ({", ".join(SCALINGS)}) and a number above 0'
            )
        counts[kind] = counts.get(kind, 0) + int(n)
    return counts


def in_turn(mixtures: list[Mixture]) -> tuple[str, ...]:
    """Scalings of passes that contain every mixture: one of each in turn, as long as needed."""
    most = {kind: max(m.get(kind, 0) for m in mixtures) for m in mixtures for kind in m}
    rounds = range(max(most.values()))
    return tuple(kind for number in rounds for kind, n in most.items() if number < n)


def measure(
    arguments: argparse.Namespace, mixtures: list[Mixture], name: str, split: int
) -> list[tuple]:
    """A row for each mixture on one split: table, split, levels alone, its number, figures."""
    warnings.simplefilter("ignore")
    x, s, y = read_split(arguments.data, name, split)
    levels = levels_alone(TablePreprocessor().fit_quietly(x))
    if levels and not arguments.levels:
        return []
    asked = mixtures
    if levels:
        asked = [{"quantile": sum(counts.values())} for counts in mixtures]
    found = passes(arguments, in_turn(asked), name, split, x, s)
    rows = []
    for number, counts in enumerate(asked):
        log_odds = np.concatenate([found[kind][:n] for kind, n in counts.items()])
        figures = figures_of(special.expit(log_odds.mean(axis=0)), y)
        rows.append((name, split, levels, number, *figures))
    return rows


def passes(
    arguments: argparse.Namespace,
    turns: tuple[str, ...],
    name: str,
    split: int,
    x: pd.DataFrame,
    s: np.ndarray,
) -> dict[str, np.ndarray]:
    """Log-odds [passes, n_u] by scaling, with at least the passes in `turns`; cached."""
    key = f"{digest(arguments.model)}-{data_digest(arguments.data, name)}"
    path = arguments.passes / f"{key}-{name}-{split}.npz"
    if path.exists():
        with np.load(path) as kept:
            found = dict(kept)
        if all(len(found.get(kind, ())) >= turns.count(kind) for kind in turns):
            return found
    fitted = PUICLClassifier(
        arguments.model, n_estimators=len(turns), scalings=turns, random_state=split
    ).fit(x, s)
    log_odds = fitted.estimator_log_odds_
    found = {kind: log_odds[np.array(turns) == kind] for kind in dict.fromkeys(turns)}
    buffer = io.BytesIO()
    np.savez(buffer, **found)
    write_atomically(path, buffer.getvalue())
    return found


def show(title: str, frame: pd.DataFrame, mixtures: list[Mixture]) -> None:
    """Print one Markdown table, unless `frame` is empty."""
    if frame.empty:
        return
    print(f"{title}\n\n| passes | mixture |", " | ".join(FIGURES), "|")
    print("|---|---|" + "---|" * len(FIGURES))
    means = frame.groupby(["mixture", "split"])[FIGURES].mean()
    for number, counts in enumerate(mixtures):
        ours = means.loc[number]
        cells = [f"{figure:.4f}" for figure in ours.mean()]
        if number:
            difference = ours - means.loc[0]
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            cells = [
                f"{cell} ({d:+.4f} ± {e:.4f})"
                for cell, d, e in zip(cells, difference.mean(), error, strict=True)
            ]
        named = ", ".join(f"{kind} {n}" for kind, n in counts.items())
        print(f"| {sum(counts.values())} | {named} |", " | ".join(cells), "|")
    print()


if __name__ == "__main__":
    main()
