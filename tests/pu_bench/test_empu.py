import numpy as np
import pytest
from little_runs import labeled_and_not
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from pu_bench.methods import empu
from pu_bench.methods.empu import EMPU, Tilting, fit_tilting, random_weights, ridge_logistic

B = np.array([1.5, -1.0])
ALPHA = 0.4


@pytest.fixture(scope="module")
def tilted():
    """Positives N(0, I), negatives N(B, I): log density ratio B'x - |B|^2 / 2, hence a and b."""
    rng = np.random.default_rng(5)
    y = rng.permutation(np.arange(3000) < ALPHA * 3000)
    U = rng.normal(size=(3000, 2)) + np.where(y[:, np.newaxis], 0.0, B)
    return rng.normal(size=(1500, 2)), U, y


def test_em_recovers_alpha_a_and_b_of_two_gaussians(tilted):
    P, U, _ = tilted
    fit = fit_tilting(P, U, random_weights(U, np.random.default_rng(0)))
    assert fit.alpha == pytest.approx(ALPHA, abs=0.05)
    assert fit.a == pytest.approx(-(B @ B) / 2, abs=0.25)
    np.testing.assert_allclose(fit.b, B, atol=0.2)


def test_scores_are_the_posterior_of_the_known_densities(tilted):
    P, U, y = tilted
    prediction = EMPU().fit_predict(P, U, 0)
    ratio = np.exp(U @ B - B @ B / 2)
    posterior = ALPHA / (ALPHA + (1 - ALPHA) * ratio)
    np.testing.assert_allclose(prediction.score, posterior, atol=0.1)
    assert roc_auc_score(y, prediction.score) > roc_auc_score(y, posterior) - 0.005
    assert prediction.class_prior == pytest.approx(ALPHA, abs=0.05)


def test_every_iteration_raises_the_penalised_likelihood(tilted):
    P, U, _ = tilted
    P, U = P[:100], U[:200]
    fit = fit_tilting(P, U, random_weights(U, np.random.default_rng(3)))
    assert len(fit.log_likelihood) > 3
    assert (np.diff(fit.log_likelihood) > -1e-6).all()


def test_m_step_is_scikit_learns_weighted_ridge_logistic_regression():
    rng = np.random.default_rng(0)
    x, soft = rng.normal(size=(80, 3)), rng.uniform(size=80)
    C = 7.0
    design = np.concatenate([np.ones((80, 1)), x], axis=1)
    ours = ridge_logistic(design, soft, np.array([0, *[1 / C] * 3]), np.zeros(4))
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(
        np.concatenate([x, x]), np.repeat([1, 0], 80), np.concatenate([soft, 1 - soft])
    )
    np.testing.assert_allclose(ours, [theirs.intercept_[0], *theirs.coef_[0]], atol=1e-5)


def test_a_table_that_a_plane_divides_is_fitted_without_overflow():
    rng = np.random.default_rng(1)
    P = rng.normal(size=(40, 3))
    U = np.concatenate([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 50])
    prediction = EMPU().fit_predict(P, U, 0)
    assert np.isfinite(prediction.score).all()
    assert (prediction.label == (np.arange(80) < 40)).all()


def test_of_the_random_starts_the_likeliest_fit_is_kept(monkeypatch):
    ends = ((0.1, -9.0), (0.2, -7.0), (0.3, -1.0), (0.4, -5.0), (0.5, -8.0))
    fits = iter(Tilting(a, 0.0, np.zeros(2), np.full(60, a), [0.0, end]) for a, end in ends)
    monkeypatch.setattr(empu, "fit_tilting", lambda P, U, weights: next(fits))
    assert EMPU().fit_predict(*labeled_and_not(), 0).class_prior == 0.3


def test_em_starts_from_other_shares_and_other_slopes():
    U, rng = labeled_and_not(1, 200)[1], np.random.default_rng(0)
    # A row at zero is tilted by no slope.
    shares = [random_weights(np.zeros((1, 2)), rng)[0] for _ in range(100)]
    assert 0.1 <= min(shares) < 0.2
    assert 0.8 < max(shares) <= 0.9
    # Some begin with one end of the rows as positive and some with the other.
    starts = [random_weights(U, rng) for _ in range(100)]
    leaning = [np.corrcoef(start, U[:, 0])[0, 1] for start in starts]
    assert min(leaning) < -0.9
    assert max(leaning) > 0.9


def test_the_slope_is_penalised_and_the_intercept_is_not(monkeypatch):
    penalties, solve = [], empu.ridge_logistic

    def keep(x, soft, penalty, start):
        penalties.append(penalty.tolist())
        return solve(x, soft, penalty, start)

    monkeypatch.setattr(empu, "ridge_logistic", keep)
    P, U = labeled_and_not(40, 60)
    fit_tilting(P, U, np.full(60, 0.5))
    assert penalties[0] == pytest.approx([0.0, 0.1, 0.1])


def test_the_likelihood_is_that_of_masses_on_the_rows_less_the_penalty(tilted):
    P, U, _ = tilted
    P, U = P[:50], U[:80]
    fit = fit_tilting(P, U, random_weights(U, np.random.default_rng(1)))
    # The positives' density is a mass on each row, the negatives' that times exp(a + b'x): at the
    # end of EM both have the mass 1, if the tolerance is small.
    x = np.concatenate([P, U])
    ratio = np.exp(fit.a + x @ fit.b)
    t = (1 - fit.alpha) * 80 / 130
    mass = 1 / (130 * (1 + t * (ratio - 1)))
    assert mass.sum() == pytest.approx(1, abs=1e-3)
    assert (mass * ratio).sum() == pytest.approx(1, abs=1e-3)
    likelihood = np.log(mass).sum() + np.log(fit.alpha + (1 - fit.alpha) * ratio[50:]).sum()
    penalty = (fit.b @ fit.b) / (2 * np.sqrt(130))
    # Up to log(1 / 130) a row, which no parameter moves.
    expected = likelihood - penalty + 130 * np.log(130)
    assert fit.log_likelihood[-1] == pytest.approx(expected, abs=1e-6)


def test_where_all_rows_seem_positive_the_share_stays_below_one():
    P, U = labeled_and_not(20, 40)
    fit = fit_tilting(P, U, np.ones(40))
    assert np.isfinite(fit.weights).all()
    assert 0 < fit.alpha < 1


def test_the_m_step_comes_to_the_same_end_from_far_away():
    design = np.column_stack([np.ones(5), [-2.0, -1.0, 0.5, 1.0, 2.0]])
    soft, penalty = np.array([0.0, 0, 0, 1, 1]), np.array([0, 0.1])
    near, far = (
        ridge_logistic(design, soft, penalty, np.array(start)) for start in ([0.0, 0], [5.0, -30])
    )
    # Where a whole step of Newton's overshoots by far, a shorter one is taken.
    np.testing.assert_allclose(far, near, atol=1e-2)
