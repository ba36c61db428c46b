"""Which structures a network has learnt, by the source of labels of held-out tasks.

    prior-gen --config cpu --stages 20-26 --split heldout --out heldout/
    python benchmarks/weak_spots.py --model default --shards heldout/

Prints one row for each source of labels: the paper's own tasks, the extended ones whose labels
still come from the structural causal model, trees, and each kind of rule (`prior.extensions`).
Columns are AUC of one pass of the network, of cross-fitted extremely randomised trees (P vs U), and
of a random forest that is given the hidden labels: what a better network could still find. Tasks
are synthetic, one of each microbatch, evenly spaced over the shards. With `--scalings` the columns
are instead mixtures of four passes, in quantile scaling and along the principal axes.
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from how_many import count
from joblib import Parallel, delayed
from scipy.stats import sem
from sklearn.metrics import roc_auc_score

from pu_bench.methods import METHODS
from puicl_config import InputError, exit_on_input_error
from puicl_model import PUICLClassifier
from shard_io import open_shards

RIVALS = ("extra_trees", "oracle")
MIXTURES = {
    "quantile alone": ("quantile",) * 4,
    "3 and 1": ("quantile",) * 3 + ("principal",),
    "in turn": ("quantile", "principal") * 2,
    "principal axes alone": ("principal",) * 4,
}


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--shards", required=True)
    parser.add_argument("--tasks", type=count, default=40, help="maximum tasks of each source")
    parser.add_argument("--jobs", type=count, default=1)
    parser.add_argument("--scalings", action="store_true", help="compare mixtures of scalings")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found = defaultdict(list)
    for source, task in sources(arguments.shards):
        found[source].append(task)
    chosen = [
        (source, task)
        for source, tasks in sorted(found.items())
        for task in spread(tasks, arguments.tasks)
    ]
    measure = aucs_of_mixtures if arguments.scalings else aucs
    measured = Parallel(n_jobs=arguments.jobs)(
        delayed(measure)(arguments.model, *task) for _, task in chosen
    )
    by_source = defaultdict(list)
    for (source, _), row in zip(chosen, measured, strict=True):
        by_source[source].append(row)
    columns = ["network", "trees P vs U", "forest with hidden labels"]
    columns = list(MIXTURES) if arguments.scalings else columns
    print("| labels from | tasks |", " | ".join([columns[0], "±", *columns[1:]]), "|")
    print("|---" * (len(columns) + 3) + "|")
    for source, rows in by_source.items():
        values = np.array(rows)
        figures = [values[:, 0].mean(), sem(values[:, 0]), *values[:, 1:].mean(0)]
        print(" | ".join([f"| {source}", str(len(rows)), *(f"{x:.3f}" for x in figures)]), "|")


def sources(folder: str) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Yield (source of the labels, (P, U, y)) for the first task of each microbatch.

    Raises `InputError` for shards of the training split.
    """
    shards = open_shards(folder)
    if shards.manifest.split != "heldout":
        raise InputError(
            f"{folder} holds the split {shards.manifest.split!r}, which networks are trained on; "
            "make held-out tasks with prior-gen --split heldout"
        )
    for part in shards.published_parts():
        for position in shards.positions(part):
            batch = shards.part(part)[position]
            x, y = batch.x[0].astype(float), batch.y[0]
            if min(y.sum(), len(y) - y.sum()) >= 2:
                task = (x[: batch.n_labeled], x[batch.n_labeled :], y)
                yield source_of(batch.tags.get("extensions")), task


def source_of(extensions: dict | None) -> str:
    """The source of a microbatch's labels, in words."""
    if extensions is None:
        return "the paper's prior"
    if "rule_labels" in extensions:
        return f"rule: {extensions['rule_labels']['kind']}"
    named = {
        "tree_labels": "trees",
        "cluster_labels": "clusters",
        "graph": "graph",
        "two_sided": "a middle of a score",
        "soft_border": "soft border",
        "factor_model": "factor model",
    }
    return next((words for name, words in named.items() if name in extensions), "extended, the SCM")


def spread(items: list, count: int) -> list:
    """At most `count` of the items, evenly spaced."""
    places = np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int)
    return [items[place] for place in places]


def aucs_of_mixtures(model: str, P: np.ndarray, U: np.ndarray, y: np.ndarray) -> list[float]:
    """AUC of each of `MIXTURES` on the unlabelled rows."""
    rows = np.concatenate([P, U])
    s = np.arange(len(rows)) < len(P)
    found = []
    for scalings in MIXTURES.values():
        fitted = PUICLClassifier(
            model, n_estimators=len(scalings), scalings=scalings, random_state=0
        ).fit(rows, s)
        found.append(float(roc_auc_score(y, fitted.unlabeled_proba_)))
    return found


def aucs(model: str, P: np.ndarray, U: np.ndarray, y: np.ndarray) -> list[float]:
    """AUC of the network and of `RIVALS` on the unlabelled rows."""
    classifier = PUICLClassifier(model, n_estimators=1, random_state=0)
    rows = np.concatenate([P, U])
    fitted = classifier.fit(rows, np.arange(len(rows)) < len(P))
    scores = [fitted.unlabeled_proba_]
    for name in RIVALS:
        method = METHODS[name]()
        seen = {"labels": y} if "labels" in method.sees else {}
        scores.append(method.fit_predict(P, U, 0, **seen).order)
    return [float(roc_auc_score(y, score)) for score in scores]


if __name__ == "__main__":
    main()
