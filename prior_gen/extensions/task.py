"""One task of an extended microbatch: the paper's procedure with the chosen extensions inserted.

A pool of rows gets columns, then classes, then label noise; the finished task is sampled from the
two classes of the pool. Unless extensions change the border or the source of labels, the pool has
the paper's n rows.
"""

import numpy as np

from prior_gen.extensions.border import ClassCounts, border_quantile, pool_rows
from prior_gen.extensions.censored import censor_columns
from prior_gen.extensions.clusters import clustered_columns
from prior_gen.extensions.discrete import CONTINUOUS, level_codes
from prior_gen.extensions.drawn import Parameters, labeled_by_columns
from prior_gen.extensions.duplicated import duplicate_columns
from prior_gen.extensions.factor_model import factor_columns
from prior_gen.extensions.factorial import factorial_codes
from prior_gen.extensions.graph import graph_columns
from prior_gen.extensions.grouped import draw_together, group_heads
from prior_gen.extensions.independent import independent_columns
from prior_gen.extensions.irrelevant import shuffle_irrelevant
from prior_gen.extensions.labeling import labeled_first, labeling_column
from prior_gen.extensions.missing import blank_cells
from prior_gen.extensions.noise import flipped_rows
from prior_gen.extensions.normal_scores import normal_scores
from prior_gen.extensions.principal_axes import principal_axes
from prior_gen.extensions.proportional import share_size
from prior_gen.extensions.propose import POOL_FACTOR
from prior_gen.extensions.rules import rule_labels
from prior_gen.extensions.soft_border import soften
from prior_gen.extensions.streams import Streams
from prior_gen.extensions.trees import tree_labels
from prior_gen.extensions.two_sided import two_sided
from prior_gen.extensions.warped import warp_columns
from prior_gen.factors import Factors
from prior_gen.pu_split import negative_rows
from prior_gen.scm import draw_scm, run_scm
from prior_gen.seeding import task_generator
from prior_gen.sizes import task_sizes
from prior_gen.standardization import standardize
from puicl_config import PriorConfig, Split

Facts = dict[str, Parameters]


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
    chosen = factors.chosen
    facts: Facts = {}
    pi = float(rng.uniform(*factors.pi))
    sizes = task_sizes(factors.n_labeled, factors.n_unlabeled, pi)
    counts = ClassCounts.of(sizes)

    n, n_negative = sizes.n_rows, sizes.n_negative
    if "free_border" in chosen:
        quantile = border_quantile(streams.of("free_border"), chosen["free_border"])
        facts["free_border"] = {"quantile": quantile}
        n = pool_rows(quantile, counts)
        n_negative = min(max(round(quantile * n), counts.negative), n - counts.positive)
    elif labeled_by_columns(chosen):
        n = POOL_FACTOR * (counts.positive + counts.negative)

    if "factorial" in chosen:
        codes, levels = factorial_codes(
            streams.of("factorial"), chosen["factorial"], counts, factors.n_features
        )
        x, score = standardize(codes.astype(np.float32), prior.value_clip), None
        facts["factorial"] = {"levels": levels}
    elif "cluster_labels" in chosen:
        score = None
        x, negative, facts["cluster_labels"] = clustered_columns(
            streams.of("cluster_labels"), chosen["cluster_labels"], counts, factors.n_features
        )
        x, codes = _seen(streams, prior, chosen, x)
    else:
        x, score = _columns(rng, streams, prior, factors, n)
        if "grouped" in chosen:
            heads = group_heads(streams.of("grouped"), chosen["grouped"], n)
            x, score = draw_together(chosen["grouped"], heads, x, score)
        if "two_sided" in chosen:
            assert score is not None, "of those with a score"
            score = two_sided(chosen["two_sided"], score)
        x, codes = _seen(streams, prior, chosen, x)

    border = score
    if "soft_border" in chosen:
        assert score is not None, "of those with a score"
        border = soften(streams.of("soft_border"), chosen["soft_border"], score)
    one_class = "grouped" in chosen and chosen["grouped"]["one_class"]
    if one_class and border is not None:
        border = border[heads]
    if "tree_labels" in chosen:
        negative, facts["tree_labels"] = tree_labels(
            streams.of("tree_labels"), chosen["tree_labels"], chosen, x, counts
        )
    elif "rule_labels" in chosen:
        negative, facts["rule_labels"] = rule_labels(
            streams.of("rule_labels"), chosen["rule_labels"], chosen, x, codes, counts
        )
    elif "cluster_labels" not in chosen:
        assert border is not None, "where nothing else gives labels, a score does"
        negative = np.zeros(len(x), dtype=bool)
        negative[negative_rows(rng, border, n_negative)] = True
    if one_class and labeled_by_columns(chosen) and not counts.shortage(negative[heads]):
        negative = negative[heads]

    flipped = np.zeros(len(x), dtype=bool)
    if "label_noise" in chosen:
        rng_noise = streams.of("label_noise")
        flipped = flipped_rows(rng_noise, chosen["label_noise"], negative, border)
        negative = negative ^ flipped

    if "proportional" in chosen:
        share_size(streams.of("proportional"), chosen["proportional"], x)
    if "duplicated" in chosen:
        is_discrete = codes[0] != CONTINUOUS
        duplicate_columns(streams.of("duplicated"), chosen["duplicated"], x, is_discrete)

    rng_split = streams.of("split")
    positives = rng_split.permutation(np.flatnonzero(~negative))[: counts.positive]
    if "sar" in chosen:
        rng_sar, sar = streams.of("sar"), chosen["sar"]
        values, facts["sar"] = labeling_column(rng_sar, sar, x, score)
        positives = positives[labeled_first(rng_sar, sar["strength"], values[positives])]
    labeled, hidden = np.split(positives, [factors.n_labeled])
    negatives = rng_split.permutation(np.flatnonzero(negative))[: counts.negative]
    unlabeled = rng_split.permutation(np.concatenate([hidden, negatives]))
    rows = np.concatenate([labeled, unlabeled])

    if "label_noise" in chosen:
        facts["label_noise"] = {"realized": round(float(flipped[rows].mean()), 4)}
    if "normal_scores" in chosen:
        x[rows] = normal_scores(x[rows])
    if "mirrored" in chosen:
        x = -x
    if "missing" in chosen:
        blank_cells(streams.of("missing"), chosen["missing"], x)
    if "principal_axes" in chosen:  # after filling missing cells, as the classifier does
        x[rows] = principal_axes(streams.of("principal_axes"), x[rows], prior.value_clip)
    return x[rows], (~negative[unlabeled]).astype(np.uint8), pi, facts


def _columns(
    rng: np.random.Generator, streams: Streams, prior: PriorConfig, factors: Factors, n: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """x [n, d] float32, not standardised, and their standardised score [n] if they have one."""
    chosen = factors.chosen
    if "independent" in chosen:
        independent = streams.of("independent")
        return independent_columns(independent, chosen["independent"], n, factors.n_features), None
    if "factor_model" in chosen:
        model, own = chosen["factor_model"], streams.of("factor_model")
        x, score = factor_columns(own, model, n, factors.n_features, prior.portable)
        return x, standardize(score, prior.value_clip)
    if "graph" in chosen:
        own = streams.of("graph")
        x, score = graph_columns(own, chosen["graph"], n, factors.n_features, prior.portable)
        return x, standardize(score, prior.value_clip)
    draws = draw_scm(rng, prior, factors, n, factors.blocks_read)
    x, score = run_scm(draws, factors, prior.state_clamp, prior.portable)
    return x, standardize(score, prior.value_clip)


def _seen(
    streams: Streams, prior: PriorConfig, chosen: dict[str, Parameters], x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The columns as observed: x [n, d] standardised, float32, and level codes [n, d].

    Applies the extensions warped, censored, discrete and irrelevant.
    """
    x = standardize(x, prior.value_clip)
    if "warped" in chosen:
        x = warp_columns(chosen["warped"], x, prior.portable)
        x = standardize(x, prior.value_clip).astype(np.float32)
    if "censored" in chosen:
        x = standardize(censor_columns(chosen["censored"], x), prior.value_clip)
    codes = np.full(x.shape, CONTINUOUS)
    if "discrete" in chosen:
        codes = level_codes(streams.of("discrete"), chosen["discrete"], x)
        levels = standardize(codes.astype(np.float32), prior.value_clip)
        x = np.where(codes == CONTINUOUS, x, levels)
    if "irrelevant" in chosen:
        shuffle_irrelevant(streams.of("irrelevant"), chosen["irrelevant"], x, codes)
    return x, codes
