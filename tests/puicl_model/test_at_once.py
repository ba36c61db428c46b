"""Threads, forks and workers that ask one fitted classifier at once."""

import copy
import os
import pickle
import threading
import time
import warnings

import joblib
import numpy as np
import pytest
import torch
from little_table import S, table

from puicl_model import PUICLClassifier, ensemble, unlabeled
from puicl_model.own_lock import OwnLock
from puicl_model.preprocessing import table as preprocessing
from puicl_model.process_settings import own_precision, threads
from puicl_model.read_context import Kept, ReadContext

pytestmark = pytest.mark.filterwarnings("ignore:only")
WAIT = 60  # seconds, for what takes none


@pytest.fixture
def read(monkeypatch):
    """One entry for each time that a context was read, which takes its while."""
    count = []

    class Slow(ReadContext):
        def __init__(self, *arguments):
            count.append(1)
            time.sleep(0.1)
            super().__init__(*arguments)

    for module in (ensemble, unlabeled):
        monkeypatch.setattr(module, "ReadContext", Slow)
    monkeypatch.setattr(ensemble, "KEPT", Kept(1_000_000))
    return count


def at_once(action, n: int = 3) -> list:
    """What `action` answers in n threads."""
    together, answers = threading.Barrier(n), []

    def run():
        together.wait(WAIT)
        answers.append(action())

    workers = [threading.Thread(target=run, daemon=True) for _ in range(n)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(WAIT)
    return answers


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("way", ["fitted", "pickled", "copied"])
def test_threads_at_a_first_call_read_each_context_once(weights, read, keep, way):
    new = table(seed=1)
    views = {"n_estimators": 2, "scalings": ("quantile", "standard")}
    classifier = PUICLClassifier(weights, **views).fit(table(), S).set_params(keep_context=keep)
    expected = copy.deepcopy(classifier).predict_proba(new)
    if way == "pickled":
        classifier = pickle.loads(pickle.dumps(classifier))
    elif way == "copied":
        classifier = copy.deepcopy(classifier)
    read.clear()
    answers = at_once(lambda: classifier.predict_proba(new))
    assert (len(answers), len(read)) == (3, 2)
    for answer in answers:
        np.testing.assert_array_equal(answer, expected)


def test_threads_leave_the_process_its_filters_of_warnings(fitted, monkeypatch):
    before, plain = list(warnings.filters), preprocessing.plain_cells
    inside = {name: threading.Event() for name in ("first", "second")}
    go_on = {name: threading.Event() for name in inside}

    def waiting(column):
        name = threading.current_thread().name
        inside[name].set()
        go_on[name].wait(WAIT)
        return plain(column)

    monkeypatch.setattr(preprocessing, "plain_cells", waiting)
    workers = [
        threading.Thread(target=fitted.predict_proba, args=(table(seed=1),), name=name)
        for name in inside
    ]
    for worker in workers:
        worker.start()
        assert inside[worker.name].wait(WAIT)
    for worker in workers:  # who came first leaves first, while the other is inside
        go_on[worker.name].set()
        worker.join(WAIT)
    assert warnings.filters == before


def test_one_pickled_before_there_was_a_lock_works(weights, read):
    classifier = PUICLClassifier(weights, n_estimators=1).fit(table(), S)
    state = classifier._new_rows.__getstate__()
    old = {name: state[name] for name in ("network", "references", "scalings", "_read")}
    vars(classifier._new_rows).clear()
    classifier._new_rows.__setstate__(old)
    assert len(at_once(lambda: classifier.predict_proba(table(seed=1)))) == 3
    assert len(read) == 1


@pytest.mark.parametrize("blend", [None, "trees"])
@pytest.mark.filterwarnings("error:The given NumPy array is not writable")
def test_one_whose_arrays_are_a_read_only_file_answers_without_a_warning(weights, tmp_path, blend):
    new = table(seed=1)
    classifier = PUICLClassifier(weights, n_estimators=1, blend=blend).fit(table(), S)
    joblib.dump(classifier, tmp_path / "dumped")
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # and not once a process alone
    try:
        mapped = joblib.load(tmp_path / "dumped", mmap_mode="r")
        answer = mapped.predict_proba(new)
    finally:
        torch.set_warn_always(always)
    np.testing.assert_array_equal(answer, classifier.predict_proba(new))


def seen_by_another_thread() -> list[int]:
    return at_once(torch.get_num_threads, 1)


@pytest.mark.parametrize("others", [1, 2, None])
def test_calls_that_overlap_leave_the_number_of_threads_as_it_was(others):
    before = torch.get_num_threads()
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    inside, left = [], []

    def first():
        with threads(1):
            first_in.set()
            second_in.wait(WAIT)
        left.append(torch.get_num_threads())
        first_out.set()

    def second():
        first_in.wait(WAIT)
        with threads(others):
            second_in.set()
            first_out.wait(WAIT)
            inside.append(torch.get_num_threads())
        left.append(torch.get_num_threads())

    torch.set_num_threads(3)
    try:
        workers = [threading.Thread(target=each, daemon=True) for each in (first, second)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(WAIT)
        assert left[0] == 3
        assert others is None or inside == [others]
        # A thread that first asks torch meanwhile is told what holds for the moment.
        assert others is None or left[1] == 3
        assert torch.get_num_threads() == 3
        assert seen_by_another_thread() == [3]
    finally:
        torch.set_num_threads(before)


def test_calls_that_overlap_leave_the_precision_of_products_as_it_was():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        first, second = (own_precision(torch.device("cpu")) for _ in range(2))
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert torch.get_float32_matmul_precision() == "highest"  # the second is inside
        second.__exit__(None, None, None)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_amid_another_threads_reading_is_not_locked_out():
    lock, inside, over = OwnLock(), threading.Event(), threading.Event()

    def hold():
        with lock.held():
            inside.set()
            over.wait(WAIT)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert inside.wait(WAIT)
    child = os.fork()
    if not child:  # nothing of pytest may run here
        with lock.held(), lock.held():
            os._exit(7)
    deadline = time.monotonic() + WAIT
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    over.set()
    holder.join()
    if not ended[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended[1]) == 7
