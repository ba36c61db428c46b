"""Categories without an order are read in two orders: by the alphabet, and by frequency."""

import json

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from sklearn.exceptions import NotFittedError

from puicl_model import PUICLClassifier, TablePreprocessor, fit_many
from puicl_model.plan import _recodes
from puicl_model.preprocessing import RECODED, Recoded, fit_scaling, recode, scaling_from_state

COLOURS = np.array(["blue", "green", "grey", "red"])
# Of each colour so many rows: the order by frequency is red, blue, grey, green.
CODES = np.repeat(np.arange(4), [20, 8, 12, 30])
S = np.arange(len(CODES)) % 3 == 0


def frame(seed=0, **columns):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(CODES))
    table = {"colour": COLOURS[CODES[order]], "x": rng.normal(size=len(CODES)), **columns}
    return pd.DataFrame(table)


def codes(**columns):
    found = TablePreprocessor().fit(pd.DataFrame(columns)).codes_by_count()
    return {place: list(new) for place, new in found.items()}


def test_the_most_frequent_level_comes_first():
    assert codes(colour=COLOURS[CODES], x=np.arange(70.0) ** 2) == {0: [1, 3, 2, 0]}
    equal = np.array(["kite", "loop", "moth", "nest"])[np.arange(40) % 4]
    assert codes(toy=equal) == {0: [0, 1, 2, 3]}


def test_rare_levels_and_missing_cells_stay_behind():
    cells = [*COLOURS[CODES], "pink", "puce", *[None] * 40]
    assert codes(colour=cells) == {0: [1, 3, 2, 0, 4, 5]}


@pytest.mark.parametrize(
    "levels",
    [
        ["never", "rarely", "often", "always"],
        ["0-4", "5-9", "10-14", "15+"],
        ["week 1", "week 2", "week 3", "week 10"],
        ["a", "b", "c"],  # one column each
        ["yes", "no"],
    ],
)
def test_what_has_an_order_or_no_codes_keeps_it(levels):
    assert codes(column=np.array(levels)[np.minimum(CODES, len(levels) - 1)]) == {}
    assert codes(x=np.random.default_rng(0).normal(size=70)) == {}


def test_an_ordered_categorical_keeps_its_order():
    column = pd.Categorical(COLOURS[CODES], categories=COLOURS[::-1], ordered=True)
    assert codes(column=column) == {}
    assert codes(column=column.as_unordered()) == {0: [1, 3, 2, 0]}


def test_columns_that_have_levels_in_common_keep_the_codes_that_they_have_in_common():
    rng = np.random.default_rng(0)
    one, other = COLOURS[rng.permutation(CODES)], COLOURS[rng.permutation(CODES)]
    shapes = np.array(["disc", "line", "ring", "star"])[rng.permutation(CODES)]
    assert list(codes(one=one, shape=shapes, other=other)) == [1]
    two = np.array(["ash", "blue", "grey"])[rng.permutation(CODES) % 3]  # one column a level
    assert list(codes(one=one, shape=shapes, two=two)) == [1]
    flags = np.array(["red", "flag", "pole", "mast"])[rng.permutation(CODES)]
    assert list(codes(one=one, flag=flags)) == [0, 1]  # "red" alone is no common scale


def test_before_a_fit_there_are_no_codes_and_of_a_loaded_preprocessor_none_are_known():
    with pytest.raises(NotFittedError):
        TablePreprocessor().codes_by_count()
    fitted = TablePreprocessor().fit(frame())
    assert list(fitted.codes_by_count()) == [0]
    assert TablePreprocessor.from_state(fitted.state()).codes_by_count() == {}


def test_a_scaling_of_other_codes_is_that_of_the_exchanged_table():
    x = np.column_stack([CODES, np.random.default_rng(0).normal(size=70)]).astype(float)
    other = recode(x, {0: np.array([1.0, 3, 2, 0])})
    np.testing.assert_array_equal(other[:, 0], np.array([1, 3, 2, 0])[CODES])
    np.testing.assert_array_equal(other[:, 1], x[:, 1])
    np.testing.assert_array_equal(x[:, 0], CODES)  # as it was
    for kind in ("standard", "principal"):
        scaling = Recoded({0: np.array([1.0, 3, 2, 0])}, fit_scaling(other, kind))
        assert (scaling.kind, scaling.width) == (RECODED + kind, 2)
        again = scaling_from_state(
            json.loads(json.dumps(scaling.state(), default=np.ndarray.tolist))
        )
        for each in (scaling, again):
            np.testing.assert_array_equal(each(x), fit_scaling(other, kind)(other))
            np.testing.assert_array_equal(each(x, np.array([1])), scaling(x)[:, 1:])


@pytest.mark.parametrize("n_scalings", [1, 2, 4])
def test_half_of_the_passes_in_each_scaling_see_other_codes(n_scalings):
    seen = np.array([_recodes(number, n_scalings) for number in range(16)])
    assert not seen[0]
    for turn in range(n_scalings):
        assert seen[turn::n_scalings].mean() == 0.5
        if n_scalings < 4:
            continue
        axes = np.arange(16)[turn::n_scalings] // n_scalings % 2
        assert len({*zip(axes, seen[turn::n_scalings], strict=True)}) == 4
    if n_scalings == 1:
        assert len({*zip(np.arange(16) % 2, seen, strict=True)}) == 4


def test_the_passes_that_see_the_alphabet_are_what_they_were(weights, monkeypatch):
    both = PUICLClassifier(weights, n_estimators=8, random_state=0).fit(frame(), S)
    monkeypatch.setattr(TablePreprocessor, "codes_by_count", lambda self: {})
    alphabet = PUICLClassifier(weights, n_estimators=8, random_state=0).fit(frame(), S)
    other = np.zeros(8, dtype=bool)
    for reference in both._new_rows.references:
        other[list(reference.estimators)] = reference.scaling.startswith(RECODED)
    assert other.sum() == 4
    np.testing.assert_array_equal(
        both.estimator_log_odds_[~other], alphabet.estimator_log_odds_[~other]
    )
    assert (
        (both.estimator_log_odds_[other] != alphabet.estimator_log_odds_[other]).any(axis=1).all()
    )


def test_one_pass_sees_the_alphabet_alone(weights):
    fitted = PUICLClassifier(weights, n_estimators=1).fit(frame(), S)
    assert list(fitted._new_rows.scalings) == ["quantile"]


def test_a_pass_with_other_codes_is_one_over_the_exchanged_table(weights):
    scaled = {"n_estimators": 2, "scalings": ("standard", "uniform"), "random_state": 0}
    _, second = PUICLClassifier(weights, **scaled).fit(frame(), S).estimator_log_odds_
    by_count = pd.Categorical(frame()["colour"], ["red", "blue", "grey", "green"], ordered=True)
    _, expected = (
        PUICLClassifier(weights, **scaled).fit(frame(colour=by_count), S).estimator_log_odds_
    )
    np.testing.assert_array_equal(second, expected)


def test_a_saved_classifier_knows_the_other_codes_and_older_versions_refuse_it(weights, tmp_path):
    fitted = PUICLClassifier(weights, n_estimators=8).fit(frame(), S)
    fitted.save(tmp_path / "c")
    with safe_open(tmp_path / "c", framework="np") as file:
        said = file.metadata()["puicl"]
    assert json.loads(said)["format"] == "puicl-classifier-8"
    loaded = PUICLClassifier.load(tmp_path / "c")
    new = pd.concat([frame(seed=1), pd.DataFrame({"colour": ["mauve", None], "x": [0.1, 0.2]})])
    with pytest.warns(UserWarning, match="mauve"):
        expected = fitted.predict_proba(new)
    with pytest.warns(UserWarning, match="mauve"):
        np.testing.assert_array_equal(loaded.predict_proba(new), expected)
    loaded.save(tmp_path / "again")
    with safe_open(tmp_path / "again", framework="np") as file:
        assert file.metadata()["puicl"] == said


def test_a_table_with_fewer_axes_in_other_codes_is_read_all_the_same(weights):
    count = np.array([1.0, 3, 2, 0])[CODES]  # by which the other codes are no news
    table = pd.DataFrame({"colour": COLOURS[CODES], "count": count})
    fitted = PUICLClassifier(weights, n_estimators=4, scalings=("principal",)).fit(table, S)
    widths = {kind: scaling.width for kind, scaling in fitted._new_rows.scalings.items()}
    assert widths == {"principal": 2, "recoded_principal": 1}
    assert np.isfinite(fitted.predict_proba(table)).all()


def test_networks_that_see_no_order_of_columns_run_equal_passes_once(weights):
    fitted = PUICLClassifier(weights, n_estimators=4, scalings=("quantile",)).fit(frame(), S)
    runs = [reference.estimators for reference in fitted._new_rows.references]
    assert runs == [(0, 1), (2, 3)]


def test_many_tables_see_them_as_one_does(weights):
    classifier = PUICLClassifier(weights, n_estimators=4, random_state=0)
    (many,) = fit_many([(frame(), S)], classifier)
    one = PUICLClassifier(weights, n_estimators=4, random_state=0).fit(frame(), S)
    np.testing.assert_allclose(many.unlabeled_proba_, one.unlabeled_proba_, rtol=1e-5)
