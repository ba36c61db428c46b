"""Reasons not to trust an answer, told from the probabilities and the columns."""

import re
from dataclasses import fields

import numpy as np
import pytest
from scipy.special import logit

from puicl_model.class_prior import resolution
from puicl_model.doubts import Answer, Labeling, doubts
from puicl_model.separation import Telltale


def doubts_of(proba, *, of_columns=(), says_nothing=False, **more):
    proba = np.asarray(proba)
    unknown = (np.nan, np.nan)
    settings = {"n_labeled": 20, "relevance": np.zeros(0), "names": [], "apart": 0.7}
    settings |= {
        "telltale": None,
        "n_copies": 0,
        "given": None,
        "trained_shares": (-np.inf, np.inf),
    }
    settings |= {"interval": unknown, "table_interval": unknown}
    settings |= {"proba": proba, "resolution": resolution(logit(proba))}
    settings |= more
    labeling, answer = (
        kind(**{field.name: settings.pop(field.name) for field in fields(kind)})
        for kind in (Labeling, Answer)
    )
    assert not settings, "all of them are fields"
    return doubts(labeling, answer, of_columns, says_nothing=says_nothing)


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
        (np.tile([0.45, 0.55], 20), r"close together \(nine in ten between 45% and 55%\)"),
    ):
        (found,) = doubts_of(proba, **trained)
        assert re.search(sentence, found)
        assert doubts_of(proba, resolution=0.4, given=(0.3, 0.3), **trained) == []
    assert doubts_of(np.tile([0.01, 0.2], 20)) == []  # where the card does not say
    assert doubts_of([0.45, 0.55]) == []  # too few to tell


@pytest.mark.parametrize(
    ("doubted", "not_any_more", "sentence"),
    [
        ({"proba": np.full(40, 0.0199)}, {"proba": np.full(40, 0.0201)}, "hardly any unlabelled"),
        ({"proba": np.full(40, 0.9801)}, {"proba": np.full(40, 0.9799)}, "nearly every unlabelled"),
        (
            {"resolution": 0.0599},
            {"resolution": 0.06},
            "the probabilities of the unlabelled rows lie",
        ),
        (
            {"resolution": 0.0, "proba": APART[:10]},
            {"resolution": 0.0, "proba": APART[:9]},
            "the probabilities of the unlabelled rows lie",
        ),
        ({"relevance": [0.99]}, {"relevance": [0.9899]}, "column a alone separates nearly all"),
        ({"apart": 0.99}, {"apart": 0.9899}, "the columns together separate nearly all"),
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
    sentence = "Column note alone separates labelled from unlabelled rows well (AUC 0.75)"
    for proba in (np.full(40, 0.01), np.tile([0.01, 0.2], 20)):
        (found,) = doubts_of(proba, **told)
        assert sentence in found
        (plain,) = doubts_of(proba, **{**told, "relevance": np.array([0.2, 0.49])})
        assert found.startswith(plain)
        assert "note" not in plain
    # Of few labelled rows some column tells all apart by chance.
    chance = {**told, "relevance": np.array([0.2, 1.0]), "n_labeled": 9}
    assert "note" not in " ".join(doubts_of(np.full(40, 0.01), **chance))
    # Where many look positive no column that knows who was labelled is the reason.
    (found,) = doubts_of(np.tile([0.99, 0.8], 20), **told)
    assert "note" not in found


def test_an_interval_that_says_hardly_anything_is_told():
    (found,) = doubts_of(APART, interval=(0.05, 0.55))
    assert found.startswith("the share of positives may be anything from 5% to 55%: every prob")
    assert found.endswith("give class_prior")
    assert doubts_of(APART, interval=(0.05, 0.54)) == []
    assert doubts_of(APART, interval=(0.05, 0.55), given=(0.3, 0.3)) == []
    assert doubts_of(APART, interval=(np.nan, np.nan)) == []
    # One sentence about the share is enough.
    (found,) = doubts_of(np.full(40, 0.01), interval=(0.0, 0.9))
    assert found.startswith("hardly any unlabelled row")
    alike = np.tile([0.45, 0.55], 20)
    (found,) = doubts_of(alike, interval=(0.0, 0.9))
    assert found.startswith("the probabilities of the unlabelled rows lie close together")
    (same, more) = doubts_of(alike, interval=(0.0, 0.9), given=(0.0, 0.9))
    assert same.endswith("they say little more than class_prior does")
    assert more.startswith("the share of positives may be anything from 0% to 90%")


def test_who_gave_a_range_is_asked_for_more_than_that_positives_are_rarer():
    (found,) = doubts_of(APART, interval=(0.0, 0.5), given=(0.0, 0.5))
    assert found.startswith("the share of positives may be anything from 0% to 50%: every prob")
    assert found.endswith("If you know the share, or a closer range, give class_prior")


def test_a_range_below_a_percent_is_told_as_it_was_given():
    (found,) = doubts_of(APART, given=(0.0, 0.004), table_interval=(0.2, 0.4))
    assert "by the table alone, 20% to 40% of" in found
    assert "contradicts the range that was given (0% to 0.4%): one of the two is wrong" in found


def test_a_range_that_only_touches_the_tables_interval_is_contradicted_whatever_else_is_odd():
    rare = np.full(40, 0.01)
    for given, own in (((0.4, 0.6), (0.2, 0.4)), ((0.2, 0.4), (0.4, 0.6))):
        for proba in (APART, rare):
            (found,) = doubts_of(proba, resolution=0.4, given=given, table_interval=own)
            assert found.startswith(f"by the table alone, {own[0]:.0%} to {own[1]:.0%} of")


def test_what_nine_in_ten_have_is_told_of_probabilities_that_lie_close_together():
    alike = np.array([0.01, *np.tile([0.45, 0.55], 20), 0.99])
    (found,) = doubts_of(alike, resolution=0.0)
    assert "(nine in ten between 45% and 55%)" in found


def test_columns_that_tell_nothing_are_told_to_who_knows_the_share_too():
    # A small share makes any probabilities look alike: what they were without it counts.
    rare = np.tile([0.004, 0.006], 20)
    alike = "the probabilities of the unlabelled rows lie close together (nine in ten between 0.4%"
    for known in ({"given": (0.005, 0.005)}, {"given": (0.0, 0.01)}):
        assert doubts_of(rare, resolution=0.4, **known) == []
        (found,) = doubts_of(rare, resolution=0.02, **known)
        assert found == f"{alike} and 0.6%): they say little more than class_prior does"
        (turned,) = doubts_of(rare, resolution=0.02, n_labeled=41, **known)
        assert turned.endswith("if 1 marks the unlabelled ones, invert s")
        assert doubts_of(rare[:9], resolution=0.02, **known) == []
        (same,) = doubts_of(rare, resolution=0.02, says_nothing=True, **known)
        assert same.startswith("no column tells any two rows apart")


def test_a_range_does_not_silence_what_an_estimate_within_it_gives_reason_to_doubt():
    trained = {"trained_shares": (0.1, 0.9)}
    rare, few = np.full(40, 0.01), np.tile([0.01, 0.2], 20)
    for proba, sentence in ((rare, "hardly any unlabelled"), (few, "the estimated share")):
        (found,) = doubts_of(proba, given=(0.0, 0.5), **trained)
        assert found.startswith(sentence)
        assert doubts_of(proba, resolution=0.4, given=(0.0, 0.1), **trained) == []  # who knows it
    for proba, sentence in ((1 - rare, "nearly every"), (1 - few, "the estimated share")):
        (found,) = doubts_of(proba, given=(0.5, 1.0), **trained)
        assert found.startswith(sentence)
        assert doubts_of(proba, resolution=0.4, given=(0.9, 1.0), **trained) == []
    for proba, given in ((rare, (0.0, 0.02)), (1 - rare, (0.98, 1.0))):
        assert doubts_of(proba, resolution=0.4, given=given) == []


def test_a_share_far_beyond_what_the_table_says_is_doubted_and_one_just_beyond_is_not():
    for own, far, near in (((0.02, 0.12), 0.28, 0.26), ((0.88, 0.98), 0.72, 0.74)):
        (found,) = doubts_of(APART, given=(far, far), table_interval=own)
        assert found.startswith(f"by the table alone, {own[0]:.0%} to {own[1]:.0%} of")
        assert f"contradicts the share that was given ({100 * far:.0f}%)" in found
        assert doubts_of(APART, given=(near, near), table_interval=own) == []
    for share in (0.001, 0.999):  # nothing lies beyond an open end
        assert doubts_of(APART, given=(share, share), table_interval=(0.0, 1.0)) == []


def test_a_column_that_tells_much_is_named_where_the_table_says_that_positives_are_rarer():
    told = {"names": ["a", "note"], "relevance": np.array([0.2, 0.5]), "given": (0.5, 0.5)}
    (found,) = doubts_of(APART, table_interval=(0.0, 0.1), **told)
    assert "Column note alone separates" in found
    (found,) = doubts_of(APART, table_interval=(0.9, 1.0), **told)
    assert "note" not in found


def test_a_value_that_leaves_hardly_any_positives_is_told_whatever_the_share():
    told = {"names": ["a", "note"], "relevance": np.array([0.6, 0.1])}
    for given in (None, (0.0, 0.5), (0.24, 0.24)):
        leak = Telltale(column=1, n_labeled=8, n_unlabeled=0, at_most=0.1)
        (found,) = doubts_of(APART, telltale=leak, given=given, **told)
        assert found.startswith("one value of column note occurs in 8 of the 20 labelled rows and ")
        assert "in none of the 40 unlabelled ones" in found
        assert "at most 10.0% of the unlabelled ones are positive" in found
        leaves_all = Telltale(column=1, n_labeled=8, n_unlabeled=9, at_most=0.51)
        assert doubts_of(APART, telltale=leaves_all, given=given, **told) == []
        assert found.endswith(
            "not 50.0%: give class_prior a range up to 0.1 then; if more must be, the column "
            "reveals who was labelled (a note made afterwards) and must be left out"
        )
    # A bound below the estimated share is told however large it is.
    many = np.tile(APART, 30)
    (found,) = doubts_of(many, telltale=Telltale(1, 8, 3, 0.456), **told)
    assert "in 3 of the 1,200 unlabelled ones" in found
    assert "at most 45.6% of the unlabelled ones are positive, not 50.0%" in found
    assert "a range up to 0.46 then" in found
    # It is the better reason than a column that may tell much because it says much of the class.
    rare = np.full(40, 0.01)
    assert "Column a alone" in " ".join(doubts_of(rare, **told))
    assert "Column a alone" not in " ".join(doubts_of(rare, telltale=leak, **told))
    (found, _) = doubts_of(rare, telltale=leak, **told)
    assert "are positive; if more must be, the column" in found
    (found,) = doubts_of(rare, telltale=Telltale(1, 8, 0, 0.101), **told)
    assert found.startswith("hardly any")
    # Of few labelled rows many a value is in most of them by chance.
    few = doubts_of(APART, n_labeled=9, telltale=leak, **told)
    assert "one value of column" not in " ".join(few)


def test_labels_the_wrong_way_round_are_suspected_where_most_rows_are_labelled():
    alike = np.tile([0.45, 0.55], 20)
    (few,) = doubts_of(alike, n_labeled=40)
    (many,) = doubts_of(alike, n_labeled=41)
    assert many == few + ". Most rows are labelled: if 1 marks the unlabelled ones, invert s"


def test_few_labelled_positives_are_fewer_than_ten():
    assert doubts_of(APART, n_labeled=10) == []
    assert doubts_of(APART, n_labeled=1)[0].startswith("only 1 labelled positive: ")
    (found,) = doubts_of(APART, n_labeled=9)
    assert found.startswith("only 9 labelled positives: ")
    assert found.endswith("the estimated share of positives is little more than a guess")
    (given,) = doubts_of(APART, n_labeled=9, given=(0.3, 0.3))
    assert given.endswith("depend on which ones they happen to be")
    # Of few rows many a column tells all apart by chance.
    few = {"n_labeled": 9, "relevance": np.ones(1), "names": ["a"], "apart": 1.0}
    assert doubts_of(APART, **few) == [found]


def test_what_is_told_of_columns_that_separate_is_their_number_and_the_bound():
    names = list("abcdefg")
    (found,) = doubts_of(APART, names=names, relevance=np.ones(7))
    assert found.startswith("columns a, b, c, d, e and 2 more, each alone, separate")
    (found,) = doubts_of(APART, names=names[:5], relevance=np.ones(5))
    assert found.startswith("columns a, b, c, d, e, each alone, separate")
    (found,) = doubts_of(APART, apart=0.995)
    assert "(AUC 0.995)" in found
    assert "at most 1.0% of the unlabelled ones are positive" in found


def test_labelled_rows_that_are_copies_are_told_where_unlabelled_ones_should_be_some_too():
    for n_copies, n_unlabeled, told in (
        (2, 300, True),  # of 20, and three expected
        (1, 900, False),
        (2, 298, False),
        (10, 60, True),
    ):
        found = doubts_of(np.tile([0.05, 0.95], n_unlabeled // 2), n_copies=n_copies)
        assert [f"{n_copies} of the 20 labelled rows repeat" in one for one in found] == [
            True
        ] * told
    # What the columns say of copies of any rows says less.
    of_columns = ["100 of 200 rows are copies of others: keep one of each"]
    (found,) = doubts_of(np.tile([0.05, 0.95], 50), n_copies=10, of_columns=of_columns)
    assert "labelled rows repeat" in found
    assert doubts_of(APART, of_columns=of_columns) == of_columns
    # A column that knows who is labelled has copies on one side alone.
    (found,) = doubts_of(APART, n_copies=10, relevance=np.ones(1), names=["ward"])
    assert found.startswith("column ward alone separates")
