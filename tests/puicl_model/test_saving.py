import json

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from puicl_config import InputError
from puicl_model import PUICLClassifier, TablePreprocessor


@pytest.fixture(scope="module")
def weights(untrained_weights):
    return untrained_weights()


def frame(seed=0, n=90):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "dose": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "ward": rng.choice(["north", "south", "west"], n),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "count": rng.integers(2**60, 2**60 + 50, n),
        }
    )


S = np.arange(90) % 4 == 0


@pytest.mark.parametrize("blend", [None, "trees"])
def test_a_loaded_classifier_answers_as_the_saved_one(weights, tmp_path, blend):
    fitted = PUICLClassifier(weights, blend=blend, random_state=5).fit(frame(), S, class_prior=0.4)
    path = tmp_path / "ward.puicl"
    fitted.save(path)
    loaded = PUICLClassifier.load(path)
    for table in (frame(), frame(seed=1)):
        np.testing.assert_array_equal(loaded.predict_proba(table), fitted.predict_proba(table))
    for name in ("unlabeled_proba_", "unlabeled_rows_", "classes_", "feature_names_in_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(fitted, name))
    assert loaded.class_prior_interval_ == fitted.class_prior_interval_
    assert loaded.report_ == fitted.report_
    expected = {
        **fitted.get_params(),
        "model": str(weights),
    }
    assert loaded.get_params() == expected
    for order, saved in zip(loaded.column_orders_, fitted.column_orders_, strict=True):
        np.testing.assert_array_equal(order, saved)
    assert loaded.report_["network_columns"] == fitted.report_["network_columns"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame()[["ward", "dose", "seen", "count"]])
    assert [file.name for file in tmp_path.iterdir()] == ["ward.puicl"]


def test_a_classifier_has_the_same_bytes_each_time_it_is_saved(weights, tmp_path):
    fitted = PUICLClassifier(weights, n_estimators=2).fit(frame(), S)
    saved = set()
    for number in range(8):  # by chance they could be alike
        fitted.save(tmp_path / f"{number}")
        saved.add((tmp_path / f"{number}").read_bytes())
    assert len(saved) == 1


class SinglePass(PUICLClassifier):
    """A subclass that sets most parameters itself."""

    def __init__(self, weights_of=None, *, seed=0):
        super().__init__(weights_of, n_estimators=1, random_state=seed)
        self.weights_of, self.seed = weights_of, seed


def test_a_subclass_with_parameters_of_its_own_can_be_saved(weights, tmp_path):
    fitted = SinglePass(str(weights), seed=3).fit(frame(), S)
    fitted.save(tmp_path / "c")
    loaded = SinglePass.load(tmp_path / "c", device="cpu")
    assert (loaded.get_params(), loaded.device) == (fitted.get_params(), "cpu")
    for table in (frame(), frame(seed=1)):
        np.testing.assert_array_equal(loaded.predict_proba(table), fitted.predict_proba(table))


def test_the_order_of_columns_without_words_for_names_is_saved(weights, tmp_path):
    names = pd.MultiIndex.from_product([["before", "after"], ["dose", "count"]])
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(len(S), 4)), columns=names)
    fitted = PUICLClassifier(weights).fit(table, S)
    fitted.save(tmp_path / "c")
    loaded = PUICLClassifier.load(tmp_path / "c")
    for one in (fitted, loaded):
        np.testing.assert_array_equal(one.predict_proba(table), fitted.predict_proba(table))
        with pytest.raises(ValueError, match=r"order: \('after', 'count'\) is in another place"):
            one.predict_proba(table[names[::-1]])
    with pytest.raises(IsADirectoryError, match="is a folder; give a file"):
        fitted.save(tmp_path)


def test_the_weights_travel_with_the_classifier(weights, tmp_path):
    PUICLClassifier(weights).fit(frame(), S).save(tmp_path / "c")
    loaded = PUICLClassifier.load(tmp_path / "c").set_params(model="gone")
    assert np.isfinite(loaded.predict_proba(frame(seed=1))).all()


def test_parameters_of_the_preprocessing_travel_along_for_the_next_fit(weights, tmp_path):
    own = TablePreprocessor(["count"], drop_identifiers=False)
    PUICLClassifier(weights, preprocessing=own).fit(frame(), S).save(tmp_path / "c")
    loaded = PUICLClassifier.load(tmp_path / "c")
    assert loaded.preprocessing.get_params() == own.get_params()
    loaded.fit(frame(), S)
    assert loaded.preprocessor_.kinds_["count"] == "category"


def test_what_was_not_fitted_is_not_saved(weights, tmp_path):
    with pytest.raises(NotFittedError):
        PUICLClassifier(weights).save(tmp_path / "c")
    assert not list(tmp_path.iterdir())


def test_a_transformer_of_ones_own_is_not_saved(weights, tmp_path):
    x = frame()[["dose"]].fillna(0.0)
    fitted = PUICLClassifier(weights, preprocessing=StandardScaler()).fit(x, S)
    with pytest.raises(ValueError, match="cannot be saved without pickling"):
        fitted.save(tmp_path / "c")
    plain = PUICLClassifier(weights, preprocessing=None).fit(x, S)
    plain.save(tmp_path / "c")
    np.testing.assert_array_equal(
        PUICLClassifier.load(tmp_path / "c").predict_proba(x), plain.predict_proba(x)
    )


def test_columns_that_were_turned_stay_so(weights, tmp_path):
    x = np.random.default_rng(0).integers(0, 2, size=(len(S), 6)).astype(float)
    fitted = PUICLClassifier(weights, n_estimators=3, scalings=("quantile",)).fit(x, S)
    signs = [reference.signs for reference in fitted._new_rows.references]
    assert signs[0].min() == 1
    assert min(each.min() for each in signs[1:]) == -1
    fitted._new_rows.references.reverse()  # one turned column anywhere is enough
    fitted.save(tmp_path / "c")
    with safe_open(tmp_path / "c", framework="np") as file:
        # Older versions, which would leave the new rows as they are, refuse it.
        assert json.loads(file.metadata()["puicl"])["format"] == "puicl-classifier-2"
    np.testing.assert_array_equal(
        PUICLClassifier.load(tmp_path / "c").predict_proba(1 - x), fitted.predict_proba(1 - x)
    )


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("principal_quantile", "puicl-classifier-3"),
        ("rotated_quantile", "puicl-classifier-4"),
        ("uniform", "puicl-classifier-5"),
        ("principal_uniform", "puicl-classifier-5"),
        ("rotated_uniform", "puicl-classifier-5"),
    ],
)
def test_scalings_that_came_later_are_kept_and_older_versions_refuse_them(
    weights, tmp_path, kind, form
):
    two = {"n_estimators": 2, "scalings": ("quantile", kind)}
    fitted = PUICLClassifier(weights, **two).fit(frame(), S)
    fitted.save(tmp_path / "c")
    with safe_open(tmp_path / "c", framework="np") as file:
        assert json.loads(file.metadata()["puicl"])["format"] == form
        packed = any(name.startswith("scaling.") for name in file.keys())  # noqa: SIM118
    assert packed == (form > "puicl-classifier-3")  # versions that know no more read lists
    np.testing.assert_array_equal(
        PUICLClassifier.load(tmp_path / "c").predict_proba(frame(seed=1)),
        fitted.predict_proba(frame(seed=1)),
    )


def test_what_the_file_cannot_hold_is_refused_in_words(weights, tmp_path):
    fitted = PUICLClassifier(weights, n_estimators=1).fit(frame(), S)
    fitted.model_card_ = {**fitted.model_card_, "note": "x" * 101_000_000}
    with pytest.raises(ValueError, match="names and levels of columns exceed the file"):
        fitted.save(tmp_path / "c")
    assert not list(tmp_path.iterdir())


def test_a_parameter_that_is_no_plain_data_is_refused_in_words(weights, tmp_path):
    fitted = PUICLClassifier(weights, n_estimators=1, random_state=np.random.RandomState(3))
    fitted.fit(frame(), S)
    with pytest.raises(ValueError, match=r"a parameter is no plain data and .* RandomState"):
        fitted.save(tmp_path / "c")
    assert not list(tmp_path.iterdir())


def test_a_file_of_an_older_version_has_one_estimator_a_reference(weights, tmp_path):
    path = tmp_path / "c"
    two = {"n_estimators": 2, "scalings": ("quantile", "principal")}
    fitted = PUICLClassifier(weights, **two).fit(frame(), S)
    fitted.save(path)
    with safe_open(path, framework="np") as file:
        about = json.loads(file.metadata()["puicl"])
    assert [reference[0] for reference in about["references"]] == [[0], [1]]
    for number, reference in enumerate(about["references"]):
        reference[0] = number
    del about["arrays_digest"]
    arrays = load_file(path)
    for number in range(2):
        del arrays[f"reference.{number}.signs"]
    save_file(arrays, path, {"puicl": json.dumps(about)})
    np.testing.assert_array_equal(
        PUICLClassifier.load(path).predict_proba(frame(seed=1)),
        fitted.predict_proba(frame(seed=1)),
    )


@pytest.mark.parametrize(
    "given", [pd.Index(["ward"]), pd.Series(frame().columns == "ward"), range(1, 2)]
)
def test_categorical_features_of_any_kind_are_saved(weights, tmp_path, given):
    table = frame()
    for preprocessing in ("auto", TablePreprocessor(given)):
        own = given if preprocessing == "auto" else None
        fitted = PUICLClassifier(weights, categorical_features=own, preprocessing=preprocessing)
        fitted.fit(table, S).save(tmp_path / "c")
        loaded = PUICLClassifier.load(tmp_path / "c")
        np.testing.assert_array_equal(loaded.predict_proba(table), fitted.predict_proba(table))
        np.testing.assert_array_equal(
            loaded.fit(table, S).unlabeled_proba_, fitted.unlabeled_proba_
        )


def test_a_device_that_is_not_there_can_be_replaced_on_loading(weights, tmp_path):
    fitted = PUICLClassifier(weights).fit(frame(), S)
    fitted.set_params(device="cuda:77").save(tmp_path / "c")
    with pytest.raises(InputError, match=r"cuda:77.*load\(path, device=...\) takes another"):
        PUICLClassifier.load(tmp_path / "c")
    loaded = PUICLClassifier.load(tmp_path / "c", device="cpu")
    assert loaded.device == "cpu"
    np.testing.assert_array_equal(loaded.predict_proba(frame()), fitted.predict_proba(frame()))


def saved_blend(path):
    """What a file of a blend says, and its arrays."""
    with safe_open(path, framework="np") as file:
        about = json.loads(file.metadata()["puicl"])
        return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def test_trees_that_read_a_column_from_elsewhere_are_kept_and_older_versions_refuse_them(
    weights, tmp_path
):
    moments = frame()
    moments["a"] = 1e12 + np.arange(len(S)) % 17  # float32 takes them for one
    new = moments.assign(a=moments["a"].to_numpy()[::-1])
    fitted = PUICLClassifier(weights, blend="trees", random_state=5).fit(moments, S)
    fitted.save(tmp_path / "c")
    assert saved_blend(tmp_path / "c")[0]["format"] == "puicl-classifier-7"
    np.testing.assert_array_equal(
        PUICLClassifier.load(tmp_path / "c").predict_proba(new), fitted.predict_proba(new)
    )


def test_trees_of_an_older_version_read_columns_as_they_are(weights, tmp_path):
    fitted = PUICLClassifier(weights, blend="trees", random_state=5).fit(frame(), S)
    fitted.save(tmp_path / "c")
    about, arrays = saved_blend(tmp_path / "c")
    assert about.pop("format") == "puicl-classifier-6"
    assert not arrays.pop("forest.origin").any()
    del about["arrays_digest"]
    save_file(
        arrays, tmp_path / "c", {"puicl": json.dumps({**about, "format": "puicl-classifier-6"})}
    )
    np.testing.assert_array_equal(
        PUICLClassifier.load(tmp_path / "c").predict_proba(frame(seed=1)),
        fitted.predict_proba(frame(seed=1)),
    )


def test_a_blend_of_an_older_version_is_refused_in_a_sentence(weights, tmp_path):
    path = tmp_path / "old.puicl"
    PUICLClassifier(weights, blend="trees", random_state=5).fit(frame(), S).save(path)
    about, arrays = saved_blend(path)
    del about["arrays_digest"]
    about["format"] = "puicl-classifier-4"
    arrays["blend.trees"] = arrays.pop("blend.students")[0]
    save_file(arrays, path, {"puicl": json.dumps(about)})
    with pytest.raises(InputError, match="of trees alone: fit anew"):
        PUICLClassifier.load(path)


def test_a_file_of_a_newer_version_says_so(weights, tmp_path):
    PUICLClassifier(weights).fit(frame(), S).save(tmp_path / "c")
    with safe_open(tmp_path / "c", framework="np") as file:
        about = json.loads(file.metadata()["puicl"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    newer = {"puicl": json.dumps({**about, "format": "puicl-classifier-99"})}
    save_file(arrays, tmp_path / "d", newer)
    with pytest.raises(InputError, match="saved by a newer version of puicl"):
        PUICLClassifier.load(tmp_path / "d")
