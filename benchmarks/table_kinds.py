"""Compare networks with linear models and forests on kinds of tables outside of every prior here.

    python benchmarks/table_kinds.py --models default paper some.safetensors --jobs 2

clusters   classes of two to eight clusters, each with its own noise, in correlated columns
levels     classes of two to ten kinds of rows, each with its own shares of a column's levels
lamps      the same with yes/no columns: each kind has a pattern, with some cells flipped
counts     Poisson counts: kinds have different rates, and every row its own exposure
overlap    a random network's score plus logistic noise
middle     one class has the middle of such a score

Tables have 400 to 999 rows and 4 to 11 columns; some continuous columns are shown in bins or on
another scale. A third of the positives are labelled; the unlabelled rows are the rest and as many
negatives. Prints AUC of one pass of each network, of logistic regression and cross-fitted trees of
labelled against unlabelled rows, and of logistic regression and a forest cross-fitted on the hidden
labels. After ±, the standard error over tables of a network's difference from the first one.
"""

import argparse
import warnings

import numpy as np
from how_many import count
from joblib import Parallel, delayed
from real_tables import weights_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_bench import split_pu
from pu_bench.methods import METHODS
from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

RIVALS = (
    "logistic regression P vs U",
    "trees P vs U",
    "logistic regression, hidden labels",
    "forest, hidden labels",
)


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    arguments = options(__doc__.splitlines()[0])
    kinds = (clusters, levels, lamps, counts, overlap, middle)
    compare("kind", {kind.__name__: (kind, place) for place, kind in enumerate(kinds)}, arguments)


def options(description: str) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--models", nargs="+", default=["default"])
    parser.add_argument("--tables", type=count, default=40, help="tables drawn for each line")
    parser.add_argument("--jobs", type=count, default=1)
    return parser.parse_args()


def compare(what: str, lines: dict[str, tuple], arguments: argparse.Namespace) -> None:
    """Measure and print a Markdown table with a line for each of `lines` and for their mean.

    A line is (make, seed, parameters ...), where make(rng, parameters ...) returns a table's x
    [n, d] and booleans [n] for positive rows.
    """
    models = arguments.models
    for model in models:
        weights_file(model)
    measured = Parallel(n_jobs=arguments.jobs)(
        delayed(aucs)(models, table, *line)
        for line in lines.values()
        for table in range(arguments.tables)
    )
    figures = np.array(measured).reshape(len(lines), arguments.tables, -1)
    print(f"| {what} |", " | ".join([*models, *RIVALS]), "|")
    print("|---" * (1 + len(models) + len(RIVALS)) + "|")
    for name, rows in [*zip(lines, figures, strict=True), ("mean", np.concatenate(figures))]:
        differences = rows - rows[:, :1]
        errors = differences.std(axis=0, ddof=1) / np.sqrt(len(rows))
        cells = [f"{auc:.3f}" for auc in rows.mean(axis=0)]
        for place in range(1, len(models)):
            cells[place] += f" ± {errors[place]:.3f}"
        print(f"| {name} |", " | ".join(cells), "|")


def aucs(models: list[str], table: int, make, seed: int, *parameters) -> list[float]:
    """AUC of every network and rival on one drawn table."""
    warnings.simplefilter("ignore")
    x, positive = make(np.random.default_rng([table, seed]), *parameters)
    task = split_pu(x, positive, seed=0)
    P, U = task.x[task.s == 1], task.x[task.s == 0]
    scores = [
        PUICLClassifier(model, n_estimators=1, random_state=0).fit(task.x, task.s).unlabeled_proba_
        for model in models
    ]
    linear = make_pipeline(StandardScaler(), LogisticRegression())
    scores.append(linear.fit(task.x, task.s).predict_proba(U)[:, 1])
    scores.append(METHODS["extra_trees"]().fit_predict(P, U, 0).order)
    scores.append(cross_val_predict(linear, U, task.y, cv=5, method="predict_proba")[:, 1])
    scores.append(METHODS["oracle"]().fit_predict(P, U, 0, labels=task.y).order)
    return [float(roc_auc_score(task.y, score)) for score in scores]


def clusters(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x [n, d] and whether a row is positive [n]."""
    n, d = size(rng)
    member, positive = members(rng, n, int(rng.integers(2, 9)))
    told = rng.random(d) < rng.uniform(0.4, 1)
    apart = 1.5 * np.exp(rng.uniform(*np.log([0.5, 3]))) / np.sqrt(max(told.sum(), 1))
    center = apart * told * rng.normal(size=(member.max() + 1, d))
    spread = np.exp(rng.normal(0, 0.4, center.shape))
    return seen(rng, center[member] + spread[member] * correlated(rng, n, d)), positive


def levels(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x [n, d] and whether a row is positive [n]."""
    n, d = size(rng)
    member, positive = members(rng, n, int(rng.integers(2, 11)))
    evenness = 1 / rng.uniform(0.3, 3)
    x = np.empty((n, d))
    for column in range(d):
        shares = rng.dirichlet(np.full(int(rng.integers(2, 6)), evenness), size=member.max() + 1)
        x[:, column] = (shares.cumsum(axis=1)[member] < rng.random((n, 1))).sum(axis=1)
    return x, positive


def lamps(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x [n, d] and whether a row is positive [n]."""
    n, d = size(rng)
    member, positive = members(rng, n, int(rng.integers(4, 11)))
    pattern = rng.random((member.max() + 1, d)) < 0.5
    wrong = rng.random((n, d)) < rng.uniform(0.02, 0.2)
    return (pattern[member] ^ wrong).astype(float), positive


def counts(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x [n, d] and whether a row is positive [n]."""
    n, d = size(rng)
    member, positive = members(rng, n, int(rng.integers(2, 5)))
    rate = rng.normal(0, 1, d) + rng.normal(0, rng.uniform(0.2, 1), (member.max() + 1, d))
    exposure = rng.gamma(2, 0.5, (n, 1))
    return rng.poisson(np.exp(rate[member]) * exposure).astype(float), positive


def overlap(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x [n, d] and whether a row is positive [n]."""
    x, score = scored(rng, 16)
    score = np.exp(rng.uniform(*np.log([0.5, 4]))) * score + rng.logistic(size=len(x))
    return seen(rng, x), score > np.quantile(score, rng.uniform(0.4, 0.7))


def middle(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x [n, d] and whether a row is positive [n]."""
    x, score = scored(rng, 6)
    score = score + rng.uniform(0, 0.5) * rng.normal(size=len(x))
    low, high = np.quantile(score, [rng.uniform(0.1, 0.4), rng.uniform(0.6, 0.9)])
    inside = (score > low) & (score < high)
    return seen(rng, x), inside if rng.random() < 0.5 else ~inside


def size(rng: np.random.Generator) -> tuple[int, int]:
    """Draw the numbers of rows and columns of a table."""
    return int(rng.integers(400, 1000)), int(rng.integers(4, 12))


def members(rng: np.random.Generator, n: int, kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Kind of each row and whether it is positive; a quarter to three quarters of rows are."""
    while True:
        positive = rng.random(kinds) < 0.5
        member = rng.choice(kinds, n, p=rng.dirichlet(np.full(kinds, 2.0)))
        if 0.25 < positive[member].mean() < 0.75:
            return member, positive[member]


def correlated(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Normal columns [n, d] with two common factors."""
    loadings = rng.normal(0, 0.5, (2, d))
    return rng.normal(size=(n, 2)) @ loadings + rng.normal(size=(n, d))


def scored(rng: np.random.Generator, hidden: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns [n, d] and a random network's standardised score [n]."""
    x = correlated(rng, *size(rng))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    inner = rng.uniform(0.3, 1) * x @ rng.normal(size=(x.shape[1], hidden))
    score = np.tanh(inner + rng.normal(size=hidden)) @ rng.normal(size=hidden)
    return x, (score - score.mean()) / score.std()


def seen(rng: np.random.Generator, x: np.ndarray, binned: float = 0.3) -> np.ndarray:
    """Bin a share of the columns and rescale a fifth of them, in place."""
    for column in range(x.shape[1]):
        how = rng.random()
        if how < binned:
            cuts = np.quantile(x[:, column], np.sort(rng.random(int(rng.integers(1, 5)))))
            x[:, column] = np.searchsorted(cuts, x[:, column])
        elif how < binned + 0.2:
            x[:, column] = np.exp(x[:, column])
    return x


if __name__ == "__main__":
    main()
