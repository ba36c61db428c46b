"""Work spread over processes: order, and what a failure leaves behind."""

import contextlib
import socket
import threading
import time
from pathlib import Path

import pytest

from puicl_config.workers import await_end_of, drop_if_told, run_all
from puicl_config.workers.lifeline import Lifeline


def slower_first(number):
    time.sleep(0.3 if number == 0 else 0)
    return number * number


def fail_beside_another(own: Path, others: Path, fails: bool):
    """Make `own`; fail once `others` is there too, or else work until told to drop it."""
    own.touch()
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if fails and others.exists():
                raise ZeroDivisionError("on purpose")
            drop_if_told()
            time.sleep(0.01)
    finally:
        own.unlink()
    return "never told"


def open_what_is_missing(path):
    return path.read_text()


@pytest.mark.parametrize("jobs", [1, 2])
def test_answers_come_in_the_order_of_the_calls(jobs):
    assert run_all(slower_first, [(number,) for number in range(7)], jobs) == [
        number * number for number in range(7)
    ]


def test_another_thread_may_have_work_done():
    answers = []
    thread = threading.Thread(target=lambda: answers.extend(run_all(abs, [(-1,), (-2,)], 1)))
    thread.start()
    thread.join(60)
    assert answers == [1, 2]


def test_a_worker_that_comes_after_the_end_of_a_run_is_told_at_once():
    with contextlib.closing(Lifeline()) as line:
        line.cut()
        with socket.create_connection(("127.0.0.1", line.ends[0]), timeout=10) as late:
            assert late.recv(1) == b""  # closed


def test_the_end_of_a_parent_is_waited_for(monkeypatch):
    parents, naps = iter([7, 7, 1]), []
    monkeypatch.setattr("puicl_config.workers.stopping.os.getppid", lambda: next(parents))
    monkeypatch.setattr("puicl_config.workers.stopping.time.sleep", naps.append)
    await_end_of(7)
    assert len(naps) == 2


def test_where_one_worker_fails_the_other_puts_its_work_away_first(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="on purpose") as caught:
        run_all(fail_beside_another, [(one, two, True), (two, one, False)], jobs=2)
    assert list(tmp_path.iterdir()) == []
    assert time.monotonic() - began < 50  # nobody waited for the end
    assert "in fail_beside_another" in str(caught.value.__cause__)
    # And the next run in this process is a new one.
    assert run_all(slower_first, [(2,), (3,)], jobs=2) == [4, 9]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_keeps_its_kind_and_its_attributes(tmp_path, jobs):
    paths = [(tmp_path / "a",), (tmp_path / "b",)]
    with pytest.raises(FileNotFoundError) as caught:
        run_all(open_what_is_missing, paths, jobs)
    assert caught.value.filename in {str(path) for (path,) in paths}
