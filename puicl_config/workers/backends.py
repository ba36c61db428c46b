"""Backends of workers: local processes through joblib, or a cluster."""

import contextlib
import importlib.util
import multiprocessing.resource_tracker
from collections.abc import Callable, Iterable
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Literal

import joblib
from joblib.externals.loky.backend import resource_tracker as loky_resource_tracker

from puicl_config.errors import InputError
from puicl_config.workers.clusters import run_on_dask, run_on_ray
from puicl_config.workers.failures import WorkerTraceback, killed_from_outside
from puicl_config.workers.lifeline import Failure, Lifeline, hold, unless_dropped
from puicl_config.workers.stopping import signals_deferred

Backend = Literal["loky", "dask", "ray"]
_PACKAGES = {"dask": "distributed", "ray": "ray"}


def check_backend(backend: Backend, address: str | None = None) -> None:
    """Raise `InputError` if the backend is not installed or takes no `address`."""
    if backend == "loky":
        if address:
            raise InputError("--address is for the backends dask and ray")
    elif importlib.util.find_spec(_PACKAGES[backend]) is None:
        raise InputError(f"the backend {backend} needs `pip install puicl[{backend}]`")


def run_all(
    work: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    jobs: int,
    backend: Backend = "loky",
    address: str | None = None,
) -> list[Any]:
    """Compute `work(*call)` for every call with `jobs` workers; return the results in order.

    `address` joins a running cluster: a Dask scheduler (tcp://host:port) or Ray ("auto", host:port
    or ray://host:port). Without it, dask and ray start `jobs` local workers.

    On Ctrl-C or SIGTERM, loky's workers abandon their call at the next `drop_if_told` and finish
    normally; then the signal takes effect. The first exception of a call ends the run in the same
    way and is raised here, with the worker's traceback (as its cause, except with Dask). Raises
    `InputError` if the backend is not installed, the cluster cannot be reached, or workers were
    killed from outside.
    """
    check_backend(backend, address)
    if backend == "loky":
        return _run_here(work, calls, jobs)
    run = run_on_dask if backend == "dask" else run_on_ray
    return run(work, calls, jobs, address)


def _run_here(work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], jobs: int) -> list[Any]:
    with contextlib.closing(Lifeline()) as line:
        if jobs > 1:
            # Start these first: they unblock signals on starting, which would undo the deferral.
            multiprocessing.resource_tracker.ensure_running()
            loky_resource_tracker.ensure_running()
        with signals_deferred(line.cut):
            return _run_on(line, work, calls, jobs)


def _run_on(
    line: Lifeline, work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], jobs: int
) -> list[Any]:
    where = {"initializer": hold, "initargs": line.ends} if jobs > 1 else {}
    tasks = (joblib.delayed(_numbered)(number, work, *call) for number, call in enumerate(calls))
    failed, answers = None, {}
    try:
        with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1, **where):
            # Take results as they come, so that the first failure ends the others' work, too.
            for number, answer in joblib.Parallel(return_as="generator_unordered")(tasks):
                if isinstance(answer, Failure):
                    failed = failed or answer
                    line.cut()
                answers[number] = answer
    except BrokenProcessPool:
        if not line.is_cut:
            raise killed_from_outside("a worker process was") from None
    if failed:
        if jobs > 1:
            failed.error.__cause__ = WorkerTraceback(failed.traceback)
        raise failed.error
    return [answers[number] for number in sorted(answers)]


def _numbered(number: int, work: Callable[..., Any], *call: Any) -> tuple[int, Any]:
    return number, unless_dropped(work, *call)
