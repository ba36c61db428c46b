"""Several computations at a time: who computes what, with how many threads, and how it ends."""

import threading
import time

import numpy as np
import pytest
import torch
from little_table import S, table

from puicl_model import PUICLClassifier, ensemble, side_by_side
from puicl_model.process_settings import threads

WAIT = 60  # seconds, for what takes none
CPU = torch.device("cpu")


@pytest.fixture
def four_threads():
    with threads(4):
        yield


class Counter:
    """Counts how many computations there are at a time; each waits until `together` are."""

    def __init__(self, together: int):
        self.now, self.most, self.threads = 0, 0, set()
        self.lock, self.barrier = threading.Lock(), threading.Barrier(together)

    def __call__(self, number: int) -> int:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.threads.add(torch.get_num_threads())
        self.barrier.wait(WAIT)
        with self.lock:
            self.now -= 1
        return -number


@pytest.mark.parametrize(
    ("n_cells", "together", "threads_each"), [(1, 4, 1), (40_000, 3, 1), (60_000, 2, 2)]
)
def test_threads_are_divided_among_as_many_as_memory_allows(
    four_threads, n_cells, together, threads_each
):
    counter = Counter(together)
    found = list(side_by_side.side_by_side(counter, range(12), n_cells, CPU))
    assert found == [-number for number in range(12)]
    assert counter.most == together
    assert counter.threads == {threads_each}
    assert torch.get_num_threads() == 4


@pytest.mark.parametrize(
    ("given", "n_cells", "device"), [(9, 60_001, "cpu"), (1, 1, "cpu"), (9, 1, "meta")]
)
def test_alone_the_caller_computes_with_all_threads(four_threads, given, n_cells, device):
    asked = []

    def who(number):
        asked.append((threading.current_thread(), torch.get_num_threads()))

    list(side_by_side.side_by_side(who, range(given), n_cells, torch.device(device)))
    assert asked == given * [(threading.current_thread(), 4)]


def test_no_threads_are_left_behind(four_threads):
    before = threading.active_count()
    list(side_by_side.side_by_side(lambda number: time.sleep(0.01), range(8), 1, CPU))
    assert threading.active_count() == before


def test_after_an_error_nothing_more_is_begun(four_threads):
    begun = []

    def fails(number):
        begun.append(number)
        if number == 0:
            raise MemoryError("no more")
        time.sleep(0.05)

    with pytest.raises(MemoryError, match="no more"):
        list(side_by_side.side_by_side(fails, range(100), 1, CPU))
    time.sleep(0.3)
    assert len(begun) < 12


def test_who_stops_asking_does_not_wait(four_threads):
    go_on, begun = threading.Event(), []

    def waits(number):
        begun.append(number)
        if number:
            go_on.wait(WAIT)
        return number

    asked = side_by_side.side_by_side(waits, range(100), 1, CPU)
    assert next(asked) == 0
    asked.close()  # as an interrupt of the caller does
    go_on.set()
    time.sleep(0.2)
    assert len(begun) < 12


def test_numpys_error_settings_are_the_callers(four_threads):
    with np.errstate(under="raise", over="ignore"):
        settings = list(side_by_side.side_by_side(lambda n: np.geterr(), range(4), 1, CPU))
    assert all(each["under"] == "raise" and each["over"] == "ignore" for each in settings)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("worth", [1, 10**9])
def test_scores_are_those_of_one_thread(weights, monkeypatch, keep, worth):
    monkeypatch.setattr(ensemble, "_WORTH_THREADS", worth)
    alone, shared = (
        PUICLClassifier(weights, n_estimators=6, n_threads=n, keep_context=keep, batch_rows=3)
        for n in (1, 3)
    )
    alone.fit(table(), S)
    shared.fit(table(), S)
    np.testing.assert_allclose(shared.unlabeled_proba_, alone.unlabeled_proba_, atol=1e-6)
    assert np.ptp(alone.unlabeled_proba_) > 1e-3
    for seed in (2, 3):  # the second time, contexts have been read
        new = table(seed=seed)
        np.testing.assert_allclose(shared.predict_proba(new), alone.predict_proba(new), atol=1e-6)


@pytest.mark.parametrize("worth", [1, 10**9])
def test_few_cells_are_scored_by_one_thread_once_contexts_are_read(weights, monkeypatch, worth):
    monkeypatch.setattr(ensemble, "_WORTH_THREADS", worth)
    used = []
    score = ensemble._once_each

    def seen(*arguments):
        used.append(threading.current_thread() is threading.main_thread())
        return score(*arguments)

    monkeypatch.setattr(ensemble, "_once_each", seen)
    fitted = PUICLClassifier(weights, n_estimators=4, n_threads=4).fit(table(), S)
    n = len(fitted._new_rows.references)
    assert n > 1
    fitted.predict_proba(table(seed=2))
    assert used == n * [False]  # reading takes longer than scoring
    used.clear()
    fitted.predict_proba(table(seed=3))
    assert used == n * [worth > 1]
