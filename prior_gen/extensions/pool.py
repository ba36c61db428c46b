"""The pool of rows that a task of an extended microbatch is sampled from: its columns and scores.

Unless extensions change the border or the source of labels, the pool has the paper's n rows.
"""

from dataclasses import dataclass, field

import numpy as np

from prior_gen.extensions.border import ClassCounts, border_quantile, pool_rows
from prior_gen.extensions.censored import censor_columns
from prior_gen.extensions.clusters import clustered_columns
from prior_gen.extensions.discrete import CONTINUOUS, level_codes
from prior_gen.extensions.drawn import Parameters, labeled_by_columns
from prior_gen.extensions.factor_model import factor_columns
from prior_gen.extensions.factorial import factorial_codes
from prior_gen.extensions.graph import graph_columns
from prior_gen.extensions.grouped import draw_together, group_heads
from prior_gen.extensions.independent import independent_columns
from prior_gen.extensions.irrelevant import shuffle_irrelevant
from prior_gen.extensions.propose import POOL_FACTOR
from prior_gen.extensions.streams import Streams
from prior_gen.extensions.two_sided import two_sided
from prior_gen.extensions.warped import warp_columns
from prior_gen.factors import Factors
from prior_gen.scm import draw_scm, run_scm
from prior_gen.sizes import TaskSizes
from prior_gen.standardization import standardize
from puicl_config import PriorConfig

Facts = dict[str, Parameters]


@dataclass(frozen=True)
class Draft:
    """What the steps of one task share: its streams, what was drawn for it, and its facts.

    `rng` is the stream of the paper's draws; each extension has its own stream. `facts`, by
    extension, is what the task draws itself; each step adds its own.
    """

    rng: np.random.Generator
    streams: Streams
    prior: PriorConfig
    factors: Factors
    counts: ClassCounts
    facts: Facts = field(default_factory=dict)

    @property
    def chosen(self) -> dict[str, Parameters]:
        """The parameters of the microbatch's extensions, by name."""
        return self.factors.chosen

    def own(self, extension: str) -> tuple[np.random.Generator, Parameters]:
        """The stream of a chosen extension, from its beginning, and its parameters."""
        return self.streams.of(extension), self.chosen[extension]


@dataclass(frozen=True)
class Pool:
    """Rows before their classes.

    Attributes:
        x: float32 [n, d], standardised as observed.
        codes: int [n, d], the levels of discrete columns, `CONTINUOUS` in others.
        n_negative: how many rows are to be negative where the classes are cut from a score.
        score: [n], large for negatives, or None where no score was made.
        negative: bool [n], or None unless the columns were made for given classes.
        heads: int [n], the first row of each row's group, or None without groups.
    """

    x: np.ndarray
    codes: np.ndarray
    n_negative: int
    score: np.ndarray | None = None
    negative: np.ndarray | None = None
    heads: np.ndarray | None = None


def draw_pool(draft: Draft, sizes: TaskSizes) -> Pool:
    """Draw the pool of a task of these sizes: a factorial design, clusters, or scored columns."""
    chosen, clip = draft.chosen, draft.prior.value_clip
    n, n_negative = _rows_of_pool(draft, sizes)
    if "factorial" in chosen:
        codes, levels = factorial_codes(
            *draft.own("factorial"), draft.counts, draft.factors.n_features
        )
        draft.facts["factorial"] = {"levels": levels}
        return Pool(standardize(codes.astype(np.float32), clip), codes, n_negative)
    if "cluster_labels" in chosen:
        x, negative, draft.facts["cluster_labels"] = clustered_columns(
            *draft.own("cluster_labels"), draft.counts, draft.factors.n_features
        )
        return Pool(*observed(draft, x), n_negative, negative=negative)
    x, score = _scored_columns(draft, n)
    heads = None
    if "grouped" in chosen:
        heads = group_heads(*draft.own("grouped"), n)
        x, score = draw_together(chosen["grouped"], heads, x, score)
    if "two_sided" in chosen:
        assert score is not None, "of those with a score"
        score = two_sided(chosen["two_sided"], score)
    return Pool(*observed(draft, x), n_negative, score, heads=heads)


def _rows_of_pool(draft: Draft, sizes: TaskSizes) -> tuple[int, int]:
    """The rows of a scored pool, and how many of them are negative if the score says which."""
    counts = draft.counts
    if "free_border" in draft.chosen:
        quantile = border_quantile(*draft.own("free_border"))
        draft.facts["free_border"] = {"quantile": quantile}
        n = pool_rows(quantile, counts)
        return n, round(quantile * n)
    if labeled_by_columns(draft.chosen):
        return POOL_FACTOR * (counts.positive + counts.negative), sizes.n_negative
    return sizes.n_rows, sizes.n_negative


def _scored_columns(draft: Draft, n: int) -> tuple[np.ndarray, np.ndarray | None]:
    """x [n, d] float32, not standardised, and their standardised score [n] if they have one."""
    chosen, prior, factors = draft.chosen, draft.prior, draft.factors
    if "independent" in chosen:
        return independent_columns(*draft.own("independent"), n, factors.n_features), None
    if "factor_model" in chosen:
        x, score = factor_columns(*draft.own("factor_model"), n, factors.n_features, prior.portable)
    elif "graph" in chosen:
        x, score = graph_columns(*draft.own("graph"), n, factors.n_features, prior.portable)
    else:
        draws = draw_scm(draft.rng, prior, factors, n, factors.blocks_read)
        x, score = run_scm(draws, factors, prior.state_clamp, prior.portable)
    return x, standardize(score, prior.value_clip)


def observed(draft: Draft, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns as observed: x [n, d] standardised, float32, and level codes [n, d].

    Applies the extensions warped, censored, discrete and irrelevant.
    """
    chosen, prior = draft.chosen, draft.prior
    x = standardize(x, prior.value_clip)
    if "warped" in chosen:
        x = warp_columns(chosen["warped"], x, prior.portable)
        x = standardize(x, prior.value_clip).astype(np.float32)
    if "censored" in chosen:
        x = standardize(censor_columns(chosen["censored"], x), prior.value_clip)
    codes = np.full(x.shape, CONTINUOUS)
    if "discrete" in chosen:
        codes = level_codes(*draft.own("discrete"), x)
        levels = standardize(codes.astype(np.float32), prior.value_clip)
        x = np.where(codes == CONTINUOUS, x, levels)
    if "irrelevant" in chosen:
        shuffle_irrelevant(*draft.own("irrelevant"), x, codes)
    return x, codes
