"""Warnings name the line of whoever called the package, whatever lies between."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from puicl_model import PUICLClassifier, TablePreprocessor, fit_many
from puicl_model.read_context import KEPT


def lines_of(call):
    """How many lines after its first the warnings of `call` name, which are of this file."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call()
    assert {one.filename for one in told} == {__file__}
    return {one.lineno - call.__code__.co_firstlineno for one in told}


@pytest.fixture
def few(weights):
    """A classifier, and a table with too few labelled rows for its answers to be trusted."""
    x = np.random.default_rng(0).normal(size=(40, 3))
    return PUICLClassifier(weights, n_estimators=1), x, np.arange(40) < 5


def test_a_warning_names_the_users_line_through_whatever_it_comes(few):
    classifier, x, s = few
    frame = pd.DataFrame(x)
    other_order = pd.Series(s, index=frame.index[::-1])
    many = np.arange(40) < 15
    words = pd.DataFrame({"a": ["x", "y"] * 20, "b": np.arange(40.0) % 7})
    encoder = TablePreprocessor().fit(words)
    pipeline = make_pipeline(clone(classifier))
    calls = [
        lambda: classifier.fit(x, s),
        lambda: pipeline.fit(x, s),
        lambda: fit_many([(x, s)], classifier),
        lambda: classifier.fit(frame, other_order),
        lambda: classifier.fit(x, many[:, None]),
        lambda: encoder.transform(words.assign(a="z")),
        lambda: TablePreprocessor().fit_transform(words.assign(c=[f"w{i}" for i in range(40)])),
    ]
    for call in calls:
        assert lines_of(call) == {0}


def test_reading_again_at_every_call_is_told_of_where_the_call_stands(few, monkeypatch):
    classifier, x, s = few
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(x, s)
    monkeypatch.setattr(KEPT, "most", 1)
    for _ in range(2):
        classifier.predict_proba(x + 1)
    assert lines_of(lambda: classifier.predict_proba(x + 1)) == {0}


def test_without_a_frame_of_the_users_the_outermost_is_named(monkeypatch):
    monkeypatch.setattr(
        "puicl_model.telling._BETWEEN",
        tuple({name.split(".")[0] for name in [*sys.modules, "__main__"]}),
    )
    from puicl_model.telling import tell

    with pytest.warns(UserWarning, match="all of them"):
        tell("all of them")
