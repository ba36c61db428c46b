"""Several computations at a time: who computes what, with how many threads, and how it ends."""

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from little_table import S, table

from puicl_model import PUICLClassifier, ensemble, inference, side_by_side, unlabeled
from puicl_model.process_settings import threads
from puicl_model.read_context import ReadContext
from puicl_model.shown import shown

WAIT = 60  # seconds, for what takes none
CPU = torch.device("cpu")

pytestmark = pytest.mark.filterwarnings("ignore:only", "ignore:the prob")


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


def test_no_threads_are_left_behind(four_threads, monkeypatch):
    class Slow(threading.Thread):
        def run(self):
            super().run()
            time.sleep(0.1)

    monkeypatch.setattr(side_by_side, "Thread", Slow)
    before = threading.active_count()
    assert list(side_by_side.side_by_side(abs, range(8), 1, CPU)) == list(range(8))
    assert threading.active_count() == before


def test_an_error_is_raised_before_the_turn_of_what_failed(four_threads):
    begun, go_on = threading.Barrier(2), threading.Event()

    def fails(number):
        begun.wait(WAIT)
        if number == 1:
            raise MemoryError("no more")
        go_on.wait(WAIT)

    start = time.monotonic()
    with pytest.raises(MemoryError, match="no more"):
        list(side_by_side.side_by_side(fails, range(2), 1, CPU))
    assert time.monotonic() - start < WAIT / 2
    go_on.set()


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
    used, score = [], ensemble._once_each

    def seen(*arguments):
        used.append((threading.current_thread(), torch.get_num_threads()))
        return score(*arguments)

    monkeypatch.setattr(ensemble, "_once_each", seen)
    fitted = PUICLClassifier(weights, n_estimators=4, n_threads=4).fit(table(), S)
    n = len(fitted._new_rows.references)
    assert n == 2
    fitted.predict_proba(table(seed=2))
    assert [count for _, count in used] == n * [2]  # reading takes longer than scoring
    used.clear()
    fitted.predict_proba(table(seed=3))
    assert [count for _, count in used] == n * [1 if worth > 1 else 2]
    assert worth == 1 or len({thread for thread, _ in used}) == 1


def test_threads_that_begin_meanwhile_have_the_number_of_the_process(four_threads):
    begun, found = threading.Barrier(4), []

    def seen(number):
        begun.wait(WAIT)  # all have set their own number
        other = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        other.start()
        other.join()
        return torch.get_num_threads()

    assert list(side_by_side.side_by_side(seen, range(4), 1, CPU)) == [1] * 4
    assert found == [4] * 4


@pytest.mark.parametrize("can_start", [0, 1, 3])
def test_where_no_more_threads_can_be_started_those_there_are_compute(
    four_threads, monkeypatch, can_start
):
    class Limited(threading.Thread):
        started = 0

        def start(self):
            if Limited.started == can_start:
                raise RuntimeError("can't start new thread")
            Limited.started += 1
            super().start()

    monkeypatch.setattr(side_by_side, "Thread", Limited)
    used = set()

    def doubled(number):
        used.add(threading.current_thread())
        return 2 * number

    assert list(side_by_side.side_by_side(doubled, range(9), 1, CPU)) == list(range(0, 18, 2))
    assert (threading.main_thread() in used) == (can_start == 0)


def test_python_ends_with_threads_that_compute(tmp_path):
    """Those of a daemon thread are left behind; others, and functions at the exit, are served."""
    script = tmp_path / "script.py"
    script.write_text(f"""
import atexit, threading, time, torch
from puicl_model.side_by_side import side_by_side

def run(function):
    print(list(side_by_side(function, range(8), 1, torch.device("cpu"))), flush=True)

def after_the_main_thread():
    threading.main_thread().join()
    run(abs)

torch.set_num_threads(2)
atexit.register(run, float)
threading.Thread(target=run, args=(lambda n: time.sleep({WAIT}),), daemon=True).start()
threading.Thread(target=after_the_main_thread).start()
time.sleep(0.2)
""")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=2 * WAIT, check=True
    )
    assert done.stdout.splitlines() == [str([kind(n) for n in range(8)]) for kind in (int, float)]
    assert done.stderr == ""


class Held:
    """A computation of which only the first returns at once; the others wait to be let go."""

    def __init__(self):
        self.begun, self.before, self.lock = 0, threading.active_count(), threading.Lock()
        self.go_on, self.others = threading.Event(), threading.Event()

    def __call__(self, is_first: bool | None = None) -> bool:
        """is_first: by default, whether none has begun before, whoever's turn it is."""
        with self.lock:
            self.begun += 1
            first = self.begun == 1 if is_first is None else is_first
        if not first:
            self.others.set()
            self.go_on.wait(WAIT)
        return first

    def begun_in_all(self) -> int:
        self.go_on.set()
        end = time.monotonic() + WAIT
        while threading.active_count() > self.before and time.monotonic() < end:
            time.sleep(0.01)
        return self.begun

    def side_by_side(self, function, given, *more):
        """As that of the module, but for whoever waits."""

        def computed(each):
            self(each is given[0])
            return function(each)

        return side_by_side.side_by_side(computed, given, *more)


@pytest.fixture
def held():
    held = Held()
    yield held
    held.begun_in_all()


def test_after_an_error_nothing_more_is_begun(four_threads, held):
    def fails(number):
        if held(number == 0):
            raise MemoryError("no more")

    with pytest.raises(MemoryError, match="no more"):
        list(side_by_side.side_by_side(fails, range(100), 1, CPU))
    assert held.begun_in_all() <= 4


def test_who_stops_asking_does_not_wait(four_threads, held):
    asked = side_by_side.side_by_side(lambda n: held(n == 0), range(100), 1, CPU)
    assert next(asked) is True
    asked.close()  # as an interrupt of the caller does
    assert held.begun_in_all() <= 5


def test_an_error_ends_the_work_of_all_before_anybody_asks_and_only_the_first_is_told(
    four_threads, monkeypatch, held
):
    told, both = [], threading.Barrier(3)
    monkeypatch.setattr(threading, "excepthook", told.append)

    def fails(number):
        held(number < 3)
        if number in (1, 2):
            both.wait(WAIT)
        if number:
            raise MemoryError("no more")

    asked = side_by_side.side_by_side(fails, range(100), 1, CPU)
    next(asked)
    both.wait(WAIT)
    assert held.begun_in_all() <= 5
    with pytest.raises(MemoryError, match="no more"):
        next(asked)
    assert told == []


def test_whatever_ends_a_computation_is_told_to_who_waits():
    todo, failed = deque((number, Future()) for number in range(2)), Future()
    assert side_by_side._computed_one(sys.exit, todo, failed)
    assert isinstance(failed.exception(0), SystemExit)
    assert not side_by_side._computed_one(sys.exit, todo, failed)


def test_answers_come_though_threads_cannot_set_their_number(four_threads, monkeypatch):
    def fails(number):
        raise MemoryError("no more")

    monkeypatch.setattr(side_by_side, "set_threads_of_new_thread", fails)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    found = []
    asking = threading.Thread(
        target=lambda: found.extend(side_by_side.side_by_side(abs, range(8), 1, CPU)), daemon=True
    )
    asking.start()
    asking.join(WAIT)
    assert found == list(range(8))


class Full(MemoryError):
    """Which may be referred to weakly, unlike Python's own."""


def test_an_error_keeps_no_answers_and_is_gone_once_it_is_dealt_with(four_threads, held):
    def fails(number):
        if number == 0:
            held.go_on.wait(WAIT)
            raise Full("no more")
        if number == 2:  # by the thread that has answered 1
            held.go_on.set()
        answer = np.zeros(1)
        answers.append(weakref.ref(answer))
        return answer

    answers = []
    gc.disable()
    try:
        try:
            list(side_by_side.side_by_side(fails, range(3), 60_000, CPU))
        except Full as error:
            held.begun_in_all()
            assert [answer() for answer in answers] == [None, None]
            told = weakref.ref(error)
        assert told() is None
    finally:
        gc.enable()


def test_no_more_batches_are_begun_once_progress_cannot_be_told(four_threads, monkeypatch, held):
    class Network:
        unlabeled_token = torch.zeros(1)

        def __call__(self, x, n_labeled):
            return torch.zeros(len(x), x.shape[1] - n_labeled, 2)

    def stopped(n):
        raise KeyboardInterrupt

    monkeypatch.setattr(inference, "_CELLS", 1)
    monkeypatch.setattr(inference, "side_by_side", held.side_by_side)
    jobs = [inference.Job(1, 3, 2, lambda: np.zeros((3, 2), np.float32))] * 50
    with pytest.raises(KeyboardInterrupt) as told:  # who holds its traceback holds the generator
        inference.log_odds(Network(), jobs, stopped)
    assert held.begun_in_all() <= 5
    del told


def test_the_cells_of_the_largest_batch_bound_how_many_are_computed_at_a_time(
    four_threads, monkeypatch
):
    class Network:
        unlabeled_token = torch.zeros(1)

        def __call__(self, x, n_labeled):
            return torch.zeros(len(x), x.shape[1] - n_labeled, 2)

    asked = []

    def seen(function, given, n_cells, device):
        asked.append(n_cells)
        return (function(each) for each in given)

    monkeypatch.setattr(inference, "side_by_side", seen)
    jobs = [inference.Job(1, n, 2, lambda n=n: np.zeros((n, 2), np.float32)) for n in 8 * [5] + [7]]
    answers = inference.log_odds(Network(), jobs)
    assert asked == [2 * 5 * 3]  # two tables for each of four threads; the other has 7 * 3
    assert [len(answer) for answer in answers] == 8 * [4] + [6]


def test_the_docs_state_the_most_cells_that_are_held():
    guide = Path(__file__).resolve().parents[2] / "docs" / "user_guide.md"
    for text in (PUICLClassifier.__doc__, guide.read_text(encoding="utf-8")):
        told = " ".join(text.split())
        assert f"up to {side_by_side._CELLS_AT_ONCE:,} cells" in told
        assert f"{inference._CELLS_ON_GPU:,} on a GPU" in told


def test_what_is_held_of_the_largest_context_bounds_how_many_are_read_at_a_time(
    random_model, monkeypatch
):
    class Asked(Exception):
        pass

    def seen(function, given, n_cells, *_):
        raise Asked(n_cells)

    network = random_model(layers=8)  # of a context it keeps twice what a pass holds
    for module in (ensemble, unlabeled):
        monkeypatch.setattr(module, "side_by_side", seen)
    jobs = [inference.Job(1, n, 2, lambda: np.zeros(0)) for n in (5, 7, 6)]
    with pytest.raises(Asked, match=f"^{2 * 7 * 3}$"):
        unlabeled._read(network, jobs)
    references = [
        ensemble.Reference((0,), "any", np.arange(w), np.ones(w), 1, np.zeros((n, w)))
        for n, w in ((5, 2), (7, 3), (6, 2))
    ]
    for n_new, at_once in ((1, 1), (9, 4)):  # rows are scored by four
        with pytest.raises(Asked, match=f"^{2 * (7 + at_once) * 4}$"):
            ensemble.NewRows(network, references, {})(np.zeros((n_new, 3)), 4)


@pytest.mark.parametrize("at", ["log_odds_of_table", "_once_each"])
def test_an_error_ends_work_on_contexts(weights, monkeypatch, held, at):
    of_table = at == "log_odds_of_table"

    def fails(*_):
        if of_table or held():
            held.others.wait(WAIT)
            raise MemoryError("no more")
        return np.zeros(1)

    monkeypatch.setattr(*((ReadContext, at) if of_table else (ensemble, at)), fails)
    classifier = PUICLClassifier(
        weights, n_estimators=12, scalings=["rotated"], n_threads=2, batch_rows=1
    )
    if of_table:
        classifier.set_params(keep_context=True)
        monkeypatch.setattr(unlabeled, "side_by_side", held.side_by_side)
        with pytest.raises(MemoryError, match="no more") as told:
            classifier.fit(table(), S)
        assert not hasattr(classifier, "classes_")
    else:
        classifier.fit(table(), S)
        with pytest.raises(MemoryError, match="no more") as told:
            classifier.predict_proba(table(seed=2))
    assert held.begun_in_all() <= 3
    del told


@pytest.mark.parametrize("error", [False, True])
def test_nothing_is_shown_after_the_end(capsys, error):
    with suppress(MemoryError), shown(True, 2, "passes", 1) as done:
        done(1)
        if error:
            raise MemoryError
    done(1)
    assert "2/2" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cells", "terminal", "is_shown"),
    [(49_999, True, False), (50_000, True, True), (50_000, False, False)],
)
def test_unless_told_otherwise_what_takes_long_is_shown_on_a_terminal(
    monkeypatch, capsys, cells, terminal, is_shown
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    with shown(None, 1, "passes", cells) as done:
        done(1)
    assert ("1/1" in capsys.readouterr().err) == is_shown
