"""The weights that come with the package: there, described, and good for something."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from puicl_cli.main import app
from puicl_model import PUICLClassifier, find_weights, load_model, shipped_weights


def test_the_default_weights_are_there_and_say_what_they_are():
    assert shipped_weights()[0] == "default"
    path = find_weights(None)
    assert path.stat().st_size < 6e6
    _, card = load_model(path)
    assert card["steps"] == card["of_steps"]
    assert {"config", "environments", "lineage", "recorded", "git_commit"} <= card.keys()
    assert len(card["class_prior_calibration"]["weights"]) == 7


@pytest.mark.parametrize("n_estimators", [1, 4])
def test_they_rank_a_table_they_never_saw(n_estimators):
    table = load_breast_cancer()
    rng = np.random.default_rng(0)
    benign = rng.permutation(np.flatnonzero(table.target == 1))
    rows = np.concatenate([benign, rng.permutation(np.flatnonzero(table.target == 0))])
    s = np.arange(len(rows)) < len(benign) // 3
    clf = PUICLClassifier(n_estimators=n_estimators).fit(table.data[rows], s)
    truth = table.target[rows][~s]
    assert roc_auc_score(truth, clf.unlabeled_proba_) > 0.97
    assert abs(clf.class_prior_ - truth.mean()) < 0.2
    low, high = clf.class_prior_interval_
    assert low < truth.mean() < high


def test_they_tell_nothing_where_there_is_nothing_to_tell():
    rng = np.random.default_rng(1)
    x, truth = rng.normal(size=(300, 4)), rng.random(200) < 0.5
    clf = PUICLClassifier(n_estimators=1).fit(x, np.arange(300) < 100)
    assert abs(roc_auc_score(truth, clf.unlabeled_proba_) - 0.5) < 0.12
    assert clf.unlabeled_proba_.std() < 0.2


def test_the_list_names_them():
    told = CliRunner().invoke(app, ["weights", "list"]).output
    assert re.match(r"default: [0-9]+ steps of cpu_anneal, [0-9a-f]{64}, /", told)


@pytest.mark.slow
def test_their_first_shards_are_made_again_to_the_same_content():
    result = CliRunner().invoke(app, ["weights", "verify"])
    assert "parts of the first steps are the same" in result.output, result.output
