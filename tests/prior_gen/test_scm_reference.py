"""The fast prior against the literal reference, on the same random draws."""

import math
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
import reference_prior as reference
from recording_generator import RecordingGenerator

import prior_gen.microbatch as microbatch_module
import prior_gen.scm as scm_module
from prior_gen.factors import Factors, draw_factors
from prior_gen.microbatch import generate_task
from prior_gen.pu_split import negative_rows
from prior_gen.scm import ScmDraws, draw_scm, hidden_block, run_scm
from prior_gen.standardization import standardize
from puicl_config import PriorConfig

PRIOR = PriorConfig()
CLAMP, CLIP = 1e6, 20.0
TEN = tuple(reference.ACTIVATION_FORMULAS)
SCHEDULES = (
    ("tanh", "square", "sin", "identity", "gelu"),
    ("relu", "sign", "rbf"),
    ("abs", "step", "gelu", "tanh"),
)
D, WIDTH, N = 7, 12, 60
EPS32 = float(np.finfo(np.float32).eps)

# (source, label position); every case runs with both orderings and both input distributions.
SOURCES = (
    ("head", None),
    ("causes", None),
    ("clique", "first"),
    ("clique", "last"),
    ("subset", "first"),
    ("subset", "last"),
)
VARIANTS = [
    pytest.param(source, position, ordering, inputs, id="-".join(filter(None, name)))
    for source, position in SOURCES
    for ordering in ("graph", "shuffled")
    for inputs in ("gaussian", "uniform")
    for name in [(source, position, ordering, inputs)]
]


def some_factors(source, position, ordering, inputs, activations=SCHEDULES[0], seed=0):
    """Factors built by hand, not by the code under test."""
    rng = np.random.default_rng(seed)
    layers = len(activations) + 1
    pool_size = (layers - 1) * WIDTH
    order = rng.permutation(D) if ordering == "shuffled" else np.arange(D)
    causal = source in ("clique", "subset")
    label_node = nodes = None
    if causal:
        label_node = int(rng.choice(reference.label_blocks(position, layers, WIDTH)))
        if source == "clique":
            windows = reference.clique_windows(label_node, D, pool_size)
            window = windows[rng.integers(len(windows))]
            nodes = np.array([node for node in window if node != label_node])
        else:
            others = [node for node in range(pool_size) if node != label_node]
            nodes = np.sort(rng.choice(others, D, replace=False))
        nodes = nodes[order]
    return Factors(
        n_features=D,
        n_labeled=20,
        n_unlabeled=30,
        eta=1.5,
        pi=(0.37, 0.37),
        hidden_layers=layers,
        hidden_width=WIDTH,
        n_causes=D,
        sigma_noise=0.02,
        input_distribution=inputs,
        activations=activations,
        causal=causal,
        source=source,
        ordering=ordering,
        feature_order=order,
        label_position=position,
        label_node=label_node,
        feature_nodes=nodes,
    )


def as_float64(draws):
    values = {field.name: getattr(draws, field.name) for field in fields(draws)}
    return ScmDraws(
        **{k: None if v is None else np.array(v, dtype=np.float64) for k, v in values.items()}
    )


def reference_scm(draws, factors, clamp=CLAMP, number=float):
    """Raw features [n][d] and score [n] of the reference for the same draws."""
    causes = reference.numbers(draws.causes, number)
    states = reference.hidden_states(
        causes,
        reference.numbers(draws.input_weight, number),
        reference.numbers(draws.hidden_weights, number),
        reference.numbers(draws.noise, number),
        factors.activations,
        clamp,
        number,
    )
    if factors.source in ("clique", "subset"):
        pool = reference.node_pool(states)
        return reference.features_and_label_of_pool(pool, factors.feature_nodes, factors.label_node)
    r_x, r_y = np.split(draws.readouts, [factors.n_features])
    score = reference.label_by_readout(states[-1], reference.numbers(r_y[0], number), number)
    if factors.source == "causes":
        return reference.features_by_causes(causes, factors.feature_order), score
    r_x = reference.numbers(r_x, number)
    return reference.features_by_readout(states[-1], r_x, factors.feature_order, number), score


# Forward pass


@pytest.mark.parametrize("activation", TEN)
@pytest.mark.parametrize("scale", [1.0, 1e7])
@pytest.mark.parametrize("portable", [False, True])
def test_a_float32_layer_agrees_with_the_reference_on_the_same_input(activation, scale, portable):
    rng = np.random.default_rng(1)
    state = (scale * rng.standard_normal((N, WIDTH))).astype(np.float32)
    weight = (0.8 * rng.standard_normal((WIDTH, WIDTH))).astype(np.float32)
    noise = (0.02 * rng.standard_normal((N, WIDTH))).astype(np.float32)
    fast = hidden_block(state, activation, weight, noise, CLAMP, portable)
    slow = reference.hidden_layer(
        reference.numbers(state, np.float32),
        activation,
        reference.numbers(weight, np.float32),
        reference.numbers(noise, np.float32),
        CLAMP,
        np.float32,
    )
    assert fast.dtype == np.float32
    assert_within_rounding(fast, np.array(slow), state, activation, weight)


@pytest.mark.parametrize("activations", SCHEDULES, ids="-".join)
@pytest.mark.parametrize("inputs", ["gaussian", "uniform"])
@pytest.mark.parametrize("portable", [False, True])
def test_every_float32_layer_agrees_when_fed_the_others_input(activations, inputs, portable):
    factors = some_factors("head", None, "graph", inputs, activations)
    draws = draw_scm(np.random.default_rng(3), PRIOR, factors, N)
    layers = []

    def spy(state, activation, weight, noise, clamp, as_asked):
        assert as_asked == portable
        layers.append((state, activation, weight, noise, clamp))
        return hidden_block(state, activation, weight, noise, clamp, portable)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prior_gen.scm.hidden_block", spy)
        features, score = run_scm(draws, factors, CLAMP, portable)

    assert len(layers) == factors.hidden_layers - 1
    h0 = reference.input_layer(
        reference.numbers(draws.causes, np.float32),
        reference.numbers(draws.input_weight, np.float32),
        np.float32,
    )
    assert_within_rounding(layers[0][0], np.array(h0), draws.causes, "identity", draws.input_weight)
    for block, (state, activation, weight, noise, clamp) in enumerate(layers):
        assert activation == activations[block]
        np.testing.assert_array_equal(weight, draws.hidden_weights[block])
        np.testing.assert_array_equal(noise, draws.noise[block])
        assert clamp == CLAMP
        slow = reference.hidden_layer(
            reference.numbers(state, np.float32),
            activations[block],
            reference.numbers(draws.hidden_weights[block], np.float32),
            reference.numbers(draws.noise[block], np.float32),
            CLAMP,
            np.float32,
        )
        fast = hidden_block(state, activation, weight, noise, clamp, portable)
        assert_within_rounding(fast, np.array(slow), state, activation, weight)
        if block + 1 < len(layers):
            np.testing.assert_array_equal(layers[block + 1][0], fast)
    last = reference.numbers(fast, np.float32)
    readouts = reference.numbers(draws.readouts, np.float32)
    slow = reference.features_by_readout(last, readouts[:-1], range(D), np.float32)
    assert_within_rounding(features, np.array(slow), fast, "identity", draws.readouts[:-1])
    slow = np.array(reference.label_by_readout(last, readouts[-1], np.float32))
    assert_within_rounding(
        score[:, None], slow[:, None], fast, "identity", draws.readouts[-1:], clamp=np.inf
    )


def assert_within_rounding(fast, slow, state, activation, weight, clamp=CLAMP):
    """|fast - slow| within the forward error bound of two float32 dot products."""
    state = np.clip(state.astype(np.float64), -clamp, clamp)
    activated = np.vectorize(reference.ACTIVATION_FORMULAS[activation])(state)
    magnitude = (np.abs(activated) + 1) @ np.abs(weight.astype(np.float64)).T
    bound = (2 * weight.shape[1] + 8) * EPS32 * magnitude
    np.testing.assert_array_less(np.abs(fast.astype(np.float64) - slow), bound)


@pytest.mark.parametrize(("source", "position", "ordering", "inputs"), VARIANTS)
@pytest.mark.parametrize("schedule", range(len(SCHEDULES)))
def test_float64_features_scores_and_labels_equal_the_reference(
    source, position, ordering, inputs, schedule
):
    factors = some_factors(source, position, ordering, inputs, SCHEDULES[schedule], seed=schedule)
    draws = as_float64(draw_scm(np.random.default_rng(schedule), PRIOR, factors, N))
    slow_features, slow_score = reference_scm(draws, factors)
    for portable in (True, False):
        features, score = run_scm(draws, factors, CLAMP, portable)
        assert features.shape == (N, D)
        assert score.shape == (N,)
        assert_close(features, slow_features)
        assert_close(score, slow_score)

    features, score = standardize(features, CLIP), standardize(score, CLIP)
    slow_features = reference.standardize_table(slow_features, CLIP)
    slow_score = reference.standardize_column(slow_score, CLIP)
    np.testing.assert_allclose(features, slow_features, atol=1e-8, rtol=0)
    np.testing.assert_allclose(score, slow_score, atol=1e-8, rtol=0)

    n_negative = 23
    rng = RecordingGenerator(5)
    is_negative = np.zeros(N, dtype=bool)
    is_negative[negative_rows(rng, score, n_negative)] = True
    labels = reference.rank_labels(slow_score, n_negative, list(rng.permutations[0]))
    decided = far_from_threshold(slow_score, n_negative)
    assert decided.sum() >= N - 2
    np.testing.assert_array_equal(is_negative[decided], np.array(labels)[decided] == 0)


def assert_close(fast, slow):
    slow = np.array(slow)
    scale = np.abs(slow).max(axis=0)
    assert np.all(np.abs(fast - slow) <= 1e-9 * scale)


def far_from_threshold(score, n_negative, tolerance=1e-8):
    score = np.array(score)
    threshold = np.sort(score)[::-1][n_negative - 1 : n_negative + 1].mean()
    return np.abs(score - threshold) > tolerance


def test_the_number_of_causes_may_differ_from_the_number_of_features_under_readout_heads():
    factors = replace(some_factors("head", None, "shuffled", "gaussian"), n_causes=3)
    draws = as_float64(draw_scm(np.random.default_rng(0), PRIOR, factors, N))
    assert draws.causes.shape == (N, 3)
    features, score = run_scm(draws, factors, CLAMP, portable=False)
    slow_features, slow_score = reference_scm(draws, factors)
    assert_close(features, slow_features)
    assert_close(score, slow_score)


def test_states_beyond_the_clamp_are_clamped_before_the_activation_and_only_there():
    activations = ("square",) * 6
    factors = some_factors("subset", "last", "graph", "gaussian", activations)
    draws = as_float64(draw_scm(np.random.default_rng(2), PRIOR, factors, N))
    features, score = run_scm(draws, factors, CLAMP, portable=False)
    slow_features, slow_score = reference_scm(draws, factors)
    assert_close(features, slow_features)
    assert_close(score, slow_score)
    assert np.abs(score).max() > CLAMP  # the last state is read as it is
    assert np.abs(score).max() < 1e14  # but was made from clamped ones


@pytest.mark.parametrize("source", ["head", "causes", "subset"])
def test_a_portable_scm_makes_every_product_and_activation_in_portable_arithmetic(
    source, monkeypatch
):
    """Those of a small table, too, whose products BLAS would sum in an order of its own."""
    position = "last" if source == "subset" else None
    factors = some_factors(source, position, "graph", "gaussian", SCHEDULES[0])
    made = {"multiply_rows": [], "activate": []}
    for name, asked in made.items():
        real = getattr(scm_module, name)

        def spy(*arguments, real=real, asked=asked):
            asked.append(arguments[-1] is True)
            return real(*arguments)

        monkeypatch.setattr(scm_module, name, spy)
    for portable in (True, False):
        run_scm(draw_scm(np.random.default_rng(3), PRIOR, factors, N), factors, CLAMP, portable)
    blocks = factors.hidden_layers - 1
    assert made["activate"] == [True] * blocks + [False] * blocks
    products = made["multiply_rows"]
    # The input's, the blocks', the readout's; what is read by BLAS asks for none.
    assert products[: products.index(False)] == [True] * (blocks + 1 + (source != "subset"))
    assert products[products.index(False) :] == [False] * (blocks + 1)


def test_running_an_scm_leaves_its_draws_as_they_were():
    for source, position in SOURCES:
        factors = some_factors(source, position, "graph", "gaussian", ("identity",) * 4)
        draws = draw_scm(np.random.default_rng(0), PRIOR, factors, N)
        before = as_float64(draws)
        run_scm(draws, factors, CLAMP, portable=False)
        after = as_float64(draws)
        for field in fields(draws):
            if getattr(before, field.name) is not None:
                np.testing.assert_array_equal(
                    getattr(before, field.name), getattr(after, field.name)
                )


# The whole task


@pytest.mark.parametrize(("source", "position", "ordering", "inputs"), VARIANTS)
def test_a_whole_float64_task_equals_the_reference(source, position, ordering, inputs, monkeypatch):
    factors = some_factors(source, position, ordering, inputs, SCHEDULES[1])
    kept = []

    def draw_in_float64(*arguments):
        # All blocks: what the task does not read must not change what it reads.
        kept.append(as_float64(draw_scm(*arguments[:4])))
        return kept[-1]

    monkeypatch.setattr(microbatch_module, "draw_scm", draw_in_float64)
    recording = RecordingGenerator(11)
    x, y, pi = generate_task(recording, PRIOR, factors)
    assert pi == 0.37
    n_training, n_negative = reference.pu_sizes(20, 30, Fraction(37, 100))

    features, score = reference_scm(kept[0], factors)
    assert len(features) == n_training + 30
    score = reference.standardize_column(score, CLIP)
    assert far_from_threshold(score, n_negative).all()
    tie_order, positive_order, negative_order, unlabeled_order = map(list, recording.permutations)
    labels = reference.rank_labels(score, n_negative, tie_order)
    rows, expected_y = reference.pu_split(
        labels, 20, n_training - 20, positive_order, negative_order, unlabeled_order
    )
    table = reference.standardize_table(features, CLIP)
    assert y.tolist() == expected_y
    np.testing.assert_allclose(x, [table[row] for row in rows], atol=1e-8, rtol=0)


def test_blocks_that_nobody_reads_change_no_bit_of_a_task(monkeypatch):
    prior = PriorConfig(n_labeled=(10, 20), p_causal_final=1.0)
    drawn = [draw_factors(prior, 100 + s, 0, 0) for s in range(60)]
    short = [f for f in drawn if f.blocks_read < f.hidden_layers - 1]
    assert 10 < len(short) < len(drawn)
    tasks = [generate_task(np.random.default_rng(0), prior, factors) for factors in drawn]
    monkeypatch.setattr(
        microbatch_module, "draw_scm", lambda rng, prior, f, n, blocks: draw_scm(rng, prior, f, n)
    )
    for factors, (x, y, pi) in zip(drawn, tasks, strict=True):
        all_blocks = generate_task(np.random.default_rng(0), prior, factors)
        np.testing.assert_array_equal(x, all_blocks[0])
        np.testing.assert_array_equal(y, all_blocks[1])
        assert pi == all_blocks[2]
        nodes = [*factors.feature_nodes, factors.label_node]
        assert factors.blocks_read == max(nodes) // factors.hidden_width + 1


def test_the_reference_can_tell_a_wrong_forward_pass():
    factors = some_factors("head", None, "shuffled", "gaussian")
    draws = as_float64(draw_scm(np.random.default_rng(0), PRIOR, factors, N))
    features, _ = reference_scm(draws, factors)
    wrong = (
        replace(draws, noise=np.zeros_like(draws.noise)),
        replace(draws, hidden_weights=draws.hidden_weights.transpose(0, 2, 1)),
        replace(draws, hidden_weights=draws.hidden_weights[::-1]),
    )
    for other in wrong:
        fast, _ = run_scm(other, factors, CLAMP, portable=False)
        assert np.abs(fast - np.array(features)).max() > 1e-3
    assert math.isfinite(np.array(features).sum())
