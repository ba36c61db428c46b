"""Columns of a few levels: how many, which codes, in what order, and designs of all of them."""

import numpy as np
import pytest
from extended import extended_by, microbatches

from prior_gen.extensions import discrete, factorial
from prior_gen.extensions.border import ClassCounts


@pytest.mark.parametrize("independent", [0.0, 1.0])
def test_discrete_columns_have_exactly_the_levels_of_their_tag(independent):
    batches = microbatches(12, discrete=1.0, rule_labels=1.0, independent=independent)
    for batch, tag in extended_by("discrete", batches):
        assert any(tag["levels"])
        for task in batch.x:
            for column, levels in zip(task.T, tag["levels"], strict=True):
                distinct = len(np.unique(column))
                assert distinct <= levels if levels else distinct == len(column)
        seen = [max(len(np.unique(task[:, j])) for task in batch.x) for j in range(len(task.T))]
        for column, levels in enumerate(tag["levels"]):
            assert not levels or seen[column] == levels


def test_shared_levels_give_all_columns_the_same_values_and_shares():
    rng = np.random.default_rng(0)
    shares = [0.5, 0.3, 0.2]
    x = rng.standard_normal((1000, 5)).astype(np.float32)
    for order in ("ordinal", "nominal"):
        parameters = {"order": order, "levels": [3] * 5, "shares": [shares] * 5}
        codes = discrete.level_codes(np.random.default_rng(1), parameters, x)
        counts = [np.bincount(column, minlength=3).tolist() for column in codes.T]
        assert counts == [counts[0]] * 5
        assert sorted(counts[0]) == [200, 300, 500]
    layouts = {"shared": 0, "own": 0}
    for batch, tag in extended_by("discrete", microbatches(30, discrete=1.0)):
        layouts[tag["layout"]] += 1
        if tag["layout"] == "shared":
            assert len(set(tag["levels"])) == 1
            for task in batch.x:  # the same numbers everywhere: standardised over the same shares
                values = np.unique(task.round(4))
                assert len(values) <= tag["levels"][0]
    assert min(layouts.values()) > 5


def test_ordinal_codes_keep_the_columns_order_and_nominal_ones_do_not():
    x = np.linspace(-1, 1, 600, dtype=np.float32)[:, None]
    parameters = {"levels": [5], "shares": [[0.2] * 5]}
    ordinal = discrete.level_codes(np.random.default_rng(0), {**parameters, "order": "ordinal"}, x)
    assert (np.diff(ordinal[:, 0]) >= 0).all()
    shuffled = [
        discrete.level_codes(np.random.default_rng(seed), {**parameters, "order": "nominal"}, x)
        for seed in range(20)
    ]
    assert sum((np.diff(codes[:, 0]) < 0).any() for codes in shuffled) >= 18


def test_a_level_whose_share_is_less_than_a_row_has_the_one_at_its_end():
    x = np.array([3, 0, 5, 1, 4, 2], dtype=np.float32)[:, None]
    parameters = {"order": "ordinal", "levels": [3], "shares": [[0.05, 0.5, 0.45]]}
    codes = discrete.level_codes(np.random.default_rng(0), parameters, x)
    assert codes[:, 0].tolist() == [2, 0, 2, 1, 2, 1]


def test_so_many_levels_that_their_rounded_shares_sum_to_more_than_one_are_no_trouble():
    x = np.arange(1000, dtype=np.float32)[:, None]
    parameters = {"order": "ordinal", "levels": [180], "shares": [[round(1 / 180, 4)] * 180]}
    codes = discrete.level_codes(np.random.default_rng(0), parameters, x)[:, 0]
    assert (codes[0], codes[-1]) == (0, 178)
    assert {*np.diff(codes)} == {0, 1}


def test_mixed_orders_shuffle_the_codes_of_nominal_columns_each_by_itself():
    x = np.repeat(np.linspace(-1, 1, 600, dtype=np.float32)[:, None], 3, axis=1)
    parameters = {
        "order": "mixed",
        "levels": [5] * 3,
        "shares": [[0.2] * 5] * 3,
        "nominal": [0, 2],
    }
    orders = []
    for seed in range(20):
        codes = discrete.level_codes(np.random.default_rng(seed), parameters, x)
        assert (np.diff(codes[:, 1]) >= 0).all()
        orders.append([tuple(codes[::120, column]) for column in (0, 2)])
        assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders[-1])
    assert len({order for pair in orders for order in pair}) > 30
    assert sum(first == second for first, second in orders) <= 2


def test_mixed_orders_are_a_share_of_the_layout_own_and_change_nothing_else():
    tags = [tag for _, tag in extended_by("discrete", microbatches(40, discrete=1.0))]
    mixed = [
        tag for _, tag in extended_by("discrete", microbatches(40, discrete=1.0, mixed_orders=0.6))
    ]
    for plain, other in zip(tags, mixed, strict=True):
        assert [plain[key] for key in ("layout", "levels", "shares")] == [
            other[key] for key in ("layout", "levels", "shares")
        ]
        if other["order"] != "mixed":
            assert other == plain
            continue
        assert other["layout"] == "own"
        assert all(other["levels"][column] for column in other["nominal"])
    own = [tag["order"] == "mixed" for tag in mixed if tag["layout"] == "own"]
    assert 0.3 < np.mean(own) < 0.9
    assert any(tag.get("nominal") for tag in mixed)


def test_uneven_levels_include_a_rare_yes():
    batches = microbatches(40, discrete=1.0, levels=(2, 2))
    shares = [s for _, tag in extended_by("discrete", batches) for s in tag["shares"] if s]
    assert min(min(pair) for pair in shares) < 0.15
    assert [0.5, 0.5] in shares


def designs(count=12, **options):
    prior = {"n_labeled": (30, 60), "n_features": (3, 6), "eta_final": (0.5, 1.0)}
    extensions = {"factorial": 1.0, "rule_labels": 0.5, "tree_labels": 0.5, "levels": (4, 5)}
    found = microbatches(count, prior, **{**extensions, **options})
    return extended_by("factorial", found)


def test_a_factorial_design_lists_each_combination_once():
    checked = 0
    for batch, tag in designs():
        rows = batch.x.shape[1]
        for x, levels in zip(batch.x, tag["levels"], strict=True):
            assert len(levels) == batch.x.shape[2]
            assert all(2 <= count <= tag["most_levels"] <= 5 for count in levels)
            for column, count in zip(x.T, levels, strict=True):
                assert len(np.unique(column)) <= count
            if np.prod(levels) >= tag["size"] * rows:
                assert len(np.unique(x, axis=0)) == rows
                checked += 1
    assert checked > 12


def test_any_column_of_a_design_may_have_more_levels():
    counts = ClassCounts(100, 100)
    parameters = {"order": "ordinal", "most_levels": 6, "size": 4.0}
    levels = [
        factorial.factorial_codes(np.random.default_rng(k), parameters, counts, 6)[1]
        for k in range(200)
    ]
    np.testing.assert_allclose(np.mean(levels, axis=0), np.mean(levels), atol=0.25)


def test_a_design_that_is_too_small_is_replicated_and_one_too_large_is_sampled():
    rng = np.random.default_rng(2)
    counts = ClassCounts(60, 40)
    parameters = {"order": "ordinal", "most_levels": 3, "size": 4.0}
    codes, levels = factorial.factorial_codes(rng, parameters, counts, 3)
    assert levels == [3, 3, 3]
    combinations, times = np.unique(codes, axis=0, return_counts=True)
    assert len(combinations) == 27
    assert set(times) == {15}  # 400 rows wanted, 27 * 15 = 405
    small = {**parameters, "most_levels": 2}
    codes, _ = factorial.factorial_codes(rng, small, ClassCounts(2000, 1000), 3)
    assert len(codes) == 8192  # of 12,000 wanted
    codes, levels = factorial.factorial_codes(rng, parameters, counts, 200)
    assert levels == [2] * 200
    assert 400 <= len(np.unique(codes, axis=0)) == len(codes) <= 8192
    many = ClassCounts(9000, 9000)
    codes, _ = factorial.factorial_codes(rng, parameters, many, 15)
    assert len(codes) == len(np.unique(codes, axis=0)) >= 18000


def test_a_complete_design_is_balanced_in_either_order_of_its_levels():
    rng = np.random.default_rng(3)
    orders = set()
    for _ in range(20):
        parameters = {"order": "nominal", "most_levels": 4, "size": 2.0}
        codes, levels = factorial.factorial_codes(rng, parameters, ClassCounts(100, 100), 6)
        assert len(np.unique(codes, axis=0)) == len(codes) == np.prod(levels) >= 400
        for column, count in zip(codes.T, levels, strict=True):
            assert {*column.tolist()} == {*range(count)}
            assert len(set(np.bincount(column))) == 1
        first = codes[:, int(np.argmax(levels))]
        orders.add(tuple(dict.fromkeys(first.tolist())))
    assert len(orders) > 3
