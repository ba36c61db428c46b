import numpy as np
import pytest
from little_runs import labeled_and_not

from pu_bench.methods import density_ratio as density
from pu_bench.methods.density_ratio import (
    ULSIF,
    density_ratio,
    leave_one_out_error,
    weights,
)


def test_the_ratio_of_two_known_gaussians_is_found():
    rng = np.random.default_rng(0)
    P = rng.normal(size=(400, 1))
    y = np.arange(800) < 400
    U = rng.normal(size=(800, 1)) + np.where(y, 0.0, 3.0)[:, np.newaxis]

    def density(mean):
        return np.exp(-((U[:, 0] - mean) ** 2) / 2)

    ratio = density(0) / (0.5 * density(0) + 0.5 * density(3))
    estimate = density_ratio(P, U, np.random.default_rng(0))
    assert np.abs(estimate - ratio).mean() < 0.15
    assert np.corrcoef(estimate, ratio)[0, 1] > 0.95
    assert estimate.mean() == pytest.approx(1.0, abs=0.1)  # the densities of P sum to one
    prediction = ULSIF().fit_predict(P, U, 0)
    assert ((ratio > 1) == prediction.label).mean() > 0.93  # the posterior is half the ratio


def test_the_ratio_does_not_depend_on_the_order_of_the_columns():
    rng = np.random.default_rng(1)
    P, U = rng.normal(size=(30, 2)), rng.normal(size=(50, 2)) + 1
    np.testing.assert_allclose(
        density_ratio(P, U, np.random.default_rng(0)),
        density_ratio(P[:, ::-1], U[:, ::-1], np.random.default_rng(0)),
    )


@pytest.mark.parametrize(("n_p", "n_u"), [(6, 9), (9, 6)])
def test_the_leave_one_out_error_is_that_of_fits_without_the_pair(n_p, n_u):
    rng = np.random.default_rng(0)
    phi_p, phi_u = rng.uniform(size=(n_p, 3)), rng.uniform(size=(n_u, 3))
    ridge, errors = 0.3, []
    for j in range(min(n_p, n_u)):
        theta = weights(np.delete(phi_p, j, 0), np.delete(phi_u, j, 0), ridge)
        errors.append((phi_u[j] @ theta) ** 2 / 2 - phi_p[j] @ theta)
    assert leave_one_out_error(phi_p, phi_u, ridge) == pytest.approx(np.mean(errors))


def test_weights_equal_the_formula_on_numbers():
    phi_p, phi_u = np.array([[1.0], [0.5]]), np.array([[0.5], [0.0], [1.0]])
    assert weights(phi_p, phi_u, 0.25) == pytest.approx([0.75 / (1.25 / 3 + 0.25)])


def test_a_row_is_positive_where_the_share_times_the_ratio_is_above_a_half(monkeypatch):
    name = "pu_bench.methods.density_ratio.best_bin_estimate"
    for share in (0.2, 0.9):
        monkeypatch.setattr(name, lambda P, U, seed, share=share: share)
        told = ULSIF().fit_predict(*labeled_and_not(), 0)
        np.testing.assert_array_equal(told.label, share * told.score > 0.5)
        assert told.class_prior == share
        assert (told.label != (told.score > 1)).any()


def test_kernels_stand_at_rows_of_both(monkeypatch):
    seen, solve = set(), density.weights

    def keep(phi_p, phi_u, ridge):
        # A kernel is one at the row that it stands at.
        seen.add((int((phi_p == 1).any(axis=0).sum()), int((phi_u == 1).any(axis=0).sum())))
        return solve(phi_p, phi_u, ridge)

    monkeypatch.setattr(density, "weights", keep)
    density_ratio(*labeled_and_not(30, 50), np.random.default_rng(0))
    assert seen == {(30, 50)}


def test_width_and_ridge_are_those_of_the_lowest_leave_one_out_error(monkeypatch):
    def ratio(**lower):
        errors = iter([lower.get(f"at_{setting}", 1.0) for setting in range(7 * 9)])
        monkeypatch.setattr(density, "leave_one_out_error", lambda *_: next(errors))
        return density_ratio(*labeled_and_not(), np.random.default_rng(0))

    lowest = ratio(at_40=0.0)
    np.testing.assert_array_equal(ratio(at_3=0.5, at_40=0.0, at_50=0.2), lowest)
    for other in (ratio(at_3=0.0), ratio(at_39=0.0), ratio(at_31=0.0)):
        assert (other != lowest).any()


def test_rows_that_are_mostly_alike_have_a_ratio():
    U = np.zeros((30, 1))
    U[:3, 0] = 1, 2, 3
    for unlabeled in (U, np.zeros((30, 1))):
        ratio = density_ratio(np.zeros((9, 1)), unlabeled, np.random.default_rng(0))
        # All of P lies at 0, and nine tenths of U or all of it.
        alike = (unlabeled == 0).mean()
        np.testing.assert_allclose(ratio[unlabeled[:, 0] == 0], 1 / alike, rtol=0.01)
