"""Workers of a Dask or Ray cluster, used through the cluster's own client.

Joblib's backends are not used: its Dask backend waits forever once a call is lost with its workers,
and its Ray backend gives up when the first worker is killed, while both clusters would retry with
another worker.
"""

import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from puicl_config.errors import InputError
from puicl_config.workers.failures import WorkerTraceback, killed_from_outside

# If this many workers in turn are killed during one call, the call itself is to blame.
_TRIES = 4
_SECONDS_TO_ANSWER = 30.0
_SECONDS_TO_CLOSE = 60.0


def run_on_dask(
    work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], jobs: int, address: str | None
) -> list[Any]:
    """The results of `work(*call)`, in order; see `run_all`."""
    from distributed import KilledWorker

    with _dask_client(jobs, address) as client:
        futures = [client.submit(work, *call, pure=False) for call in calls]
        try:
            return client.gather(futures)
        except KilledWorker:
            raise killed_from_outside("workers of Dask were") from None


def run_on_ray(
    work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], jobs: int, address: str | None
) -> list[Any]:
    """The results of `work(*call)`, in order; see `run_all`."""
    import ray

    with _ray_session(jobs, address):
        remote = ray.remote(num_cpus=1, max_retries=_TRIES - 1)(_called)
        answers = [remote.remote(work, call) for call in calls]
        try:
            pending = answers
            while pending:  # take results as they come, so that the first failure ends the run
                done, pending = ray.wait(pending)
                ray.get(done)
            return ray.get(answers)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from WorkerTraceback(str(error))
        except _killed_by(ray):
            raise killed_from_outside("workers of Ray were") from None


def _killed_by(ray: Any) -> tuple[type[Exception], ...]:
    """Exceptions that Ray raises when workers or their machines are gone."""
    names = ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "ObjectLostError")
    return tuple(getattr(ray.exceptions, name) for name in names)


def _called(work: Callable[..., Any], call: tuple[Any, ...]) -> Any:
    return work(*call)


@contextlib.contextmanager
def _dask_client(jobs: int, address: str | None) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    if address:
        try:
            client = Client(address, timeout=f"{_SECONDS_TO_ANSWER:.0f}s")
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
        with client:
            yield client
        return
    cluster = LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
    try:
        with Client(cluster) as client:
            yield client
    finally:
        # Dask asserts that a worker can be joined, which fails if a killed one is just being
        # restarted, or waits for it, some versions for ever. That must not hide how the run ended.
        # Remaining workers end with this process.
        with contextlib.suppress(AssertionError, TimeoutError):
            cluster.close(timeout=_SECONDS_TO_CLOSE)


@contextlib.contextmanager
def _ray_session(jobs: int, address: str | None) -> Iterator[None]:
    import ray

    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        if address:
            _knock(address)
            ray.init(address=address, **quiet)
        else:
            ray.init(num_cpus=jobs, include_dashboard=False, **quiet)
    except (OSError, ValueError) as error:
        raise InputError(f"Ray cannot be reached at {address}: {error}") from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray's handler prints a C++ stack and exits
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Raise `OSError` if nothing listens at HOST:PORT, where Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        host = host.strip("[]")  # of an IPv6 address
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_ANSWER).close()
