"""What a table is scaled to, and which of it each pass reads."""

import numpy as np

from puicl_model.contexts import TrainedRange
from puicl_model.plan import plan_table
from puicl_model.preprocessing import fit_scaling


def planned(x, columns="random"):
    labeled = np.arange(len(x)) < 20
    return plan_table(
        x,
        labeled,
        np.ones(x.shape[1]),
        n_estimators=16,
        columns=columns,
        orders_matter=True,
        trained=TrainedRange(n_features=30),
        rng=np.random.default_rng(0),
        rotations=np.random.default_rng(1),
    )


def test_of_a_wide_table_the_leading_axes_are_read_by_half_of_the_passes():
    x = np.random.default_rng(0).normal(size=(90, 70))
    plan = planned(x)
    for number, views in enumerate(plan.estimators):
        scaling = views[0].scaling
        assert (
            scaling
            == ("quantile", "principal", "rotated_quantile", "principal_quantile")[number % 4]
        )
        read = np.sort(np.concatenate([view.columns for view in views]))
        if scaling in ("quantile", "rotated_quantile"):
            assert len(views) == 3  # of at most 30 columns
            np.testing.assert_array_equal(np.unique(read % 70), np.arange(70))
        else:
            (view,) = views
            np.testing.assert_array_equal(read, np.arange((10, 5)[number // 4 % 2]))
            assert (view.signs == 1).all()
            whole = fit_scaling(x, scaling)(x, view.columns)
            np.testing.assert_array_equal(view.of(plan.scalings[scaling], x), whole)
    assert plan.scalings["principal"].width == 10  # no more are fitted, or saved


def test_tables_that_are_read_at_once_are_read_along_all_axes():
    x = np.random.default_rng(0).normal(size=(90, 70))
    for plan, width in ((planned(x, columns="all"), 70), (planned(x[:, :30]), 30)):
        for number, (view,) in enumerate(plan.estimators):
            scaling = ("quantile", "principal", "rotated_quantile", "standard")[number % 4]
            assert (view.scaling, len(view.columns)) == (scaling, width)


def test_a_column_of_which_labelled_rows_have_a_third_value_is_not_turned():
    x = np.random.default_rng(0).normal(size=(90, 3))
    x[:, :2] = x[:, :2] > 0
    x[:20, 0] = 2.0
    turned = np.zeros(3)
    for (view,) in planned(x).estimators:
        if view.scaling in ("quantile", "standard"):
            turned[view.columns] += view.signs < 0
    assert (turned > 0).tolist() == [False, True, False]


def test_a_wide_table_of_few_axes_has_no_more_of_them():
    rng = np.random.default_rng(0)
    plan = planned(rng.normal(size=(90, 3)) @ rng.normal(size=(3, 70)))
    along = [views for views in plan.estimators if views[0].scaling == "principal"]
    assert [len(view.columns) for (view,) in along] == [3] * 4
