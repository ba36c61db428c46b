"""Fitting, predicting, and what they do not depend on."""

import copy

import numpy as np
import pytest
import torch
from little_table import LABELED, D, N, S, table
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from puicl_config import InputError
from puicl_model import PUICL, PUICLClassifier, fit_many
from puicl_model.ensemble import row_keys

pytestmark = pytest.mark.filterwarnings("ignore:only 7 labelled")


@pytest.fixture(scope="module")
def single(weights):
    """The single forward pass."""
    return PUICLClassifier(weights, n_estimators=1, scalings=("standard",)).fit(table(), S)


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


def test_the_docstring_names_all_that_a_fit_leaves(fitted):
    public = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    told = PUICLClassifier.__doc__
    assert {name for name in public | {"feature_names_in_"} if name not in told} == set()
    assert {key for key in fitted.report_ if f"`{key}`" not in told} == set()


def test_predict_proba_of_an_unlabelled_row_is_its_unlabeled_proba_exactly(fitted):
    x = table()
    both = fitted.predict_proba(x)
    np.testing.assert_array_equal(both[~LABELED, 1], fitted.unlabeled_proba_)
    np.testing.assert_array_equal(both[:, 0], 1 - both[:, 1])
    one = fitted.predict_proba(x[[0]])
    assert one[0, 1] == fitted.unlabeled_proba_[0]


@pytest.mark.parametrize("preprocessing", ["auto", None])
def test_zero_and_minus_zero_are_the_same_cell(classifier, preprocessing):
    x = table()
    x[0] = [0.0, 1.0, -0.0]
    classifier.set_params(preprocessing=preprocessing).fit(x, S)
    again = classifier.predict_proba([[-0.0, 1.0, 0.0]])
    assert again[0, 1] == classifier.unlabeled_proba_[0]


def test_rows_with_the_same_cells_elsewhere_or_nearly_the_same_are_other_rows():
    rows = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, np.nextafter(2, 3)], [0.0, 3.0], [1.0, 2.0]])
    keys = row_keys(rows)
    assert keys[0] == keys[4]
    assert len(np.unique(keys)) == 4
    np.testing.assert_array_equal(row_keys(np.asfortranarray(rows)), keys)


def test_predict_is_one_where_the_probability_is_at_least_a_half(fitted, monkeypatch):
    x = np.concatenate([table(), table(seed=5, n=40)])
    predicted = fitted.predict(x)
    np.testing.assert_array_equal(predicted, (fitted.predict_proba(x)[:, 1] >= 0.5).astype(int))
    assert set(predicted) == {0, 1}
    monkeypatch.setattr(fitted, "decision_function", lambda x: np.array([-1e-9, 0.0]))
    np.testing.assert_array_equal(fitted.predict(x), [0, 1])


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


@pytest.mark.parametrize("what", ["dtype", "device"])
def test_the_defaults_of_the_process_in_pytorch_do_not_matter(
    weights, classifier, fitted, tmp_path, what
):
    # On "meta" whatever is made without a device holds nothing and can be read by nobody.
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    fitted.save(tmp_path / "c")
    try:
        if what == "dtype":
            torch.set_default_dtype(torch.float64)
        else:
            torch.set_default_device("meta")
        again = clone(classifier).set_params(device="cpu").fit(table(), S)
        loaded = PUICLClassifier.load(tmp_path / "c")
        new = table() + 0.25
        for found in (again, loaded):
            np.testing.assert_array_equal(found.unlabeled_proba_, fitted.unlabeled_proba_)
            np.testing.assert_array_equal(found.predict_proba(new), fitted.predict_proba(new))
    finally:
        torch.set_default_dtype(dtype)
        torch.set_default_device(device)


def test_autocast_and_numpys_errors_of_the_caller_do_not_matter(classifier, fitted):
    x = np.column_stack([table(), np.tile([1e300, 1e-300], len(S) // 2)])
    new = x + 0.25
    expected = clone(classifier).fit(x, S)
    answers = expected.predict_proba(new)
    with torch.autocast("cpu", dtype=torch.bfloat16), np.errstate(all="raise"):
        found = clone(classifier).fit(x, S)
        (many,) = fit_many([(x, S)], classifier)
        for each in (found, many):
            np.testing.assert_allclose(each.unlabeled_proba_, expected.unlabeled_proba_, atol=1e-6)
            np.testing.assert_allclose(each.predict_proba(new), answers, atol=1e-6)


@pytest.fixture
def multiplying_as_bfloat16():
    """What a caller may allow PyTorch to do with float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_float32_matmul_precision(before)


def test_float32_is_float32_whatever_precision_the_caller_allows(
    monkeypatch, classifier, multiplying_as_bfloat16
):
    # What is computed otherwise depends on the processor, so what PyTorch is told is looked at.
    told, embed = [], PUICL._with_labels

    def listening(self, *arguments):
        told.append(torch.get_float32_matmul_precision())
        return embed(self, *arguments)

    monkeypatch.setattr(PUICL, "_with_labels", listening)
    found = clone(classifier).fit(table(), S)
    fitting = len(told)
    found.predict_proba(table() + 0.25)
    assert 0 < fitting < len(told)
    assert set(told) == {"highest"}
    assert torch.get_float32_matmul_precision() == "medium"


@pytest.mark.filterwarnings("ignore:only 7 labelled")
def test_the_score_weighs_rows(fitted):
    x = table(seed=2, n=40)
    truth = x[:, 0] > 1
    weight = np.arange(40) % 4
    expected = fitted.score(np.repeat(x, weight, axis=0), np.repeat(truth, weight))
    assert fitted.score(x, truth, sample_weight=weight) == pytest.approx(expected)
    assert fitted.score(x, truth) != pytest.approx(expected)
