"""New rows against a context that was read once: the same scores, bounded memory."""

import copy
import gc
import json
import pickle
import warnings

import numpy as np
import pytest
import torch
from safetensors import safe_open
from sklearn.base import clone

from puicl_model import (
    PUICLClassifier,
    ensemble,
    fit_many,
    predict_many,
    save_model,
    unlabeled,
)
from puicl_model.read_context import Kept, ReadContext

pytestmark = pytest.mark.filterwarnings("ignore:only")


def rows(seed: int, n: int, d: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"thinking_rows": 3, "feature_group": (0, 1), "norm": "rmsnorm"},
        {"layers": 1, "scalable_softmax": True, "standardize_by": "all"},
    ],
)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_scores_are_those_of_reading_table_and_new_rows_together(
    random_model, changed, precision
):
    network = random_model(seed=3, **changed)
    network.precision = precision
    table, new = rows(0, 30), rows(1, 7)
    with torch.inference_mode():
        together = network.score_new_rows(
            torch.from_numpy(table)[None], 8, torch.from_numpy(new)[None]
        )[0].double()
    expected = (together[:, 1] - together[:, 0]).numpy()
    context = ReadContext(network, table, 8)
    within = {"float32": 1e-5, "bfloat16": 0.05}[precision]
    np.testing.assert_allclose(context.log_odds(new), expected, atol=within)
    in_parts = np.concatenate([context.log_odds(new[:1]), context.log_odds(new[1:])])
    np.testing.assert_allclose(in_parts, expected, atol=within)
    assert np.ptp(expected) > 1e-3


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"heads": 1},
        {"thinking_rows": 3, "row_heads": 4, "scalable_softmax": True},
        {"layers": 1},
    ],
)
def test_few_rows_at_once_are_scored_as_many_are(random_model, changed):
    network = random_model(seed=3, **changed).double()
    new = rows(1, 60)
    table, asked = (torch.from_numpy(x).double()[None] for x in (rows(0, 30), new))
    ways = set()
    with torch.inference_mode():
        cells = list(network.read(table, 8))
        for attention in (block.row_attention for block in network.blocks):
            without_keys = attention._one_by_one_without_keys
            attention._one_by_one_without_keys = lambda *x, to=without_keys: ways.add(1) or to(*x)
        many = network.look(cells, table, 8, asked)
        with_few = len(ways)
        few = torch.cat([network.look(cells, table, 8, part) for part in asked.split(2, 1)], 1)
    assert (with_few, len(ways)) == ((1, 1) if network.config.heads == 1 else (0, 1))
    torch.testing.assert_close(few, many, atol=1e-12, rtol=0)
    assert np.ptp(many.numpy()) > 1e-3


def test_the_tables_own_scores_have_the_bits_of_a_forward_pass(random_model):
    network = random_model(seed=3, thinking_rows=2)
    table = rows(0, 30)
    with torch.inference_mode():
        logits = network(torch.from_numpy(table)[None], 8)[0].double()
    np.testing.assert_array_equal(
        ReadContext(network, table, 8).log_odds_of_table(), (logits[:, 1] - logits[:, 0]).numpy()
    )


def test_it_holds_as_many_bytes_as_it_says(random_model):
    network = random_model(layers=3)
    t = network.config.thinking_rows
    expected = 4 * 16 * (30 + t) * (2 * 4 + 1)  # two blocks of 4 columns, and the label's
    assert ReadContext(network, rows(0, 30), 8).n_bytes == expected


@pytest.fixture
def kept(monkeypatch):
    """Nothing kept so far; at most some 100 kB."""
    new = Kept(100_000)
    monkeypatch.setattr(ensemble, "KEPT", new)
    return new


@pytest.fixture
def fitted(random_model, tmp_path, kept):
    model = random_model(seed=11, feature_group=(0, 1))
    path = tmp_path / "model.safetensors"
    save_model(path, model.state_dict(), {"model": model.config.model_dump()})
    classifier = PUICLClassifier(path, n_estimators=3, batch_rows=4)
    return classifier.fit(rows(0, 30), np.arange(30) < 8)


@pytest.fixture
def read(monkeypatch):
    """One entry for each time that a context was read."""
    count = []

    class Counted(ReadContext):
        def __init__(self, *arguments):
            count.append(1)
            super().__init__(*arguments)

    for module in (ensemble, unlabeled):
        monkeypatch.setattr(module, "ReadContext", Counted)
    return count


def test_contexts_are_read_once_and_kept_for_later_calls(fitted, kept, read):
    new = rows(1, 25)
    first = fitted.predict_proba(new)
    assert (len(read), len(kept)) == (3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is read again
        for _ in range(3):
            np.testing.assert_array_equal(fitted.predict_proba(new), first)
    assert len(read) == 3
    twin = copy.deepcopy(fitted)
    np.testing.assert_array_equal(twin.predict_proba(new), first)
    assert len(read) == 6


@pytest.mark.parametrize(("most", "n"), [(2, 2), (0.5, 0)])
def test_as_many_are_kept_as_fit_and_answers_stay(fitted, kept, monkeypatch, read, most, n):
    new = rows(1, 25)
    first = fitted.predict_proba(new)
    one = kept.n_bytes // 3
    assert one == sum(4 * 30 * cells * 16 for cells in (4, 1))
    smaller = Kept(int(most * one))
    monkeypatch.setattr(ensemble, "KEPT", smaller)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for time in range(3):
            assert len(told) == (time > 1)  # what it may be worth to know is said once, not at once
            np.testing.assert_array_equal(fitted.predict_proba(new), first)
            assert (len(smaller), smaller.n_bytes) == (n, n * one)
    assert "read some of it again, and later calls may, too; keep_context=True" in str(
        told[0].message
    )
    assert len(read) == 3 + 3 + 2 * (3 - n)  # what is kept is not read again, whatever the order


def test_of_what_is_read_again_in_part_the_size_of_all_is_told(fitted, monkeypatch):
    class Large:
        n_bytes = 2_000_000

        def log_odds(self, rows):
            return np.zeros(len(rows))

    monkeypatch.setattr(ensemble, "KEPT", Kept(5_000_000))
    monkeypatch.setattr(
        ensemble.NewRows, "_context", lambda self, number, keep: (Large(), number == 0)
    )
    fitted.predict_proba(rows(1, 5))
    with pytest.warns(UserWarning, match="takes 6 MB, but all .* together keep only 5 MB by"):
        fitted.predict_proba(rows(1, 5))


def test_rows_that_a_view_sees_alike_are_scored_once(fitted, monkeypatch):
    new = rows(1, 6)
    expected = fitted.predict_proba(new)
    scored = []
    whole = ReadContext.log_odds
    monkeypatch.setattr(
        ReadContext, "log_odds", lambda self, rows: scored.append(len(rows)) or whole(self, rows)
    )
    fitted.set_params(batch_rows=100)
    found = fitted.predict_proba(new[[3, 0, 0, 5, 3, 1, 2, 4, 0]])
    assert scored == [6] * 3
    np.testing.assert_allclose(found, expected[[3, 0, 0, 5, 3, 1, 2, 4, 0]], atol=1e-6)
    np.testing.assert_array_equal(found[1], found[8])


def test_the_context_used_last_stays():
    class Owner:
        pass

    class Small:
        n_bytes = 40

    kept, owners = Kept(100), [Owner() for _ in range(3)]
    made = [kept.get(owner, group, Small) for group, owner in enumerate(owners[:2])]
    assert kept.get(owners[0], 0, Small) is made[0]
    kept.get(owners[2], 2, Small)  # drops the second
    assert kept.get(owners[0], 0, Small) is made[0]
    assert kept.get(owners[1], 1, Small) is not made[1]


def test_nothing_is_kept_of_a_classifier_that_is_gone_or_refitted(fitted, kept):
    fitted.predict_proba(rows(1, 5))
    assert len(kept) == 3
    twin = copy.deepcopy(fitted)
    twin.predict_proba(rows(1, 5))
    assert len(kept) == 6
    del twin
    gc.collect()
    assert len(kept) == 3
    fitted.fit(rows(2, 30), np.arange(30) < 8)
    gc.collect()
    assert (len(kept), kept.n_bytes) == (0, 0)


def test_who_comes_to_lie_where_another_one_lay_is_forgotten_like_that_one():
    class Owner:
        pass

    class Small:
        n_bytes = 40

    kept = Kept(100)
    for _ in range(50):  # mostly at the same place in memory
        kept.get(Owner(), 0, Small)
        assert (len(kept), kept.n_bytes) == (0, 0)


@pytest.fixture
def keeping(fitted):
    """As `fitted`, with its contexts kept from the fit."""
    return clone(fitted).set_params(keep_context=True).fit(rows(0, 30), np.arange(30) < 8)


def test_a_fit_keeps_what_it_read_if_it_is_asked_to(fitted, keeping, kept, read):
    new = rows(1, 25)
    found = keeping.predict_proba(new)
    assert (len(read), len(kept)) == (0, 0)
    np.testing.assert_allclose(found, fitted.predict_proba(new), atol=1e-6)
    assert len(read) == 3
    np.testing.assert_allclose(keeping.unlabeled_proba_, fitted.unlabeled_proba_, atol=1e-6)


def test_large_tables_are_read_in_part_by_part_when_their_first_parts_are_kept(
    random_model, tmp_path, kept, read
):
    path = tmp_path / "model.safetensors"
    model = random_model(seed=11)
    card = {
        "model": model.config.model_dump(),
        "trained_range": {"n_unlabeled": 10, "n_features": 3},
    }
    save_model(path, model.state_dict(), card)
    x, s, new = rows(0, 60, 5), np.arange(60) < 8, rows(1, 5, 5)
    plain = PUICLClassifier(path, n_estimators=2).fit(x, s)
    keeping = PUICLClassifier(path, n_estimators=2, keep_context=True).fit(x, s)
    assert len(read) == len(plain._new_rows.references) == 4  # views, of six contexts each
    np.testing.assert_allclose(keeping.unlabeled_proba_, plain.unlabeled_proba_, atol=1e-6)
    found = keeping.predict_proba(new)
    assert len(read) == 4
    np.testing.assert_allclose(found, plain.predict_proba(new), atol=1e-6)
    many = fit_many([(x, s), (x[:40], s[:40])], keeping)
    assert len(read) == 8 + 4 + 4
    np.testing.assert_allclose(many[0].predict_proba(new), found, atol=1e-6)
    many[1].predict_proba(new)
    assert len(read) == 16


def test_what_a_classifier_keeps_is_dropped_when_it_is_told_or_fitted_again(
    keeping, kept, read, monkeypatch
):
    new = rows(1, 5)
    found = keeping.predict_proba(new)
    keeping.set_params(keep_context=False)
    np.testing.assert_array_equal(keeping.predict_proba(new), found)
    assert (len(read), len(kept)) == (3, 3)
    keeping.set_params(keep_context=True)
    for _ in range(2):
        np.testing.assert_array_equal(keeping.predict_proba(new), found)
    assert (len(read), len(kept), kept.n_bytes) == (3, 0, 0)  # what was there is taken over
    with pytest.raises(ValueError, match="no labelled positive"):
        keeping.fit(rows(0, 30), np.zeros(30))
    np.testing.assert_array_equal(keeping.predict_proba(new), found)
    assert len(read) == 3

    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("puicl_model.classifier.score_unlabeled", stopped)
    with pytest.raises(KeyboardInterrupt):
        keeping.fit(rows(2, 30), np.arange(30) < 8)
    np.testing.assert_array_equal(keeping.predict_proba(new), found)
    assert len(read) == 6  # the room was for another table


@pytest.mark.filterwarnings("ignore:2 of 2 tables")
def test_nothing_is_kept_for_new_rows_where_there_are_none(fitted, kept, read):
    tables = [(rows(seed, 30), np.arange(30) < 8) for seed in range(2)]
    plain = predict_many(tables, fitted)
    asked = predict_many(tables, clone(fitted).set_params(keep_context=True))
    np.testing.assert_array_equal(asked, plain)
    assert len(read) == 0


def test_classifiers_that_fit_alone_but_not_together_are_told_of_once(fitted, kept, monkeypatch):
    """Each drops what the other has read, in turn."""
    new, other = rows(1, 5), copy.deepcopy(fitted)
    fitted.predict_proba(new)
    monkeypatch.setattr(ensemble, "KEPT", Kept(kept.n_bytes))
    found = other.predict_proba(new)

    def ask():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            copy.deepcopy(fitted).predict_proba(new)
            np.testing.assert_array_equal(other.predict_proba(new), found)
        return [str(one.message) for one in told]

    assert ask() == []
    (sentence,) = ask()
    assert "but all classifiers of a process together keep only" in sentence
    assert ask() == []


def test_copies_and_saved_classifiers_read_anew_what_they_keep(keeping, read, tmp_path):
    new = rows(1, 5)
    found = keeping.predict_proba(new)
    keeping.save(tmp_path / "fit")
    for number, other in enumerate(
        [
            copy.deepcopy(keeping),
            pickle.loads(pickle.dumps(keeping)),
            PUICLClassifier.load(tmp_path / "fit"),
        ]
    ):
        for _ in range(2):
            np.testing.assert_array_equal(other.predict_proba(new), found)
            assert len(read) == 3 + 3 * number
    assert len(pickle.dumps(keeping)) == len(pickle.dumps(copy.deepcopy(keeping)))


@pytest.mark.parametrize("keep", [False, True])
def test_files_hold_no_parameter_that_older_versions_lack(fitted, tmp_path, keep):
    fitted.set_params(keep_context=keep).save(tmp_path / "fit")
    with safe_open(tmp_path / "fit", framework="np") as file:
        parameters = json.loads(file.metadata()["puicl"])["parameters"]
    assert parameters.keys() == fitted.get_params().keys() - {"keep_context", "precision"}
    assert PUICLClassifier.load(tmp_path / "fit").keep_context is keep


@pytest.mark.parametrize("value", [1, "yes", None])
def test_whether_to_keep_is_true_or_false(fitted, value):
    with pytest.raises(ValueError, match="keep_context must be True or False"):
        fitted.set_params(keep_context=value).fit(rows(0, 30), np.arange(30) < 8)


def test_what_is_kept_does_not_travel_with_a_pickle(fitted, kept):
    before = len(pickle.dumps(fitted))
    fitted.predict_proba(rows(1, 5))
    assert len(kept) == 3
    assert len(pickle.dumps(fitted)) == before
