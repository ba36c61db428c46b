"""Where workers live: processes of this machine, a Dask cluster, or Ray, all through joblib."""

import contextlib
from collections.abc import Iterator
from typing import Literal

import joblib

from puicl_config import InputError

Backend = Literal["loky", "dask", "ray"]


@contextlib.contextmanager
def parallel_backend(name: Backend, jobs: int, address: str | None = None) -> Iterator[None]:
    """Make `joblib.Parallel` run on a backend with `jobs` workers.

    `address` joins a running cluster: a Dask scheduler's (tcp://host:port) or Ray's ("auto" or
    ray://host:port); without it, dask and ray start `jobs` local workers. Raises `InputError`
    where the backend is not installed or the cluster cannot be reached.
    """
    with contextlib.ExitStack() as stack:
        if name == "dask":
            stack.enter_context(_dask_client(jobs, address))
            stack.enter_context(joblib.parallel_config("dask", n_jobs=-1))
        elif name == "ray":
            stack.enter_context(_ray_session(jobs, address))
            stack.enter_context(joblib.parallel_config("ray", n_jobs=jobs))
        else:
            if address:
                raise InputError("--address is for the backends dask and ray")
            stack.enter_context(joblib.parallel_config(name, n_jobs=jobs, inner_max_num_threads=1))
        yield


@contextlib.contextmanager
def _dask_client(jobs: int, address: str | None) -> Iterator[None]:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError("the backend dask needs `pip install puicl[dask]`") from None
    if address:
        try:
            client = Client(address, timeout="30s")
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
        with client:
            yield
        return
    with (
        LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        yield


@contextlib.contextmanager
def _ray_session(jobs: int, address: str | None) -> Iterator[None]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise InputError("the backend ray needs `pip install puicl[ray]`") from None
    register_ray()
    try:
        if address:
            ray.init(address=address, log_to_driver=False)
        else:
            ray.init(num_cpus=jobs, include_dashboard=False, log_to_driver=False)
    except (ConnectionError, OSError, ValueError) as error:
        raise InputError(f"Ray cannot be reached at {address}: {error}") from None
    try:
        yield
    finally:
        ray.shutdown()
