"""The scalings "rotated", "rotated_quantile", "rotated_uniform": a table rotated at random."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.base import clone

from puicl_model import PUICLClassifier, fit_many
from puicl_model.contexts import TrainedRange, auto_scalings
from puicl_model.preprocessing import ROTATED, SCALINGS, fit_scaling

N = 300
# What scales the columns first.
FIRST = {"rotated": "standard", "rotated_quantile": "quantile", "rotated_uniform": "uniform"}
every_kind = pytest.mark.parametrize("kind", ROTATED)


def normal(w=4, n=N, seed=0):
    return np.random.default_rng(seed).normal(size=(n, w))


def rotations(x, kind, n_rotations=3, seed=0):
    return fit_scaling(x, kind, n_rotations, np.random.default_rng(seed))


@every_kind
def test_columns_of_a_rotation_are_orthogonal_mixtures_of_all_with_variance_one(kind):
    x = normal() * [1, 1e6, 1e-6, 3] + 5
    scaling = rotations(x, kind)
    out = scaling(x)
    assert out.shape == (N, 12) == (N, scaling.width)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out.mean(0), 0, atol=0.02)
    np.testing.assert_allclose(out.std(0), 1, atol=0.02)  # but for shortened tails
    # What a linear map from the scaled columns is, and that it is one with orthogonal rows.
    z = fit_scaling(x, FIRST[kind])(x).astype(float)
    for part in np.split(out * scaling.spread + scaling.center, 3, axis=1):
        found, residual, *_ = np.linalg.lstsq(z, part, rcond=None)
        assert residual.max() < 1e-3
        np.testing.assert_allclose(found @ found.T, np.eye(4), atol=1e-3)
        assert np.abs(found).min() > 1e-4  # no column is left out
    first, second, third = np.split(out, 3, axis=1)
    assert np.abs(first - second).max() > 0.5 < np.abs(second - third).max()


def test_rotations_are_uniform():
    """The mean square of each loading is 1 / w, and its fourth moment 3 / (w (w + 2))."""
    w, n = 4, 2000
    drawn = np.stack(rotations(normal(w), "rotated", n).rotations)
    for power, expected in ((1, 0), (2, 1 / w), (4, 3 / (w * (w + 2)))):
        np.testing.assert_allclose((drawn**power).mean(axis=0), expected, atol=0.06)
    assert 0.4 < (np.linalg.det(drawn) > 0).mean() < 0.6  # reflections, too


@pytest.mark.parametrize("kind", SCALINGS)
def test_some_columns_and_some_rows_alone_are_the_same_to_the_last_bit(kind):
    x, new = normal(7), 100 * normal(7, 40, seed=1)
    scaling = rotations(x, kind)
    which = np.array([5, 3, 2, 2, 0])
    np.testing.assert_array_equal(scaling(new, which), scaling(new)[:, which])
    np.testing.assert_array_equal(
        np.concatenate([scaling(new[i : i + 1]) for i in range(40)]), scaling(new)
    )


@pytest.mark.parametrize("kind", ["rotated_quantile", "rotated_uniform"])
def test_only_ranks_count_after_a_scaling_by_rank(kind):
    x = normal()
    bent = np.exp(3 * x)
    same = [rotations(table, kind)(table) for table in (x, bent)]
    np.testing.assert_allclose(*same, atol=1e-5)
    other = [rotations(table, "rotated")(table) for table in (x, bent)]
    assert np.abs(other[0] - other[1]).max() > 0.5


@every_kind
def test_constants_and_single_columns_are_no_trouble(kind):
    np.testing.assert_array_equal(
        rotations(np.ones((N, 3)), kind)(np.ones((5, 3))), np.zeros((5, 9))
    )
    one = normal(1)
    z = fit_scaling(one, FIRST[kind])(one)
    expected = np.repeat(np.abs(z - z.mean()) / z.std(), 3, axis=1)
    np.testing.assert_allclose(np.abs(rotations(one, kind)(one)), expected, atol=1e-2)


@every_kind
def test_a_wide_table_is_rotated_in_groups(kind):
    x = normal(250, 60)
    scaling = rotations(x, kind, 2)
    assert [len(group) for group in scaling.groups] == [84, 83, 83] * 2
    assert scaling.width == 500
    for third in (scaling.groups[:3], scaling.groups[3:]):
        assert sorted(np.concatenate(third)) == list(range(250))
    assert not np.array_equal(scaling.groups[0], scaling.groups[3])
    # A column of the second group holds those of its group and no other.
    moved = x.copy()
    moved[:, scaling.groups[1]] += 1
    changed = np.abs(scaling(moved) - scaling(x)).max(axis=0) > 0
    assert changed[84 : 84 + 83].all()
    assert not changed[:84].any()
    assert not changed[167:250].any()


def test_each_pass_has_its_own_rotation_and_the_seed_decides(weights):
    x, s = normal(5), np.arange(N) % 4 == 0

    def passes(**parameters):
        parameters = {"scalings": ("rotated_quantile",), "n_estimators": 3} | parameters
        return PUICLClassifier(weights, **parameters).fit(x, s)

    found = passes()
    log_odds = found.estimator_log_odds_
    assert len(np.unique(log_odds[:, 0])) == 3
    assert [order.min() // 5 for order in found.column_orders_] == [0, 1, 2]
    assert [sorted(order % 5) for order in found.column_orders_] == [[0, 1, 2, 3, 4]] * 3
    np.testing.assert_array_equal(passes().estimator_log_odds_, log_odds)
    assert np.abs(passes(random_state=1).estimator_log_odds_ - log_odds).max() > 1e-3
    # In a stream apart from that of the orders, the same in every version.
    stream = np.random.default_rng((np.random.RandomState(0).randint(2**31 - 1), 1))
    expected = fit_scaling(x, "rotated_quantile", 3, stream).rotations
    drawn = found._new_rows.scalings["rotated_quantile"].rotations
    np.testing.assert_array_equal(drawn, expected)
    # What else is in the ensemble stays as it is.
    beside = passes(scalings=("quantile", "rotated_quantile"), n_estimators=2)
    alone = passes(scalings=("quantile", "principal"), n_estimators=2)
    np.testing.assert_array_equal(beside.estimator_log_odds_[0], alone.estimator_log_odds_[0])


def test_wide_tables_deal_out_rotated_columns(weights, monkeypatch):
    monkeypatch.setattr(TrainedRange, "from_card", lambda card: TrainedRange(n_features=4))
    x, s = normal(10), np.arange(N) % 4 == 0
    for columns in ("random", "relevant"):
        fitted = PUICLClassifier(
            weights, n_estimators=2, scalings=("rotated",), columns=columns
        ).fit(x, s)
        orders = fitted.column_orders_
        assert len(orders) == 6
        assert max(map(len, orders)) == 4
        assert {int(each) // 10 for each in np.concatenate(orders[:3])} == {0}
        assert {int(each) // 10 for each in np.concatenate(orders[3:])} == {1}
        assert np.isfinite(fitted.predict_proba(normal(10, 7, seed=3))).all()


@pytest.mark.parametrize("w", [5, 130])
def test_rotations_are_kept_and_older_versions_refuse_them(weights, tmp_path, w):
    x, s = normal(w), np.arange(N) % 4 == 0
    fitted = PUICLClassifier(weights, n_estimators=4, scalings=("quantile", "rotated")).fit(x, s)
    fitted.save(tmp_path / "c")
    with safe_open(tmp_path / "c", framework="np") as file:
        about = json.loads(file.metadata()["puicl"])
    assert about["format"] == "puicl-classifier-4"
    assert len(json.dumps(about["scalings"])) < 300 * w  # no array stands in the header
    new = np.concatenate([x, normal(w, 20, seed=1)])
    np.testing.assert_array_equal(
        PUICLClassifier.load(tmp_path / "c").predict_proba(new), fitted.predict_proba(new)
    )


def test_what_is_taken_in_turn_by_default():
    numbers = ("quantile", "principal", "rotated_quantile", "standard")
    assert auto_scalings(orders_matter=True, levels=False) == numbers
    wide = ("quantile", "principal", "rotated_quantile", "principal_quantile")
    assert auto_scalings(orders_matter=True, levels=False, wide=True) == wide
    for wide in (False, True):
        assert auto_scalings(orders_matter=True, levels=True, wide=wide) == ("quantile",)
    blind = ("quantile", "quantile", "quantile", "principal")
    assert auto_scalings(orders_matter=False, levels=False) == blind
    assert auto_scalings(orders_matter=False, levels=True, wide=True) == blind


def test_tables_at_once_are_rotated_as_one_by_one(weights):
    tables, s = [normal(5, seed=seed) for seed in range(3)], np.arange(N) % 4 == 0
    classifier = PUICLClassifier(weights, n_estimators=3, scalings=("quantile", "rotated"))
    together = fit_many([(x, s) for x in tables], classifier)
    for x, one in zip(tables, together, strict=True):
        alone = clone(classifier).fit(x, s)
        np.testing.assert_allclose(
            one.estimator_log_odds_, alone.estimator_log_odds_, rtol=0, atol=1e-5
        )
