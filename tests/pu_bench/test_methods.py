"""What every method of the registry promises, and the steps that several of them share."""

import inspect
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from global_states import global_states
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from pu_bench.methods import METHODS, in_context
from pu_bench.methods.base import Prediction
from pu_bench.methods.crossfit import cross_fitted, posterior
from pu_bench.methods.global_state import global_generators_seeded
from pu_bench.methods.rows import standardized
from puicl_config import InputError

NEEDS_WEIGHTS = {"tabpfn", "tabicl"}
UNTRAINED = {name for name in METHODS if name.startswith("puicl")}  # small random networks here
NAMES = sorted(METHODS.keys() - NEEDS_WEIGHTS)
DRAWN = sorted(set(NAMES) - UNTRAINED - {"one_class_svm", "all_positive"})


@pytest.fixture
def quick(monkeypatch):
    """Fewer folds, epochs and settings to choose from: enough for classes that lie apart."""
    for setting, value in (
        ("crossfit.FOLDS", 2),
        ("oracle.FOLDS", 2),
        ("pu_risk.EPOCHS", 20),
        ("ted.EPOCHS", 20),
        ("vpu.LEARNING_RATES", (1e-3,)),
        ("vpu.MIXUP_WEIGHTS", (0.3,)),
    ):
        monkeypatch.setattr(f"pu_bench.methods.{setting}", value)


@pytest.fixture(scope="module")
def first_answers() -> dict[str, Prediction]:
    """By name, as one test leaves them for the next."""
    return {}


def answer(name: str, task) -> Prediction:
    P, U, y = task
    method = METHODS[name]()
    seen = {"labels": y, "class_prior": float(y.mean())}
    return method.fit_predict(P, U, 5, **{key: seen[key] for key in method.sees})


@pytest.mark.parametrize("name", METHODS)
def test_a_method_can_be_given_nothing_but_what_it_declares_to_see(name):
    parameters = inspect.signature(METHODS[name].fit_predict).parameters
    assert set(parameters) - {"self", "P", "U", "seed"} == METHODS[name].sees
    kinds = {parameter.kind for parameter in parameters.values()}
    assert kinds == {inspect.Parameter.POSITIONAL_OR_KEYWORD}  # no *args, no **kwargs
    assert METHODS[name].name == name
    assert METHODS[name].reference


def test_only_references_see_more_than_positives_and_unlabelled_rows():
    assert {name for name, method in METHODS.items() if method.sees} == {
        "nnpu_true_prior",
        "upu_true_prior",
        "pusb_true_prior",
        "oracle",
    }


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_answer_and_global_states_stay(name, task, first_answers):
    P, U, _ = task
    before, rows = global_states(), (P.copy(), U.copy())
    first = first_answers[name] = answer(name, task)
    assert global_states() == before
    np.random.seed(77)  # noqa: NPY002
    torch.manual_seed(77)
    again = answer(name, task)
    np.testing.assert_array_equal(first.score, again.score)
    np.testing.assert_array_equal(first.label, again.label)
    assert first.class_prior == again.class_prior
    for now, then in zip((P, U), rows, strict=True):
        np.testing.assert_array_equal(now, then)  # rows are lent, not given
    assert first.score.shape == first.label.shape == (len(U),)
    assert np.isfinite(first.score).all()
    assert set(np.unique(first.label)) <= {0, 1}
    if METHODS[name].is_probability:
        assert first.score.min() >= 0
        assert first.score.max() <= 1
    if first.class_prior is not None:
        assert 0 <= first.class_prior <= 1


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", sorted(set(NAMES) - UNTRAINED - {"all_positive", "random"}))
def test_every_real_method_finds_classes_that_lie_apart(name, task, first_answers):
    _, _, y = task
    prediction = first_answers.get(name) or answer(name, task)
    assert roc_auc_score(y, prediction.score) > 0.9


def test_lines_to_stay_above_know_nothing(task):
    _, _, y = task
    assert answer("all_positive", task).label.all()
    assert abs(roc_auc_score(y, answer("random", task).score) - 0.5) < 0.2


def test_the_oracle_depends_on_the_labels_and_never_scores_a_row_by_its_own(task):
    P, U, y = task
    honest = METHODS["oracle"]().fit_predict(P, U, 0, labels=y)
    assert (honest.label == y).mean() > 0.85
    noise = np.random.default_rng(0).permutation(y)
    nonsense = METHODS["oracle"]().fit_predict(P, U, 0, labels=noise)
    assert abs(roc_auc_score(noise, nonsense.score) - 0.5) < 0.2


def test_posterior_equals_the_formula_on_numbers():
    g_labeled, g_unlabeled = np.array([0.2, 0.4]), np.array([0.1, 0.25, 0.9])
    c = 0.3
    expected = [0.7 / c * 0.1 / 0.9 / 1.0, 0.7 / c * 0.25 / 0.75, 1.0]
    np.testing.assert_allclose(posterior(g_labeled, g_unlabeled), expected)


def test_posterior_of_the_true_g_is_the_true_posterior_where_classes_are_disjoint():
    # g = n_p f / (n_p f + n_u (alpha f + (1 - alpha) h)): on rows that only positives have, 1/4
    g = np.full(3, 100 / (100 + 600 * 0.5))
    np.testing.assert_allclose(posterior(g, np.array([g[0], 0.0])), [1.0, 0.0])


@pytest.mark.parametrize("name", ["logistic", "elkan_noto"])
def test_what_a_probability_cuts_off_still_ranks_the_rows(name, task):
    P, U, _ = task
    told = METHODS[name]().fit_predict(P, U, 0)
    top = told.score == 1
    assert top.sum() > 2
    assert len(np.unique(told.order[top])) == len(np.unique(U[top], axis=0))
    assert told.order[top].min() > told.order[~top].max()
    below = ~top
    np.testing.assert_array_equal(np.argsort(told.order[below]), np.argsort(told.score[below]))


def test_no_row_is_scored_by_a_classifier_that_saw_it():
    seen = []

    class Recorder(LogisticRegression):
        def fit(self, x, y):
            self.rows = {row[0] for row in x}
            return super().fit(x, y)

        def predict_proba(self, x):
            seen.append(self.rows & {row[0] for row in x})
            return super().predict_proba(x)

    rows = np.arange(60.0)[:, np.newaxis]
    g_p, g_u = cross_fitted(lambda seed: Recorder(), rows[:20], rows[20:], 0)
    assert seen == [set()] * 5
    assert (len(g_p), len(g_u)) == (20, 40)


def test_standardised_columns_have_one_scale_and_constant_ones_are_zero():
    x = np.column_stack([np.arange(6.0) * 1e6, np.full(6, 0.1), [0, 1, 0, 1, 0, 1]])
    P, U = standardized(x[:2], x[2:])
    pooled = np.concatenate([P, U])
    np.testing.assert_allclose(pooled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(pooled.std(axis=0), [1, 0, 1])


def test_global_generators_are_seeded_within_and_restored_even_after_an_error():
    before = global_states()
    drawn = []

    def draw_and_fail() -> None:
        with global_generators_seeded(3):
            drawn.append((random.random(), np.random.rand(), torch.rand(1).item()))  # noqa: NPY002
            raise RuntimeError

    for _ in range(2):
        with pytest.raises(RuntimeError):
            draw_and_fail()
    assert drawn[0] == drawn[1]
    assert global_states() == before


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_the_rows_called_positive_are_those_that_score_highest(name, task):
    prediction = answer(name, task)
    called = prediction.label == 1
    if 0 < called.sum() < len(called):
        assert prediction.score[called].min() >= prediction.score[~called].max()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", DRAWN)
def test_another_seed_gives_another_answer(name, task):
    P, U, y = task
    method, seen = METHODS[name](), {"labels": y, "class_prior": float(y.mean())}
    seen = {key: seen[key] for key in method.sees}
    one, other = (method.fit_predict(P, U, seed, **seen) for seed in (5, 6))
    assert (one.order != other.order).any()


@pytest.mark.parametrize(
    ("name", "model", "parameters"),
    [
        ("puicl", None, {}),
        ("puicl_single", None, {"n_estimators": 1}),
        ("puicl_trees", None, {"blend": "trees"}),
        ("puicl_paper", "paper", {}),
    ],
)
def test_the_variants_of_puicl_are_the_classifiers_options(name, model, parameters, monkeypatch):
    made = []

    class Classifier:
        unlabeled_proba_, class_prior_ = np.array([0.9, 0.5, 0.2]), 0.4

        def __init__(self, model, **parameters):
            made.append((model, parameters))

        def fit(self, x, s):
            made.append((x.tolist(), s.tolist()))
            return self

    monkeypatch.setattr(in_context, "PUICLClassifier", Classifier)
    told = METHODS[name]().fit_predict(np.array([[7.0]]), np.array([[1.0], [2.0], [3.0]]), 9)
    assert made[0] == (model, {"random_state": 9, "verbose": False, **parameters})
    assert made[1] == ([[7.0], [1.0], [2.0], [3.0]], [1, 0, 0, 0])
    assert (told.label.tolist(), told.class_prior) == ([1, 1, 0], 0.4)


@pytest.mark.usefixtures("nothing_shipped")
@pytest.mark.parametrize("name", sorted(UNTRAINED))
def test_puicl_without_its_weights_says_so_before_it_is_run(name):
    with pytest.raises(InputError, match="no weights named"):
        METHODS[name]().check()


@pytest.mark.parametrize("name", ["extra_trees", "gradient_boosting", "tabpfn", "tabicl"])
def test_a_classifier_draws_from_its_seed(name, monkeypatch):
    class Fake:
        def __init__(self, device, random_state):
            self.random_state = random_state

    package = SimpleNamespace(TabPFNClassifier=Fake, TabICLClassifier=Fake)
    monkeypatch.setattr("pu_bench.methods.foundation.extra_package", lambda *_: package)
    assert METHODS[name]().classifier(7).random_state == 7
