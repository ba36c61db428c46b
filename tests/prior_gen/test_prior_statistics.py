"""Every drawn quantity has its stated range and distribution.

All seeds are fixed, so nothing here is flaky; a test rejects at significance ALPHA, which a right
sampler would pass for all but one seed in ten thousand.
"""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import reference_prior as reference
from scipy import stats

import prior_gen.microbatch as microbatch_module
from prior_gen import generate_microbatch
from prior_gen.curriculum import stage_ranges
from prior_gen.factors import draw_architecture, draw_factors
from prior_gen.microbatch import generate_task
from prior_gen.pu_split import negative_rows, split_rows
from prior_gen.scm import draw_scm
from prior_gen.sizes import task_sizes
from puicl_config import ACTIVATIONS, Config, PriorConfig

ALPHA = 1e-4
PRIOR = PriorConfig()
K = PRIOR.stages
N_DRAWS = 8000


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


@pytest.fixture(scope="module")
def final():
    """Batch factors of the last curriculum stage."""
    return [draw_factors(PRIOR, K, step, 0) for step in range(N_DRAWS)]


@pytest.fixture(scope="module")
def across_stages():
    """Batch factors of one microbatch from each of many stages, so that L_g and h vary."""
    prior = PriorConfig(p_causal_final=1.0)
    return prior, [draw_factors(prior, K + s, 0, 0) for s in range(N_DRAWS)]


# The curriculum


@pytest.mark.parametrize("stage", [1, 2, 50, 99, 100, 101, 134])
def test_stage_ranges_are_the_papers_linear_schedule_and_the_tail_is_held_at_stage_k(stage):
    ranges = stage_ranges(PRIOR, stage)
    half, two, tenth = Fraction(1, 2), Fraction(2), Fraction(1, 10)
    eta = reference.stage_interval(stage, 100, (1, 1), (half, two))
    pi = reference.stage_interval(stage, 100, (half, half), (tenth, 1 - tenth))
    assert ranges.eta == pytest.approx([float(end) for end in eta], abs=1e-12)
    assert ranges.pi == pytest.approx([float(end) for end in pi], abs=1e-12)
    assert ranges.p_causal == pytest.approx(
        float(reference.causal_probability(stage, 100)), abs=1e-12
    )


def test_the_ends_of_the_curriculum_are_exactly_the_configured_values():
    first, last, tail = (stage_ranges(PRIOR, stage) for stage in (1, 100, 134))
    assert (first.eta, first.pi, first.p_causal) == ((1.0, 1.0), (0.5, 0.5), 0.005)
    assert (last.eta, last.pi, last.p_causal) == ((0.5, 2.0), (0.1, 0.9), 0.5)
    assert tail == last


def test_a_curriculum_of_one_stage_is_its_own_last_stage():
    ranges = stage_ranges(PriorConfig(stages=1), 1)
    assert (ranges.eta, ranges.pi, ranges.p_causal) == ((0.5, 2.0), (0.1, 0.9), 0.5)


@pytest.mark.parametrize("stage", [1, 30, 70, 100, 134])
def test_causal_happens_with_probability_s_over_2k(stage):
    hits = sum(draw_factors(PRIOR, stage, step, 1).causal for step in range(6000))
    assert_happens_with_probability(hits, 6000, reference.causal_probability(stage, K))


@pytest.mark.parametrize("stage", [2, 50, 100, 120])
def test_eta_is_uniform_on_the_stages_interval_and_fixes_n_u(stage):
    drawn = [draw_factors(PRIOR, stage, step, 0) for step in range(3000)]
    low, high = reference.stage_interval(stage, K, (1, 1), (Fraction(1, 2), 2))
    assert_distributed([f.eta for f in drawn], stats.uniform(float(low), float(high - low)))
    for factors in drawn:
        exact = reference.unlabeled_size(factors.n_labeled, Fraction(factors.eta))
        assert factors.n_unlabeled == exact


def test_the_first_stage_has_eta_one_and_pi_one_half():
    for step in range(200):
        factors = draw_factors(PRIOR, 1, step, 0)
        assert factors.eta == 1.0
        assert factors.n_unlabeled == factors.n_labeled
        assert factors.pi == (0.5, 0.5)


@pytest.mark.parametrize("stage", [50, 100, 110])
def test_pi_is_drawn_once_a_task_uniformly_on_the_stages_interval(stage):
    drawn = np.array([microbatch.tags["pi"] for microbatch in small_microbatches(stage, 100)])
    assert drawn.shape == (100, 24)
    low, high = reference.stage_interval(stage, K, (Fraction(1, 2),) * 2, ("1/10", "9/10"))
    assert_distributed(drawn.ravel(), stats.uniform(float(low), float(high - low)))
    assert len(np.unique(drawn)) == drawn.size


def test_pi_may_be_drawn_once_a_microbatch_instead():
    drawn = np.array(
        [m.tags["pi"] for m in small_microbatches(K, 400, pi_drawn_per="microbatch", **TWO_TASKS)],
    )
    assert (drawn == drawn[:, :1]).all()
    assert_distributed(drawn[:, 0], stats.uniform(0.1, 0.8))


# Architecture: once a stage


def test_the_architecture_is_uniform_over_depths_and_widths_jointly():
    drawn = [draw_architecture(PRIOR, stage) for stage in range(1, 10_001)]
    assert_uniform_over(drawn, [(depth, h) for depth in range(4, 13) for h in range(12, 37)])


def test_the_architecture_is_constant_within_a_stage_and_changes_between_stages():
    shapes = set()
    for stage in range(1, 31):
        drawn = {
            (factors.hidden_layers, factors.hidden_width)
            for step in (0, 1, 374, 749)
            for index in (0, 1)
            for factors in [draw_factors(PRIOR, stage, step, index)]
        }
        assert drawn == {draw_architecture(PRIOR, stage)}
        shapes |= drawn
    assert len(shapes) > 20


def test_a_causal_pool_too_small_raises_h_to_the_least_that_fits():
    prior = PriorConfig(hidden_layers=(2, 6), hidden_width=(1, 5), p_causal_final=1.0)
    raised = 0
    for stage in range(K, K + 400):
        factors = draw_factors(prior, stage, 0, 0)
        layers, width = draw_architecture(prior, stage)
        needed = reference.smallest_width(factors.n_features, layers)
        assert factors.hidden_width == max(width, needed)
        raised += needed > width
    assert 100 < raised < 400


def test_noncausal_microbatches_keep_a_small_h():
    prior = PriorConfig(hidden_layers=(2, 2), hidden_width=(3, 3), p_causal_final=0.0)
    assert {draw_factors(prior, K, step, 0).hidden_width for step in range(50)} == {3}


# Batch factors


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


# What a task draws


def draws_of(stage, n_tasks, n=50, **changes):
    prior = PriorConfig(**changes)
    for step in range(n_tasks):
        factors = draw_factors(prior, stage, step, 0)
        yield factors, draw_scm(np.random.default_rng(step), prior, factors, n)


def test_weights_are_normal_with_the_papers_spread_in_every_matrix():
    drawn = [draws for _, draws in draws_of(1, 60, p_causal_final=0.0)]
    for name in ("input_weight", "hidden_weights", "readouts"):
        pooled = np.concatenate([getattr(draws, name).ravel() for draws in drawn])
        assert pooled.size > 4000
        assert_distributed(pooled, stats.norm(0, 0.8))
        assert len(np.unique(pooled)) > 0.99 * pooled.size
    pooled = np.concatenate([draws.readouts[-1] for draws in drawn])
    assert_distributed(pooled, stats.norm(0, 0.8))
    wide = [draws.input_weight.ravel() for _, draws in draws_of(1, 60, sigma_init=2.5)]
    assert_distributed(np.concatenate(wide), stats.norm(0, 2.5))


@pytest.mark.parametrize(
    ("inputs", "distribution"), [("gaussian", stats.norm()), ("uniform", stats.uniform())]
)
def test_causes_follow_the_input_distribution(inputs, distribution):
    changes = {"input_distributions": (inputs,), "n_features": (6, 6)}
    drawn = [draws.causes for _, draws in draws_of(K, 60, n=100, **changes)]
    assert {causes.shape for causes in drawn} == {(100, 6)}
    pooled = np.concatenate(drawn).astype(np.float64)
    assert_distributed(pooled.ravel(), distribution)
    correlation = np.corrcoef(pooled.T)[np.triu_indices(6, 1)]
    assert np.abs(correlation).max() < 5 / math.sqrt(len(pooled))


def test_noise_is_normal_with_its_level_and_fresh_in_every_layer_row_and_unit():
    for sigma in (0.005, 0.01, 0.02):
        pooled = []
        for factors, draws in draws_of(K, 12, n=80, sigma_noise=(sigma,)):
            shape = (factors.hidden_layers - 1, 80, factors.hidden_width)
            assert np.stack(draws.noise).shape == shape
            assert factors.sigma_noise == sigma
            pooled.append(np.ravel(draws.noise))
        pooled = np.concatenate(pooled)
        assert_distributed(pooled, stats.norm(0, sigma))
        assert len(np.unique(pooled)) > 0.98 * pooled.size


def test_a_causal_scm_has_no_readout_heads_and_all_draws_are_float32():
    seen = set()
    for factors, draws in draws_of(K, 40):
        assert (draws.readouts is None) == factors.causal
        seen.add(factors.causal)
        arrays = (draws.input_weight, draws.hidden_weights, draws.causes, draws.noise[0])
        assert {array.dtype for array in arrays} == {np.dtype(np.float32)}
        d, k, h = factors.n_features, factors.n_causes, factors.hidden_width
        blocks = factors.hidden_layers - 1
        assert draws.input_weight.shape == (h, k)
        assert draws.hidden_weights.shape == (blocks, h, h)
        assert factors.causal or draws.readouts.shape == (d + 1, h)
    assert seen == {True, False}


# Generated microbatches


TWO_TASKS = {"tasks_per_microbatch": 2}


def small_config(**changes):
    return Config(
        prior={"n_labeled": (15, 40), "steps_per_stage": 1000, "tail_steps": 34_000, **changes}
    )


def small_microbatches(stage, count, **changes):
    config = small_config(**changes)
    return [generate_microbatch(config, stage, step, 0) for step in range(count)]


def test_the_realised_prevalence_is_within_one_row_of_each_tasks_target():
    n_tasks = 0
    for stage in (1, 50, 100, 134):
        for microbatch in small_microbatches(stage, 25, eta_final=(0.1, 2.0)):
            n_u = microbatch.tags["n_unlabeled"]
            assert microbatch.y.shape == (24, n_u)
            assert set(np.unique(microbatch.y)) == {0, 1}
            for y, pi in zip(microbatch.y, microbatch.tags["pi"], strict=True):
                negatives = n_u - int(y.sum())
                nearest = min(max(pi * n_u, 1), n_u - 1)
                assert abs(negatives - nearest) <= 1
                n_training, n_negative = reference.pu_sizes(microbatch.n_labeled, n_u, pi)
                assert negatives == n_negative - (n_training - microbatch.n_labeled)
                n_tasks += 1
    assert n_tasks == 2400


def test_a_microbatch_has_the_shapes_its_factors_say():
    for microbatch in small_microbatches(K, 20):
        tags = microbatch.tags
        factors = draw_factors(small_config().prior, *microbatch.address)
        rows = tags["n_labeled"] + tags["n_unlabeled"]
        assert microbatch.x.shape == (24, rows, tags["n_features"])
        assert microbatch.x.dtype == np.float16
        assert microbatch.y.dtype == np.uint8
        assert {key: tags[key] for key in factors.tags()} == factors.tags()
        assert microbatch.n_labeled == factors.n_labeled


@pytest.fixture(scope="module")
def scar_scores():
    """Rank-sum scores of one feature a task: labelled positives against both hidden classes."""
    scores = {"location": [], "spread": [], "other class": []}
    for stage in (20, 60, 100):
        for microbatch in small_microbatches(stage, 40, pi_final=(0.3, 0.6)):
            P = microbatch.n_labeled
            for task, (x, y) in enumerate(zip(microbatch.x, microbatch.y, strict=True)):
                feature = x[:, task % x.shape[1]].astype(np.float64)
                labeled, positives, negatives = (
                    feature[:P],
                    feature[P:][y == 1],
                    feature[P:][y == 0],
                )
                far, near = (np.abs(part - np.median(feature)) for part in (labeled, positives))
                scores["location"].append(rank_sum_z(labeled, positives))
                scores["spread"].append(rank_sum_z(far, near))
                scores["other class"].append(rank_sum_z(labeled, negatives))
    return {name: [z for z in values if z is not None] for name, values in scores.items()}


@pytest.mark.parametrize("compared", ["location", "spread"])
def test_labelled_and_unlabelled_positives_have_the_same_distribution(scar_scores, compared):
    assert len(scar_scores[compared]) > 2500
    assert_distributed(scar_scores[compared], stats.norm())


def test_labelled_positives_and_negatives_differ_so_that_comparison_has_power(scar_scores):
    assert stats.kstest(scar_scores["other class"], stats.norm().cdf).pvalue < 1e-20


def rank_sum_z(first, second):
    """Mann-Whitney z of two samples with the variance corrected for ties; None if constant."""
    both = np.concatenate([first, second])
    ranks = stats.rankdata(both)
    n, m, total = len(first), len(second), len(both)
    variance = n * m * ranks.var() / (total - 1)
    if variance == 0:
        return None
    return (ranks[:n].sum() - n * (total + 1) / 2) / math.sqrt(variance)


def test_every_positive_is_labelled_with_the_same_probability_whatever_its_row_or_score():
    sizes = task_sizes(6, 9, 0.4)
    score = np.sort(np.random.default_rng(0).standard_normal(sizes.n_rows))
    n_positive = sizes.n_rows - sizes.n_negative
    labeled = np.zeros(sizes.n_rows)
    kept = np.zeros(sizes.n_rows)
    first_label = 0
    trials = 6000
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        rows, y = split_rows(rng, negative_rows(rng, score, sizes.n_negative), sizes)
        labeled[rows[:6]] += 1
        kept[rows[6:]] += 1
        first_label += int(y[0])
        assert (rows[:6] < n_positive).all()  # scores rise with the row: positives come first
        np.testing.assert_array_equal(y, rows[6:] < n_positive)
    assert_equal_inclusion(labeled[:n_positive], 6, trials)
    kept_negatives = sizes.n_negative - sizes.n_removed
    assert_equal_inclusion(kept[n_positive:], kept_negatives, trials)
    assert_happens_with_probability(first_label, trials, (9 - kept_negatives) / 9)


def assert_equal_inclusion(counts, drawn, trials):
    """Chi-square test that `drawn` of the places were taken uniformly without replacement."""
    places = len(counts)
    share = drawn / places
    statistic = ((counts - trials * share) ** 2).sum() / (trials * share * (1 - share))
    assert stats.chi2.sf(statistic * (places - 1) / places, places - 1) > ALPHA


def test_every_labelled_and_every_unlabelled_place_is_exchangeable():
    sizes = task_sizes(5, 8, 0.5)
    score = np.arange(sizes.n_rows, dtype=float)
    first_row, last_row, first_hidden = [], [], []
    for seed in range(4000):
        rng = np.random.default_rng(seed)
        rows, y = split_rows(rng, negative_rows(rng, score, sizes.n_negative), sizes)
        first_row.append(int(rows[0]))
        last_row.append(int(rows[4]))
        first_hidden.append((int(rows[5]), int(y[0])))
    positives = range(sizes.n_rows - sizes.n_negative)
    assert_uniform_over(first_row, positives)
    assert_uniform_over(last_row, positives)
    hidden_negatives = [row for row, label in first_hidden if label == 0]
    assert_uniform_over(hidden_negatives, range(len(positives), sizes.n_rows))


def test_ties_fall_at_random_and_never_by_row_order():
    taken = np.zeros(20)
    for seed in range(5000):
        taken[negative_rows(np.random.default_rng(seed), np.zeros(20), 7)] += 1
    assert_equal_inclusion(taken, 7, 5000)

    # Three rows above, seven tied for the two last places, the rest below.
    score = np.array([0, 1, 0, 1, 2, 1, -1, 1, 2, 1, 1, 2, 1], dtype=float)
    taken = np.zeros(13)
    for seed in range(5000):
        taken[negative_rows(np.random.default_rng(seed), score, 5)] += 1
    assert (taken[score == 2] == 5000).all()
    assert (taken[score < 1] == 0).all()
    assert_equal_inclusion(taken[score == 1], 2, 5000)


def test_a_task_whose_score_is_constant_has_labels_that_do_not_follow_the_rows(monkeypatch):
    prior = PriorConfig(n_labeled=(12, 12), eta_final=(2.0, 2.0), pi_final=(0.5, 0.5))
    factors = draw_factors(prior, K, 0, 0)
    monkeypatch.setattr(
        microbatch_module,
        "run_scm",
        lambda draws, factors, clamp: (
            np.repeat(np.arange(48.0)[:, None], factors.n_features, axis=1),
            np.zeros(48),
        ),
    )
    row_of_label = {0: [], 1: []}
    for seed in range(2000):
        x, y, _ = generate_task(np.random.default_rng(seed), prior, factors)
        assert x.shape == (36, factors.n_features)
        for label in (0, 1):
            row_of_label[label].extend(np.round(x[12:, 0][y == label], 6).tolist())
    for rows in row_of_label.values():
        assert_uniform_over(rows, np.unique(rows).tolist())
        assert len(set(rows)) == 48


# Numbers are always finite


@pytest.mark.parametrize(
    "changes",
    [{}, {"activations": ("square",)}, {"activations": ("square", "abs", "identity")}]
    + [{"activations": (name,)} for name in ("sign", "step", "rbf", "sin", "gelu")],
    ids=lambda changes: "-".join(changes.get("activations", ["all"])),
)
def test_no_nan_or_infinity_and_nothing_beyond_20_at_many_stages(changes):
    config = small_config(**TWO_TASKS, **changes)
    largest = 0.0
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for stage in range(1, 135):
            x = generate_microbatch(config, stage, stage % 7, stage % 2).x
            assert np.isfinite(x).all()
            largest = max(largest, float(np.abs(x).max()))
    assert 1 < largest <= 20


def test_the_clip_is_reached_but_not_passed():
    config = Config(prior={"activations": ("square",), "tasks_per_microbatch": 2})
    largest = [
        np.abs(generate_microbatch(config, stage, 0, 0).x).max() for stage in range(100, 130)
    ]
    assert max(largest) == 20.0


def test_columns_that_end_constant_are_zero_and_have_no_nan():
    config = small_config(
        sigma_noise=(0.0,),
        sigma_init=1e-5,
        activations=("rbf",),  # exp(-x^2) is 1 for every x this small
        noncausal_sources=("head",),
    )
    constant = 0
    for step in range(40):
        microbatch = generate_microbatch(config, K, step, 0)
        assert np.isfinite(microbatch.x).all()
        for x in microbatch.x:
            same = (x == x[0]).all(axis=0)
            assert (x[:, same] == 0).all()
            constant += int(same.sum())
        assert (microbatch.y.sum(axis=1) > 0).all()
        assert (microbatch.y.sum(axis=1) < microbatch.y.shape[1]).all()
    assert constant > 100


def test_a_clamp_that_cannot_keep_float32_finite_is_refused_or_harmless():
    try:
        config = small_config(state_clamp=1e25, activations=("square",))
    except ValueError:
        return
    with np.errstate(all="ignore"):
        finite = [np.isfinite(generate_microbatch(config, K, step, 0).x).all() for step in range(9)]
    assert finite == [True] * 9
