"""Methods from optional packages: what is asked of a package, and what is said without it."""

from types import SimpleNamespace

import numpy as np
import pytest
from global_states import global_states
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from pu_bench.methods import METHODS
from pu_bench.methods.crossfit import cross_fitted, posterior
from pu_bench.methods.extras import extra_package
from pu_bench.methods.foundation import TabICL, TabPFN
from puicl_config import InputError


def test_elkan_and_notos_classifier_takes_a_handful_of_labelled_rows():
    rng = np.random.default_rng(0)
    P, U = rng.normal(2, 1, (4, 3)), rng.normal(0, 2, (200, 3))
    for seed in range(12):  # a third of them hold out none of the four, or too many
        assert np.isfinite(METHODS["elkan_noto"]().fit_predict(P, U, seed).score).all()


def test_a_missing_extra_is_one_clear_sentence():
    with pytest.raises(InputError, match=r"no_such_package is missing .*puicl\[bench\]") as caught:
        extra_package("no_such_package", "bench")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", [TabPFN, TabICL])
def test_a_foundation_model_is_cross_fitted_like_any_classifier(method, task, monkeypatch):
    P, U, y = task
    made = []

    def fake(device, random_state):
        made.append((device, random_state))
        np.random.rand()  # noqa: NPY002, such packages draw from global generators
        return LogisticRegression()

    package = SimpleNamespace(TabPFNClassifier=fake, TabICLClassifier=fake)
    monkeypatch.setattr("pu_bench.methods.foundation.extra_package", lambda *_: package)
    before = global_states()
    prediction = method().fit_predict(P, U, 9)
    assert global_states() == before
    assert made == [("cpu", 9)] * 5
    expected = posterior(*cross_fitted(lambda seed: LogisticRegression(), P, U, 9))
    np.testing.assert_array_equal(prediction.score, expected)
    assert roc_auc_score(y, prediction.score) > 0.9


@pytest.mark.parametrize("method", [TabPFN, TabICL])
def test_a_foundation_model_without_package_or_weights_says_so(method, task, monkeypatch):
    P, U, _ = task

    class WithoutWeights:
        def __init__(self, **_):
            pass

        def fit(self, x, y):
            raise OSError("cannot reach huggingface.co\nand a long story")

    def missing(name, extra):
        raise InputError(f"{name} is missing: pip install 'puicl[{extra}]'")

    monkeypatch.setattr("pu_bench.methods.foundation.extra_package", missing)
    for call in (method().check, lambda: method().fit_predict(P, U, 0)):
        with pytest.raises(InputError, match=f"puicl\\[{method.package}\\]"):
            call()
    package = SimpleNamespace(TabPFNClassifier=WithoutWeights, TabICLClassifier=WithoutWeights)
    monkeypatch.setattr("pu_bench.methods.foundation.extra_package", lambda *_: package)
    for call in (method().check, lambda: method().fit_predict(P, U, 0)):
        with pytest.raises(InputError, match=r"weights .*cannot reach huggingface.co$"):
            call()


def test_an_error_that_is_no_want_of_weights_stays_what_it_is(task, monkeypatch):
    P, U, _ = task

    class Choosy(LogisticRegression):
        def fit(self, x, y):
            if x.shape[1] == 3:
                raise ZeroDivisionError("three columns")
            return super().fit(x, y)

    package = SimpleNamespace(TabICLClassifier=lambda device, random_state: Choosy())
    monkeypatch.setattr("pu_bench.methods.foundation.extra_package", lambda *_: package)
    with pytest.raises(ZeroDivisionError, match="three columns"):
        TabICL().fit_predict(P, U, 0)


def test_elkan_and_notos_probability_is_the_papers_weight_and_g_ranks(monkeypatch):
    g, made = np.array([0.1, 0.3, 0.9]), []

    class Fitted:
        c = 0.4

        def __init__(self, estimator, hold_out_ratio, random_state):
            svm = estimator.estimator
            made.append((estimator.ensemble, svm.kernel, svm.class_weight, hold_out_ratio))

        def fit(self, x, s):
            return self

        def predict_proba(self, x):
            return np.column_stack([1 - g / self.c, g / self.c])

    package = SimpleNamespace(ElkanotoPuClassifier=Fitted)
    monkeypatch.setattr("pu_bench.methods.packaged.extra_package", lambda *_: package)
    told = METHODS["elkan_noto"]().fit_predict(np.zeros((2, 1)), np.arange(3.0)[:, None], 0)
    assert made == [(False, "rbf", "balanced", 0.2)]
    np.testing.assert_allclose(told.score, [1.5 * 0.1 / 0.9, 1.5 * 0.3 / 0.7, 1.0])
    np.testing.assert_allclose(told.order, g)
    assert told.label.tolist() == [0, 1, 1]
    assert told.class_prior == pytest.approx(told.score.mean())
