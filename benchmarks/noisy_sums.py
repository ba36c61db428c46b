"""Noisy sums of the columns' effects, as in many real tables. Networks beside logistic regression.

    python benchmarks/noisy_sums.py --models default paper some.safetensors --jobs 2

A class is drawn from a logistic model of 4 to 11 correlated columns; half of these are then seen in
bins only, a fifth on another scale. The signal's standard deviation (the noise's is 1.8) says how
much can be known. A third of the positives is labelled; as many negatives as positives are left are
unlabelled too. AUC of one pass of each network, of logistic regression and cross-fitted trees of
labelled against unlabelled rows, and of logistic regression cross-fitted on the hidden labels;
behind ± the standard error, over tables, of a network's difference from the first one.
"""

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_bench import split_pu
from pu_bench.methods import METHODS
from puicl_model import PUICLClassifier

SIGNALS = (0.7, 1.5, 4.0)


def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["default"])
    parser.add_argument("--tables", type=int, default=40, help="of each strength of the signal")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    models = arguments.models
    measured = Parallel(n_jobs=arguments.jobs)(
        delayed(aucs)(models, signal, table)
        for signal in SIGNALS
        for table in range(arguments.tables)
    )
    figures = np.array(measured).reshape(len(SIGNALS), arguments.tables, -1)
    rivals = ["logistic regression P vs U", "trees P vs U", "logistic regression, hidden labels"]
    print("| signal |", " | ".join([*models, *rivals]), "|")
    print("|---" * (1 + len(models) + len(rivals)) + "|")
    for signal, rows in [*zip(SIGNALS, figures, strict=True), ("mean", np.concatenate(figures))]:
        differences = rows - rows[:, :1]
        errors = differences.std(axis=0, ddof=1) / np.sqrt(len(rows))
        cells = [f"{auc:.3f}" for auc in rows.mean(axis=0)]
        for place in range(1, len(models)):
            cells[place] += f" ± {errors[place]:.3f}"
        print(f"| {signal} |", " | ".join(cells), "|")


def aucs(models: list[str], signal: float, table: int) -> list[float]:
    """AUC of every network and rival on one drawn table."""
    warnings.simplefilter("ignore")
    x, positive = noisy_sum(np.random.default_rng([table, int(10 * signal)]), signal)
    task = split_pu(x, positive, seed=0)
    P, U = task.x[task.s == 1], task.x[task.s == 0]
    scores = [
        PUICLClassifier(model, n_estimators=1, random_state=0).fit(task.x, task.s).unlabeled_proba_
        for model in models
    ]
    linear = make_pipeline(StandardScaler(), LogisticRegression())
    scores.append(linear.fit(task.x, task.s).predict_proba(U)[:, 1])
    scores.append(METHODS["extra_trees"]().fit_predict(P, U, 0).score)
    scores.append(cross_val_predict(linear, U, task.y, cv=5, method="predict_proba")[:, 1])
    return [float(roc_auc_score(task.y, score)) for score in scores]


def noisy_sum(rng: np.random.Generator, signal: float) -> tuple[np.ndarray, np.ndarray]:
    """x [n, d] and whether a row is positive [n], for 400 to 999 rows."""
    n, d = int(rng.integers(400, 1000)), int(rng.integers(4, 12))
    loadings = rng.normal(0, 0.5, (d, 2))
    x = rng.normal(size=(n, 2)) @ loadings.T + rng.normal(size=(n, d))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    total = x @ rng.normal(size=d)
    total = signal * (total - total.mean()) / total.std() + rng.logistic(size=n)
    positive = total > np.quantile(total, rng.uniform(0.4, 0.7))
    for column in range(d):
        seen = rng.random()
        if seen < 0.5:
            cuts = np.quantile(x[:, column], np.sort(rng.random(int(rng.integers(1, 5)))))
            x[:, column] = np.searchsorted(cuts, x[:, column])
        elif seen < 0.7:
            x[:, column] = np.exp(x[:, column])
    return x, positive


if __name__ == "__main__":
    main()
