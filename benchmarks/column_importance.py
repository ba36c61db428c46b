"""Which columns matter: `permutation_importance` and two other ways, judged by the true classes.

    python benchmarks/column_importance.py --data DIR --draws 3

From every table of DIR (a folder as for `puicl bench --data`) with 5 to `--most-columns` columns,
each draw takes up to 300 rows for a fit, with two fifths of their positives labelled, and up to 300
others. Ways to rank the columns:

- `answer`: `puicl_model.permutation_importance` of the fit's unlabelled rows; needs no labels.
- `labels`: how much AUC of labelled against unlabelled rows, on the other rows (labelled alike),
  falls when a column is permuted (`--repeats` times).
- `forest of labels`: the same of a random forest that takes unlabelled rows for negatives.
- `classes`: like `labels`, but the AUC of the true classes, which no user can know.

Each is compared with the fall of AUC of random forests that were trained on the true classes of all
rows but a fold, over the folds. Prints means over tables: the rank correlation over columns and
the share of the first three columns that are among the forests' first three. After +-, the standard
error over tables of the difference from `answer`.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from how_many import count
from joblib import Parallel, delayed
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from pu_bench.data import load_collection
from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier, permutation_importance

_ROWS = 300
_LABELED = 0.4
_WAYS = ("answer", "labels", "forest of labels", "classes")


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model")
    parser.add_argument("--estimators", type=count, default=1)
    parser.add_argument("--most-columns", type=count, default=20)
    parser.add_argument("--repeats", type=count, default=3)
    parser.add_argument("--draws", type=count, default=3)
    parser.add_argument("--jobs", type=count, default=1)
    options = parser.parse_args()
    tables = [
        table
        for table in load_collection(options.data).tables.values()
        if 5 <= table.x.shape[1] <= options.most_columns
    ]
    found = Parallel(n_jobs=options.jobs)(delayed(_of_table)(table, options) for table in tables)
    figures = np.array(found)  # [tables, ways, 2]
    spreads = (figures - figures[:, :1]).std(axis=0, ddof=1) / np.sqrt(len(tables))
    print(f"{len(tables)} tables\n\n| way | rank correlation | of the first three |\n|---|---|---|")
    for name, means, errors in zip(_WAYS, figures.mean(axis=0), spreads, strict=True):
        cells = [f"{mean:.2f}" for mean in means]
        if name != _WAYS[0]:
            cells = [f"{cell} ± {error:.2f}" for cell, error in zip(cells, errors, strict=True)]
        print(f"| {name} |", " | ".join(cells), "|")


def _of_table(table, options: argparse.Namespace) -> np.ndarray:
    """Means over the draws of both figures of each way: [ways, 2]."""
    warnings.simplefilter("ignore")
    x, y = table.x, table.positive
    truth = np.zeros(x.shape[1])
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(x, y):
        (falls,) = _falls(_forest(x[train], y[train]), x[test], options.repeats, y[test])
        truth += falls
    figures = []
    for draw in range(options.draws):
        rng = np.random.default_rng(draw)
        rows = rng.permutation(len(x))
        s = y & (rng.random(len(y)) < _LABELED)
        half = min(_ROWS, len(x) // 2)
        fit, others = rows[:half], rows[half : half + _ROWS]
        clf = PUICLClassifier(options.model, n_estimators=options.estimators, keep_context=True)
        clf.fit(x[fit], s[fit])
        found = permutation_importance(clf, x[fit][clf.unlabeled_rows_])
        answer = found[[f"x{j}" for j in range(x.shape[1])]].to_numpy()
        labels, classes = _falls(_score(clf), x[others], options.repeats, s[others], y[others])
        (forest,) = _falls(_forest(x[fit], s[fit]), x[others], options.repeats, s[others])
        figures.append([_agreement(truth, way) for way in (answer, labels, forest, classes)])
    return np.mean(figures, axis=0)


def _falls(
    score: Callable[[np.ndarray], np.ndarray], x: np.ndarray, repeats: int, *classes: np.ndarray
) -> np.ndarray:
    """How much AUC falls when a column of `x` [m, d] is permuted, for each of `classes`: [., d]."""
    before = score(x)
    aucs = [roc_auc_score(y, before) for y in classes]
    rng = np.random.default_rng(0)
    found = np.zeros((len(classes), x.shape[1]))
    for column in range(x.shape[1]):
        for _ in range(repeats):
            permuted = x.copy()
            permuted[:, column] = rng.permutation(x[:, column])
            after = score(permuted)
            for of, (auc, y) in enumerate(zip(aucs, classes, strict=True)):
                found[of, column] += (auc - roc_auc_score(y, after)) / repeats
    return found


def _forest(x: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    forest = RandomForestClassifier(300, min_samples_leaf=3, random_state=0)
    return _score(make_pipeline(SimpleImputer(keep_empty_features=True), forest).fit(x, y))


def _score(classifier) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: classifier.predict_proba(x)[:, 1]


def _agreement(truth: np.ndarray, found: np.ndarray) -> tuple[float, float]:
    """Rank correlation, and the share of the first three columns that are the truth's, too."""
    first = [set(np.argsort(-importance, kind="stable")[:3]) for importance in (truth, found)]
    correlation = spearmanr(truth, found).statistic
    return (0.0 if np.isnan(correlation) else correlation), len(first[0] & first[1]) / 3


if __name__ == "__main__":
    main()
