"""Clusters: rows get a class first, and their columns depend on it.

A disease has its symptoms, a digit its lit segments, a type of glass its composition. Here every
row belongs to one of several clusters, every cluster belongs to a class, and the columns are normal
around the cluster's centre. Each class is thus a mixture of its clusters, and the classes overlap
as the clusters do. In the paper a class is one end of a score; here it may be scattered over the
table.
"""

import numpy as np

from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.drawn import log_uniform
from puicl_config import ExtensionsConfig

# Extensions that clusters replace, since they make the columns and the classes.
REPLACED = frozenset({"shallow", "independent", "factorial", "factor_model", "graph"})
_INFORMATIVE = (0.3, 1.0)
_SPREADS = (0.4, 1.6)
_LOADINGS = (0.5, 1.5)


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """Number of clusters, their separation, the columns' common part and the kind of spreads."""
    return {
        "clusters": int(rng.integers(*config.clusters, endpoint=True)),
        "separation": round(log_uniform(rng, config.cluster_separation), 4),
        "common": round(log_uniform(rng, config.cluster_common), 4),
        "spreads": ("common", "own")[int(rng.integers(2))],
    }


def clustered_columns(
    rng: np.random.Generator, parameters: dict, counts: ClassCounts, d: int
) -> tuple[np.ndarray, np.ndarray, dict]:
    """x [n, d] float32, not standardised, is_negative [n], and the task's facts.

    n is the number of rows of the finished task; its positives come first. The squared distance
    between two centres, summed over all informative columns, is 2 `separation`^2 on average, in
    units of the columns' own noise: more columns do not make a table easier. Besides this noise,
    the columns share a common part of about `common` standard deviations (a body's size, an
    exposure), which can outweigh the differences between clusters, and another common part of about
    half a standard deviation.
    """
    clusters, separation = parameters["clusters"], parameters["separation"]
    informative = rng.permutation(d)[: max(1, round(float(rng.uniform(*_INFORMATIVE)) * d))]
    centers = np.zeros((clusters, d), np.float32)
    centers[:, informative] = rng.standard_normal((clusters, len(informative)), dtype=np.float32)
    centers *= np.float32(separation / np.sqrt(len(informative)))
    spreads = np.ones((clusters, d), np.float32)
    if parameters["spreads"] == "own":
        spreads[:, informative] = rng.uniform(*_SPREADS, (clusters, len(informative)))
    loadings = [parameters["common"] * rng.uniform(*_LOADINGS, d), 0.5 * rng.standard_normal(d)]

    # Each class has at least one cluster. Its rows are distributed by random, unequal shares.
    n_negative_clusters = int(rng.integers(1, clusters))
    shares = 0.2 + rng.random(clusters)
    negative = np.arange(counts.positive + counts.negative) >= counts.positive
    members = np.empty(len(negative), int)
    for side, own in (
        (negative, np.arange(clusters) < n_negative_clusters),
        (~negative, np.arange(clusters) >= n_negative_clusters),
    ):
        ends = np.cumsum(shares[own])
        drawn = np.searchsorted(ends, ends[-1] * rng.random(int(side.sum())), side="right")
        members[side] = np.flatnonzero(own)[np.minimum(drawn, len(ends) - 1)]

    noise = rng.standard_normal((len(negative), d), dtype=np.float32)
    x = centers[members] + spreads[members] * noise
    for loading in loadings:
        part = rng.standard_normal(len(negative), dtype=np.float32)
        x += part[:, None] * loading.astype(np.float32)
    facts = {"columns": sorted(informative.tolist()), "negative_clusters": n_negative_clusters}
    return x, negative, facts
