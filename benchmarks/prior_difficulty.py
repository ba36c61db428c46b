"""How hard the paper's prior is, by source of the features, depth and spread of the weights.

Tasks come from the plan itself: at each stage, microbatches are taken in order until enough have
the wanted source, and task 0 of each is made in memory. Three learners rank the unlabelled rows: a
cross-fitted random forest that is given every label (the most that can be learnt from these rows),
and the two labelled-against-unlabelled baselines of `prior-gen preview`.
"""

import argparse
import itertools
from collections.abc import Iterator

import numpy as np
from how_many import count
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from prior_gen.factors import draw_architecture, draw_factors
from prior_gen.microbatch import generate_task
from prior_gen.preview.difficulty import cross_fitted_scores, pu_auc
from prior_gen.seeding import task_generator
from prior_gen.structure import SCM_SOURCES
from puicl_config import PriorConfig, load_config

LEARNERS = ("supervised forest", "trees, P vs U", "logistic, P vs U")


def tasks_of(
    prior: PriorConfig, stage: int, source: str, count: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The first `count` tasks of a stage with this source: x [P + n_u, d] as stored, y [n_u]."""
    steps, batches = range(prior.steps_in_stage(stage)), range(prior.microbatches_per_step)
    found = 0
    for step, index in itertools.product(steps, batches):
        factors = draw_factors(prior, stage, step, index)
        if factors.source == source and found < count:
            rng = task_generator(prior.seed, "train", stage, step, index, 0)
            x, y, _ = generate_task(rng, prior, factors)
            found += 1
            yield x.astype(np.float16).astype(np.float64), y


def aucs(x: np.ndarray, y: np.ndarray, seed: int) -> list[float]:
    """AUC on the unlabelled rows by learner, in the order of `LEARNERS`."""
    told = np.concatenate([np.ones(len(x) - len(y), dtype=int), y.astype(int)])
    scores = cross_fitted_scores(
        lambda seed: RandomForestClassifier(100, min_samples_leaf=2, random_state=seed, n_jobs=1),
        x,
        told,
        seed,
    )
    supervised = float(roc_auc_score(y, scores[-len(y) :]))
    return [supervised, pu_auc("trees", x, y, seed), pu_auc("logistic", x, y, seed)]


def measure(prior: PriorConfig, stage: int, source: str, count: int) -> np.ndarray:
    """AUC [tasks, learners]; NaN if a class is too small for cross-fitting."""
    rows = []
    for number, (x, y) in enumerate(tasks_of(prior, stage, source, count)):
        if y.sum() >= 2 and (y == 0).sum() >= 2:
            rows.append(aucs(x, y, number))
    return np.array(rows).reshape(-1, len(LEARNERS))


def in_words(values: np.ndarray) -> list[str]:
    """Text: median and quartiles, by learner."""
    low, middle, high = np.percentile(values, [25, 50, 75], axis=0)
    return [f"{m:.2f} ({lo:.2f}-{hi:.2f})" for lo, m, hi in zip(low, middle, high, strict=True)]


def show(title: str, heading: str, rows: list[tuple[str, np.ndarray]]) -> None:
    """Print one table of medians and quartiles."""
    table = Table(title=title)
    for name in (heading, "tasks", *LEARNERS):
        table.add_column(name)
    for label, values in rows:
        if len(values):
            table.add_row(label, str(len(values)), *in_words(values))
    Console(width=110).print(table)


def by_source(prior: PriorConfig, stages: list[int], count: int) -> None:
    """Print a table for each stage, with a row for each source."""
    for stage in stages:
        layers, width = draw_architecture(prior, stage)
        rows = [(source, measure(prior, stage, source, count)) for source in SCM_SOURCES]
        show(f"stage {stage}: L_g = {layers}, h = {width}; median (quartiles)", "source", rows)


def by_depth(prior: PriorConfig, count: int) -> None:
    """Print a table by depth, for causes as features: each depth's first stage from 30 on."""
    rows = []
    for layers in range(prior.hidden_layers[0], prior.hidden_layers[1] + 1):
        for stage in range(30, prior.stages + 1):
            depth, width = draw_architecture(prior, stage)
            if depth == layers:
                label = f"L_g = {layers} (stage {stage}, h = {width})"
                rows.append((label, measure(prior, stage, "causes", count)))
                break
    show("source causes, by depth", "depth", rows)


def by_spread(prior: PriorConfig, stages: list[int], sigmas: list[float], count: int) -> None:
    """Print a table by spread of the weights, for causes as features.

    Each spread is a plan of its own; the same addresses are used in all.
    """
    rows = []
    for sigma in sigmas:
        changed = prior.model_copy(update={"sigma_init": sigma})
        parts = [measure(changed, stage, "causes", count) for stage in stages]
        rows.append((f"sigma_init = {sigma:g}", np.concatenate(parts)))
    shown = ", ".join(map(str, stages))
    show(f"source causes, by spread of the weights (stages {shown})", "plan", rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tables = ("source", "depth", "spread")
    parser.add_argument("--tables", nargs="+", choices=tables, default=tables)
    parser.add_argument("--stages", type=count, nargs="+", default=[10, 40, 70, 100])
    parser.add_argument("--tasks", type=count, default=30, help="tasks for each row (and stage)")
    parser.add_argument("--sigma-init", type=float, nargs="+", default=[0.8, 0.4, 0.2])
    arguments = parser.parse_args()
    prior = load_config("paper").prior
    if max(arguments.stages) > prior.total_stages:
        parser.error(f"--stages must be from 1 to {prior.total_stages}, the stages of the paper")
    if "source" in arguments.tables:
        by_source(prior, arguments.stages, arguments.tasks)
    if "depth" in arguments.tables:
        by_depth(prior, arguments.tasks)
    if "spread" in arguments.tables:
        by_spread(prior, arguments.stages, arguments.sigma_init, arguments.tasks)


if __name__ == "__main__":
    main()
