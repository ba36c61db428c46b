"""Difficulty of the prior: AUC of two plain baselines on the unlabelled rows of sampled tasks."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prior_gen.preview.sample import Sample, generator, stage_groups

FOLDS = 3
# Most rows that a baseline is fitted on in one fold: bounds the time for plans with large tasks.
MAX_TRAINING_ROWS = 1500
MAX_GROUPS = 8
TREES = 48
BASELINES: dict[str, Callable] = {
    "logistic": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "trees": lambda seed: ExtraTreesClassifier(
        TREES, min_samples_leaf=3, max_features="sqrt", random_state=seed, n_jobs=1
    ),
}


@dataclass(frozen=True)
class ScoredTask:
    """A task and the AUC of each baseline on it; NaN if the task cannot be scored."""

    address: tuple[int, int, int]
    task: int
    source: str
    auc: dict[str, float]

    @property
    def stage(self) -> int:
        """The task's stage, from 1."""
        return self.address[0]


@dataclass(frozen=True)
class Summary:
    """AUC of one baseline over some tasks: their number, mean and quartiles."""

    tasks: int
    mean: float
    lower_quartile: float
    median: float
    upper_quartile: float


def cross_fitted_scores(make: Callable, x: np.ndarray, s: np.ndarray, seed: int) -> np.ndarray:
    """P(s = 1) of every row [n], from a model `make(seed)` that was fitted without that row.

    x: [n, d]; s: [n], the binary target. Folds are stratified by s. Raises `ValueError` if a class
    of s has fewer than two rows.
    """
    folds = min(FOLDS, int(s.sum()), int((1 - s).sum()))
    if folds < 2:
        raise ValueError("each class needs two rows")
    rng = generator(seed)
    scores = np.empty(len(s))
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for fit, held_out in splitter.split(x, s):
        if len(fit) > MAX_TRAINING_ROWS:
            first = [np.flatnonzero(s[fit] == label)[0] for label in (0, 1)]
            some = rng.choice(len(fit), MAX_TRAINING_ROWS - 2, replace=False)
            fit = fit[np.unique([*first, *some])]
        model = make(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(x[fit], s[fit])
        scores[held_out] = model.predict_proba(x[held_out])[:, 1]
    return scores


def pu_auc(baseline: str, x: np.ndarray, y: np.ndarray, seed: int) -> float:
    """AUC on the hidden labels of the unlabelled rows, of a baseline fitted to tell labelled rows.

    x: [P + n_u, d], labelled positives first; y: [n_u], 1 = positive. NaN if a task is too small to
    be cross-fitted or all its unlabelled rows are of one class.
    """
    n_labeled = len(x) - len(y)
    s = np.zeros(len(x), dtype=int)
    s[:n_labeled] = 1
    if min(n_labeled, len(y)) < 2 or len(np.unique(y)) < 2:
        return float("nan")
    scores = cross_fitted_scores(BASELINES[baseline], np.asarray(x, dtype=np.float64), s, seed)
    return float(roc_auc_score(y, scores[n_labeled:]))


def choose_tasks(sample: Sample, count: int) -> list[tuple[int, int]]:
    """Choose tasks at random, the same number from each group of stages.

    Returns pairs (index into `sample.seen`, task). Within a group, a second task of a microbatch is
    taken only after one of every other microbatch.
    """
    rng = sample.rng("difficulty")
    groups = stage_groups(sample.stages, min(MAX_GROUPS, count))
    chosen = []
    for number, stages in enumerate(groups):
        quota = count * (number + 1) // len(groups) - count * number // len(groups)
        places = [i for i, seen in enumerate(sample.seen) if seen.stage in set(stages)]
        orders = {i: rng.permutation(len(sample.seen[i].negatives)) for i in places}
        rounds = max(len(order) for order in orders.values())
        queue = [
            (int(i), int(orders[i][turn]))
            for turn in range(rounds)
            for i in rng.permutation(places)
            if turn < len(orders[i])
        ]
        chosen += queue[:quota]
    return sorted(chosen)


def score_tasks(sample: Sample, count: int, advance: Callable[[], None]) -> list[ScoredTask]:
    """Score up to `count` tasks of the sample; calls `advance` after each."""
    scored = []
    for place, task in choose_tasks(sample, count):
        seen = sample.seen[place]
        batch = sample.read(seen)
        seed = task_seed(sample.seed, seen.address, task)
        auc = {name: pu_auc(name, batch.x[task], batch.y[task], seed) for name in BASELINES}
        scored.append(ScoredTask(seen.address, task, seen.source, auc))
        advance()
    return scored


def task_seed(seed: int, address: tuple[int, int, int], task: int) -> int:
    """Seed of one task's folds and trees, independent of which other tasks are scored."""
    return int(generator(seed, *address, task).integers(2**31))  # scikit-learn takes 32 bits


def summarise(values) -> Summary | None:
    """Mean and quartiles of the AUCs that are not NaN, or None if all are."""
    measured = [value for value in values if not np.isnan(value)]
    if not measured:
        return None
    low, middle, high = (float(value) for value in np.percentile(measured, [25, 50, 75]))
    return Summary(len(measured), float(np.mean(measured)), low, middle, high)
