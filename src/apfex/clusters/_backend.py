"""Where jobs run: processes of this machine, a Dask cluster, or Ray, through joblib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, Literal

from apfex.arguments import require_whole
from apfex.extras import need_extra

BackendName = Literal["loky", "dask", "ray"]
_NAMES: tuple[BackendName, ...] = ("loky", "dask", "ray")


@contextmanager
def use_backend(
    backend: BackendName = "loky", *, scheduler: str | None = None, n_jobs: int = -1
) -> Iterator[None]:
    """Let everything that goes through joblib run there, for a while.

    Cross-validation and searches of scikit-learn do, and so do sweeps over seeds.

    Parameters
    ----------
    backend : {"loky", "dask", "ray"}
        Processes of this machine; a Dask cluster; Ray.
    scheduler : str, optional
        Address of the scheduler of a Dask cluster, as "tcp://10.0.0.5:8786", or of a Ray cluster.
        Without it Dask uses the cluster of the client that is in use, or starts workers with one
        thread each on this machine.
    n_jobs : int
        Processes; -1: one for each core. A cluster that runs already gives all its workers.

    Notes
    -----
    joblib's own Dask backend leaves each table with one worker, and what depends on it is lost with
    that worker. Here the scheduler keeps the tables, so that jobs of a worker that dies run again
    on another, whichever it was. Where no worker is left for a minute, the work ends with an error.

    Examples
    --------
    >>> from joblib import Parallel, delayed
    >>> with use_backend("loky", n_jobs=1):
    ...     Parallel()(delayed(abs)(number) for number in (-1, -2))
    [1, 2]
    """
    if backend not in _NAMES:
        raise ValueError(f"backend must be one of {', '.join(_NAMES)}, got {backend!r}.")
    require_whole(n_jobs=n_jobs)
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of processes, or -1 for one a core, got 0.")
    if backend == "loky" and scheduler is not None:
        raise ValueError(
            f"scheduler must be given with the backend dask or ray, got {scheduler!r} with loky."
        )
    from joblib import parallel_config

    with ExitStack() as stack:
        chosen: Any = backend
        if backend == "dask":
            chosen, n_jobs = _join_dask(stack, scheduler, n_jobs), -1
        elif backend == "ray":
            _join_ray(scheduler)
        stack.enter_context(parallel_config(backend=chosen, n_jobs=n_jobs))
        yield


def _join_dask(stack: ExitStack, scheduler: str | None, n_jobs: int) -> Any:
    """The backend of a cluster that runs, or of one of our own that ends with the stack."""
    need_extra("dask", "distributed", "The backend dask")
    from apfex.clusters._dask_client import (
        KeepingBackend,
        connect,
        running_scheduler,
        start_workers,
    )

    running, options = running_scheduler() if scheduler is None else (scheduler, {})
    if running is not None and n_jobs != -1:
        raise ValueError(
            f"n_jobs must be -1 on the cluster at {running}, which gives all its workers, got "
            f"{n_jobs}."
        )
    if running is None:
        running = stack.enter_context(start_workers(n_jobs))
    return KeepingBackend(client=stack.enter_context(connect(running, **options)))


def _join_ray(scheduler: str | None) -> None:
    ray = need_extra("ray", "ray", "The backend ray")
    bridge = import_module("ray.util.joblib")
    if scheduler is not None:
        ray.init(address=scheduler, ignore_reinit_error=True)
    bridge.register_ray()
