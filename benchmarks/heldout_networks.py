"""Compare networks on held-out synthetic tasks, by the number of columns.

    prior-gen --config cpu_columns --stages 12-13 --split heldout --out heldout/
    python benchmarks/heldout_networks.py --shards heldout/ --models default some.safetensors

Sixteen real tables with ten splits each resolve some .003 of AUC between two networks, while the
prior gives hundreds of tasks. Prints log-loss (nats), AUC and the error of the share of positives,
from one pass, over the first task of each microbatch, evenly spaced. After +-, the standard error
of the mean difference from the first network over the same tasks. This measures how well a network
has learnt its prior, not how close that is to real tables.
"""

import argparse
import warnings

import numpy as np
from how_many import count
from joblib import Parallel, delayed
from sklearn.metrics import log_loss, roc_auc_score
from weak_spots import sources, spread

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

WIDTHS = ((1, 6), (7, 12), (13, 18), (19, 60))


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["default"])
    parser.add_argument("--shards", required=True)
    parser.add_argument("--tasks", type=count, default=400)
    parser.add_argument("--jobs", type=count, default=1)
    arguments = parser.parse_args()
    models = arguments.models
    tasks = spread([task for _, task in sources(arguments.shards)], arguments.tasks)
    measured = Parallel(n_jobs=arguments.jobs)(delayed(figures)(models, *task) for task in tasks)
    found = np.array(measured)  # [tasks, models, 3]
    width = np.array([P.shape[1] for P, _, _ in tasks])
    print("| columns | tasks | network | log-loss | AUC | error of the share |")
    print("|---|---|---|---|---|---|")
    for least, most in (*WIDTHS, (1, 60)):
        rows = found[(width >= least) & (width <= most)]
        if len(rows) < 2:
            continue
        mean, differences = rows.mean(axis=0), rows - rows[:, :1]
        errors = differences.std(axis=0, ddof=1) / np.sqrt(len(rows))
        for place, name in enumerate(models):
            cells = [f"{figure:.4f}" for figure in mean[place]]
            if place:
                cells = [f"{c} ± {e:.4f}" for c, e in zip(cells, errors[place], strict=True)]
            print(f"| {least}-{most} | {len(rows)} | {name} |", " | ".join(cells), "|")


def figures(models: list[str], P: np.ndarray, U: np.ndarray, y: np.ndarray) -> list[tuple]:
    """Log-loss, AUC and |error of the share of positives| of each network on one task."""
    warnings.simplefilter("ignore")
    rows = np.concatenate([P, U])
    found = []
    for model in models:
        classifier = PUICLClassifier(model, n_estimators=1, columns="all", random_state=0)
        fitted = classifier.fit(rows, np.arange(len(rows)) < len(P))
        probability = fitted.unlabeled_proba_
        error = abs(probability.mean() - y.mean())
        loss = log_loss(y, probability, labels=[0, 1])
        found.append((loss, roc_auc_score(y, probability), error))
    return found


if __name__ == "__main__":
    main()
