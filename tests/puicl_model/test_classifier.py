import copy
import datetime

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from puicl_config import InputError
from puicl_model import PUICLClassifier, save_model

pytestmark = pytest.mark.filterwarnings("ignore:only 7 labelled", "ignore:A column-vector")

N, D = 24, 3
LABELED = np.zeros(N, dtype=bool)
LABELED[[1, 4, 5, 9, 14, 20, 23]] = True  # interleaved with the unlabelled rows
S = LABELED.astype(int)


@pytest.fixture(scope="module")
def weights(random_model, tmp_path_factory):
    model = random_model(seed=11)
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    save_model(path, model.state_dict(), {"model": model.config.model_dump()})
    return path


@pytest.fixture
def classifier(weights):
    return PUICLClassifier(weights)


@pytest.fixture(scope="module")
def fitted(weights):
    return PUICLClassifier(weights).fit(table(), S)


@pytest.fixture(scope="module")
def single(weights):
    """The single forward pass."""
    return PUICLClassifier(weights, n_estimators=1, scalings=("standard",)).fit(table(), S)


def table(seed: int = 0, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, D)) * [1, 5, 0.1] + [0, 3, -1]


def test_unlabeled_proba_is_the_networks_softmax_on_labelled_rows_first(single):
    x, fitted = table(), single
    ordered = np.concatenate([x[LABELED], x[~LABELED]])
    network = copy.deepcopy(fitted.network_).double()
    logits = network(torch.from_numpy(ordered)[None], 7)[0].numpy()
    expected = np.exp(logits[:, 1]) / np.exp(logits).sum(axis=1)
    np.testing.assert_allclose(fitted.unlabeled_proba_, expected, atol=1e-6)
    assert np.ptp(fitted.unlabeled_proba_) > 1e-3  # rows differ, so order is tested


def test_answers_follow_the_inputs_order_when_labelled_and_unlabelled_rows_interleave(
    classifier, fitted
):
    np.testing.assert_array_equal(fitted.unlabeled_rows_, np.flatnonzero(~LABELED))
    order = np.random.default_rng(1).permutation(N)
    shuffled = classifier.fit(table()[order], S[order])
    by_row = np.full(N, np.nan)
    by_row[fitted.unlabeled_rows_] = fitted.unlabeled_proba_
    expected = by_row[order][~LABELED[order]]
    np.testing.assert_allclose(shuffled.unlabeled_proba_, expected, atol=1e-6)


def test_classes_prior_and_sizes_are_what_the_docstring_says(fitted):
    np.testing.assert_array_equal(fitted.classes_, [0, 1])
    assert fitted.unlabeled_proba_.shape == (N - 7,)
    assert ((fitted.unlabeled_proba_ > 0) & (fitted.unlabeled_proba_ < 1)).all()
    assert fitted.class_prior_ == fitted.unlabeled_proba_.mean()
    assert fitted.n_features_in_ == D
    assert not hasattr(fitted, "feature_names_in_")


FORMS = {
    "one and zero": S,
    "one and minus one": np.where(LABELED, 1, -1),
    "bool": LABELED,
    "one and NaN": np.where(LABELED, 1, np.nan),
    "list with None": [1 if labeled else None for labeled in LABELED],
    "True and None": np.array([True if labeled else None for labeled in LABELED], dtype=object),
    "nullable integers": pd.array([1 if labeled else None for labeled in LABELED], dtype="Int64"),
    "nullable booleans": pd.array(
        [True if labeled else None for labeled in LABELED], dtype="boolean"
    ),
    "series with an index of its own": pd.Series(S, index=np.arange(N)[::-1]),
    "column": S.reshape(-1, 1),  # with scikit-learn's warning
    "float": S.astype(np.float32),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_way_to_write_the_labels_means_the_same(classifier, fitted, form):
    classifier.fit(table(), FORMS[form])
    np.testing.assert_array_equal(classifier.unlabeled_rows_, fitted.unlabeled_rows_)
    np.testing.assert_array_equal(classifier.unlabeled_proba_, fitted.unlabeled_proba_)


def test_predict_proba_of_an_unlabelled_row_is_its_unlabeled_proba_exactly(fitted):
    x = table()
    both = fitted.predict_proba(x)
    np.testing.assert_array_equal(both[~LABELED, 1], fitted.unlabeled_proba_)
    np.testing.assert_array_equal(both[:, 0], 1 - both[:, 1])
    one = fitted.predict_proba(x[[0]])
    assert one[0, 1] == fitted.unlabeled_proba_[0]


def test_zero_and_minus_zero_are_the_same_cell(classifier):
    x = table()
    x[0] = [0.0, 1.0, -0.0]
    classifier.fit(x, S)
    again = classifier.predict_proba([[-0.0, 1.0, 0.0]])
    assert again[0, 1] == classifier.unlabeled_proba_[0]


def test_predict_is_one_where_the_probability_is_at_least_a_half(fitted):
    x = np.concatenate([table(), table(seed=5, n=40)])
    predicted = fitted.predict(x)
    np.testing.assert_array_equal(predicted, (fitted.predict_proba(x)[:, 1] >= 0.5).astype(int))
    assert set(predicted) == {0, 1}


def test_a_new_rows_probability_does_not_depend_on_its_neighbours_in_the_call(fitted):
    x = np.concatenate([table()[:4], table(seed=2, n=9)])
    together = fitted.predict_proba(x)
    alone = np.concatenate([fitted.predict_proba(row[None]) for row in x])
    np.testing.assert_allclose(alone, together, atol=1e-6)
    order = np.random.default_rng(0).permutation(len(x))
    np.testing.assert_allclose(fitted.predict_proba(x[order]), together[order], atol=1e-6)
    twice = fitted.predict_proba(np.repeat(x, 2, axis=0))
    np.testing.assert_allclose(twice[::2], together, atol=1e-6)
    assert np.ptp(together[4:, 1]) > 1e-3


@pytest.mark.parametrize("batch_rows", [1, 2, 4, 8, 9, 1000])
def test_batch_rows_changes_no_probability(weights, fitted, batch_rows):
    x = table(seed=2, n=9)
    other = PUICLClassifier(weights, batch_rows=batch_rows).fit(table(), S)
    np.testing.assert_allclose(other.predict_proba(x), fitted.predict_proba(x), atol=1e-6)


def test_predicting_leaves_the_fit_as_it_is(fitted):
    new = table(seed=3)
    first = fitted.predict_proba(new)
    fitted.predict_proba(table(seed=4) * 1e6)
    np.testing.assert_array_equal(fitted.predict_proba(new), first)


def test_a_new_row_is_the_networks_score_beside_the_fitted_table(single):
    x, new, fitted = table(), table(seed=2, n=5), single
    ordered = np.concatenate([x[LABELED], x[~LABELED]])
    scale = x.std(axis=0)  # float32 digits only; the network's scaling makes it irrelevant
    tensors = [torch.from_numpy((a / scale).astype(np.float32))[None] for a in (ordered, new)]
    with torch.no_grad():
        logits = fitted.network_.score_new_rows(tensors[0], 7, tensors[1])
    expected = logits[0].softmax(-1).numpy()
    np.testing.assert_allclose(fitted.predict_proba(new), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("scale", "offset"),
    [(1, 1e9), (1000, 0), (1e-6, 0), (1e30, 0), (1e-30, 0), (7, -1e9), (1, -3)],
)
def test_units_and_offsets_of_a_column_do_not_matter(classifier, fitted, scale, offset):
    x, new = table(), table(seed=2, n=6)
    moved = classifier.fit(x * [1, scale, 1] + [0, offset, 0], S)
    np.testing.assert_allclose(moved.unlabeled_proba_, fitted.unlabeled_proba_, atol=1e-5)
    np.testing.assert_allclose(
        moved.predict_proba(new * [1, scale, 1] + [0, offset, 0]),
        fitted.predict_proba(new),
        atol=1e-5,
    )


def test_a_constant_column_says_nothing_whatever_a_new_row_holds_there(classifier):
    x, new = table(), table(seed=2, n=6)
    x[:, 1] = 12.5
    classifier.fit(x, S)
    expected = classifier.predict_proba(new)
    new[:, 1] = 1e12
    np.testing.assert_array_equal(classifier.predict_proba(new), expected)
    assert np.isfinite(expected).all()


def test_column_order_does_not_matter(classifier, fitted):
    swapped = classifier.fit(table()[:, [2, 0, 1]], S)
    np.testing.assert_allclose(swapped.unlabeled_proba_, fitted.unlabeled_proba_, atol=1e-6)


def test_fitting_twice_gives_the_same_bits_and_touches_no_global_random_state(weights):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    results = [PUICLClassifier(weights).fit(table(), S) for _ in range(2)]
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(results[0].unlabeled_proba_, results[1].unlabeled_proba_)
    new = table(seed=2)
    np.testing.assert_array_equal(results[0].predict_proba(new), results[1].predict_proba(new))


def test_fitting_another_table_forgets_the_first(classifier, fitted):
    classifier.fit(table(seed=6)[:, :2], S)
    classifier.fit(table(), S)
    np.testing.assert_array_equal(classifier.unlabeled_proba_, fitted.unlabeled_proba_)
    assert classifier.n_features_in_ == D


def test_a_data_frame_gives_the_same_answer_and_its_names(classifier, fitted):
    frame = pd.DataFrame(table(), columns=["age", "height", "dose"])
    classifier.fit(frame, pd.Series(S))
    assert list(classifier.feature_names_in_) == ["age", "height", "dose"]
    np.testing.assert_array_equal(classifier.unlabeled_proba_, fitted.unlabeled_proba_)
    np.testing.assert_array_equal(classifier.predict_proba(frame), fitted.predict_proba(table()))
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.predict_proba(frame[["dose", "age", "height"]])


def test_integers_and_float32_are_read_as_the_same_numbers(classifier):
    x = np.random.default_rng(0).integers(-50, 50, size=(N, D))
    expected = classifier.fit(x.astype(np.float64), S).unlabeled_proba_
    for other in (x, x.astype(np.float32), x.tolist()):
        np.testing.assert_array_equal(classifier.fit(other, S).unlabeled_proba_, expected)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (np.inf, "x1: row 3 holds inf"),
        (-np.inf, "x1: row 3 holds inf"),
        ("red", "row 3 holds 'red'"),
    ],
)
def test_an_infinite_cell_and_text_among_numbers_are_refused_with_their_place(
    classifier, fitted, cell, message
):
    x = table().astype(object)
    x[3, 1] = cell
    with pytest.raises(ValueError, match=message):
        classifier.fit(x, S)
    with pytest.raises(ValueError, match=message):
        fitted.predict_proba(x)


@pytest.mark.parametrize(
    ("s", "message"),
    [
        (np.zeros(N), "no labelled positive"),
        (np.full(N, -1), "no labelled positive"),
        (np.full(N, np.nan), "no labelled positive"),
        (np.ones(N), "no unlabelled row"),
        (S[:-1], "24 rows but s has 23"),
        (np.append(S, 0), "24 rows but s has 25"),
        (np.where(LABELED, 2, 0), "row 1 holds"),
        (np.where(LABELED, 1, np.inf), "row 0 holds"),
        (np.where(LABELED, 1.0, 0.5), "row 0 holds"),
        (np.where(LABELED, "yes", "no"), "row 0 holds"),
        (np.stack([S, S], axis=1), "one entry a row"),
        (None, "one entry a row"),
    ],
    ids=[
        *("all 0", "all -1", "all NaN", "all 1", "too short", "too long", "two", "infinite"),
        *("fraction", "words", "two columns", "None"),
    ],
)
def test_labels_that_make_no_pu_task_are_refused(classifier, s, message):
    with pytest.raises(ValueError, match=message):
        classifier.fit(table(), s)


def test_a_table_of_one_dimension_is_refused(classifier):
    with pytest.raises(ValueError, match="2D"):
        classifier.fit(table()[:, 0], S)


@pytest.mark.parametrize("d", [1, D - 1, D + 1])
def test_another_number_of_features_is_refused_when_predicting(fitted, d):
    with pytest.raises(ValueError, match=f"X has {d} features"):
        fitted.predict_proba(np.zeros((2, d)))


def test_predicting_before_fitting_is_refused(classifier):
    for method in (classifier.predict_proba, classifier.predict):
        with pytest.raises(NotFittedError):
            method(table())


def test_score_is_the_auc_of_p_positive(fitted):
    x = table(seed=2, n=40)
    truth = x[:, 0] > 1
    expected = roc_auc_score(truth, fitted.predict_proba(x)[:, 1])
    assert fitted.score(x, truth) == fitted.score(x, np.where(truth, 1, -1)) == expected
    with pytest.raises(ValueError, match="both kinds"):
        fitted.score(x, np.zeros(40))


def test_weights_that_are_not_there_are_refused_when_fitting(tmp_path):
    with pytest.raises(InputError, match="is missing"):
        PUICLClassifier(tmp_path / "model.safetensors").fit(table(), S)


@pytest.mark.parametrize("batch_rows", [0, -3])
def test_batches_of_no_rows_are_refused(weights, batch_rows):
    with pytest.raises(ValueError, match="batch_rows must be a whole number from 1"):
        PUICLClassifier(weights, batch_rows=batch_rows).fit(table(), S)


def test_cloning_and_setting_parameters_follow_scikit_learn(weights, fitted):
    assert fitted.get_params()["model"] == weights
    other = clone(fitted).set_params(batch_rows=7)
    assert other.get_params() == {**fitted.get_params(), "batch_rows": 7}
    with pytest.raises(NotFittedError):
        other.predict_proba(table())
    other.fit(table(), S)
    np.testing.assert_array_equal(other.unlabeled_proba_, fitted.unlabeled_proba_)


@pytest.mark.parametrize(
    "s",
    [
        pd.Series(np.where(LABELED, "case", None), dtype="string"),
        pd.Series(np.where(LABELED, "case", "open"), dtype="category"),
        np.where(LABELED, "case", ""),
        ["case" if labeled else None for labeled in LABELED],
    ],
    ids=["pandas text with NA", "categorical", "numpy text", "list with None"],
)
def test_text_labels_in_every_form_with_positive_label(weights, fitted, s):
    other = PUICLClassifier(weights, positive_label="case").fit(table(), s)
    np.testing.assert_array_equal(other.unlabeled_proba_, fitted.unlabeled_proba_)


def test_polars_tables_and_labels_mean_what_the_pandas_ones_mean(weights):
    pl = pytest.importorskip("polars")
    x = table()
    seconds = (3600 * x[:, 1]).astype(int).tolist()
    numbers = [None if row % 5 == 0 else int(row) + 2**60 for row in range(N)]
    pandas = pd.DataFrame(
        {
            "a": x[:, 0],
            "whole": pd.array(numbers, dtype="Int64"),
            "ward": ["north", None, "west"] * 8,
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N) * 40, unit="D"),
            "waited": pd.to_timedelta(seconds, unit="s"),
            "yes": x[:, 2] > -1,
        }
    )
    columns = {
        "a": x[:, 0],
        "whole": numbers,
        "ward": pl.Series(["north", None, "west"] * 8).cast(pl.Categorical),
        "seen": pandas["seen"].dt.to_pydatetime().tolist(),
        "waited": [datetime.timedelta(seconds=value) for value in seconds],
        "yes": pandas["yes"].to_list(),
    }
    expected = PUICLClassifier(weights).fit(pandas, LABELED)
    s = pl.Series([1 if labeled else None for labeled in LABELED])
    found = PUICLClassifier(weights).fit(pl.DataFrame(columns), s)
    assert found.report_["columns"] == expected.report_["columns"]
    assert found.report_["columns"]["waited"] == "number"
    np.testing.assert_allclose(found.unlabeled_proba_, expected.unlabeled_proba_, atol=1e-6)
    with pytest.raises(ValueError, match="lazy polars frame: give X"):
        PUICLClassifier(weights).fit(pl.DataFrame(columns).lazy(), s)


def test_what_is_no_table_is_refused_in_one_clear_sentence(classifier):
    x = table()
    for wrong, message in (
        (pd.DataFrame(x, columns=["a", "a", "b"]), "more than one column 'a'"),
        (x.astype(complex), "Complex data not supported: give real and imaginary parts"),
        (pd.DataFrame({"a": x[:, 0], "b": x[:, 1] * 1j}), "column b: Complex data not supported"),
        (pd.Series(x[:, 0]), "2-dimensional"),
    ):
        with pytest.raises(ValueError, match=message) as told:
            classifier.fit(wrong, S)
        assert "\n" not in str(told.value)
    with pytest.raises(TypeError, match="Sparse labels"):
        classifier.fit(x, sparse.csr_matrix(S[:, None]))


def test_masked_cells_are_missing(classifier):
    x, mask = table(), np.random.default_rng(0).random((N, D)) < 0.2
    expected = classifier.fit(np.where(mask, np.nan, x), S).unlabeled_proba_
    found = classifier.fit(np.ma.masked_array(x, mask), S).unlabeled_proba_
    np.testing.assert_array_equal(found, expected)
