"""MLflow: runs, fronts and audits in its tracking store, models as folders without pickle."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import apfex
from apfex.estimator import APFExClassifier
from apfex.extras import need_extra
from apfex.integrations._figures import figures_of
from apfex.runs import AuditRun, Run

_LOADER = "apfex.integrations._mlflow_model"
"""Stored in models: this address stays."""
_AT_ONCE = {"metrics": 1000, "params": 100, "tags": 100}
_LONGEST = {"key": 250, "param": 6000, "tag": 5000}


def log_to_mlflow(what: Any, *, model: bool = True) -> str:
    """Log a run, a front, an audit or a training to the tracking store of MLflow.

    Parameters
    ----------
    what : Run, AuditRun, Audit, fitted APFExClassifier or History
        Settings become parameters; error and gaps with their intervals metrics, those of the
        points of a front under ``front/`` with the point as the step; report, model card and
        JSON files artifacts.
    model : bool
        Whether the model of a run or classifier is logged, too (:func:`log_mlflow_model`).

    Returns
    -------
    str
        The id of MLflow's run: the active one, or a new one that is ended.

    Examples
    --------
    >>> import tempfile
    >>> import mlflow  # doctest: +SKIP
    >>> mlflow.set_tracking_uri("sqlite:///mlflow.db")  # doctest: +SKIP
    >>> log_to_mlflow(run)  # doctest: +SKIP
    'b6a4c5f0c1d24a19a7d2ad0b2d0c4a57'
    """
    mlflow = need_extra("mlflow", "mlflow", "log_to_mlflow")
    found = figures_of(what)
    active = mlflow.active_run()
    with nullcontext(active) if active is not None else mlflow.start_run() as run:
        run_id = run.info.run_id
        series = [(0, found.metrics)]
        series += [
            (place, {f"front/{name}": value for name, value in point.items()})
            for place, point in enumerate(found.points)
        ]
        series += [(at, {f"training/{k}": v for k, v in row.items()}) for at, row in found.series]
        _log_batches(mlflow, run_id, found.params, series, found.tags)
        for name, text in found.texts.items():
            mlflow.log_text(text, f"apfex/{name}.md")
        with _files(what) as folder:
            if folder is not None:
                mlflow.log_artifacts(str(folder), "apfex")
        if model and isinstance(what, Run | APFExClassifier):
            log_mlflow_model(what)
    return run_id


def log_mlflow_model(what: Run | APFExClassifier, name: str = "model", **options: Any) -> Any:
    """Log a model that ``mlflow.pyfunc.load_model`` reads, without pickle.

    Parameters
    ----------
    what : Run or fitted APFExClassifier
    name : str
        Of the model.
    **options
        What else ``mlflow.pyfunc.log_model`` takes, such as ``registered_model_name`` or
        ``input_example``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its ``model_uri`` loads it. The model of a run gives the columns of ``run.predict``, that
        of a classifier labels; both take ``params={"point": 3}``.

    Examples
    --------
    >>> info = log_mlflow_model(clf, registered_model_name="hiring")  # doctest: +SKIP
    >>> mlflow.pyfunc.load_model(info.model_uri).predict(rows)  # doctest: +SKIP
    """
    pyfunc = _pyfunc("log_mlflow_model")
    with _stored(what) as folder, _without_advice():
        return pyfunc.log_model(name=name, **{**_flavour(what, folder), **options})


def save_mlflow_model(
    what: Run | APFExClassifier, path: str | os.PathLike[str], **options: Any
) -> Path:
    """Write the folder of a model of MLflow, as to serve it without a tracking store.

    Parameters
    ----------
    what : Run or fitted APFExClassifier
    path : path
        A folder that is not there yet.
    **options
        What else ``mlflow.pyfunc.save_model`` takes.

    Returns
    -------
    Path
        Of the folder.

    Examples
    --------
    >>> save_mlflow_model(run, "served")  # doctest: +SKIP
    """
    pyfunc = _pyfunc("save_mlflow_model")
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"path must not be there yet, got {target}; name another folder.")
    with _stored(what) as folder, _without_advice():
        pyfunc.save_model(path=str(target), **{**_flavour(what, folder), **options})
    return target


def _pyfunc(what: str) -> ModuleType:
    """MLflow's models; at its import it warns of type hints of its own, which are not ours."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return need_extra("mlflow", "mlflow.pyfunc", what)


@contextmanager
def _without_advice() -> Iterator[None]:
    """MLflow asks for an example of the inputs, to check a signature that we know."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s).*An input example", category=UserWarning)
        yield


@contextmanager
def _stored(what: Run | APFExClassifier) -> Iterator[Path]:
    """The folder of a run, or of a classifier, while it is copied."""
    if not isinstance(what, Run | APFExClassifier):
        raise TypeError(
            f"what must be a Run or a fitted APFExClassifier, got {type(what).__name__}."
        )
    with tempfile.TemporaryDirectory() as drafts:
        folder = Path(drafts) / "apfex"
        yield what.save(folder)


@contextmanager
def _files(what: Any) -> Iterator[Path | None]:
    """Report and JSON files of a run or audit; the model is logged on its own."""
    with tempfile.TemporaryDirectory() as drafts:
        folder = Path(drafts) / "apfex"
        if isinstance(what, Run):
            shutil.rmtree(what.save(folder) / "model")
        elif isinstance(what, AuditRun):
            what.save(folder)
        yield folder if folder.exists() else None


def _flavour(what: Run | APFExClassifier, folder: Path) -> dict[str, Any]:
    """What MLflow needs to know: who loads the folder, what it takes, what it needs."""
    from mlflow.models.signature import ModelSignature
    from mlflow.types.schema import ColSpec, DataType, ParamSchema, ParamSpec, Schema

    point = ParamSchema([ParamSpec("point", DataType.integer, _point_of(what))])
    inputs = None
    if isinstance(what, Run):
        kinds = {"number": DataType.double}
        inputs = Schema(
            [
                ColSpec(kinds.get(kind, DataType.string), name, required=False)
                for name, kind in what.record["features"].items()
            ]
        )
    return {
        "loader_module": _LOADER,
        "data_path": str(folder),
        "signature": ModelSignature(inputs=inputs, params=point),
        "pip_requirements": [f"apfex=={apfex.__version__}"],
    }


def _point_of(what: Run | APFExClassifier) -> int:
    return (what.classifier if isinstance(what, Run) else what).point_


def _log_batches(
    mlflow: Any,
    run_id: str,
    params: Mapping[str, str],
    series: Iterable[tuple[int, Mapping[str, float]]],
    tags: Mapping[str, str],
) -> None:
    """Few requests, however many steps there are; a store takes so many values at once."""
    from mlflow.entities import Metric, Param, RunTag

    client, names, now = mlflow.MlflowClient(), _Names(), int(1000 * time.time())
    rows = {
        "metrics": [
            Metric(names(name), value, now, at) for at, row in series for name, value in row.items()
        ],
        "params": [Param(names(k), v[: _LONGEST["param"]]) for k, v in params.items()],
        "tags": [RunTag(names(k), v[: _LONGEST["tag"]]) for k, v in tags.items()],
    }
    for kind, values in rows.items():
        for start in range(0, len(values), _AT_ONCE[kind]):
            part = {kind: values[start : start + _AT_ONCE[kind]]}
            client.log_batch(run_id, synchronous=True, **part)


class _Names:
    """Names as MLflow takes them; two that would become the same stay two."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        if name not in self._given:
            safe = re.sub(r"[^\w\-. :/]", "_", name)[: _LONGEST["key"] - 4]
            taken = set(self._given.values())
            numbered = (safe if n == 1 else f"{safe}_{n}" for n in range(1, len(taken) + 2))
            self._given[name] = next(one for one in numbered if one not in taken)
        return self._given[name]
