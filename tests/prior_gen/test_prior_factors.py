"""Every factor of a microbatch has its stated range and distribution."""

import math

import numpy as np
import pytest
import reference_prior as reference
from prior_draws import ALPHA, PRIOR, K, assert_distributed, assert_independent, assert_uniform_over
from scipy import stats

from prior_gen.factors import draw_architecture, draw_factors
from puicl_config import ACTIVATIONS, PriorConfig

N_DRAWS = 8000


@pytest.fixture(scope="module")
def final():
    """Batch factors of the last curriculum stage."""
    return [draw_factors(PRIOR, K, step, 0) for step in range(N_DRAWS)]


@pytest.fixture(scope="module")
def across_stages():
    """Batch factors of one microbatch from each of many stages, so that L_g and h vary."""
    prior = PriorConfig(p_causal_final=1.0)
    return prior, [draw_factors(prior, K + s, 0, 0) for s in range(N_DRAWS)]


def test_d_and_p_are_uniform_over_their_ranges_and_independent(final):
    assert_uniform_over([f.n_features for f in final], range(5, 21))
    assert_uniform_over([f.n_labeled for f in final], range(100, 301))
    assert_independent([(f.n_features, f.n_labeled > 200) for f in final])


def test_the_number_of_causes_is_d_unless_configured(final):
    assert all(f.n_causes == f.n_features for f in final)
    fixed = PriorConfig(n_causes=9, noncausal_sources=("head",))
    assert {draw_factors(fixed, K, step, 0).n_causes for step in range(20)} == {9}


def test_noise_level_and_input_distribution_are_uniform_over_their_choices(final):
    assert_uniform_over([f.sigma_noise for f in final], [0.005, 0.01, 0.02])
    assert_uniform_over([f.input_distribution for f in final], ["gaussian", "uniform"])
    assert_independent([(f.sigma_noise, f.input_distribution) for f in final])


def test_each_layers_activation_is_uniform_over_the_ten_and_independent_of_the_next(final):
    layers = final[0].hidden_layers
    assert all(len(f.activations) == layers - 1 for f in final)
    for block in range(layers - 1):
        assert_uniform_over([f.activations[block] for f in final], ACTIVATIONS)
    for block in range(layers - 2):
        assert_independent([f.activations[block : block + 2] for f in final])


def test_a_shared_schedule_has_one_uniform_activation_for_all_layers():
    prior = PriorConfig(activation_schedule="shared")
    drawn = [draw_factors(prior, K, step, 0).activations for step in range(3000)]
    assert all(len(schedule) == draw_architecture(prior, K)[0] - 1 for schedule in drawn)
    assert all(len(set(schedule)) == 1 for schedule in drawn)
    assert_uniform_over([schedule[0] for schedule in drawn], ACTIVATIONS)


def test_sources_label_positions_and_orderings_are_fair_coins(final):
    causal = [f for f in final if f.causal]
    noncausal = [f for f in final if not f.causal]
    assert_uniform_over([f.source for f in noncausal], ["head", "causes"])
    assert_uniform_over([f.source for f in causal], ["clique", "subset"])
    assert_uniform_over([f.label_position for f in causal], ["first", "last"])
    assert_uniform_over([f.ordering for f in final], ["graph", "shuffled"])
    assert_independent([(f.source, f.label_position) for f in causal])
    assert_independent([(f.source, f.ordering) for f in final])
    assert_independent([(f.input_distribution, f.source) for f in final])
    assert_independent([(f.activations[0], f.causal) for f in final])
    for f in noncausal:
        assert (f.label_position, f.label_node, f.feature_nodes) == (None, None, None)


@pytest.mark.parametrize("position", ["first", "last"])
def test_the_label_node_is_uniform_in_its_block(final, position):
    chosen = [f for f in final if f.label_position == position]
    block = reference.label_blocks(position, chosen[0].hidden_layers, chosen[0].hidden_width)
    assert_uniform_over([f.label_node for f in chosen], block)


def test_the_label_node_lies_in_its_block_for_every_architecture(across_stages):
    _, drawn = across_stages
    for f in drawn:
        assert f.causal
        assert f.label_node in reference.label_blocks(
            f.label_position, f.hidden_layers, f.hidden_width
        )


def test_feature_nodes_are_d_distinct_pool_nodes_without_the_label(across_stages):
    _, drawn = across_stages
    for f in drawn:
        nodes = f.feature_nodes.tolist()
        assert len(set(nodes)) == len(nodes) == f.n_features
        assert f.label_node not in nodes
        assert min(nodes) >= 0
        assert max(nodes) < (f.hidden_layers - 1) * f.hidden_width


def test_a_clique_is_uniform_among_the_windows_that_contain_the_label(across_stages):
    _, drawn = across_stages
    jitter = np.random.default_rng(0)
    places, at_the_border = [], 0
    for f in drawn[:4000]:
        if f.source != "clique":
            continue
        pool_size = (f.hidden_layers - 1) * f.hidden_width
        windows = reference.clique_windows(f.label_node, f.n_features, pool_size)
        window = sorted([*f.feature_nodes.tolist(), f.label_node])
        assert window in windows
        places.append((windows.index(window) + jitter.random()) / len(windows))
        at_the_border += len(windows) < f.n_features + 1
    assert_distributed(places, stats.uniform())
    assert 500 < at_the_border < len(places)


def test_a_clique_fits_when_the_pool_is_exactly_the_clique():
    prior = PriorConfig(
        hidden_layers=(3, 3),
        hidden_width=(5, 5),
        n_features=(9, 9),
        p_causal_final=1.0,
        causal_sources=("clique",),
    )
    for step in range(40):
        f = draw_factors(prior, K, step, 0)
        assert sorted([*f.feature_nodes.tolist(), f.label_node]) == list(range(10))


def test_a_centered_clique_has_the_label_in_the_middle_where_the_pool_allows():
    prior = PriorConfig(
        clique_window="centered",
        causal_sources=("clique",),
        p_causal_final=1.0,
        n_features=(6, 6),
        feature_orderings=("graph",),
    )
    middle = 0
    for stage in range(K, K + 200):
        f = draw_factors(prior, stage, 0, 0)
        pool_size = (f.hidden_layers - 1) * f.hidden_width
        if 3 <= f.label_node < pool_size - 3:
            offsets = (f.feature_nodes - f.label_node).tolist()
            assert offsets == [-3, -2, -1, 1, 2, 3]
            middle += 1
    assert 100 < middle < 200


def test_a_random_subset_is_drawn_uniformly_without_replacement():
    prior = PriorConfig(
        hidden_layers=(4, 4),
        hidden_width=(12, 12),
        n_features=(8, 8),
        causal_sources=("subset",),
        label_positions=("last",),
        p_causal_final=1.0,
    )
    n_others = 3 * 12 - 1
    inclusion, adjacent = np.zeros(n_others), []
    for step in range(6000):
        f = draw_factors(prior, K, step, 0)
        places = np.array(sorted(node - (node > f.label_node) for node in f.feature_nodes))
        inclusion[places] += 1
        adjacent.append(np.count_nonzero(np.diff(places) == 1))
    share = 8 / n_others
    # Counts of draws without replacement are negatively correlated: M - 1 degrees of freedom.
    statistic = ((inclusion - 6000 * share) ** 2).sum() / (6000 * share * (1 - share))
    statistic *= (n_others - 1) / n_others
    assert stats.chi2.sf(statistic, n_others - 1) > ALPHA
    expected = (n_others - 1) * 8 * 7 / (n_others * (n_others - 1))
    z = (np.mean(adjacent) - expected) / (np.std(adjacent) / math.sqrt(6000))
    assert 2 * stats.norm.sf(abs(z)) > ALPHA


def test_graph_ordering_keeps_graph_order_and_shuffling_is_a_uniform_permutation():
    prior = PriorConfig(n_features=(4, 4))
    shuffled = {False: [], True: []}
    for step in range(10_000):
        f = draw_factors(prior, K, step, 0)
        features = f.feature_nodes if f.causal else f.feature_order
        order = tuple(np.argsort(features).tolist())
        assert sorted(f.feature_order.tolist()) == [0, 1, 2, 3]
        if f.ordering == "graph":
            assert order == (0, 1, 2, 3)
        else:
            shuffled[f.causal].append(order)
    everything = set(shuffled[True]) | set(shuffled[False])
    assert len(everything) == 24
    for orders in shuffled.values():
        assert_uniform_over(orders, everything)
