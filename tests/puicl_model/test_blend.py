"""The blend: what the network says, smoothed by trees and nearest rows that learn it."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from scipy.stats import norm, rankdata
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier, trees
from puicl_model.blend import Blend, Students, taught_by, weights_of
from puicl_model.files.report_page import report_page
from puicl_model.neighbors import Neighbors, _normal_scores


def noisy_network(n=600, seed=0):
    """Rows, their classes, which are labelled, and log-odds that know the rule, noisily."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    y = x[:, 0] + x[:, 1] ** 2 > 0.7
    labeled = y & (rng.random(n) < 0.3)
    return x, y, labeled, (4 * y - 2 + 3 * rng.normal(size=n))[~labeled]


def test_students_taught_by_the_network_smooth_what_it_says_of_the_row():
    """A network that knows the rule, noisily, is ranked above by those who average its noise.

    Students that tell labelled from unlabelled rows know less of it, too.
    """
    x, y, labeled, log_odds = noisy_network()
    answers = taught_by(log_odds, labeled)
    assert (answers[labeled] == 1).all()
    np.testing.assert_allclose(np.log(answers / (1 - answers + 1e-300))[~labeled], log_odds)

    def auc(scores):
        return roc_auc_score(y[~labeled], scores)

    taught, told = (
        Students.taught(x, labeled, what, np.random.default_rng(1))[1][:, ~labeled]
        for what in (answers, labeled)
    )
    for by_network, by_labels in zip(taught, told, strict=True):
        assert auc(by_network) > auc(log_odds) + 0.05
        assert auc(by_network) > auc(by_labels) + 0.02
    assert auc(Blend(log_odds, taught).fitted) > auc(log_odds) + 0.002


def page(fitted, x):
    scores = pd.DataFrame({"row": np.arange(len(x))}).assign(p_positive=np.nan)
    scores.loc[fitted.unlabeled_rows_, "p_positive"] = fitted.unlabeled_proba_
    return report_page(fitted, pd.DataFrame(x), scores, None, "t.csv", [])


def test_the_blend_leaves_tables_of_levels_alone_to_the_network(weights):
    """A table that has one column of more than ten values is blended, and its page says so."""
    rng = np.random.default_rng(0)
    x, s = rng.integers(0, 10, size=(90, 3)).astype(float), np.arange(90) % 3 == 0
    alone = PUICLClassifier(weights, n_estimators=2, random_state=0).fit(x, s)
    blended = PUICLClassifier(weights, n_estimators=2, random_state=0, blend="trees").fit(x, s)
    np.testing.assert_array_equal(blended.unlabeled_proba_, alone.unlabeled_proba_)
    new = rng.integers(0, 10, size=(30, 3)).astype(float)
    np.testing.assert_array_equal(blended.predict_proba(new), alone.predict_proba(new))
    assert "trees" not in page(blended, x)
    assert blended.report_["blend"] is None
    x, s = rng.normal(size=(300, 2)), np.arange(300) % 3 == 0
    assert "blended by rank with trees and nearest rows" in page(blended.fit(x, s), x)
    assert blended.report_["blend"] == "trees"
    assert (blended.unlabeled_proba_ != alone.fit(x, s).unlabeled_proba_).any()


def scores(n=200, seed=0):
    """Of a network, and of two students that follow it more and less."""
    rng = np.random.default_rng(seed)
    network = rng.normal(size=n)
    return network, np.stack([network + noise * rng.normal(size=n) for noise in (0.3, 1.5)])


@pytest.mark.parametrize("ties", [False, True])
def test_the_blend_orders_by_weighted_mean_rank_and_keeps_the_networks_log_odds(ties):
    network, students = scores()
    if ties:
        students = np.round(students)
    blend = Blend(network, students)
    ranks = [rankdata(network), *map(rankdata, students)]
    mixed = sum(weight * rank for weight, rank in zip(blend.weights, ranks, strict=True))
    order = np.argsort(mixed, kind="stable")
    assert (np.diff(blend.fitted[order]) >= 0).all()
    assert (np.diff(blend.fitted[order])[np.diff(mixed[order]) > 0] > 0).all()
    np.testing.assert_allclose(blend.fitted.mean(), network.mean(), atol=0.01)
    assert blend.fitted.min() >= network.min()
    assert blend.fitted.max() <= network.max()


def test_a_student_weighs_as_much_as_it_follows_the_network():
    network, students = scores()
    close, far = (np.corrcoef(rankdata(network), rankdata(s))[0, 1] for s in students)
    expected = [1000 - round(200 * close**4) - round(200 * far**4)]
    expected += [round(200 * close**4), round(200 * far**4)]
    assert Blend(network, students).weights.tolist() == expected
    assert weights_of(network, [network, network]).tolist() == [600, 200, 200]
    for useless in (-network, np.zeros(len(network))):
        assert weights_of(network, [useless, network]).tolist() == [800, 0, 200]
    assert weights_of(np.zeros(5), np.ones((2, 5))).tolist() == [1000, 0, 0]


def test_the_blend_scores_new_rows_each_by_itself_and_old_ones_as_before():
    network, students = scores()
    blend = Blend(network, students)
    np.testing.assert_array_equal(blend(network, students), blend.fitted)
    new = scores(50, seed=1)
    one_by_one = [blend(new[0][i : i + 1], new[1][:, i : i + 1])[0] for i in range(50)]
    np.testing.assert_array_equal(blend(*new), one_by_one)
    assert (blend(new[0] + 1, new[1]) >= blend(*new)).all()
    assert (blend(new[0], new[1] + 1) >= blend(*new)).all()


def test_nearest_rows_are_those_of_the_columns_normal_scores():
    rng = np.random.default_rng(0)
    x, answers = rng.lognormal(size=(300, 3)) * [1, 1e6, 1e-6], rng.random(300)
    neighbors = Neighbors.of(x, answers)
    z = norm.ppf((rankdata(x, axis=0) - 0.5) / len(x))
    for row, found in enumerate(neighbors.of_others()):
        distance = np.linalg.norm(z - z[row], axis=1)
        distance[row] = np.inf
        nearest = np.argsort(distance)[:20]
        assert found == pytest.approx(answers[nearest].mean())
    # A row that is asked about as a new one is its own nearest; order of the columns is all.
    distances = np.linalg.norm(z[:, None] - z[None], axis=2)
    expected = answers[np.argsort(distances, axis=1)[:, :20]].mean(axis=1)
    np.testing.assert_allclose(neighbors(x), expected)
    far = np.array([[np.inf, -np.inf, 0.0], [1e300, -1e300, 1e-9]])
    assert neighbors(far)[0] == neighbors(far)[1]


def test_no_row_of_many_equal_ones_keeps_its_own_answer():
    x = np.zeros((60, 2))
    x[:5] = [[1, 2], [2, 1], [3, 3], [4, 1], [5, 0]]
    answers = np.arange(60.0)
    neighbors = Neighbors.of(x, answers)
    assert neighbors.nearest == 6
    before = neighbors.of_others()
    for row in (0, 10, 59):
        other = answers.copy()
        other[row] = 1e6
        assert Neighbors.of(x, other).of_others()[row] == before[row]


def test_nearest_rows_of_a_new_row_do_not_depend_on_the_others_asked_about():
    """Among few levels many rows are equally near."""
    rng = np.random.default_rng(0)
    x, new = (rng.integers(0, 3, size=(n, 20)).astype(float) for n in (600, 40))
    neighbors = Neighbors.of(x, rng.random(600))
    one_by_one = [neighbors(row[np.newaxis])[0] for row in new]
    np.testing.assert_array_equal(neighbors(new), one_by_one)


def test_what_students_say_of_a_row_does_not_depend_on_its_own_answer():
    x, _, labeled, log_odds = noisy_network(n=200)
    answers = taught_by(log_odds, labeled)
    _, told = Students.taught(x, labeled, answers, np.random.default_rng(1))
    for row in (0, 17):
        other = answers.copy()
        other[row] = 100.0
        _, changed = Students.taught(x, labeled, other, np.random.default_rng(1))
        np.testing.assert_array_equal(changed[:, row], told[:, row])
        assert (changed != told).any(axis=1).all()


def test_equal_rows_have_one_answer_in_a_blend_too(weights, monkeypatch):
    monkeypatch.setattr("puicl_model.blend.weights_of", lambda *_: np.array([600, 200, 200]))
    x = np.repeat(np.random.default_rng(0).normal(size=(60, 3)), 2, axis=0)
    fitted = PUICLClassifier(weights, n_estimators=2, blend="trees").fit(x, np.arange(120) < 20)
    proba = fitted.unlabeled_proba_
    np.testing.assert_array_equal(proba[::2], proba[1::2])
    np.testing.assert_array_equal(fitted.predict_proba(x[20:])[:, 1], proba)
    # How many are positive the network says; and new rows are blended as the others are.
    network = fitted.estimator_log_odds_.mean(axis=0)
    assert logit(proba).min() >= network.min() - 1e-9
    assert logit(proba).max() <= network.max() + 1e-9
    new = np.random.default_rng(1).normal(size=(20, 3))
    of_network = fitted._new_rows(new, 64).mean(axis=0)
    expected = fitted._blend(of_network, fitted._students(new))
    np.testing.assert_allclose(fitted.decision_function(new), expected, atol=1e-6)
    assert np.abs(expected - of_network).max() > 1e-3


def test_rows_beyond_those_that_students_learn_from_are_scored_as_new_ones(monkeypatch):
    monkeypatch.setattr(trees, "_MOST_ROWS", 200)
    x, _, labeled, log_odds = noisy_network()
    answers = taught_by(log_odds, labeled)
    students, told = Students.taught(x, labeled, answers, np.random.default_rng(1))
    assert len(students.neighbors.rows) == 200
    as_new = (told == students(x)).sum(axis=1)
    assert ((as_new >= 400) & (as_new < 450)).all()
    # Whom they learn from, they learn the own answers of.
    smooth = np.tanh(2 * x[:, 0])
    for each in Students.taught(x, labeled, smooth, np.random.default_rng(1))[1]:
        assert np.corrcoef(each, smooth)[0, 1] > 0.8


def test_a_row_beyond_all_others_is_read_as_the_outermost():
    x = np.sort(np.random.default_rng(0).normal(size=(300, 2)), axis=0)
    ends = x[[0, -1]]
    beyond = _normal_scores(x, ends + np.array([[-1.0], [1.0]]))
    np.testing.assert_array_equal(beyond, _normal_scores(x, ends))
