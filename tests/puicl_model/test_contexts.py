from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier, unlabeled
from puicl_model.contexts import (
    TrainedRange,
    column_relevance,
    levels_alone,
    plan_contexts,
    plan_views,
    relevance_in,
    turnable,
    two_valued,
)
from puicl_model.ensemble import NewRows
from puicl_model.plan import plan_table
from puicl_model.preprocessing import fit_scaling
from puicl_model.unlabeled import score_unlabeled

SMALL = TrainedRange(n_labeled=30, n_unlabeled=100, n_features=5, eta=(0.5, 4.0))


def plan(n_labeled, n_unlabeled, seed=0):
    return plan_contexts(n_labeled, n_unlabeled, SMALL, np.random.default_rng(seed))


def test_a_table_within_the_range_is_one_context_of_all_rows_in_their_order():
    (context,) = plan(30, 100)
    np.testing.assert_array_equal(context.labeled, np.arange(30))
    np.testing.assert_array_equal(context.unlabeled, np.arange(100))


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 400), st.integers(1, 3000), st.integers(0, 9))
def test_contexts_hold_every_unlabelled_row_once_and_stay_within_the_range(p, u, seed):
    contexts = plan(p, u, seed)
    held = np.concatenate([context.unlabeled for context in contexts])
    np.testing.assert_array_equal(np.sort(held), np.arange(u))
    for context in contexts:
        assert len(np.unique(context.labeled)) == len(context.labeled)
        assert 1 <= len(context.labeled) <= 30
        assert context.labeled.max() < p
        assert len(context.unlabeled) <= 100
        eta = len(context.unlabeled) / len(context.labeled)
        assert eta <= 4 + 1e-9
        assert eta >= 0.5 or len(context.labeled) == 1


def test_rows_of_a_context_come_from_the_whole_table_however_it_is_sorted():
    for context in plan(70, 2100):
        assert np.ptp(context.unlabeled) > 1500
        assert np.ptp(context.labeled) > 40


def test_labelled_rows_are_used_equally_often():
    contexts = plan(70, 2100)
    used = np.bincount(np.concatenate([context.labeled for context in contexts]), minlength=70)
    assert used.max() - used.min() <= 1


def test_the_number_of_contexts_grows_linearly_with_rows():
    assert [len(plan(50, u)) for u in (1000, 10_000, 100_000)] == [10, 100, 1000]


def test_the_range_is_read_from_the_model_card_key_by_key():
    card = {"trained_range": {"n_labeled": 64, "eta": [0.5, 2.0], "of_another_version": 1}}
    assert TrainedRange.from_card(card) == TrainedRange(n_labeled=64, eta=(0.5, 2.0))
    assert TrainedRange.from_card({}) == TrainedRange()
    assert TrainedRange() == TrainedRange(300, 1000, 100, (0.2, 200.0), False)  # as the guide says


def test_whether_tasks_were_mirrored_is_read_from_the_configuration_in_the_card():
    def card(extensions):
        return {"config": {"prior": {"extensions": extensions}}}

    assert TrainedRange.from_card(card({"mirrored": 0.3})).mirrored
    for without in (card({"mirrored": 0.0}), card({}), card(None), {"config": None}, {}):
        assert not TrainedRange.from_card(without).mirrored
    told = card({}) | {"trained_range": {"mirrored": True}}
    assert TrainedRange.from_card(told).mirrored


def views(w, n_estimators=3, scalings=("standard", "quantile"), **changed):
    options = {
        "scalings": [scalings[number % len(scalings)] for number in range(n_estimators)],
        "columns": "random",
        "orders_matter": True,
        "turnable": np.zeros(w, dtype=bool),
        "trained": SMALL,
        "rng": np.random.default_rng(0),
    }
    kinds = ("standard", "quantile", "principal")
    relevance = dict.fromkeys(kinds, np.linspace(0, 1, w))
    return plan_views(relevance, 20, 50, **{**options, **changed})


def test_the_first_estimator_takes_columns_as_given_and_others_permute_them():
    first, *others = views(5)
    np.testing.assert_array_equal(first[0].columns, np.arange(5))
    for (view,) in others:
        assert sorted(view.columns) == list(range(5))
        assert list(view.columns) != list(range(5))
    assert [view[0].scaling for view in (first, *others)] == ["standard", "quantile", "standard"]


def test_estimators_that_could_not_differ_are_one_list_where_orders_do_not_matter():
    def distinct(w, **changed):
        found = views(w, orders_matter=False, **changed)
        return [[id(each) for each in found].index(id(each)) for each in found], found

    assert distinct(5)[0] == [0, 1, 0]  # as many as scalings
    twice, found = distinct(5, scalings=("standard", "standard", "quantile"))
    assert twice == [0, 0, 2]
    assert [view[0].scaling for view in found] == ["standard", "standard", "quantile"]
    np.testing.assert_array_equal(found[1][0].columns, np.arange(5))
    assert distinct(5, n_estimators=1)[0] == [0]
    assert distinct(6)[0] == [0, 1, 2]  # other subsets of columns each time


def test_columns_of_two_values_are_read_the_other_way_round_half_of_the_time():
    turnable = np.array([True, False, True, False, True])
    first, *others = views(5, turnable=turnable, n_estimators=200)
    np.testing.assert_array_equal(first[0].signs, np.ones(5))
    turned = np.zeros(5)
    for (view,) in others:
        turned[view.columns] += view.signs == -1
    assert not turned[~turnable].any()
    assert (np.abs(turned[turnable] - 99.5) < 35).all()  # five standard deviations
    x = np.arange(10.0).reshape(2, 5)
    view, scaling = others[0][0], fit_scaling(x, "standard")
    np.testing.assert_array_equal(
        view.of(scaling, x), scaling(x)[:, view.columns] * view.signs.astype(np.float32)
    )


def test_every_other_estimator_is_mirrored_where_it_is_asked_for():
    found = views(5, mirrored=True, n_estimators=6)
    assert [set(view.signs) for (view,) in found] == [{1.0}, {-1.0}] * 3
    plain = views(5, n_estimators=6)
    for (mirror,), (view,) in zip(found, plain, strict=True):
        np.testing.assert_array_equal(mirror.columns, view.columns)
    # On top of what is turned.
    turnable = np.full(5, True)
    turned = views(5, turnable=turnable, n_estimators=6)
    both = views(5, turnable=turnable, mirrored=True, n_estimators=6)
    for number, ((mirror,), (view,)) in enumerate(zip(both, turned, strict=True)):
        np.testing.assert_array_equal(mirror.signs, view.signs * (-1) ** number)
    # Axes, too.
    axes = views(5, mirrored=True, scalings=("principal",), n_estimators=4)
    assert [set(view.signs) for (view,) in axes] == [{1.0}, {-1.0}] * 2


def test_what_there_is_to_turn_changes_no_order_of_columns():
    orders = [
        [view.columns.tolist() for (view,) in views(5, turnable=np.full(5, turnable))]
        for turnable in (False, True)
    ]
    assert orders[0] == orders[1]


def test_principal_axes_are_not_turned():
    found = views(5, turnable=np.full(5, True), scalings=("quantile", "principal"), n_estimators=9)
    for number, (view,) in enumerate(found):
        assert (number % 2 == 1 or number == 0) == (view.signs == 1).all()


def test_where_columns_are_turned_estimators_differ_for_networks_that_see_no_order():
    for n_turnable, most in ((0, 1), (1, 2), (5, 32)):
        found = views(
            5,
            orders_matter=False,
            turnable=np.arange(5) < n_turnable,
            scalings=("quantile",),
            n_estimators=200,
        )
        seen = {tuple(each[0].signs[np.argsort(each[0].columns)]) for each in found}
        assert len({id(each) for each in found}) == len(seen) == most


def test_columns_of_two_values_are_found_whatever_these_are():
    x = np.array([[0, 5, -1, 3, 0.1], [1, 5, 7, 3, 0.2], [1, 5, -1, 4, 0.3], [0, 5, 7, 3, 0.1]])
    assert two_valued(x).tolist() == [True, False, True, True, False]


def test_a_table_has_levels_alone_where_no_column_has_more_than_ten_values():
    rows = np.arange(30.0)
    for columns, expected in (
        ([rows % 10], True),
        ([rows % 11], False),
        ([rows % 10 * 1e-9 - 5, rows % 2, rows * 0], True),
        ([rows % 10, rows], False),
    ):
        assert levels_alone(np.stack(columns, axis=1)) is expected


def table_of(*columns):
    return np.array(columns, dtype=float).T


def test_columns_of_two_values_are_not_turned_among_columns_of_few_levels_alone():
    grades, yes_no = [1, 2, 3, 1, 2, 3], [0, 1, 1, 0, 1, 0]
    for columns, expected in (
        ([yes_no, grades], [False, False]),
        ([yes_no, grades, yes_no], [False, False, False]),
        ([yes_no, yes_no], [True, True]),  # nothing but two values
        ([grades, grades], [False, False]),
    ):
        found = turnable(table_of(*columns))
        assert found.dtype == bool
        assert found.tolist() == expected
    # Eleven values are measurements, not levels; units do not matter.
    for n_values, unit in product((10, 11), (1, 0.3, 1e9)):
        counted = [min(value, n_values) * unit for value in range(1, 15)]
        columns = table_of([0, 1] * 7, counted, [1, 2, 3, 4] * 3 + [1, 2])
        assert turnable(columns).tolist() == [n_values == 11, False, False]


@pytest.mark.parametrize("w", [6, 11, 43])
def test_wide_tables_are_dealt_out_so_that_each_estimator_sees_every_column_once(w):
    for estimator in views(w):
        dealt = np.concatenate([view.columns for view in estimator])
        assert sorted(dealt) == list(range(w))
        assert list(dealt) != list(range(w))  # neighbours are not always read together
        assert max(len(view.columns) for view in estimator) <= 5


def test_by_default_a_hundred_columns_are_read_at_once_and_more_in_subsets():
    counts = [[len(each) for each in views(w, trained=TrainedRange())] for w in (100, 101)]
    assert counts == [[1, 1, 1], [2, 2, 2]]


def test_relevant_columns_are_drawn_more_often_and_never_twice_in_a_view():
    estimators = views(20, columns="relevant", n_estimators=100)
    drawn = np.zeros(20)
    for view in (view for estimator in estimators for view in estimator):
        assert len(np.unique(view.columns)) == len(view.columns) == 5
        drawn[view.columns] += 1
    assert drawn[15:].mean() > 3 * drawn[:5].mean()
    assert drawn.min() > 0


def test_column_relevance_is_the_distance_of_the_auc_from_a_half_twice():
    rng = np.random.default_rng(0)
    x, labeled = rng.integers(0, 4, size=(300, 3)).astype(float), rng.random(300) < 0.3
    x[:, 1] += labeled
    x[:, 2] -= 10 * labeled
    expected = [abs(2 * roc_auc_score(labeled, column) - 1) for column in x.T]
    np.testing.assert_allclose(column_relevance(x, labeled), expected, atol=1e-12)
    assert expected[2] == 1


def test_the_relevance_of_mixtures_is_that_of_what_comes_out():
    rng = np.random.default_rng(0)
    x, labeled = rng.normal(size=(90, 3)) @ rng.normal(size=(3, 3)), np.arange(90) < 30
    x[labeled] += [2.0, 0.0, -1.0]
    own, kinds = column_relevance(x, labeled), ("quantile", "principal", "rotated")
    scalings = {kind: fit_scaling(x, kind) for kind in kinds}
    found = relevance_in(scalings, x, labeled, own)
    np.testing.assert_array_equal(found["quantile"], own)
    axes = column_relevance(scalings["principal"](x), labeled)
    np.testing.assert_array_equal(found["principal"], axes)
    assert np.abs(axes - own).max() > 0.1
    np.testing.assert_array_equal(found["rotated"], 1)


def test_new_rows_get_each_estimators_mean_over_its_own_views(untrained_weights):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 3)) @ rng.normal(size=(3, 8))  # eight columns, three axes
    weights = untrained_weights({"trained_range": {"n_features": 5}})
    two = {"n_estimators": 2, "scalings": ("quantile", "principal")}
    scorer = PUICLClassifier(weights, **two).fit(x[:60], np.arange(60) < 20)._new_rows
    own = [[r for r in scorer.references if n in r.estimators] for n in range(2)]
    assert [len(each) for each in own] == [2, 1]

    def alone(reference):
        return NewRows(scorer.network, [replace(reference, estimators=(0,))], scorer.scalings)

    for found, references in zip(scorer(x[60:], 64), own, strict=True):
        each = [alone(reference)(x[60:], 64)[0] for reference in references]
        np.testing.assert_allclose(found, np.mean(each, axis=0), atol=1e-6)
    assert np.abs(scorer(x[60:], 64)).min() > 1e-4  # the mean is not the sum


def test_of_many_rows_evenly_spaced_ones_tell_the_relevance():
    # A table sorted by time: its first rows are alike, and the later ones are not.
    labeled = np.arange(4000) % 2 == 0
    x = np.where(np.arange(4000) < 2000, 0.0, labeled)[:, None]
    assert column_relevance(x, labeled, most_rows=400) == pytest.approx([0.5])


def test_an_estimators_answer_is_the_mean_over_its_views(monkeypatch):
    def numbered(network, jobs, *_):
        return [np.full(job.n_rows - job.n_labeled, float(k)) for k, job in enumerate(jobs)]

    monkeypatch.setattr(unlabeled, "log_odds", numbered)
    x, labeled = np.random.default_rng(0).normal(size=(60, 8)), np.arange(60) < 20
    plan = plan_table(
        x,
        labeled,
        np.ones(8),
        n_estimators=2,
        scalings=("standard",),
        orders_matter=True,
        trained=TrainedRange(n_features=5),
        rng=np.random.default_rng(0),
        rotations=np.random.default_rng(1),
    )
    (found,) = score_unlabeled(None, [plan], False)
    np.testing.assert_array_equal(found.log_odds, [[0.5] * 40, [2.5] * 40])


def test_unlabelled_rows_are_as_many_for_the_positives_read_as_the_range_says():
    few = TrainedRange(n_labeled=10, n_unlabeled=100, n_features=5, eta=(0.5, 4.0))
    contexts = plan_contexts(50, 400, few, np.random.default_rng(0))
    assert [len(context.labeled) for context in contexts] == [10] * 10
    assert [len(context.unlabeled) for context in contexts] == [40] * 10
    # And as few, where a context holds few of them.
    short = TrainedRange(n_labeled=30, n_unlabeled=10, n_features=5, eta=(0.5, 4.0))
    contexts = plan_contexts(50, 40, short, np.random.default_rng(0))
    assert [len(context.labeled) for context in contexts] == [20] * 4


def test_estimators_that_read_other_labelled_rows_differ_though_orders_do_not_matter():
    found = plan_views(
        {"standard": np.ones(3)},
        40,
        90,
        scalings=("standard",) * 4,
        columns="random",
        orders_matter=False,
        turnable=np.zeros(3, dtype=bool),
        trained=SMALL,
        rng=np.random.default_rng(0),
    )
    read = {tuple(view.contexts[0].labeled) for (view,) in found}
    assert len(read) == len({id(each) for each in found}) == 4


def test_views_of_relevant_columns_are_as_wide_as_the_network_reads():
    found = views(7, columns="relevant", scalings=("standard",))
    assert [[len(view.columns) for view in views] for views in found] == [[5, 5]] * 3
