"""`PUICLClassifier(precision="bfloat16")`: near float32's answers, and the same wherever asked."""

import copy
import pickle

import numpy as np
import pytest
from little_table import S, table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier, fit_many
from puicl_model.preprocessing import TablePreprocessor

pytestmark = pytest.mark.filterwarnings("ignore:only")


@pytest.fixture
def fast(monkeypatch):
    """Computed in bfloat16 on whatever processor tests run."""
    monkeypatch.setattr("puicl_model.precision.multiplies_bfloat16", lambda: True)


@pytest.mark.usefixtures("fast")
def test_answers_are_those_of_float32_but_for_rounding(weights):
    exact, rough = (
        PUICLClassifier(weights, n_estimators=2, precision=each).fit(table(), S)
        for each in ("float32", "bfloat16")
    )
    new = table(seed=1)
    for answers in (
        [each.unlabeled_proba_ for each in (exact, rough)],
        [each.predict_proba(new)[:, 1] for each in (exact, rough)],
    ):
        np.testing.assert_allclose(*answers, atol=0.02)
        assert (answers[0] != answers[1]).mean() > 0.9
    # Rows of the table are looked up, and what a new row says does not depend on the others.
    unlabeled = rough.predict_proba(table())[rough.unlabeled_rows_, 1]
    np.testing.assert_array_equal(unlabeled, rough.unlabeled_proba_)
    alone = rough.predict_proba(new[:1])
    np.testing.assert_allclose(alone, rough.predict_proba(new)[:1], atol=0.01)


@pytest.mark.usefixtures("fast")
def test_it_is_kept_in_files_pickles_and_copies(weights, tmp_path):
    rough = PUICLClassifier(weights, n_estimators=1, precision="bfloat16").fit(table(), S)
    new = table(seed=1)
    expected = rough.predict_proba(new)
    rough.save(tmp_path / "fit")
    again = PUICLClassifier.load(tmp_path / "fit")
    assert again.precision == "bfloat16"
    for other in (again, pickle.loads(pickle.dumps(rough)), copy.deepcopy(rough)):
        np.testing.assert_array_equal(other.predict_proba(new), expected)
    (many,) = fit_many([(table(), S)], rough)
    np.testing.assert_array_equal(many.unlabeled_proba_, rough.unlabeled_proba_)


def test_a_file_from_elsewhere_is_said_to_be_computed_otherwise(weights, tmp_path, monkeypatch):
    monkeypatch.setattr("puicl_model.precision.multiplies_bfloat16", lambda: True)
    PUICLClassifier(weights, precision="bfloat16").fit(table(), S).save(tmp_path / "fit")
    monkeypatch.setattr("puicl_model.precision.multiplies_bfloat16", lambda: False)
    with pytest.warns(UserWarning, match="float32 is used instead"):
        PUICLClassifier.load(tmp_path / "fit")


@pytest.mark.usefixtures("fast")
def test_a_file_answers_as_the_fit_did_whatever_is_asked_of_the_next(weights, tmp_path):
    exact = PUICLClassifier(weights, n_estimators=1).fit(table(), S)
    new = table(seed=1)
    expected = exact.predict_proba(new)
    exact.set_params(precision="bfloat16").save(tmp_path / "fit")
    again = PUICLClassifier.load(tmp_path / "fit")
    assert again.precision == "bfloat16"
    np.testing.assert_array_equal(again.predict_proba(new), expected)


@pytest.mark.usefixtures("fast")
def test_kept_contexts_take_half_of_the_memory(weights):
    sizes = []
    for precision in ("float32", "bfloat16"):
        keeping = PUICLClassifier(weights, n_estimators=1, keep_context=True, precision=precision)
        sizes.append(keeping.fit(table(), S)._new_rows._read[0].n_bytes)
    assert sizes[0] == 2 * sizes[1]


def test_where_bfloat16_is_slow_float32_is_computed_and_said(weights, tmp_path, monkeypatch):
    monkeypatch.setattr("puicl_model.precision.multiplies_bfloat16", lambda: False)
    exact = PUICLClassifier(weights, n_estimators=1).fit(table(), S)
    asked = PUICLClassifier(weights, n_estimators=1, precision="bfloat16")
    with pytest.warns(UserWarning, match="which is slow on this processor: float32") as told:
        asked.fit(table(), S)
    assert {each.filename for each in told} == {__file__}
    np.testing.assert_array_equal(asked.unlabeled_proba_, exact.unlabeled_proba_)
    assert asked.get_params()["precision"] == "bfloat16"
    asked.save(tmp_path / "fit")
    monkeypatch.setattr("puicl_model.precision.multiplies_bfloat16", lambda: True)
    again = PUICLClassifier.load(tmp_path / "fit")  # where it is fast: the fit was not
    assert again.precision == "bfloat16"
    np.testing.assert_array_equal(
        again.predict_proba(table(seed=1)), exact.predict_proba(table(seed=1))
    )


@pytest.mark.parametrize("value", ["float16", "auto", None, 32])
def test_another_precision_is_refused(weights, value):
    with pytest.raises(ValueError, match=r"precision must be one of \('float32', 'bfloat16'\)"):
        PUICLClassifier(weights, precision=value).fit(table(), S)


@pytest.mark.usefixtures("fast")
def test_the_shipped_weights_rank_alike_in_both():
    x, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:150]
    x, y = TablePreprocessor().fit_transform(x[rows][:, :8]), y[rows]
    s = (y == 1) & (np.arange(len(y)) < 50)
    exact, rough = (
        PUICLClassifier(n_estimators=1, precision=each).fit(x, s).unlabeled_proba_
        for each in ("float32", "bfloat16")
    )
    assert np.abs(exact - rough).max() < 0.05
    assert np.abs(exact - rough).mean() < 0.005
    first, second = (roc_auc_score(y[~s], each) for each in (exact, rough))
    assert abs(first - second) < 0.003
