"""New rows against a context that was read once: the same scores, bounded memory."""

import copy
import gc
import pickle

import numpy as np
import pytest
import torch

from puicl_model import PUICLClassifier, ensemble, save_model
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

    monkeypatch.setattr(ensemble, "ReadContext", Counted)
    return count


def test_contexts_are_read_once_and_kept_for_later_calls(fitted, kept, read):
    new = rows(1, 25)
    first = fitted.predict_proba(new)
    assert (len(read), len(kept)) == (3, 3)
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
    for _ in range(3):
        np.testing.assert_array_equal(fitted.predict_proba(new), first)
        assert (len(smaller), smaller.n_bytes) == (n, n * one)
    assert len(read) == 3 + 3 + 2 * (3 - n)  # what is kept is not read again, whatever the order


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


def test_what_is_kept_does_not_travel_with_a_pickle(fitted, kept):
    before = len(pickle.dumps(fitted))
    fitted.predict_proba(rows(1, 5))
    assert len(kept) == 3
    assert len(pickle.dumps(fitted)) == before
