"""scikit-learn's own checks, and its tools around the classifier."""

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from puicl_model import PUICLClassifier, TablePreprocessor

CODES = "s marks labelled positives by 1 or True, or by positive_label: which of two other codes "
CODES += "is positive must never be guessed"
DEVIATIONS = {
    "check_fit_score_takes_y": "fit's second argument is called s: it is no class",
    "check_estimators_dtypes": CODES,
    "check_classifier_data_not_an_array": CODES,
    "check_classifiers_classes": CODES,
    "check_methods_subset_invariance": "the network computes in float32, where a batch of another "
    "size rounds differently in the seventh digit",
}


pytestmark = pytest.mark.filterwarnings("ignore:only", "ignore:column x")


@pytest.fixture(scope="module")
def weights(untrained_weights):
    return untrained_weights()


def table(n=60, d=3):
    x = np.random.default_rng(0).normal(size=(n, d))
    return x, (x[:, 0] + np.random.default_rng(1).normal(size=n) > 0.8).astype(int)


@pytest.mark.filterwarnings("ignore")
def test_the_classifier_passes_scikit_learns_checks_but_for_what_pu_labels_force(weights):
    results = check_estimator(
        PUICLClassifier(weights, n_estimators=1),
        expected_failed_checks=DEVIATIONS,
        on_fail=None,
        on_skip=None,
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40
    forced = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert forced >= set(DEVIATIONS) - {"check_methods_subset_invariance"}


@pytest.mark.filterwarnings("ignore")
def test_the_preprocessor_passes_scikit_learns_checks():
    results = check_estimator(TablePreprocessor(), on_fail=None, on_skip=None)
    assert not {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}


def test_in_a_pipeline_the_answers_are_those_of_the_transformed_table(weights):
    x, s = table()
    pipeline = make_pipeline(StandardScaler(), PCA(2), PUICLClassifier(weights)).fit(x, s)
    z = pipeline[:-1].transform(x)
    alone = PUICLClassifier(weights).fit(z, s)
    np.testing.assert_array_equal(pipeline.predict_proba(x), alone.predict_proba(z))


def test_cross_val_predict_scores_every_row_by_a_fit_without_it(weights):
    x, s = table()
    folds = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    found = cross_val_predict(PUICLClassifier(weights), x, s, cv=folds, method="predict_proba")
    for rest, part in folds:
        expected = PUICLClassifier(weights).fit(x[rest], s[rest]).predict_proba(x[part])
        np.testing.assert_array_equal(found[part], expected)


@pytest.mark.slow
def test_processes_of_joblib_give_the_same_answers(weights):
    x, s = table()
    jobs = [joblib.delayed(clone(PUICLClassifier(weights)).fit)(x, s) for _ in range(2)]
    here = PUICLClassifier(weights).fit(x, s).unlabeled_proba_
    for fitted in joblib.Parallel(n_jobs=2)(jobs):
        np.testing.assert_allclose(fitted.unlabeled_proba_, here, atol=1e-6)


@pytest.mark.parametrize("make", [sparse.csr_array, pd.DataFrame.sparse.from_spmatrix])
def test_sparse_tables_are_refused_clearly(weights, make):
    x, s = table()
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        PUICLClassifier(weights).fit(make(sparse.csr_matrix(x)), s)


def test_a_transformer_of_ones_own_makes_the_columns(weights):
    x, s = table()
    own = PUICLClassifier(weights, preprocessing=StandardScaler()).fit(x, s)
    assert isinstance(own.preprocessor_, StandardScaler)
    raw = PUICLClassifier(weights, preprocessing=None).fit(x, s)
    assert raw.preprocessor_ is None
    np.testing.assert_allclose(own.unlabeled_proba_, raw.unlabeled_proba_, atol=1e-5)
    with pytest.raises(ValueError, match="NaN"):
        PUICLClassifier(weights, preprocessing=None).fit(np.full_like(x, np.nan), s)


@pytest.mark.parametrize("own", ["auto", None, StandardScaler()], ids=["auto", "none", "own"])
def test_tensors_are_read_where_scikit_learn_dispatches_by_the_array_api(monkeypatch, weights, own):
    if own not in ("auto", None):  # its own scaler takes no tensors before
        pytest.importorskip("sklearn", minversion="1.8")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # which scikit-learn asks for
    x, s = table()
    expected = PUICLClassifier(weights, preprocessing=own).fit(x, s)
    new = torch.from_numpy(x + 0.25)
    with config_context(array_api_dispatch=True):
        fitted = PUICLClassifier(weights, preprocessing=own).fit(
            torch.from_numpy(x), torch.from_numpy(s)
        )
        answers = fitted.predict_proba(new)
    np.testing.assert_allclose(fitted.unlabeled_proba_, expected.unlabeled_proba_, atol=1e-5)
    np.testing.assert_allclose(answers, expected.predict_proba(x + 0.25), atol=1e-5)


class _Misnamed(StandardScaler):
    """Names fewer columns than it makes."""

    def get_feature_names_out(self, input_features=None):
        return np.array(["one"], dtype=object)


class _Asking(StandardScaler):
    """Cannot name its columns unless it is told what goes in."""

    def get_feature_names_out(self, input_features):
        return np.asarray(input_features, dtype=object)


class _Refusing(StandardScaler):
    """Says in its own way that it has no names."""

    def get_feature_names_out(self, input_features=None):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("own", "names"),
    [
        (StandardScaler(), ["x0", "x1", "x2"]),
        (make_pipeline(StandardScaler(), PCA(2)), ["pca0", "pca1"]),
        # The pipeline has the method, its first step lacks it.
        (make_pipeline(FunctionTransformer(), StandardScaler()), ["x0", "x1", "x2"]),
        (FunctionTransformer(), ["x0", "x1", "x2"]),
        (_Misnamed(), ["x0", "x1", "x2"]),
        (_Asking(), ["x0", "x1", "x2"]),
        (_Refusing(), ["x0", "x1", "x2"]),
    ],
    ids=["named", "pipeline", "nameless_step", "nameless", "misnamed", "asking", "refusing"],
)
def test_a_transformer_need_not_name_its_columns(weights, own, names):
    x, s = table()
    fitted = PUICLClassifier(weights, preprocessing=own).fit(x, s)
    assert fitted.report_["network_columns"] == names
    alone = PUICLClassifier(weights, preprocessing=None).fit(clone(own).fit_transform(x), s)
    np.testing.assert_array_equal(fitted.unlabeled_proba_, alone.unlabeled_proba_)
