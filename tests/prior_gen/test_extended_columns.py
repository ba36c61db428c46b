"""What each extension does to a task's columns, seen from outside where that is possible."""

import numpy as np
import pytest
from extended import extended_by, microbatches, with_labels
from prior_draws import ALPHA, assert_distributed
from scipy import stats

from prior_gen.extensions import censored, warped
from prior_gen.extensions.duplicated import duplicate_columns
from prior_gen.extensions.independent import independent_columns
from prior_gen.extensions.irrelevant import shuffle_irrelevant
from prior_gen.extensions.normal_scores import normal_scores
from puicl_model.preprocessing.scaling import fit_scaling


def test_a_warp_keeps_ranks_and_the_marginals_get_the_tails():
    z = np.random.default_rng(0).standard_normal((4000, 1)).astype(np.float32)
    for kind, a, b in (("sinh_arcsinh", 0.0, 0.5), ("exp", 1.0, 0.0), ("power", 3.0, 0.0)):
        out = warped.warp_columns({"warps": [[kind, a, b]]}, z, portable=False)
        assert (np.argsort(out[:, 0]) == np.argsort(z[:, 0])).all(), kind
        assert stats.kurtosis(out[:, 0]) > 3, kind
    right, left = (warped.warp_columns({"warps": [["exp", a, 0.0]]}, z, False) for a in (0.8, -0.8))
    assert stats.skew(right[:, 0]) > 1
    assert stats.skew(left[:, 0]) < -1
    assert (np.argsort(left[:, 0]) == np.argsort(z[:, 0])).all()


def test_only_the_tagged_columns_are_warped_and_the_task_stays_the_same():
    plain, bent = (microbatches(8, warped=w, missing=1.0) for w in (0.0, 1.0))
    for before, after in zip(plain, bent, strict=True):
        np.testing.assert_array_equal(before.y, after.y)
        warps = after.tags["extensions"]["warped"]["warps"]
        assert any(kind != "identity" for kind, _, _ in warps)
        for column, (kind, _, _) in enumerate(warps):
            same = np.allclose(before.x[:, :, column], after.x[:, :, column], atol=1e-5)
            assert same == (kind == "identity"), kind


def test_all_cells_beyond_a_limit_are_at_it_and_the_others_stay():
    x = np.random.default_rng(0).permutation(np.arange(100.0))[:, None].repeat(3, axis=1)
    floor, ceiling, free = censored.censor_columns({"shares": [0.3, -0.4, 0.0]}, x).T
    np.testing.assert_array_equal(floor, np.maximum(x[:, 0], 30))
    np.testing.assert_array_equal(ceiling, np.minimum(x[:, 0], 59))
    np.testing.assert_array_equal(free, x[:, 0])


def test_the_tagged_columns_alone_are_censored_by_their_shares_and_labels_of_scores_stay():
    plain, cut = (microbatches(8, censored=c, missing=1.0, warped=0.5) for c in (0.0, 1.0))
    ends = set()
    for before, after in zip(plain, cut, strict=True):
        np.testing.assert_array_equal(before.y, after.y)  # the score knew what was cut off
        shares = after.tags["extensions"]["censored"]["shares"]
        assert any(shares)
        for column, share in enumerate(shares):
            ours, theirs = before.x[:, :, column], after.x[:, :, column]
            assert np.allclose(ours, theirs, atol=1e-5) == (share == 0.0)
            ends.add(np.sign(share))
            if share:
                assert 0.1 <= abs(share) <= 0.9
    assert ends == {-1, 0, 1}
    for batch, tag in extended_by("censored", microbatches(20, censored=1.0, few_labeled=0.0)):
        for column, share in enumerate(tag["shares"]):
            for task in batch.x:
                cells = task[:, column]
                limit = cells.min() if share > 0 else cells.max()
                # The share is the pool's, of which the task takes more or less by its classes.
                assert (cells == limit).sum() > 2 or not share


def test_what_is_censored_is_neither_discrete_nor_a_common_size():
    batches = microbatches(40, censored=1.0, discrete=0.7, proportional=0.7)
    for others in (batch.tags["extensions"] for batch in batches):
        shares = others.get("censored", {}).get("shares", [])
        cut = {column for column, share in enumerate(shares) if share}
        levels = others.get("discrete", {}).get("levels", [])
        assert not cut & {column for column, n in enumerate(levels) if n}
        assert not cut & {*others.get("proportional", {}).get("columns", [])}


def test_normal_scores_are_the_classifiers_quantile_scaling():
    rng = np.random.default_rng(0)
    x = np.stack([rng.lognormal(size=300), rng.integers(0, 3, 300), np.zeros(300)], axis=1)
    x = x.astype(np.float32)
    scores = normal_scores(x)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, fit_scaling(x.astype(float), "quantile")(x), atol=1e-6)


def test_tasks_in_normal_scores_are_the_same_tasks_by_rank():
    plain, scored = (microbatches(8, normal_scores=p, discrete=0.5) for p in (0.0, 1.0))
    for before, after in zip(plain, scored, strict=True):
        np.testing.assert_array_equal(before.y, after.y)
        assert after.tags["extensions"]["normal_scores"] == {"columns": "all"}
        for ours, theirs in zip(after.x, before.x, strict=True):
            np.testing.assert_allclose(
                ours, fit_scaling(theirs.astype(float), "quantile")(theirs), atol=2e-3
            )


@pytest.mark.parametrize("others", [{}, {"normal_scores": 1.0}, {"missing": 1.0}])
def test_mirrored_tasks_are_the_same_tasks_with_all_columns_negated(others):
    labels = {"discrete": 0.5, "rule_labels": 0.7, "factorial": 0.5}
    plain, mirrored = (microbatches(8, mirrored=p, **labels, **others) for p in (0.0, 1.0))
    for before, after in zip(plain, mirrored, strict=True):
        np.testing.assert_array_equal(before.y, after.y)
        np.testing.assert_array_equal(before.x, -after.x)
        tag = {**after.tags["extensions"]}
        assert tag.pop("mirrored") == {"columns": "all"}
        assert tag == before.tags["extensions"]


def test_a_blank_of_a_mirrored_table_is_a_zero_without_a_sign():
    """It is filled after the table was mirrored: -0.0 has other bits."""
    for batch in microbatches(2, factor_model=1.0, mirrored=1.0, missing=1.0):
        blanks = batch.x[batch.x == 0]
        assert len(blanks) > 20
        assert not np.signbit(blanks).any()


def test_missing_cells_are_blanks_among_the_scores():
    whole, blank = (microbatches(8, normal_scores=1.0, missing=p) for p in (0.0, 1.0))
    for before, after in zip(whole, blank, strict=True):
        changed = before.x != after.x
        assert changed.any()
        assert (after.x[changed] == 0).all()


def test_irrelevant_columns_say_nothing_about_the_class_or_the_other_columns():
    strong = {"sigma_noise": (0.0,), "noncausal_sources": ("head",), "p_causal_final": 0.0}
    batches = microbatches(30, strong, irrelevant=1.0, irrelevant_share=(0.4, 0.6))
    p_values, others = [], []
    for batch, tag in extended_by("irrelevant", batches):
        d = batch.x.shape[2]
        assert 1 <= len(tag["columns"]) < d
        for x, y in with_labels(batch):
            for column in range(d):
                p = stats.mannwhitneyu(x[y == 1, column], x[y == 0, column]).pvalue
                (p_values if column in tag["columns"] else others).append(p)
    assert stats.kstest(p_values, "uniform").pvalue > ALPHA
    assert np.mean(np.array(others) < 0.01) > 0.3


def test_an_irrelevant_column_keeps_its_marginal():
    plain, shuffled = (microbatches(6, irrelevant=w, shallow=1.0) for w in (0.0, 1.0))
    for before, after in zip(plain, shuffled, strict=True):
        columns = after.tags["extensions"]["irrelevant"]["columns"]
        for column in range(before.x.shape[2]):
            ours, theirs = before.x[:, :, column], after.x[:, :, column]
            assert (ours == theirs).all() == (column not in columns)
    x = np.random.default_rng(1).standard_normal((50, 3))
    y, codes = x.copy(), x.copy()
    shuffle_irrelevant(np.random.default_rng(2), {"columns": [1]}, y, codes)
    np.testing.assert_array_equal(y, codes)
    np.testing.assert_array_equal(np.sort(x, axis=0), np.sort(y, axis=0))
    assert (x[:, 1] != y[:, 1]).any()


def test_exact_copies_are_equal_and_near_copies_are_as_near_as_tagged():
    exact = near = 0
    for batch, tag in extended_by("duplicated", microbatches(30, duplicated=1.0)):
        for original, copy in tag["pairs"]:
            ours, theirs = batch.x[:, :, original], batch.x[:, :, copy]
            if tag["noise"] == 0:
                np.testing.assert_array_equal(ours, theirs)
                exact += 1
            else:
                assert (ours != theirs).any()
                for a, b in zip(ours, theirs, strict=True):
                    if a.std() > 0.5:  # not a column of outliers
                        assert np.corrcoef(a, b)[0, 1] > 0.6
                near += 1
    assert min(exact, near) > 5


def test_a_near_copy_has_noise_of_the_tagged_size_and_the_same_spread():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20_000, 2)).astype(np.float32)
    duplicate_columns(rng, {"pairs": [[0, 1]], "noise": 0.4}, x, np.zeros(2, bool))
    assert np.corrcoef(x.T)[0, 1] == pytest.approx(1 / np.sqrt(1.16), abs=0.005)
    assert x[:, 1].std() == pytest.approx(1, abs=0.02)


def test_near_copies_of_a_discrete_column_are_discrete_and_differ_in_the_tagged_share():
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=(4000, 2)).astype(np.float32)
    parameters = {"pairs": [[0, 1]], "noise": 0.3}
    duplicate_columns(rng, parameters, x, np.array([True, False]))  # what it replaces was not
    assert set(np.unique(x[:, 1])) == {0, 1}
    # A stray cell of a fair coin agrees by chance half of the time.
    assert (x[:, 0] != x[:, 1]).mean() == pytest.approx(0.15, abs=0.03)


def test_missing_cells_are_zero_in_the_tagged_share_and_nothing_else_changes():
    plain, holes = (microbatches(10, missing=w, sar=1.0) for w in (0.0, 1.0))
    for before, after in zip(plain, holes, strict=True):
        np.testing.assert_array_equal(before.y, after.y)
        changed = before.x != after.x
        assert (after.x[changed] == 0).all()
        shares = after.tags["extensions"]["missing"]["shares"]
        cells = before.x.shape[0] * before.x.shape[1]
        for column, share in enumerate(shares):
            hits = (after.x[:, :, column] == 0).sum()
            nonzero = (before.x[:, :, column] != 0).mean()
            if share == 0:
                assert not changed[:, :, column].any()
            elif nonzero == 1:
                assert stats.binomtest(int(hits), cells, share).pvalue > ALPHA / 10


def test_proportional_columns_share_a_size_that_says_nothing_and_keep_their_differences():
    prior = {"n_labeled": (200, 200), "n_features": (4, 8), "tasks_per_microbatch": 2}
    plain = microbatches(10, prior, irrelevant=1.0, irrelevant_share=(0.1, 0.1))
    shared = microbatches(
        10, prior, irrelevant=1.0, irrelevant_share=(0.1, 0.1), proportional=1.0,
        proportional_size=(5.0, 20.0),
    )  # fmt: skip
    for before, (after, tag) in zip(plain, extended_by("proportional", shared), strict=True):
        columns, loadings = tag["columns"], np.array(tag["loadings"])
        assert len(columns) >= 2
        assert not {*columns} & {*after.tags["extensions"]["irrelevant"]["columns"]}
        assert ((loadings > 0.5 * 5) & (loadings < 1.5 * 20)).all()
        np.testing.assert_array_equal(before.y, after.y)
        others = np.setdiff1d(np.arange(before.x.shape[2]), columns)
        np.testing.assert_array_equal(before.x[:, :, others], after.x[:, :, others])
        for old, new in zip(before.x.astype(float), after.x.astype(float), strict=True):
            raw = new[:, columns] * np.sqrt(1 + loadings**2)  # own part plus loading times size
            size = (raw - old[:, columns]) / loadings
            np.testing.assert_allclose(size, np.repeat(size[:, :1], len(columns), 1), atol=1e-3)
            assert stats.kstest(size[:, 0], "norm").pvalue > ALPHA
            assert np.corrcoef(new[:, columns].T).min() > 0.8


def test_a_table_without_two_continuous_columns_has_no_proportional_ones():
    for batch in microbatches(20, {"n_features": (1, 1)}, proportional=1.0):
        assert "proportional" not in batch.tags["extensions"]


def test_independent_cells_have_the_distribution_that_is_tagged():
    for name, law in (("uniform", stats.uniform()), ("gaussian", stats.norm())):
        parameters = {"distribution": name}
        x = independent_columns(np.random.default_rng(0), parameters, 4000, 3)
        assert_distributed(x.ravel(), law)
