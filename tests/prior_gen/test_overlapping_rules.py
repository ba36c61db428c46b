"""What the rules `logistic` and `forest` are made of: read off how often each cell holds."""

import numpy as np
import pytest
from prior_draws import (
    ALPHA,
    assert_distributed,
    assert_happens_with_probability,
    assert_uniform_over,
)
from scipy import stats
from scipy.special import expit, logit, rel_entr

from prior_gen.extensions import rules

# A column of 61 values, each in as many rows; its five codes do not follow their order.
VALUES = np.linspace(-3, 3, 61)
CODE = np.arange(61) * 7 % 5
ROWS = 300
BENDS = {
    "saturated": lambda place: np.clip(VALUES, place - 1, place + 1),
    "turning": lambda place: np.abs(VALUES - place),
}


def deviances(share: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Twice the log-likelihood that `p` [..., cells] lacks of what explains `share` [cells]."""
    return 2 * ROWS * (rel_entr(share, p) + rel_entr(1 - share, 1 - p)).sum(axis=-1)


def slopes(share: np.ndarray, shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logistic regressions of `share` [61] on each of `shapes` [models, 61]: slope and deviance."""
    z = shapes - shapes.mean(axis=1, keepdims=True)
    slope, intercept = np.zeros((2, len(z), 1))
    for _ in range(12):
        p = expit(intercept + slope * z)
        weight = p * (1 - p) + 1e-9
        a, b, c = ((weight * z**k).sum(axis=1, keepdims=True) for k in range(3))
        u, v = ((share - p).sum(axis=1, keepdims=True), ((share - p) * z).sum(1, keepdims=True))
        moved = np.array([c * u - b * v, a * v - b * u]) / (a * c - b * b + 1e-9)
        moved *= np.minimum(1, 1 / np.abs(moved).max(axis=0))
        intercept, slope = intercept + moved[0], slope + moved[1]
    p = np.clip(expit(intercept + slope * z), 1e-9, 1 - 1e-9)
    return slope[:, 0] * z.std(axis=1), deviances(share, p)


def best_bend(share: np.ndarray, bend) -> tuple[float, float, float]:
    """The place from -3.5 to 3.5 where a bend explains `share` best, its slope and its misfit."""
    place = 0.0
    for width, steps in ((3.5, 15), (0.5, 11)):
        places = np.round(place + np.linspace(-width, width, steps), 1)
        slope, misfit = slopes(share, bend(places[:, None]))
        best = int(misfit.argmin())
        place = places[best]
    return place, slope[best], misfit[best]


@pytest.fixture(scope="module")
def effects():
    """Of 300 logistic models of one column: the effect's shape, its place, slope and misfit."""
    codes, x = (np.repeat(one, ROWS)[:, None] for one in (CODE, VALUES.astype(np.float32)))
    found = []
    for seed in range(300):
        holds = rules.logistic(np.random.default_rng(seed), codes, x)
        share = holds.reshape(61, ROWS).mean(axis=1)
        (slope,), (misfit,) = slopes(share, VALUES[None])
        if misfit < stats.chi2(59).isf(1e-3):  # a line is the plainest of what explains it
            found.append(("straight", 0.0, slope, misfit))
            continue
        of_code = np.bincount(CODE, share) / np.bincount(CODE)
        ways = [("levels", 0.0, 0.0, deviances(share, np.clip(of_code, 1e-9, 1 - 1e-9)[CODE]))]
        ways += [(name, *best_bend(share, bend)) for name, bend in BENDS.items()]
        found.append(min(ways, key=lambda way: way[3]))
    return found


def test_an_effect_is_a_line_saturates_turns_or_is_a_number_a_level(effects):
    """Half of the effects are straight; each of the others' shapes is as likely."""
    names = [name for name, *_ in effects]
    assert_happens_with_probability(names.count("straight"), len(names), 1 / 2)
    for name in ("saturated", "turning", "levels"):
        assert_happens_with_probability(names.count(name), len(names), 1 / 6)
    # Nothing else is needed: a right model misfits by 58 on average, by less where cells are
    # next to certain.
    assert 48 < np.median([misfit for *_, misfit in effects]) < 62
    assert np.mean([misfit < 120 for *_, misfit in effects]) > 0.97


def test_effects_saturate_and_turn_at_normal_places_and_go_either_way(effects):
    for bend in BENDS:
        places = [place for name, place, *_ in effects if name == bend and abs(place) < 1.95]
        # Places are read to a tenth.
        places = np.array(places) + np.random.default_rng(0).uniform(-0.05, 0.05, len(places))
        assert_distributed(places, stats.truncnorm(-2, 2))
    for wanted in ("straight", "saturated", "turning"):
        signs = [slope > 0 for name, _, slope, _ in effects if name == wanted]
        assert_happens_with_probability(sum(signs), len(signs), 0.5)


def test_the_signal_of_a_logistic_model_is_log_uniform_beside_standard_logistic_noise(effects):
    strengths = [abs(slope) for name, _, slope, _ in effects if name == "straight"]
    assert_distributed(np.log(strengths), stats.uniform(np.log(0.5), np.log(16)))
    assert 0.45 < min(strengths) < 0.6


@pytest.mark.parametrize("rule", [rules.logistic, rules.forest, rules.points, rules.product])
def test_a_limit_lies_between_the_quartiles(rule):
    """The share that holds is uniform from a quarter to three: no total occurs twice, or few do."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((400, 3)).astype(np.float32)
    codes = rng.integers(10_000, size=x.shape)
    shares = [rule(np.random.default_rng(seed), codes, x).mean() for seed in range(200)]
    assert_distributed(shares, stats.uniform(0.25, 0.5))


def test_the_limit_of_a_hierarchys_grade_lies_between_the_quartiles():
    """Of one column, whose grade is what is cut."""
    codes = np.arange(1000)[:, None]
    shares = [rules.hierarchy(np.random.default_rng(k), codes, None).mean() for k in range(400)]
    assert_distributed(shares, stats.uniform(0.25, 0.5))


def test_levels_have_numbers_in_any_order():
    """Of a column whose cells are equal only its codes tell."""
    codes = np.repeat(np.arange(5), 400)[:, None]
    x = np.zeros(codes.shape, np.float32)
    highest = []
    for seed in range(1200):
        share = rules.logistic(np.random.default_rng(seed), codes, x).reshape(5, 400).mean(axis=1)
        if np.ptp(share) > 0.3:
            highest.append(share.argmax())
    assert_happens_with_probability(len(highest), 1200, 1 / 6)
    assert_uniform_over(highest, range(5))


# Four two-valued columns: every effect and every tree of two leaves is -1 or 1 times its weight.
CORNERS = np.repeat(2 * (np.arange(16)[:, None] >> np.arange(4) & 1) - 1, 128, axis=0)


def second_to_first(holds: np.ndarray) -> float:
    """How much the second most important of the columns of `CORNERS` matters beside the first."""
    sizes = np.sort(np.abs(CORNERS.T @ (holds - holds.mean())))
    return sizes[-2] / sizes[-1]


def ratios_of(power: int, strengths: tuple[float, float], n: int) -> list[float]:
    """That of `n` sums with normal weights to the `power` and logistic noise."""
    ratios = []
    for seed in range(n):
        rng = np.random.default_rng([power, seed])
        signal = CORNERS @ rng.standard_normal(4) ** power
        strength = np.exp(rng.uniform(*np.log(strengths)))
        total = strength * signal / signal.std() + rng.logistic(size=len(CORNERS))
        ratios.append(second_to_first(total > np.quantile(total, rng.uniform(0.25, 0.75))))
    return ratios


def assert_weights_are_normal_or_their_cubes(ratios, strengths):
    even, few = (ratios_of(power, strengths, 300) for power in (1, 3))
    assert stats.ks_2samp(ratios, [*even, *few]).pvalue > ALPHA
    for of_one_kind in (even, few):  # the test has the power to tell
        assert stats.ks_2samp(ratios, of_one_kind).pvalue < ALPHA


def test_weights_of_a_logistic_model_are_normal_or_their_cubes():
    """Whatever the columns' own scales: effects are standardised."""
    codes, x = CORNERS > 0, CORNERS * np.float32([1, 3, 10, 30])
    ratios = [
        second_to_first(rules.logistic(np.random.default_rng(seed), codes.astype(int), x))
        for seed in range(400)
    ]
    assert_weights_are_normal_or_their_cubes(ratios, (0.5, 8.0))


@pytest.fixture
def leaves_made(monkeypatch):
    """Have forests ask `leaves(tree)` for the leaves of each tree, and note the depths they ask."""
    asked = []

    def use(leaves):
        def random_leaves(rng, x, columns, depth):
            asked.append(depth)
            return leaves(len(asked) - 1), []

        monkeypatch.setattr(rules, "random_leaves", random_leaves)
        return asked

    return use


def test_a_forest_is_of_up_to_sixteen_trees_of_one_depth_up_to_four(leaves_made):
    asked = leaves_made(lambda tree: np.arange(20))
    x = np.zeros((20, 3), np.float32)
    numbers, depths = [], []
    for seed in range(600):
        asked.clear()
        rules.forest(np.random.default_rng(seed), None, x)
        assert len({*asked}) == 1
        numbers.append(len(asked))
        depths.append(asked[0])
    for found, values in ((numbers, (1, 2, 4, 8, 16)), (depths, (1, 2, 3, 4))):
        assert {*found} == {*values}
        for value in values:
            assert_happens_with_probability(found.count(value), len(found), 1 / len(values))


def test_weights_of_a_forests_trees_are_normal_or_their_cubes(leaves_made):
    """Trees count as much as their weights say, whatever their leaves are worth."""
    sides = [*(CORNERS.T > 0).astype(int), np.zeros(len(CORNERS), int)]
    asked = leaves_made(lambda tree: sides[min(tree, 4)])  # the fifth and later are one leaf
    ratios = []
    for seed in range(600):
        asked.clear()
        holds = rules.forest(np.random.default_rng(seed), None, CORNERS)
        if len(asked) >= 4:
            ratios.append(second_to_first(holds))
    assert_weights_are_normal_or_their_cubes(ratios, (1.0, 16.0))


def test_leaves_are_worth_normal_values_and_the_signal_is_log_uniform(leaves_made):
    leaf = np.repeat(np.arange(50), 200)
    leaves_made(lambda tree: leaf)
    spreads, values = [], []
    for seed in range(250):
        holds = rules.forest(np.random.default_rng(seed), None, leaf[:, None])
        odds = logit((holds.reshape(50, 200).sum(axis=1) + 0.5) / 201)
        spreads.append(odds.std())
        if odds.std() < 2:  # none is next to certain
            values += ((odds - odds.mean()) / odds.std()).tolist()
    expected = []
    for seed in range(250):
        rng = np.random.default_rng([1, seed])
        score = rng.standard_normal(50)[leaf]
        total = np.exp(rng.uniform(0, np.log(16))) * score / score.std()
        total += rng.logistic(size=len(leaf))
        holds = total > np.quantile(total, rng.uniform(0.25, 0.75))
        expected.append(logit((holds.reshape(50, 200).sum(axis=1) + 0.5) / 201).std())
    assert stats.ks_2samp(spreads, expected).pvalue > ALPHA
    assert stats.kurtosis(values) == pytest.approx(0, abs=0.4)  # of uniform ones -1.2
