"""Labels by rules: which columns a class is a function of, and which function."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from extended import config, cross_fitted_auc, grid
from prior_draws import ALPHA
from scipy import stats
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression

from prior_gen.extensions import rules
from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.discrete import CONTINUOUS
from puicl_config import RULE_KINDS


def test_an_equality_of_two_columns_is_theirs_and_needs_both():
    rng = np.random.default_rng(3)
    x, codes = grid(rng)
    counts = ClassCounts(100, 100)
    for _ in range(10):
        parameters = {"kind": "equality", "arity": 2, "bins": 2}
        negative, facts = rules.rule_labels(rng, parameters, {}, x, codes, counts)
        first, second = facts["columns"]
        holds = codes[:, first] == codes[:, second]
        assert (negative == holds).all() or (negative == ~holds).all()


def test_a_count_depends_on_how_many_columns_have_the_code_and_nothing_else():
    rng = np.random.default_rng(4)
    x, codes = grid(rng)
    for _ in range(10):
        parameters = {"kind": "count", "arity": 6, "bins": 2}
        counts = ClassCounts(100, 100)
        negative, facts = rules.rule_labels(rng, parameters, {}, x, codes, counts)
        assert facts["forced"] == 0

        def explains(code, how_many, negative=negative):
            holds = (codes == code).sum(axis=1) == how_many
            return (negative == holds).all() or (negative == ~holds).all()

        assert any(explains(code, k) for code in range(3) for k in range(1, 7))


LATER = ("tally", "terms", "switch", "blocks", "multiplexer", "logistic", "forest", "hierarchy")


def subsets_of_codes(values):
    """Every set of the column's codes that is neither empty nor all, as where it holds."""
    present = np.unique(values)
    for size in range(1, len(present)):
        for inside in combinations(present, size):
            yield np.isin(values, inside)


def test_a_tally_depends_on_how_many_conditions_hold():
    rng = np.random.default_rng(8)
    x, codes = grid(rng, d=3)
    exact = []
    for _ in range(20):
        parameters = {"kind": "tally", "arity": 3, "bins": 2}
        negative, facts = rules.rule_labels(rng, parameters, {}, x, codes, ClassCounts(100, 100))
        assert facts["forced"] == 0
        columns = [[*subsets_of_codes(codes[:, column])] for column in facts["columns"]]
        found = {
            compare
            for conditions in product(*columns)
            for held in [np.sum(conditions, axis=0)]
            for k in range(1, len(columns) + 1)
            for compare, holds in (("exactly", held == k), ("at least", held >= k))
            if (negative == holds).all() or (negative == ~holds).all()
        }
        assert found
        exact.append("at least" not in found)
    assert any(exact)
    assert not all(exact)


def test_a_switch_lets_one_column_choose_which_other_decides():
    rng = np.random.default_rng(9)
    x, codes = grid(rng, d=3, levels=2)
    for _ in range(10):
        parameters = {"kind": "switch", "arity": 3, "bins": 2}
        negative, _ = rules.rule_labels(rng, parameters, {}, x, codes, ClassCounts(100, 100))

        def explains(order, turned, negative=negative):
            selecting, first, second = (codes[:, column] == 1 for column in order)
            holds = np.where(selecting, first, second ^ turned)
            return (negative == holds).all() or (negative == ~holds).all()

        assert any(
            explains(order, turned) for order in permutations(range(3)) for turned in (False, True)
        )


def test_a_wide_switch_is_a_multiplexer_of_four_columns():
    codes = np.array([*product(range(2), repeat=6)])
    for seed in range(10):
        rng = np.random.default_rng(seed)
        holds = rules.switch(rng, codes, None)
        address = 2 * codes[:, 0] + codes[:, 1]
        for place in range(4):
            rows = codes[address == place]
            # Where the first two columns choose it, one of the other four decides alone.
            deciding = [
                column
                for column in range(2, 6)
                if len({*(rows[:, column] ^ holds[address == place])}) == 1
            ]
            assert len(deciding) == 1
        assert holds.mean() == 0.5


def test_terms_hold_in_any_one_of_them_and_read_up_to_eight_columns():
    rng = np.random.default_rng(10)
    codes = rng.integers(2, size=(4000, 8))
    shares = [rules.terms(np.random.default_rng(seed), codes, None).mean() for seed in range(60)]
    # Two terms of four conditions hold in 2/16 of the rows; four of two in half of them and more.
    assert 0.1 < min(shares) < 0.2
    assert 0.5 < max(shares) < 0.9
    drawn = [rules.draw(np.random.default_rng(k), only("terms"), 12, {}) for k in range(20)]
    assert {parameters["arity"] for parameters in drawn} == {8}


def only(kind):
    return config(rule_labels=1.0, rule_kinds=(kind,)).prior.extensions


@pytest.mark.parametrize("kind", sorted(rules.RULES))
@pytest.mark.parametrize("levels", [0, 2, 4])
def test_a_rules_class_is_a_function_of_the_columns_it_names(kind, levels):
    rng = np.random.default_rng(5)
    x, codes = grid(rng, n=600, levels=levels or 3)
    if not levels:
        x = rng.standard_normal(x.shape).astype(np.float32)
        codes = np.full(codes.shape, CONTINUOUS)
    for arity in (2, 3, 4):
        parameters = {"kind": kind, "arity": 2 if kind == "equality" else arity, "bins": 3}
        negative, facts = rules.rule_labels(rng, parameters, {}, x, codes, ClassCounts(60, 60))
        assert min(2, parameters["arity"]) <= len(facts["columns"]) <= parameters["arity"]
        assert facts["forced"] == 0
        assert facts["negative_share"] == pytest.approx(negative.mean(), abs=1e-4)
        named = x[:, facts["columns"]]
        if levels and kind not in ("logistic", "forest"):  # whose classes overlap
            _, cell = np.unique(named, axis=0, return_inverse=True)
            for members in np.unique(cell):
                assert len(set(negative[cell == members])) == 1
        # No change of the other columns changes the class.
        others = np.setdiff1d(np.arange(6), facts["columns"])
        for column in others:
            p = stats.mannwhitneyu(x[negative, column], x[~negative, column]).pvalue
            assert p > ALPHA / 10


def test_a_multiplexer_addresses_as_many_columns_as_there_are_enough_of():
    for columns, selecting in ((2, 1), (3, 1), (5, 1), (6, 2), (10, 2), (11, 3), (12, 3)):
        codes = np.array([*product(range(2), repeat=columns)])
        for seed in range(4):
            holds = rules.multiplexer(np.random.default_rng(seed), codes, None)
            address = codes[:, :selecting] @ (1 << np.arange(selecting))
            read = codes[:, selecting : selecting + 2**selecting]
            for place in range(2**selecting):
                rows = address == place
                deciding = [
                    column for column in read.T if len({*(column[rows] ^ holds[rows])}) == 1
                ]
                assert len(deciding) == 1
    drawn = [rules.draw(np.random.default_rng(k), only("multiplexer"), 12, {}) for k in range(20)]
    assert {parameters["arity"] for parameters in drawn} == {6, 11}


def test_blocks_are_terms_without_a_common_column():
    codes = np.array([*product(range(2), repeat=9)])
    shares = []
    for seed in range(40):
        holds = rules.blocks(np.random.default_rng(seed), codes, None)
        shares.append(holds.mean())
        terms = [
            columns
            for size in (2, 3, 4)
            for columns in combinations(range(9), size)
            for values in product(range(2), repeat=size)
            if holds[(codes[:, columns] == values).all(axis=1)].all()
        ]
        smallest = [one for one in terms if not any({*other} < {*one} for other in terms)]
        assert 2 <= len(smallest) <= 4
        assert len({*sum(smallest, ())}) == len(sum(smallest, ()))
    # Two terms of four columns (the ninth is left over), three of three, four of two and three.
    expected = [1 - (1 - 1 / 16) ** 2, 1 - (1 - 1 / 8) ** 3, 1 - (1 - 1 / 8) * (1 - 1 / 4) ** 3]
    assert sorted({*np.round(shares, 6)}) == pytest.approx(expected, abs=1e-5)
    # Fewer columns make fewer terms, none of which holds for want of conditions.
    few = np.array([*product(range(2), repeat=2)])
    assert {*(rules.blocks(np.random.default_rng(k), few, None).sum() for k in range(20))} == {3}
    drawn = [rules.draw(np.random.default_rng(k), only("blocks"), 12, {}) for k in range(60)]
    assert {parameters["arity"] for parameters in drawn} == {*range(7, 13)}
    drawn = [rules.draw(np.random.default_rng(k), only("blocks"), 9, {}) for k in range(60)]
    assert {parameters["arity"] for parameters in drawn} == {7, 8, 9}


def test_a_logistic_model_finds_its_own_classes_and_its_noise_bounds_what_can_be_known():
    rng = np.random.default_rng(11)
    x = rng.standard_normal((4000, 5)).astype(np.float32)
    codes = np.stack([rules.quantile_bins(column, 3) for column in x.T], axis=1)
    aucs = []
    for seed in range(60):
        holds = rules.logistic(np.random.default_rng(seed), codes, x)
        assert 0.24 < holds.mean() < 0.76
        # Straight, bent and turning effects of single columns: all that there is to know.
        bends = [np.clip(x, cut - 1, cut + 1) for cut in (-1.5, 0, 1.5)]
        turns = [np.abs(x - at) for at in (-1, 0, 1)]
        steps = [codes == code for code in range(3)]
        features = np.concatenate([x, *bends, *turns, *steps], axis=1)
        aucs.append(cross_fitted_auc(LogisticRegression(C=0.3, max_iter=300), features, holds))
    # From barely better than chance to nearly certain, as the strength of the signal goes.
    assert min(aucs) < 0.68
    assert max(aucs) > 0.95
    assert 0.75 < np.median(aucs) < 0.92
    drawn = [rules.draw(np.random.default_rng(k), only("logistic"), 12, {}) for k in range(60)]
    assert {parameters["arity"] for parameters in drawn} == {*range(7, 13)}


@pytest.mark.parametrize("rule", [rules.logistic, rules.forest])
def test_a_drawn_class_over_columns_that_do_not_vary_is_noise(rule):
    codes = np.zeros((500, 3), dtype=int)
    holds = rule(np.random.default_rng(0), codes, codes.astype(np.float32))
    assert 0.2 < holds.mean() < 0.8


def test_trees_find_more_of_a_forest_than_single_columns_tell():
    rng = np.random.default_rng(12)
    x = rng.standard_normal((1000, 5)).astype(np.float32)
    steps = [x > np.quantile(x, q, axis=0) for q in np.linspace(0.1, 0.9, 9)]
    single = np.concatenate([x, *steps], axis=1)
    aucs = []
    for seed in range(24):
        holds = rules.forest(np.random.default_rng(seed), None, x)
        assert 0.24 < holds.mean() < 0.76
        trees = ExtraTreesClassifier(30, min_samples_leaf=5, max_features=None, random_state=0)
        apart = LogisticRegression(C=0.1, max_iter=300)
        aucs.append([cross_fitted_auc(model, single, holds) for model in (trees, apart)])
    together, apart = np.array(aucs).T
    # Of depth one, trees are steps of single columns; deeper ones are not.
    assert (together - apart).max() > 0.1
    assert 0.01 < (together - apart).mean() < 0.15
    assert min(together) < 0.7
    assert max(together) > 0.95
    drawn = [rules.draw(np.random.default_rng(k), only("forest"), 12, {}) for k in range(60)]
    assert {parameters["arity"] for parameters in drawn} == {*range(3, 9)}


def two_grades(first, second):
    """Every way to join two grades and every limit of it, as (name, where it holds)."""
    joined = {"worse": np.minimum(first, second), "better": np.maximum(first, second)}
    joined["agreement"] = 1 - np.abs(first - second)
    joined |= {f"mean {w:.3f}": w * first + (1 - w) * second for w in np.linspace(0.25, 0.75, 101)}
    for name, values in joined.items():
        for limit in np.unique(values):
            yield name.split()[0], values > limit


def test_a_hierarchy_of_two_columns_joins_their_grades_in_one_of_four_ways():
    codes = np.array([*product(range(4), repeat=2)])
    found = {}
    for seed in range(60):
        holds = rules.hierarchy(np.random.default_rng(seed), codes, None)
        ways = {
            how
            for first in (codes[:, 0] / 3, 1 - codes[:, 0] / 3)
            for second in (codes[:, 1] / 3, 1 - codes[:, 1] / 3)
            for how, expected in two_grades(first, second)
            if (holds == expected).all()
        }
        assert ways
        found[seed] = ways
    # Some tables are one way's alone: each way occurs.
    assert {how for ways in found.values() if len(ways) == 1 for how in ways} == {
        *("worse", "better", "mean", "agreement")
    }


def test_most_hierarchies_go_one_way_along_each_column_and_read_them_all():
    codes = np.array([*product(range(3), repeat=5)])
    one_way, read = [], []
    for seed in range(80):
        holds = rules.hierarchy(np.random.default_rng(seed), codes, None).reshape([3] * 5)
        steps = [np.diff(holds.astype(int), axis=column) for column in range(5)]
        one_way.append(all((step >= 0).all() or (step <= 0).all() for step in steps))
        read.append(sum(step.any() for step in steps))
    # Four joints, a fifth of them agreements, which turn (unless nothing more is seen of them).
    assert 0.8**4 < np.mean(one_way) < 0.9
    assert np.mean(np.array(read) == 5) > 0.3
    drawn = [rules.draw(np.random.default_rng(k), only("hierarchy"), 12, {}) for k in range(60)]
    assert {parameters["arity"] for parameters in drawn} == {*range(3, 7), 11, 12}


def test_the_kinds_that_came_later_are_drawn_only_where_they_are_named():
    assert {*rules.RULES} - {*RULE_KINDS} == {*LATER}
    assert config(rule_labels=1.0).prior.extensions.rule_kinds == RULE_KINDS
    named = config(rule_labels=1.0, rule_kinds=(*LATER, "count")).prior.extensions
    kinds = {rules.draw(np.random.default_rng(k), named, 6, {})["kind"] for k in range(200)}
    assert kinds == {*LATER, "count"}


def test_a_rule_that_holds_too_rarely_reads_fewer_columns_before_rows_are_forced():
    rng = np.random.default_rng(7)
    x, codes = grid(rng, n=600, levels=2)
    parameters = {"kind": "conjunction", "arity": 4, "bins": 2}
    enough, few = ClassCounts(130, 130), ClassCounts(20, 20)
    negative, facts = rules.rule_labels(rng, parameters, {}, x, codes, enough)
    assert len(facts["columns"]) == 2
    assert facts["forced"] == 0
    assert len(rules.rule_labels(rng, parameters, {}, x, codes, few)[1]["columns"]) == 4
    # A table without any structure still gives both classes, and says how many rows it took.
    parameters = {"kind": "equality", "arity": 2, "bins": 2}
    dead = np.zeros_like(codes)
    negative, facts = rules.rule_labels(rng, parameters, {}, x, dead, enough)
    assert facts["forced"] == min(negative.sum(), (~negative).sum()) == 130


def test_conjunctions_are_rarer_than_disjunctions_of_the_same_conditions():
    codes = grid(np.random.default_rng(6), d=3)[1]
    for seed in range(10):
        both, any_of = (
            rule(np.random.default_rng(seed), codes, None)
            for rule in (rules.conjunction, rules.disjunction)
        )
        assert (both <= any_of).all()
        assert 0 < both.mean() < any_of.mean() < 1


def test_a_kind_that_is_named_twice_is_drawn_twice_as_often():
    named = config(rule_labels=1.0, rule_kinds=("count", "parity", "count")).prior.extensions
    kinds = [rules.draw(np.random.default_rng(k), named, 6, {})["kind"] for k in range(600)]
    assert stats.binomtest(kinds.count("count"), 600, 2 / 3).pvalue > ALPHA
