"""What to do once some unlabelled rows are reviewed, on tables at their natural shares.

    python benchmarks/after_review.py --data choosing --out reviewed.csv

Tables, rows and labels are those of `natural_shares.py`. The table is fitted with
`class_prior=(0, 0.5)`, and `--reviewed` of its unlabelled rows (a third of them at most) are looked
at: those ranked first, or rows drawn at random. Prints, for both reviews, means over all tables
with ± the standard error of the difference from the first fit:

- AUC on the rows that were not reviewed: of the first fit; of a fit in which the positives found
  are labelled and the negatives found stay unlabelled; of one in which the negatives are dropped;
  of a random forest of the known positives against the reviewed negatives;
- of the share of positives among all rows unlabelled at first: the error of the first estimate, of
  the share found, and of an estimate within the 90 % interval (Wilson's) of the share found.

Tables in which a review found rows of one class only lack the forest, and are left out of its
column and counted. Takes seven minutes on one core for 43 tables.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from how_many import count
from natural_shares import as_found
from real_tables import data_digest, digest, measured, read_tables, table_names
from scipy.stats import binomtest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

_KEY = ("table", "rows", "reviewed", "n_estimators", "weights", "data")
_AUCS = ("first", "kept", "dropped", "forest")
_SHARES = ("estimate", "share found", "within its interval")
_FIGURES = ["review", "labeled", "unlabeled", "share", "found", *_AUCS, *_SHARES]
_REVIEWS = ("ranked first", "at random")
_RARER = (0.0, 0.5)


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--n-estimators", type=count, default=1)
    parser.add_argument("--rows", type=count, default=1000, help="maximum rows of each table")
    parser.add_argument("--reviewed", type=count, default=60, help="maximum rows of a review")
    parser.add_argument(
        "--out", type=Path, help="CSV of all figures; tables it holds are not redone"
    )
    parser.add_argument("--jobs", type=count, default=1)
    arguments = parser.parse_args()
    asked = (arguments.rows, arguments.reviewed, arguments.n_estimators, digest(arguments.model))
    cells = [
        (name, *asked, data_digest(arguments.data, name)) for name in table_names(arguments.data)
    ]

    def measure(name: str, rows: int, reviewed: int, n_estimators: int, *_seen: str) -> list[tuple]:
        """The rows of one table for `measured`, one for each review."""
        _, table, common = next(read_tables(arguments.data, [name]))
        drawn, s, y = as_found(~common, rows)
        classifier = PUICLClassifier(arguments.model, n_estimators=n_estimators)
        return reviews(classifier, table.iloc[drawn].reset_index(drop=True), s, y, reviewed)

    frame = measured(arguments.out, list(_KEY), _FIGURES, cells, measure, arguments.jobs)
    columns = ("reviewed", "tables", *_AUCS, "without forest", *_SHARES)
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    for review in _REVIEWS:
        line(review, frame[frame.review == review])


def reviews(
    classifier: PUICLClassifier, table: pd.DataFrame, s: np.ndarray, y: np.ndarray, reviewed: int
) -> list[tuple]:
    """The figures of one table, for each kind of review.

    table: features [n] with a default index. s [n]: labels. y: classes of the unlabelled rows, in
    their order. reviewed: the most rows of a review.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(table, s, class_prior=_RARER)
        assert classifier.preprocessor_ is not None  # since the table is a data frame
        numbers = np.nan_to_num(classifier.preprocessor_.transform(table))
        proba, estimate = classifier.unlabeled_proba_, classifier.class_prior_
        some = min(reviewed, len(y) // 3)
        seen = {
            "ranked first": np.argsort(-proba, kind="stable")[:some],
            "at random": np.random.default_rng(1).permutation(len(y))[:some],
        }
        found = []
        for review in _REVIEWS:
            places = seen[review]
            aucs = _on_the_rest(classifier, table, numbers, s, y, places, proba)
            n_found = int(y[places].sum())
            within = np.nan
            if review == "at random":
                interval = binomtest(n_found, some).proportion_ci(0.9, "wilson")
                classifier.fit(table, s, class_prior=(interval.low, interval.high))
                within = classifier.class_prior_
            shares = (estimate, n_found / some, within)
            found.append((review, int(s.sum()), len(y), y.mean(), n_found, *aucs, *shares))
    return found


def _on_the_rest(
    classifier: PUICLClassifier,
    table: pd.DataFrame,
    numbers: np.ndarray,
    s: np.ndarray,
    y: np.ndarray,
    places: np.ndarray,
    proba: np.ndarray,
) -> list[float]:
    """AUC on the unlabelled rows outside `places` (of the unlabelled ones), in `_AUCS`' order."""
    unlabeled = np.flatnonzero(s == 0)
    rest = np.setdiff1d(np.arange(len(y)), places)
    negatives = unlabeled[places[~y[places]]]
    known = s.copy()
    known[unlabeled[places[y[places]]]] = 1
    aucs = [roc_auc_score(y[rest], proba[rest])]
    for left_out in (np.array([], dtype=int), negatives):
        kept = np.setdiff1d(np.arange(len(s)), left_out)
        told = np.full(len(s), np.nan)
        classifier.fit(table.iloc[kept], known[kept], class_prior=_RARER)
        told[kept[classifier.unlabeled_rows_]] = classifier.unlabeled_proba_
        aucs.append(roc_auc_score(y[rest], told[unlabeled[rest]]))
    if not len(negatives):
        return [*aucs, np.nan]
    sure = np.concatenate([np.flatnonzero(known), negatives])
    forest = RandomForestClassifier(
        300, min_samples_leaf=2, class_weight="balanced", random_state=0
    ).fit(numbers[sure], known[sure])
    return [*aucs, roc_auc_score(y[rest], forest.predict_proba(numbers[unlabeled[rest]])[:, 1])]


def line(review: str, frame: pd.DataFrame) -> None:
    """Print one row: the means of a kind of review."""
    cells = [f"{frame['first'].mean():.3f}"]
    for name in _AUCS[1:]:
        gain = frame[name] - frame["first"]
        told = f"{frame[name].mean():.3f} ({gain.mean():+.3f} ± {gain.sem():.3f})"
        cells.append("" if gain.isna().all() else told)
    cells.append(str(frame.forest.isna().sum()))
    for name in _SHARES:
        off = (frame[name] - frame.share).abs()
        cells.append("" if off.isna().all() else f"{off.mean():.3f}")
    print(f"| {review} | {len(frame)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
