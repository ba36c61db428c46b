"""One task of an extended microbatch: the paper's procedure with the chosen extensions inserted.

A pool of rows gets columns, then classes, then label noise; the finished task is sampled from the
two classes of the pool.
"""

import numpy as np

from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.classes import draw_classes
from prior_gen.extensions.discrete import CONTINUOUS
from prior_gen.extensions.duplicated import duplicate_columns
from prior_gen.extensions.labeling import labeled_first, labeling_column
from prior_gen.extensions.missing import blank_cells
from prior_gen.extensions.normal_scores import normal_scores
from prior_gen.extensions.pool import Draft, Facts, Pool, draw_pool
from prior_gen.extensions.principal_axes import principal_axes
from prior_gen.extensions.proportional import share_size
from prior_gen.extensions.streams import Streams
from prior_gen.factors import Factors
from prior_gen.seeding import task_generator
from prior_gen.sizes import task_sizes
from puicl_config import PriorConfig, Split


def generate_extended_tasks(
    prior: PriorConfig, factors: Factors, address: tuple[int, int, int], split: Split
) -> tuple[list[tuple[np.ndarray, np.ndarray, float]], Facts]:
    """Generate all tasks of a microbatch as (x, y, pi), and its tag `extensions`.

    The tag holds each extension's parameters. What each task draws itself (its facts) is stored
    there in lists with one value per task.
    """
    tasks, tag = [], {name: dict(parameters) for name, parameters in factors.chosen.items()}
    for task in range(prior.tasks_per_microbatch):
        rng = task_generator(prior.seed, split, *address, task)
        streams = Streams(prior.seed, split, address, task)
        x, y, pi, facts = generate_extended_task(rng, streams, prior, factors)
        tasks.append((x, y, pi))
        for extension, values in facts.items():
            for name, value in values.items():
                tag[extension].setdefault(name, []).append(value)
    return tasks, tag


def generate_extended_task(
    rng: np.random.Generator, streams: Streams, prior: PriorConfig, factors: Factors
) -> tuple[np.ndarray, np.ndarray, float, Facts]:
    """Generate one task: x [P + n_u, d] (labelled positives first), y [n_u], pi and its facts."""
    pi = float(rng.uniform(*factors.pi))
    sizes = task_sizes(factors.n_labeled, factors.n_unlabeled, pi)
    draft = Draft(rng, streams, prior, factors, ClassCounts.of(sizes))

    pool = draw_pool(draft, sizes)
    classes = draw_classes(draft, pool)
    _change_columns(draft, pool)
    labeled, unlabeled = _sample(draft, pool, classes.negative)
    rows = np.concatenate([labeled, unlabeled])
    if "label_noise" in factors.chosen:
        realized = round(float(classes.flipped[rows].mean()), 4)
        draft.facts["label_noise"] = {"realized": realized}
    y = (~classes.negative[unlabeled]).astype(np.uint8)
    return _as_shown(draft, pool.x, rows), y, pi, draft.facts


def _change_columns(draft: Draft, pool: Pool) -> None:
    """Change columns of the pool, in place, after they gave the classes."""
    if "proportional" in draft.chosen:
        share_size(*draft.own("proportional"), pool.x)
    if "duplicated" in draft.chosen:
        duplicate_columns(*draft.own("duplicated"), pool.x, pool.codes[0] != CONTINUOUS)


def _sample(draft: Draft, pool: Pool, negative: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the pool that are labelled, int [P], and unlabelled, int [n_u], in random order.

    negative: bool [n], the observed classes.
    """
    counts = draft.counts
    rng = draft.streams.of("split")
    positives = rng.permutation(np.flatnonzero(~negative))[: counts.positive]
    if "sar" in draft.chosen:
        rng_sar, sar = draft.own("sar")
        values, draft.facts["sar"] = labeling_column(rng_sar, sar, pool.x, pool.score)
        positives = positives[labeled_first(rng_sar, sar["strength"], values[positives])]
    labeled, hidden = np.split(positives, [draft.factors.n_labeled])
    negatives = rng.permutation(np.flatnonzero(negative))[: counts.negative]
    return labeled, rng.permutation(np.concatenate([hidden, negatives]))


def _as_shown(draft: Draft, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The `rows` of x [n, d] as the network is shown them, [len(rows), d].

    Missing cells are drawn for the whole pool; normal scores and principal axes are those of the
    finished task, as the classifier computes them of a table.
    """
    chosen = draft.chosen
    if "normal_scores" in chosen:
        x[rows] = normal_scores(x[rows])
    if "mirrored" in chosen:
        x = -x
    if "missing" in chosen:
        blank_cells(*draft.own("missing"), x)
    x = x[rows]
    if "principal_axes" in chosen:  # after filling missing cells, as the classifier does
        x = principal_axes(draft.streams.of("principal_axes"), x, draft.prior.value_clip)
    return x
