"""Work spread over the workers of a Dask or a Ray cluster, where these are installed."""

import os
import socket
import time

import pytest

from puicl_config import InputError
from puicl_config.workers import clusters, run_all

BACKENDS = {"dask": "distributed", "ray": "ray"}


@pytest.fixture(params=BACKENDS)
def backend(request):
    pytest.importorskip(BACKENDS[request.param])
    return request.param


def slower_first(number):
    time.sleep(0.3 if number == 0 else 0)
    return number * number


def open_what_is_missing(path):
    return path.read_text()


def end_the_first_worker(path):
    """Kill the process that comes first; the next one answers."""
    if not path.exists():
        path.touch()
        os._exit(1)
    return "answered"


def test_answers_come_in_the_order_of_the_calls(backend):
    squares = run_all(slower_first, [(number,) for number in range(7)], 2, backend)
    assert squares == [number * number for number in range(7)]


def test_an_error_keeps_its_kind_and_its_attributes(backend, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        run_all(open_what_is_missing, [(tmp_path / "a",), (tmp_path / "b",)], 2, backend)
    assert type(caught.value) is FileNotFoundError
    assert caught.value.filename in {str(tmp_path / "a"), str(tmp_path / "b")}


def test_where_in_the_worker_an_error_arose_is_its_cause(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(FileNotFoundError) as caught:
        run_all(open_what_is_missing, [(tmp_path / "a",)], 1, "ray")
    assert "in open_what_is_missing" in str(caught.value.__cause__)


def test_what_a_killed_worker_was_at_another_makes(backend, tmp_path):
    assert run_all(end_the_first_worker, [(tmp_path / "came",)], 1, backend) == ["answered"]


def test_a_cluster_that_cannot_be_closed_does_not_hide_the_results(monkeypatch):
    distributed = pytest.importorskip("distributed")
    close = distributed.LocalCluster.close

    def too_slow(self, timeout):
        assert 0 < timeout < 300
        close(self)
        raise TimeoutError

    monkeypatch.setattr(distributed.LocalCluster, "close", too_slow)
    assert run_all(abs, [(-1,), (-2,)], 1, "dask") == [1, 2]


def test_where_workers_are_killed_one_after_the_other_the_run_ends(backend):
    who = {"dask": "Dask", "ray": "Ray"}[backend]
    with pytest.raises(InputError, match=f"workers of {who} were killed from outside"):
        run_all(os._exit, [(1,), (1,)], 1, backend)


def test_an_address_where_nobody_listens_is_told_at_once(backend, monkeypatch):
    monkeypatch.setattr(clusters, "_SECONDS_TO_ANSWER", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "{}:{}".format(*taken.getsockname())
    began = time.monotonic()
    with pytest.raises(InputError, match=f"(answers|reached) at {address}: "):
        run_all(slower_first, [(1,)], 1, backend, address)
    assert time.monotonic() - began < 30


def test_a_cluster_that_cannot_be_closed_hides_nothing(monkeypatch):
    distributed = pytest.importorskip("distributed")
    close = distributed.LocalCluster.close

    def fail(cluster, *arguments, **options):
        close(cluster, *arguments, **options)
        raise AssertionError("can only join a started process")  # as where a worker is starting

    monkeypatch.setattr(distributed.LocalCluster, "close", fail)
    with pytest.raises(ZeroDivisionError):
        run_all(divmod, [(1, 0)], 1, "dask")
    assert run_all(divmod, [(7, 2)], 1, "dask") == [(3, 1)]
