"""Factor models: columns with common factors, and the scores over them."""

import numpy as np
import pytest
from extended import cross_fitted_auc, extended_by, microbatches, with_labels
from prior_draws import (
    assert_distributed,
    assert_happens_with_probability,
    assert_uniform_over,
)
from scipy import stats
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

from prior_gen import activations
from prior_gen.extensions import factor_model, sums
from prior_gen.extensions.factor_model import factor_columns
from prior_gen.extensions.sums import weighted_sum


def drawn(seed, n=600, d=6, portable=False, **parameters):
    wanted = {"factors": 2, "common": 1.0, "score": "linear", "of": "columns", **parameters}
    return factor_columns(np.random.default_rng(seed), wanted, n, d, portable)


def explained(x, score) -> float:
    return LinearRegression().fit(x, score).score(x, score)


@pytest.mark.parametrize(("factors", "common"), [(1, 3.0), (4, 0.5)])
def test_columns_are_own_parts_and_a_common_part_of_the_size_that_is_tagged(factors, common):
    variances, shared = [], []
    for seed in range(200):
        x, _ = drawn(seed, n=2000, d=5, factors=factors, common=common)
        assert x.dtype == np.float32
        covariance = np.cov(x.T)
        variances += np.diag(covariance).tolist()
        # Own parts are alike in all columns: the covariance's least eigenvalue, with few factors.
        shared.append(np.linalg.eigvalsh(covariance)[0])
    error = np.std(variances) / np.sqrt(len(variances))
    assert abs(np.mean(variances) - (1 + common**2)) < 4 * error
    assert np.mean(shared) == pytest.approx(1, abs=0.08)


def test_one_factor_leaves_every_column_pair_with_the_product_of_its_loadings():
    for seed in range(20):
        x, _ = drawn(seed, n=20_000, d=4, factors=1, common=2.0)
        c = np.corrcoef(x.T)
        # Spearman's tetrad: what one factor alone implies.
        assert abs(c[0, 1] * c[2, 3] - c[0, 2] * c[1, 3]) < 0.05


@pytest.mark.parametrize("of", ["columns", "own"])
def test_a_linear_score_is_a_sum_of_the_columns_or_of_what_is_their_own(of):
    shares = []
    for seed in range(40):
        x, score = drawn(seed, d=5, common=3.0, factors=1, of=of)
        assert score.dtype == np.float32
        shares.append(explained(x, score))
    # Own parts are told by differences, as far as those cancel what is common.
    assert min(shares) > 0.999 if of == "columns" else 0.5 < np.mean(shares) < 0.95
    assert explained(*drawn(0, d=40, common=3.0, factors=1, of="own")) > 0.8


def test_a_linear_score_weighs_the_columns_in_their_standard_deviations():
    for seed in range(30):
        x, score = drawn(seed, n=4000, d=5, common=5.0)
        weights = LinearRegression().fit(x / x.std(axis=0), score).coef_
        assert np.linalg.norm(weights) == pytest.approx(1, abs=0.05)


def test_what_is_own_is_next_to_nothing_in_any_column_and_much_in_their_differences():
    alone, together = [], []
    for seed in range(30):
        x, score = drawn(seed, d=8, common=10.0, factors=1, of="own")
        alone.append(max(abs(np.corrcoef(column, score)[0, 1]) for column in x.T))
        together.append(np.sqrt(explained(x, score)))
    assert np.mean(alone) < 0.5
    assert np.mean(together) > 0.85


def test_a_networks_score_is_bent_more_or_less():
    shares = [explained(*drawn(seed, n=1000, d=4, score="network")) for seed in range(60)]
    assert min(shares) < 0.6
    assert max(shares) > 0.95


def test_a_network_has_two_to_sixteen_units_of_one_gain_and_even_or_few_inputs(monkeypatch):
    units, gains, powers = [], [], []

    def activate(name, inner, *rest):
        units.append(inner.shape[1])
        gains.append(inner.std(axis=0).mean())
        return activations.activate(name, inner, *rest)

    def unit_weights(rng, shape, power):
        powers.append(power)
        return sums.unit_weights(rng, shape, power)

    monkeypatch.setattr(factor_model, "activate", activate)
    monkeypatch.setattr(factor_model, "unit_weights", unit_weights)
    for seed in range(300):
        drawn(seed, n=1000, score="network", of="own")
    assert_uniform_over(units, range(2, 17))
    assert_distributed(np.log(gains), stats.uniform(np.log(0.3), np.log(10)))
    inner, outer = powers[::2], powers[1::2]
    assert_happens_with_probability(inner.count(3), 300, 0.5)
    assert {*inner} == {1, 3}
    assert {*outer} == {1}


def test_weights_are_even_or_few_matter():
    largest = []
    for seed in range(200):
        x, score = drawn(seed, n=300, d=10, common=0.2)
        weights = LinearRegression().fit(x / x.std(axis=0), score).coef_
        largest.append(np.max(weights**2) / np.sum(weights**2))
    even, few = np.quantile(largest, [0.15, 0.85])
    assert even < 0.4
    assert few > 0.65


def test_sums_are_added_up_in_the_order_of_the_inputs():
    z = np.array([[1e8, -1e8, 1.0]], np.float32)  # the other way round the 1 is lost
    assert weighted_sum(z, np.ones((3, 1), np.float32)).tolist() == [[1.0]]


def test_portable_differs_in_the_tanh_alone_and_hardly():
    plain, portable = (drawn(3, score="network", portable=p) for p in (False, True))
    np.testing.assert_array_equal(plain[0], portable[0])
    np.testing.assert_allclose(plain[1], portable[1], atol=1e-5)


def test_with_the_models_score_a_line_is_enough_and_with_a_rule_the_columns_stay():
    plan = {"n_features": (5, 8), "n_labeled": (150, 200)}
    line, trees = [], []
    seen = set()
    for batch, tag in extended_by("factor_model", microbatches(12, plan, factor_model=1.0)):
        assert 1 <= tag["factors"] <= 4
        assert 0.2 <= tag["common"] <= 5.0
        seen.add((tag["score"], tag["of"]))
        if (tag["score"], tag["of"]) == ("linear", "columns"):
            for x, y in with_labels(batch):
                scaled = StandardScaler().fit_transform(x)
                line.append(cross_fitted_auc(LogisticRegression(C=100), scaled, y))
                trees.append(cross_fitted_auc(ExtraTreesClassifier(random_state=0), x, y))
    assert seen == {(score, of) for score in ("linear", "network") for of in ("columns", "own")}
    assert np.mean(line) > 0.98
    assert np.mean(line) > np.mean(trees) + 0.02
    correlations = []
    settings = {"factor_model": 1.0, "rule_labels": 1.0, "factor_common": (3.0, 3.0)}
    for batch in microbatches(8, plan, **settings):
        assert {*batch.tags["extensions"]} == {"factor_model", "rule_labels"}
        for x, _ in with_labels(batch):
            correlations.append(np.abs(np.corrcoef(x.T)[np.triu_indices(x.shape[1], 1)]).mean())
    assert np.mean(correlations) > 0.3


def test_tasks_of_a_microbatch_have_factors_of_their_own():
    batches = microbatches(10, {"n_labeled": (200, 200)}, factor_model=1.0, factors=(1, 1))
    for batch in batches:
        tables = [np.corrcoef(x.T) for x in batch.x]
        assert not np.allclose(tables[0], tables[1], atol=0.05)
