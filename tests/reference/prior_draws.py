"""Draws of the prior, and the tests of distributions that they are put to.

All seeds are fixed, so nothing here is flaky; a test rejects at significance ALPHA, which a right
sampler would pass for all but one seed in ten thousand.
"""

from collections import Counter

import numpy as np
from scipy import stats

from prior_gen import generate_microbatch
from puicl_config import Config, PriorConfig

ALPHA = 1e-4
PRIOR = PriorConfig()
K = PRIOR.stages
TWO_TASKS = {"tasks_per_microbatch": 2}


def assert_uniform_over(values, support):
    """Chi-square test that `values` are uniform over `support`, and nothing else occurs."""
    counts = Counter(values)
    support = list(support)
    assert set(counts) == set(support), set(counts) ^ set(support)
    p = stats.chisquare([counts[value] for value in support]).pvalue
    assert p > ALPHA, f"not uniform over {support[:12]}: p = {p:.2e}"


def assert_distributed(values, distribution):
    """Kolmogorov-Smirnov test against a frozen scipy distribution."""
    p = stats.kstest(np.asarray(values, dtype=np.float64), distribution.cdf).pvalue
    assert p > ALPHA, f"KS p = {p:.2e}"


def assert_happens_with_probability(hits, trials, probability):
    p = stats.binomtest(int(hits), int(trials), float(probability)).pvalue
    assert p > ALPHA, f"{hits} of {trials} against probability {float(probability)}: p = {p:.2e}"


def assert_independent(pairs):
    """Chi-square test of independence between two categorical quantities."""
    first, second = (sorted(set(column)) for column in zip(*pairs, strict=True))
    counts = Counter(pairs)
    table = [[counts[a, b] for b in second] for a in first]
    p = stats.chi2_contingency(table).pvalue
    assert p > ALPHA, f"dependent: p = {p:.2e}"


def small_config(**changes):
    return Config(
        prior={"n_labeled": (15, 40), "steps_per_stage": 1000, "tail_steps": 34_000, **changes}
    )


def small_microbatches(stage, count, **changes):
    config = small_config(**changes)
    return [generate_microbatch(config, stage, step, 0) for step in range(count)]
