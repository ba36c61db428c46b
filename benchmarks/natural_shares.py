"""PU learning at natural shares: the rarer class is positive, with its own share of rows.

    python benchmarks/natural_shares.py --data unseen --out natural.csv

At most `--rows` rows are drawn from each table (a folder as for `puicl bench --data`, read like a
CSV file, with text and missing cells). A third of their positives are labelled, at most 200, and
the rest are unlabelled. So shares of positives are natural, between .02 and .4. Prints, over all
tables and by the size of the share:

- AUC beside that of cross-fitted trees on the same numbers,
- the estimated share, how often its interval covers the true one, the interval's width, and how
  often the fit warned about the share,
- the precision of all rows predicted positive, pooled,
- Brier scores: of the probabilities by default, with positives known to be the rarer class
  (`class_prior=(0, 0.5)`), with the table's share given (`class_prior=`), and of predicting that
  share for every row.

Takes five minutes on two cores for 95 tables.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from how_many import count
from real_tables import data_digest, digest, measured, read_tables, table_names
from scipy import special
from sklearn.metrics import brier_score_loss, roc_auc_score

from pu_bench.methods import METHODS
from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier
from puicl_model.class_prior import estimate_within, shift_to

_KEY = ("table", "rows", "n_estimators", "weights", "data")
_FIGURES = [
    *("labeled", "unlabeled", "share", "auc", "trees_auc", "estimate", "low", "high", "warned"),
    *("called", "right", "brier", "given_called", "given_right", "given_brier"),
    *("rarer_estimate", "rarer_called", "rarer_right", "rarer_brier"),
    *("trees_estimate", "trees_called", "trees_right"),
]
# Upper limits of the groups of shares.
_LIMITS = (0.1, 0.25, 0.5)
_COLUMNS = (
    *("AUC", "trees", "difference", "wins", "share", "estimate", "off by", "covered", "width"),
    *("warned", "called positive, are", "Brier", "known to be rarer: off by", "called, are"),
    *("Brier", "share given: called, are", "Brier", "constant"),
    *("trees: off by", "called, are"),
)
# A phrase common to all warnings about the share of positives.
_ABOUT_THE_SHARE = ("share of positives", "looks positive")


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--n-estimators", type=count, default=1)
    parser.add_argument("--rows", type=count, default=1000, help="maximum rows of each table")
    parser.add_argument(
        "--out", type=Path, help="CSV of all figures; tables it holds are not redone"
    )
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
    print(f"| share | tables | {' | '.join(_COLUMNS)} |")
    print("|---" * (2 + len(_COLUMNS)) + "|")
    lower = 0.0
    for upper in _LIMITS:
        line(f"{lower} to {upper}", frame[(frame.share > lower) & (frame.share <= upper)])
        lower = upper
    line("all", frame)


def as_found(positive: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row numbers [n] drawn from a table, their labels s [n], and classes y of unlabelled ones."""
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
        assert classifier.preprocessor_ is not None  # since the table is a data frame
        numbers = classifier.preprocessor_.transform(table)
        trees = METHODS["extra_trees"]().fit_predict(numbers[s == 1], numbers[s == 0], 0)
    proba = classifier.unlabeled_proba_
    low, high = classifier.class_prior_interval_
    said = classifier.report_["warnings"]
    warned = any(words in warning for warning in said for words in _ABOUT_THE_SHARE)
    # Through the module: workers cannot unpickle a ufunc that the script names directly.
    log_odds = special.logit(proba.astype(float))
    given = special.expit(log_odds + shift_to(log_odds, y.mean()))
    n_labeled, card = int(s.sum()), classifier.model_card_
    rarer_share = estimate_within(log_odds, n_labeled, card, 0.0, 0.5)[0]
    rarer = special.expit(log_odds + shift_to(log_odds, rarer_share))
    called, given_called, trees_called = proba >= 0.5, given >= 0.5, trees.label == 1
    rarer_called = rarer >= 0.5
    return (
        *(n_labeled, len(y), y.mean()),
        *(roc_auc_score(y, proba), roc_auc_score(y, trees.order)),
        *(classifier.class_prior_, low, high, warned),
        *(called.sum(), (called & y).sum(), brier_score_loss(y, proba)),
        *(given_called.sum(), (given_called & y).sum(), brier_score_loss(y, given)),
        *(rarer_share, rarer_called.sum(), (rarer_called & y).sum()),
        brier_score_loss(y, rarer),
        *(trees.class_prior, trees_called.sum(), (trees_called & y).sum()),
    )


def line(name: str, frame: pd.DataFrame) -> None:
    """Print one row: the figures of a group of tables."""
    if frame.empty:
        return
    gain = frame.auc - frame.trees_auc
    covered = (frame.low <= frame.share) & (frame.share <= frame.high)
    figures = (
        f"{frame.auc.mean():.3f}",
        f"{frame.trees_auc.mean():.3f}",
        f"{gain.mean():+.3f} ± {gain.sem():.3f}",
        f"{(gain > 0).mean():.0%}",
        f"{frame.share.mean():.3f}",
        f"{frame.estimate.mean():.3f}",
        f"{(frame.estimate - frame.share).abs().mean():.3f}",
        f"{covered.mean():.0%}",
        f"{(frame.high - frame.low).mean():.2f}",
        f"{frame.warned.astype(bool).mean():.0%}",
        called_and_are(frame.called, frame.right),
        f"{frame.brier.mean():.3f}",
        f"{(frame.rarer_estimate - frame.share).abs().mean():.3f}",
        called_and_are(frame.rarer_called, frame.rarer_right),
        f"{frame.rarer_brier.mean():.3f}",
        called_and_are(frame.given_called, frame.given_right),
        f"{frame.given_brier.mean():.3f}",
        f"{(frame.share * (1 - frame.share)).mean():.3f}",
        f"{(frame.trees_estimate - frame.share).abs().mean():.3f}",
        called_and_are(frame.trees_called, frame.trees_right),
    )
    print(f"| {name} | {len(frame)} | {' | '.join(figures)} |")


def called_and_are(called: pd.Series, right: pd.Series) -> str:
    """Text: precision of all tables' rows predicted positive, pooled, and their number."""
    return f"{right.sum() / called.sum():.0%} of {called.sum():,}" if called.any() else "none"


if __name__ == "__main__":
    main()
