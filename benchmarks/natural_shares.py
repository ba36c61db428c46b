"""Tables as people have them: the rarer class positive, its own share among the unlabelled rows.

    python benchmarks/natural_shares.py --data unseen --out natural.csv

Of each table (a folder as for `puicl bench --data`, read as a CSV file is, text and missing cells
with it) at most `--rows` rows are drawn; a third of their positives are labelled, at most 200, and
the rest is unlabelled. So shares of positives lie between .02 and .4 and are nobody's choice.
Prints, over all tables and by the share's size: AUC beside that of cross-fitted trees on the same
numbers, the share's estimate, how often its interval covers it and how wide that is, and how often
the fit warned of the share; of all rows called positive together, how many are.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from how_many import count
from real_tables import data_digest, digest, measured, read_tables, table_names
from sklearn.metrics import roc_auc_score

from pu_bench.methods import METHODS
from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

_KEY = ("table", "rows", "n_estimators", "weights", "data")
_FIGURES = [
    "labeled",
    "unlabeled",
    "share",
    "auc",
    "trees_auc",
    "estimate",
    "low",
    "high",
    "warned",
    "called",
    "right",
    "trees_estimate",
    "trees_called",
    "trees_right",
]
# Upper limits of the shares that are told apart.
_LIMITS = (0.1, 0.25, 0.5)
# What warnings about the share of positives have in common.
_ABOUT_THE_SHARE = ("share of positives", "looks positive")


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--n-estimators", type=count, default=1)
    parser.add_argument("--rows", type=count, default=1000, help="drawn of each table")
    parser.add_argument("--out", type=Path, help="CSV of what was measured; goes on with it")
    parser.add_argument("--jobs", type=count, default=1)
    arguments = parser.parse_args()
    weights = digest(arguments.model)
    cells = [
        (name, arguments.rows, arguments.n_estimators, weights, data_digest(arguments.data, name))
        for name in table_names(arguments.data)
    ]

    def measure(name: str, rows: int, n_estimators: int, *_seen: str) -> list[tuple]:
        """One row for `measured`."""
        _, table, common = next(read_tables(arguments.data, [name]))
        drawn, s, y = as_found(~common, rows)
        classifier = PUICLClassifier(arguments.model, n_estimators=n_estimators)
        return [judged(classifier, table.iloc[drawn], s, y)]

    frame = measured(arguments.out, list(_KEY), _FIGURES, cells, measure, arguments.jobs)
    print(
        "| share | tables | AUC | trees | difference | wins | share | estimate | off by | "
        "covered | width | warned | called positive and are | trees: off by | called and are |"
    )
    print("|---" * 15 + "|")
    lower = 0.0
    for upper in _LIMITS:
        line(f"{lower} to {upper}", frame[(frame.share > lower) & (frame.share <= upper)])
        lower = upper
    line("all", frame)


def as_found(positive: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a table [n], their labels s [n], and the classes y of those that have none."""
    rng = np.random.default_rng(0)
    drawn = rng.permutation(len(positive))[:most]
    y = positive[drawn]
    known = rng.permutation(np.flatnonzero(y))[: min(200, max(2, round(y.sum() / 3)))]
    s = np.zeros(len(drawn), dtype=int)
    s[known] = 1
    return drawn, s, y[s == 0]


def judged(classifier: PUICLClassifier, table: pd.DataFrame, s: np.ndarray, y: np.ndarray) -> tuple:
    """The figures of one table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(table, s)
        assert classifier.preprocessor_ is not None  # as the table is a frame
        numbers = classifier.preprocessor_.transform(table)
        trees = METHODS["extra_trees"]().fit_predict(numbers[s == 1], numbers[s == 0], 0)
    proba = classifier.unlabeled_proba_
    low, high = classifier.class_prior_interval_
    said = classifier.report_["warnings"]
    warned = any(words in warning for warning in said for words in _ABOUT_THE_SHARE)
    called, trees_called = proba >= 0.5, trees.label == 1
    return (
        *(int(s.sum()), len(y), y.mean()),
        *(roc_auc_score(y, proba), roc_auc_score(y, trees.order)),
        *(classifier.class_prior_, low, high, warned),
        *(called.sum(), (called & y).sum(), trees.class_prior),
        *(trees_called.sum(), (trees_called & y).sum()),
    )


def line(name: str, frame: pd.DataFrame) -> None:
    """Print what a group of tables says together."""
    if frame.empty:
        return
    gain = frame.auc - frame.trees_auc
    covered = (frame.low <= frame.share) & (frame.share <= frame.high)
    print(
        f"| {name} | {len(frame)} | {frame.auc.mean():.3f} | {frame.trees_auc.mean():.3f} | "
        f"{gain.mean():+.3f} ± {gain.sem():.3f} | {(gain > 0).mean():.0%} | "
        f"{frame.share.mean():.3f} | {frame.estimate.mean():.3f} | "
        f"{(frame.estimate - frame.share).abs().mean():.3f} | {covered.mean():.0%} | "
        f"{(frame.high - frame.low).mean():.2f} | {frame.warned.astype(bool).mean():.0%} | "
        f"{frame.right.sum() / max(frame.called.sum(), 1):.0%} of {frame.called.sum():,} | "
        f"{(frame.trees_estimate - frame.share).abs().mean():.3f} | "
        f"{frame.trees_right.sum() / max(frame.trees_called.sum(), 1):.0%} of "
        f"{frame.trees_called.sum():,} |"
    )


if __name__ == "__main__":
    main()
