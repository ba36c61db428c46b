"""Reasons not to trust an answer, told from the probabilities and the columns."""

import re

import numpy as np
import pytest
from scipy.special import logit

from puicl_model.class_prior import resolution
from puicl_model.report import doubts


def doubts_of(proba, **more):
    proba = np.asarray(proba)
    settings = {"n_labeled": 20, "relevance": np.zeros(0), "names": [], "apart": 0.7}
    settings |= {"proba": proba, "resolution": resolution(logit(proba))}
    return doubts(**{**settings, **more})


# Probabilities that are sure.
APART = np.tile([0.05, 0.95], 20)


def test_what_an_estimated_share_gives_reason_to_doubt():
    trained = {"trained_shares": (0.1, 0.9)}
    assert doubts_of(APART, **trained) == []
    for proba, sentence in (
        (np.tile([0.01, 0.2], 20), r"positives \(10.5%\) is near the limit .* \(10% to 90%\)"),
        (np.tile([0.99, 0.8], 20), r"positives \(89.5%\) is near the limit"),
        (np.full(40, 0.01), "hardly any unlabelled row looks positive"),
        (np.full(40, 0.99), "nearly every unlabelled row looks positive"),
        (np.tile([0.45, 0.55], 20), r"hardly tell the unlabelled rows apart \(all have nearly 50%"),
    ):
        (found,) = doubts_of(proba, **trained)
        assert re.search(sentence, found)
        assert doubts_of(proba, resolution=0.4, prior_is_given=True, **trained) == []
    assert doubts_of(np.tile([0.01, 0.2], 20)) == []  # where the card does not say
    assert doubts_of([0.45, 0.55]) == []  # too few to tell


@pytest.mark.parametrize(
    ("doubted", "not_any_more", "sentence"),
    [
        ({"proba": np.full(40, 0.0199)}, {"proba": np.full(40, 0.0201)}, "hardly any unlabelled"),
        ({"proba": np.full(40, 0.9801)}, {"proba": np.full(40, 0.9799)}, "nearly every unlabelled"),
        ({"resolution": 0.0599}, {"resolution": 0.06}, "the columns hardly tell the unlabelled"),
        (
            {"resolution": 0.0, "proba": APART[:10]},
            {"resolution": 0.0, "proba": APART[:9]},
            "the columns hardly tell the unlabelled",
        ),
        ({"relevance": [0.99]}, {"relevance": [0.9899]}, "column a alone tells nearly all"),
        ({"apart": 0.99}, {"apart": 0.9899}, "the columns together tell nearly all"),
    ],
)
def test_doubts_begin_where_it_is_written(doubted, not_any_more, sentence):
    plain = {"proba": APART, "resolution": 0.4, "relevance": [0.0], "names": ["a"]}
    (found,) = doubts_of(**{**plain, **doubted})
    assert found.startswith(sentence)
    assert doubts_of(**{**plain, **not_any_more}) == []


def test_a_column_that_tells_much_is_named_where_few_rows_look_positive():
    trained = {"trained_shares": (0.1, 0.9)}
    told = {"names": ["a", "note"], "relevance": np.array([0.2, 0.5]), **trained}
    sentence = "Column note alone tells labelled from unlabelled rows well (AUC 0.75)"
    for proba in (np.full(40, 0.01), np.tile([0.01, 0.2], 20)):
        (found,) = doubts_of(proba, **told)
        assert sentence in found
        (plain,) = doubts_of(proba, **{**told, "relevance": np.array([0.2, 0.49])})
        assert found.startswith(plain)
        assert "note" not in plain
    # Where many look positive no column that knows who was labelled is the reason.
    (found,) = doubts_of(np.tile([0.99, 0.8], 20), **told)
    assert "note" not in found


def test_an_interval_that_says_hardly_anything_is_told():
    (found,) = doubts_of(APART, interval=(0.05, 0.55))
    assert found.startswith("the share of positives may be anything from 5% to 55%: every prob")
    assert found.endswith("give class_prior")
    assert doubts_of(APART, interval=(0.05, 0.54)) == []
    assert doubts_of(APART, interval=(0.05, 0.55), prior_is_given=True) == []
    assert doubts_of(APART, interval=(np.nan, np.nan)) == []
    # One sentence about the share is enough.
    (found,) = doubts_of(np.full(40, 0.01), interval=(0.0, 0.9))
    assert found.startswith("hardly any unlabelled row")


def test_who_gave_a_range_is_asked_for_more_than_that_positives_are_rarer():
    (found,) = doubts_of(APART, interval=(0.0, 0.5), prior_range=(0.0, 0.5))
    assert found.startswith("the share of positives may be anything from 0% to 50%: every prob")
    assert found.endswith("Where you know the share, or a closer range, give class_prior")


def test_a_range_below_a_percent_is_told_as_it_was_given():
    (found,) = doubts_of(APART, prior_range=(0.0, 0.004), table_interval=(0.2, 0.4))
    assert "would have 20% to 40% of" in found
    assert "beyond the range that was given (0% to 0.4%): one of the two is wrong" in found


def test_columns_that_tell_nothing_are_told_to_who_knows_the_share_too():
    # A small share makes any probabilities look alike: what they were without it counts.
    rare = np.tile([0.004, 0.006], 20)
    alike = "the columns hardly tell the unlabelled rows apart: their probabilities say little more"
    for known in ({"prior_is_given": True}, {"prior_range": (0.0, 0.01)}):
        assert doubts_of(rare, resolution=0.4, **known) == []
        (found,) = doubts_of(rare, resolution=0.02, **known)
        assert found == f"{alike} than class_prior does"
        (turned,) = doubts_of(rare, resolution=0.02, n_labeled=41, **known)
        assert turned.endswith("if 1 marks the unlabelled ones, turn s round")
        assert doubts_of(rare[:9], resolution=0.02, **known) == []
        (same,) = doubts_of(rare, resolution=0.02, says_nothing=True, **known)
        assert same.startswith("no column tells any two rows apart")


def test_labels_the_wrong_way_round_are_suspected_where_most_rows_are_labelled():
    alike = np.tile([0.45, 0.55], 20)
    (few,) = doubts_of(alike, n_labeled=40)
    (many,) = doubts_of(alike, n_labeled=41)
    assert many == few + ". Most rows are labelled: if 1 marks the unlabelled ones, turn s round"


def test_few_labelled_positives_are_fewer_than_ten():
    assert doubts_of(APART, n_labeled=10) == []
    (found,) = doubts_of(APART, n_labeled=9)
    assert found.endswith("the estimated share of positives is little more than a guess")
    (given,) = doubts_of(APART, n_labeled=9, prior_is_given=True)
    assert given.endswith("depend on which ones they happen to be")
    # Of few rows many a column tells all apart by chance.
    few = {"n_labeled": 9, "relevance": np.ones(1), "names": ["a"], "apart": 1.0}
    assert doubts_of(APART, **few) == [found]


def test_what_is_told_of_columns_that_separate_is_their_number_and_the_bound():
    names = list("abcdefg")
    (found,) = doubts_of(APART, names=names, relevance=np.ones(7))
    assert found.startswith("columns a, b, c, d, e and 2 more, each alone, tell")
    (found,) = doubts_of(APART, names=names[:5], relevance=np.ones(5))
    assert found.startswith("columns a, b, c, d, e, each alone, tell")
    (found,) = doubts_of(APART, apart=0.995)
    assert "(AUC 0.995)" in found
    assert "at most 1.0% of the unlabelled ones are positive" in found
