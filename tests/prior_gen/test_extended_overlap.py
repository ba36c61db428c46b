"""Classes that lie in one another: soft borders, middles, clusters."""

import numpy as np
import pytest
from extended import config, cross_fitted_auc, extended_by, microbatches, with_labels
from prior_draws import ALPHA
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from prior_gen import generate_microbatch
from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.clusters import clustered_columns
from prior_gen.extensions.soft_border import soften
from prior_gen.extensions.two_sided import two_sided

# One column that is the score: where its classes part can be seen.
SCORE_ALONE = {
    "n_features": (1, 1),
    "n_labeled": (200, 200),
    "eta_final": (2.0, 2.0),
    "pi_final": (0.74, 0.76),  # of the unlabelled: half of all rows
    "sigma_noise": (0.0,),
    "activations": ("identity",),
    "noncausal_sources": ("causes",),
    "input_distributions": ("gaussian",),
    "p_causal_final": 0.0,
    "tasks_per_microbatch": 12,
}


@pytest.mark.parametrize("softness", [0.3, 1.0, 2.0])
def test_as_many_rows_change_sides_as_the_noise_makes(softness):
    # z + softness e and z, both normal, lie on different sides of 0 in arctan(softness) / pi.
    crossed, rows = 0, 0
    settings = {"soft_border": 1.0, "softness": (softness, softness)}
    settings |= {"free_border": 1.0, "border": (0.5, 0.5)}
    for batch, tag in extended_by("soft_border", microbatches(6, SCORE_ALONE, **settings)):
        assert tag == {"softness": softness}
        for x, y in with_labels(batch):
            above = x[:, 0] > 0
            wrong = int((above == y).sum())
            crossed += min(wrong, len(y) - wrong)
            rows += len(y)
    assert crossed / rows == pytest.approx(np.arctan(softness) / np.pi, abs=0.012)


def test_next_to_no_softness_leaves_every_row_and_class_as_it_was():
    moved = 0
    for step in range(8):
        plain, hard, soft = (
            generate_microbatch(config(label_noise=1.0, noise_share=(0, 0), **more), 100, step, 0)
            for more in (
                {},
                {"soft_border": 1.0, "softness": (1e-9, 1e-9)},
                {"soft_border": 1.0, "softness": (2.0, 2.0)},
            )
        )
        np.testing.assert_array_equal(hard.x, plain.x)
        np.testing.assert_array_equal(hard.y, plain.y)
        # The same pool, but others of its rows are positive.
        moved += sum(not np.array_equal(a, b) for a, b in zip(plain.x, soft.x, strict=True))
    assert moved >= 28  # of 32; a few have nothing but ties


def test_the_softness_is_one_of_a_normal_score_whatever_its_tails():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(20_000).astype(np.float32)
    tails = normal.copy()
    tails[:200] = 20
    half_zero = np.maximum(normal, 0) * (normal > 0.7)
    for score, spread in ((normal, 1), (tails, 1), (3 * normal, 3), (half_zero, 1)):
        soft = soften(np.random.default_rng(1), {"softness": 0.5}, score)
        assert soft.dtype == np.float32
        assert (soft - score).std() == pytest.approx(0.5 * spread, rel=0.03)
        assert abs(np.corrcoef(soft - score, score)[0, 1]) < 0.03


@pytest.mark.parametrize("center", [0.3, 0.5])
def test_the_middle_of_a_score_is_one_class_and_both_ends_the_other(center):
    score = np.random.default_rng(0).permutation(np.arange(1000, dtype=np.float32))
    ours = two_sided({"center": center, "middle": "positive"}, score)
    assert ours.dtype == np.float32
    negative = np.argsort(-ours, kind="stable")[:600]
    inside = np.sort(np.delete(score, negative))
    assert inside[-1] - inside[0] == 399  # one interval, around the quantile
    assert abs(inside.mean() - 1000 * center) <= 1
    np.testing.assert_array_equal(two_sided({"center": center, "middle": "negative"}, score), -ours)


def test_either_class_may_be_the_middle_and_a_line_says_nothing_of_a_middle():
    seen, line, distance = set(), [], []
    settings = {"two_sided": 1.0, "free_border": 1.0, "border": (0.5, 0.5)}
    for batch, tag in extended_by("two_sided", microbatches(12, SCORE_ALONE, **settings)):
        seen.add(tag["middle"])
        assert 0.3 <= tag["center"] <= 0.7
        if abs(tag["center"] - 0.5) < 0.1:
            for x, y in with_labels(batch):
                line.append(cross_fitted_auc(LogisticRegression(), x, y))
                distance.append(cross_fitted_auc(KNeighborsClassifier(15), x, y))
    assert seen == {"positive", "negative"}
    assert len(line) >= 12
    assert np.mean(line) < 0.75
    assert np.mean(distance) > 0.97


def drawn(seed, rows=400, d=6, **parameters):
    wanted = {"clusters": 2, "separation": 3.0, "common": 0.2, "spreads": "common", **parameters}
    rng = np.random.default_rng(seed)
    return clustered_columns(rng, wanted, ClassCounts(rows, rows), d)


def test_two_centres_lie_as_far_apart_as_tagged_however_many_columns():
    for d in (1, 4, 12):
        distances = []
        for seed in range(300):
            x, negative, facts = drawn(seed, d=d)
            between = x[negative].mean(axis=0) - x[~negative].mean(axis=0)
            distances.append((between[facts["columns"]] ** 2).sum())
        error = np.std(distances) / np.sqrt(len(distances))
        # The means of 400 rows add a little of their own.
        assert abs(np.mean(distances) - 2 * 3.0**2) < 4 * error + 0.1


def test_the_columns_that_are_not_named_say_nothing_and_the_named_ones_do():
    silent, telling = [], []
    for seed in range(60):
        x, negative, facts = drawn(seed, d=8, separation=6.0)
        p = stats.ttest_ind(x[negative], x[~negative]).pvalue
        named = np.isin(np.arange(8), facts["columns"])
        assert 1 <= named.sum() <= 8
        silent += p[~named].tolist()
        telling += p[named].tolist()
    assert stats.kstest(silent, "uniform").pvalue > ALPHA
    assert np.mean(np.array(telling) < 0.001) > 0.8


@pytest.mark.parametrize(("spreads", "alike"), [("common", True), ("own", False)])
def test_clusters_have_one_spread_or_their_own(spreads, alike):
    p = []
    for seed in range(60):
        x, negative, facts = drawn(seed, d=4, spreads=spreads)
        column = facts["columns"][0]
        p.append(stats.levene(x[negative, column], x[~negative, column]).pvalue)
    assert (stats.kstest(p, "uniform").pvalue > ALPHA) == alike


def test_what_the_columns_share_outweighs_the_clusters_and_is_left_out_by_differences():
    alone, differences = [], []
    for seed in range(20):
        x, negative, _ = drawn(seed, d=6, separation=4.0, common=30.0)
        assert np.corrcoef(x.T)[np.triu_indices(6, 1)].min() > 0.9
        alone.append(max(abs(np.corrcoef(column, negative)[0, 1]) for column in x.T))
        line = LogisticRegression(max_iter=1000)
        differences.append(cross_fitted_auc(line, StandardScaler().fit_transform(x), negative))
    assert np.mean(alone) < 0.2
    assert np.mean(differences) > 0.9


@pytest.mark.parametrize("common", [0.2, 3.0])
def test_rows_of_one_cluster_share_two_common_parts_of_the_stated_sizes(common):
    """Variance: 1 of the column's own, common^2 E(u^2) with u in [.5, 1.5], and .5^2."""
    found = []
    for seed in range(200):
        x, negative, _ = drawn(seed, common=common)
        found.append(x[negative].var(axis=0).mean())
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - (1 + common**2 * 13 / 12 + 0.25)) < 4 * error


def test_the_two_common_parts_are_two():
    for seed in range(10):
        x, negative, _ = drawn(seed, rows=5000, d=6, common=3.0)
        third, second, first = np.sort(np.linalg.eigvalsh(np.cov(x[negative].T)))[-3:]
        assert first > 20
        assert second > 1.2
        assert third == pytest.approx(1, abs=0.15)  # all that is left is the columns' own noise


def test_own_spreads_of_clusters_are_uniform_from_four_tenths_to_sixteen():
    """Of two classes of one cluster: what both share is left out of their variances' difference."""
    found = []
    for seed in range(200):
        x, negative, facts = drawn(seed, rows=3000, d=3, spreads="own")
        column = x[:, facts["columns"][0]]
        found.append(column[negative].var() - column[~negative].var())
    a, b = np.random.default_rng(0).uniform(0.4, 1.6, (2, 20_000))
    assert stats.ks_2samp(found, a**2 - b**2).pvalue > ALPHA


def test_every_class_has_its_clusters_and_exactly_the_rows_that_are_asked_for():
    seen = set()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        parameters = {"clusters": 5, "separation": 2.0, "common": 1.0, "spreads": "own"}
        x, negative, facts = clustered_columns(rng, parameters, ClassCounts(7, 3), 2)
        assert x.shape == (10, 2)
        assert x.dtype == np.float32
        assert negative.sum() == 3
        seen.add(facts["negative_clusters"])
    assert seen == {1, 2, 3, 4}


def test_clusters_of_a_class_have_uneven_shares_of_its_rows():
    """In proportion to numbers from .2 to 1.2: of two, far apart, the gap tells the shares."""
    found = []
    for seed in range(200):
        x, negative, facts = drawn(seed, d=1, clusters=3, separation=1000.0)
        of_two = np.sort(x[negative == (facts["negative_clusters"] == 2), 0])
        found.append((np.diff(of_two).argmax() + 1) / len(of_two))
    a, b = np.random.default_rng(0).uniform(0.2, 1.2, (2, 20_000))
    assert stats.ks_2samp(found, a / (a + b)).pvalue > ALPHA


def test_pi_is_reached_and_the_rows_are_in_no_order():
    batches = microbatches(30, {"n_labeled": (80, 120)}, cluster_labels=1.0)
    for batch, tag in extended_by("cluster_labels", batches):
        assert 2 <= tag["clusters"] <= 10
        assert 1.0 <= tag["separation"] <= 7.0
        assert 0.2 <= tag["common"] <= 3.0
        assert len(tag["negative_clusters"]) == len(batch.x)
        realised = 1 - batch.y.mean(axis=1)
        np.testing.assert_allclose(realised, batch.tags["pi"], atol=1.5 / batch.y.shape[1])
        place = np.arange(batch.y.shape[1])
        assert all(abs(np.corrcoef(place, y)[0, 1]) < 0.45 for y in batch.y)


def test_many_clusters_scatter_the_classes_where_a_line_cannot_part_them():
    plan = {"n_features": (4, 6), "n_labeled": (200, 200), "eta_final": (2.0, 2.0)}
    settings = {"cluster_labels": 1.0, "clusters": (8, 8), "cluster_separation": (7.0, 7.0)}
    settings |= {"cluster_common": (0.2, 0.2)}
    near, line = [], []
    for batch, tag in extended_by("cluster_labels", microbatches(10, plan, **settings)):
        for (x, y), negative in zip(with_labels(batch), tag["negative_clusters"], strict=True):
            if negative in (3, 4, 5):
                near.append(cross_fitted_auc(KNeighborsClassifier(15), x, y))
                line.append(cross_fitted_auc(LogisticRegression(), x, y))
    assert len(near) >= 8
    assert np.mean(near) > 0.93
    assert np.mean(near) > np.mean(line) + 0.05


def test_a_border_is_as_soft_for_groups_of_one_class():
    settings = {"soft_border": 1.0, "softness": (2.0, 2.0), "grouped": 1.0, "group_size": (3, 3)}
    settings |= {"free_border": 1.0, "border": (0.5, 0.5)}
    wrong = {True: [], False: []}
    for batch, tag in extended_by("grouped", microbatches(12, SCORE_ALONE, **settings)):
        for x, y in with_labels(batch):
            share = ((x[:, 0] > 0) == y).mean()
            wrong[tag["one_class"]].append(min(share, 1 - share))
    assert min(np.mean(shares) for shares in wrong.values()) > 0.2
