"""What each kind of rule says, most of it read off tables of all codes."""

from itertools import combinations, product

import numpy as np
from prior_draws import assert_distributed, assert_happens_with_probability
from scipy import stats

from prior_gen.extensions import rules
from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.discrete import CONTINUOUS


def test_points_are_weighted_codes_of_all_columns():
    codes = np.array([*product(range(3), repeat=3)])
    seen = set()
    for seed in range(200):
        holds = rules.points(np.random.default_rng(seed), codes, None)
        found = [
            weights
            for weights in product((-2, -1, 1, 2, 3), repeat=3)
            for total in [codes @ weights]
            if total[~holds].max() < total[holds].min()
        ]
        assert found
        assert 0.05 < holds.mean() < 0.8
        seen.add(tuple(holds))
    assert len(seen) > 60
    downwards = sum(holds[0] for holds in seen)  # codes 0, 0, 0 have the most points
    assert 3 < downwards < len(seen) / 2


def test_a_product_is_large_where_both_factors_have_one_sign():
    x = np.random.default_rng(0).standard_normal((4000, 2)).astype(np.float32)
    for seed in range(20):
        holds = rules.product(np.random.default_rng(seed), None, x)
        limit = (x[:, 0] * x[:, 1])[holds].min()
        assert (x[:, 0] * x[:, 1])[~holds].max() <= limit
        assert 0.25 <= holds.mean() <= 0.75


def test_conjunctions_disjunctions_and_parities_are_of_all_their_conditions():
    codes = np.array([*product(range(2), repeat=4)])
    for seed in range(10):
        of = {
            rule: rule(np.random.default_rng(seed), codes, None)
            for rule in (rules.conjunction, rules.disjunction, rules.parity)
        }
        assert of[rules.conjunction].sum() == 1
        assert of[rules.disjunction].sum() == 15
        assert of[rules.parity].sum() == 8
        turned = of[rules.parity].reshape([2] * 4)
        for axis in range(4):
            assert np.diff(turned.astype(int), axis=axis).all()


def test_a_dnf_is_of_two_or_three_pairs_of_columns():
    codes = np.array([*product(range(3), repeat=4)])
    terms = {}
    for pair in combinations(range(4), 2):
        first, second = codes[:, pair].T
        terms[pair, "alike"] = first == second
        for a, b in product(range(1, 7), repeat=2):
            sets = (a >> first) & 1, (b >> second) & 1
            terms[pair, a, b] = (sets[0] & sets[1]).astype(bool)
    alike = 0
    sizes = []
    for seed in range(40):
        holds = rules.dnf(np.random.default_rng(seed), codes, None)
        inside = {name: term for name, term in terms.items() if not (term & ~holds).any()}
        covered = np.any([*inside.values()], axis=0)
        np.testing.assert_array_equal(covered, holds)
        few = [
            names
            for count in (1, 2, 3)
            for names in combinations(inside, count)
            if (np.any([inside[name] for name in names], axis=0) == holds).all()
        ]
        assert few
        sizes.append(min(len(names) for names in few))
        alike += all(any(name[1] == "alike" for name in names) for names in few)
    assert {2, 3} <= {*sizes}
    assert 40 * 0.3 < alike < 40 * 0.8


def test_a_count_may_be_of_any_code_and_any_number():
    codes = np.array([*product(range(3), repeat=3)])
    found = set()
    for seed in range(100):
        holds = rules.count(np.random.default_rng(seed), codes, None)
        ways = [
            (code, wanted)
            for code in range(3)
            for wanted in (1, 2, 3)
            if (holds == ((codes == code).sum(axis=1) == wanted)).all()
        ]
        assert len(ways) == 1
        found.add(ways[0])
    assert len(found) == 9


def test_quantile_bins_hold_equally_many_rows():
    values = np.random.default_rng(0).permutation(np.arange(600.0))
    for bins in (2, 3, 4):
        assert set(np.bincount(rules.quantile_bins(values, bins))) == {600 // bins}
    assert (np.diff(rules.quantile_bins(np.sort(values), 4)) >= 0).all()


def test_half_of_the_columns_of_a_hierarchy_count_down():
    codes = np.array([*product(range(4), repeat=2)])
    up = down = 0
    for seed in range(300):
        holds = rules.hierarchy(np.random.default_rng(seed), codes, None).reshape(4, 4).astype(int)
        for axis in (0, 1):
            step = np.diff(holds, axis=axis)
            up += (step >= 0).all() and step.any()
            down += (step <= 0).all() and step.any()
    assert_happens_with_probability(up, up + down, 0.5)


def test_continuous_columns_are_read_in_as_many_bins_as_tagged():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1200, 2)).astype(np.float32)
    codes = np.full(x.shape, CONTINUOUS)
    for bins in (2, 3, 4):
        parameters = {"kind": "equality", "arity": 2, "bins": bins}
        negative, _ = rules.rule_labels(rng, parameters, {}, x, codes, ClassCounts(100, 100))
        first, second = (rules.quantile_bins(column, bins) for column in x.T)
        assert (negative == (first == second)).all() or (negative == (first != second)).all()


def test_a_mean_of_two_grades_weighs_either_by_a_quarter_to_three_quarters():
    """Of 101 grades each, the line between high and low says how the two were weighed."""
    codes = np.array([*product(range(101), repeat=2)])
    shares = []
    for seed in range(300):
        high = rules.hierarchy(np.random.default_rng(seed), codes, None).reshape(101, 101)
        # At each grade of the first column, how many of the second's are high.
        ends = high.sum(axis=1)
        line = ends[(ends > 0) & (ends < 101)]
        steps = np.diff(line)
        one_way = (steps >= 0).all() or (steps <= 0).all()  # so that they do not agree
        if one_way and steps.any():  # nor are they the worse or the better
            slope = abs(np.polyfit(np.arange(len(line)), line, 1)[0])
            shares.append(slope / (1 + slope))
    # Two of five hierarchies.
    assert_happens_with_probability(len(shares), 300, 0.4)
    assert_distributed(shares, stats.uniform(0.25, 0.5))


def test_a_column_of_one_code_is_a_grade_like_others():
    codes = np.array([[0, code] for code in range(4)])
    with np.errstate(invalid="raise"):
        shares = [
            rules.hierarchy(np.random.default_rng(seed), codes, None).mean() for seed in range(40)
        ]
    assert {0.25, 0.5} <= {*shares}


def test_a_grade_in_between_is_seen_in_at_most_five_steps():
    codes = np.array([*product(range(12), repeat=3)])
    steps = set()
    for seed in range(150):
        holds = rules.hierarchy(np.random.default_rng(seed), codes, None).reshape([12] * 3)
        # Two of the columns tell no more of the third than their own grade does.
        beside = [np.moveaxis(holds, third, 0).reshape(12, -1) for third in range(3)]
        steps.add(min(len(np.unique(third, axis=1).T) for third in beside))
    assert max(steps) == 5


def test_the_last_grade_is_seen_as_it_is():
    """So that its limit, at a quantile, leaves any share of the rows."""
    codes = np.array([*product(range(100), repeat=2)])
    shares = [
        rules.hierarchy(np.random.default_rng(seed), codes, None).mean() for seed in range(200)
    ]
    assert_distributed(shares, stats.uniform(0.25, 0.5))
