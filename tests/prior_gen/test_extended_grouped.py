"""Grouped rows: who belongs to whom, how near they are, and what they share."""

from types import SimpleNamespace

import numpy as np
import pytest
from extended import extended_by, microbatches, with_labels
from sklearn.neighbors import NearestNeighbors

from prior_gen.extensions.grouped import draw_together, group_heads


def heads_of(seed, n=4000, **parameters):
    wanted = {"size": 8.0, "alone": 0.3, **parameters}
    return group_heads(np.random.default_rng(seed), wanted, n)


def test_every_group_has_its_first_row_as_head():
    heads = heads_of(0)
    assert (heads <= np.arange(len(heads))).all()
    np.testing.assert_array_equal(heads[heads], heads)
    assert len(np.unique(heads)) < len(heads) / 2


def test_as_many_rows_are_alone_as_the_share_says_and_groups_are_uneven():
    sizes = np.bincount(heads_of(1, alone=0.0))
    sizes = sizes[sizes > 0]
    assert sizes.mean() == pytest.approx(8, rel=0.1)
    assert np.median(sizes) < 7 < 50 < sizes.max()
    single = np.mean([(np.bincount(heads_of(seed, alone=0.4)) == 1).sum() for seed in range(5)])
    without = np.mean([(np.bincount(heads_of(seed, alone=0.0)) == 1).sum() for seed in range(5)])
    assert single - without == pytest.approx(0.4 * 4000, rel=0.05)


def test_one_row_and_groups_larger_than_the_pool_are_no_trouble():
    np.testing.assert_array_equal(heads_of(0, n=1), [0])
    np.testing.assert_array_equal(heads_of(0, n=5, size=30.0, alone=0.0), np.zeros(5))
    np.testing.assert_array_equal(heads_of(0, n=5, alone=1.0), np.arange(5))
    drawn = iter([np.zeros(4), np.array([0.1, 0.9, 0.9, 0.1])])
    rng = SimpleNamespace(random=lambda n: next(drawn))  # the first and the last row are alone
    heads = group_heads(rng, {"size": 30.0, "alone": 0.5}, 4)
    np.testing.assert_array_equal(heads, [0, 1, 1, 3])


def test_of_the_difference_from_the_head_the_spread_is_left():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3), dtype=np.float32)
    score = rng.standard_normal(500, dtype=np.float32)
    heads = heads_of(2, n=500)
    spreads = {"spreads": [0.0, 0.25, 1.0], "closeness": 0.25}
    moved, moved_score = draw_together(spreads, heads, x, score)
    assert moved.dtype == moved_score.dtype == np.float32
    np.testing.assert_array_equal(moved[:, 0], x[heads, 0])
    difference = x[:, 1] - x[heads, 1]
    np.testing.assert_allclose(moved[:, 1] - x[heads, 1], 0.25 * difference, atol=1e-6)
    np.testing.assert_allclose(moved[:, 2], x[:, 2], atol=1e-6)
    np.testing.assert_allclose(moved_score - score[heads], 0.25 * (score - score[heads]), atol=1e-6)
    np.testing.assert_array_equal(moved[np.unique(heads)], x[np.unique(heads)])
    assert draw_together(spreads, heads, x, None)[1] is None


@pytest.mark.parametrize(
    ("settings", "own_at_most"),
    [
        ({"soft_border": 1.0, "softness": (2.0, 2.0)}, 0.7),
        ({"rule_labels": 1.0, "rule_kinds": ("logistic",)}, 0.85),
    ],
    ids=["a soft border", "a noisy rule"],
)
def test_rows_of_a_group_with_one_class_share_it_noise_and_all(settings, own_at_most):
    """Rows that nearly are one another: of one class, or as apart as the noise makes them."""
    settings |= {"grouped": 1.0, "group_size": (10, 10), "group_closeness": (0.001, 0.001)}
    sizes = {"n_labeled": (60, 60), "eta_final": (6.0, 6.0), "pi_final": (0.45, 0.55)}
    agree = {True: [], False: []}
    for batch, tag in extended_by("grouped", microbatches(24, sizes, **settings)):
        for x, y in with_labels(batch):
            distance, nearest = NearestNeighbors(n_neighbors=2).fit(x).kneighbors(x)
            near = (distance[:, 1] < 0.02) & (distance[:, 1] > 0)
            agree[tag["one_class"]] += (y == y[nearest[:, 1]])[near].tolist()
    assert min(len(rows) for rows in agree.values()) > 1000
    # The border passes through one group of a task, which may be large.
    assert np.mean(agree[True]) > 0.9
    assert 0.5 < np.mean(agree[False]) < own_at_most


def test_neither_designs_nor_clusters_nor_rules_of_codes_are_grouped():
    settings = {"grouped": 1.0, "rule_labels": 0.7, "cluster_labels": 0.2, "factorial": 0.3}
    kinds = {"rule_kinds": ("count", "forest")}
    seen = set()
    for batch in microbatches(60, **settings, **kinds):
        tags = batch.tags["extensions"]
        source = tags["rule_labels"]["kind"] if "rule_labels" in tags else "score"
        source = next((name for name in ("cluster_labels", "factorial") if name in tags), source)
        assert ("grouped" in tags) == (source in ("forest", "score"))
        seen.add(source)
    assert seen == {"forest", "score", "count", "cluster_labels", "factorial"}
