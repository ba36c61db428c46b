"""Can a network count? AUC on complete factorial designs where exactly k columns have one code.

    puicl average RUN/checkpoints/step-... --of model --out some.safetensors
    python benchmarks/count_designs.py --models default some.safetensors

MONK-2 is such a table, with other numbers of levels than these. Half of the positives (at most 150)
are labelled; the unlabelled rows are as many more positives and as many negatives. Each network
makes one pass, or `--passes`, in which columns of two values are negated at random. Prints means
over draws of code, rows and order of the columns, beside two references that know more: the number
of columns with the code as a score (the best one can do column by column with the code known; only
an AUC above it shows counting), and a random forest that is given the hidden labels.
"""

import argparse
import itertools
import warnings
from collections.abc import Callable

import numpy as np
from how_many import count
from joblib import Parallel, delayed
from real_tables import weights_file
from sklearn.metrics import roc_auc_score

from pu_bench.methods import METHODS
from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

DESIGNS: tuple[tuple[int, ...], ...] = (
    *((3, 3, 3, 3, 3), (2, 3, 3, 3, 4), (3, 3, 3, 3, 3, 3), (2, 3, 3, 3, 3, 4)),
)
COMPLETE_DESIGNS: tuple[tuple[int, ...], ...] = (
    *((2, 2, 3, 3, 3, 3), (2, 2, 2, 3, 3, 4), (2, 2, 3, 3, 4, 4)),
    *((3, 3, 3, 3, 4), (3, 3, 3, 3, 3, 3), (2, 2, 2, 2, 3, 3, 3)),
)
COUNTS = (1, 2, 3)
MOST_LABELED = 150
FEWEST = 15


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["default"])
    parser.add_argument("--passes", type=count, default=1)
    parser.add_argument("--draws", type=count, default=6)
    parser.add_argument("--jobs", type=count, default=1)
    parser.add_argument("--complete", action="store_true")
    arguments = parser.parse_args()
    for model in arguments.models:
        weights_file(model)
    warnings.simplefilter("ignore")
    designs = COMPLETE_DESIGNS if arguments.complete else DESIGNS
    codes = ("one", "own") if arguments.complete else ("one",)
    cells = [(levels, k, code) for levels in designs for k in COUNTS for code in codes]
    make = complete_task if arguments.complete else count_task
    measured = Parallel(n_jobs=arguments.jobs)(
        delayed(aucs)(arguments.models, arguments.passes, make, cell, draw)
        for cell in cells
        for draw in range(arguments.draws)
    )
    figures = np.array(measured).reshape(len(cells), arguments.draws, -1).mean(axis=1)
    rivals = ["column by column, code known", "forest with hidden labels"]
    columns = ["levels of the columns", "k", "code", *arguments.models, *rivals]
    print("|", " | ".join(columns), "|")
    print("|---" * len(columns) + "|")
    for (levels, k, code), row in zip(cells, figures, strict=True):
        named = " x ".join(map(str, levels))
        print(f"| {named} | {k} | {code} |", " | ".join(f"{auc:.3f}" for auc in row), "|")
    print("| mean | | |", " | ".join(f"{auc:.3f}" for auc in figures.mean(axis=0)), "|")


def aucs(models: list[str], passes: int, make: Callable, cell: tuple, draw: int) -> list[float]:
    """AUC of each network, column by column, and of the forest, on one drawn task."""
    warnings.simplefilter("ignore")  # joblib's worker processes have filters of their own
    levels, k, code = cell
    P, U, y, matching = make(np.random.default_rng([*levels, k, draw]), levels, k, code == "own")
    rows, s = np.concatenate([P, U]), np.arange(len(P) + len(U)) < len(P)
    networks = (PUICLClassifier(name, n_estimators=passes, random_state=draw) for name in models)
    scores = [network.fit(rows, s).unlabeled_proba_ for network in networks]
    scores.append(matching if roc_auc_score(y, matching) > 0.5 else -matching)
    scores.append(METHODS["oracle"]().fit_predict(P, U, draw, labels=y).order)
    return [float(roc_auc_score(y, score)) for score in scores]


def count_task(
    rng: np.random.Generator, levels: tuple[int, ...], k: int, own: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """P [n, d], U [2n, d], U's classes, and in how many columns each row of U has the code.

    Rows with the code in exactly k columns are positive.
    """
    design, matching = matching_columns(rng, levels, own)
    holds = matching == k
    positives, negatives = (rng.permutation(np.flatnonzero(c)) for c in (holds, ~holds))
    n = min(len(positives) // 2, len(negatives), MOST_LABELED)
    if n < FEWEST:
        raise ValueError(f"{levels} with k = {k}: only {len(positives)}, {len(negatives)} rows")
    unlabeled = rng.permutation(np.concatenate([positives[n : 2 * n], negatives[:n]]))
    classes = holds[unlabeled].astype(int)
    return design[positives[:n]], design[unlabeled], classes, matching[unlabeled]


def complete_task(
    rng: np.random.Generator, levels: tuple[int, ...], k: int, own: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """As `count_task`, with all rows of the design.

    P [n, d] is a third of the positives, U the others with as many negatives, if there are so many.
    Of "exactly k columns have the code" and "not exactly k", the more frequent one is positive.
    """
    design, matching = matching_columns(rng, levels, own)
    holds = matching == k
    positive = holds if holds.mean() > 0.5 else ~holds
    positives, negatives = (rng.permutation(np.flatnonzero(c)) for c in (positive, ~positive))
    n = round(len(positives) / 3)
    unlabeled = rng.permutation(np.concatenate([positives[n:], negatives[: len(positives) - n]]))
    classes = positive[unlabeled].astype(int)
    return design[positives[:n]], design[unlabeled], classes, matching[unlabeled]


def matching_columns(
    rng: np.random.Generator, levels: tuple[int, ...], own: bool
) -> tuple[np.ndarray, np.ndarray]:
    """A complete design [n, d], and the number of columns in which each row has the code [n]."""
    permuted = rng.permutation(levels)
    design = np.array([*itertools.product(*map(range, permuted))], dtype=float)
    code = rng.integers(permuted) if own else rng.integers(min(levels))
    return design, (design == code).sum(axis=1)


if __name__ == "__main__":
    main()
