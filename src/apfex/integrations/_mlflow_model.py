"""What MLflow calls to load a model; models in its registries name this module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from apfex.estimator import APFExClassifier, load
from apfex.runs import Run, load_run


@final
class LoadedModel:
    """A run or a classifier, as ``mlflow.pyfunc`` uses it."""

    def __init__(self, model: Run | APFExClassifier) -> None:
        self.model = model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Decisions for rows; ``params`` may name a ``point`` of the front."""
        point = (params or {}).get("point")
        point = None if point is None else int(point)
        if isinstance(self.model, Run):
            return self.model.predict(model_input, point=point)
        used = self.model if point is None else self.model.at(point)
        return used.predict(model_input)


def _load_pyfunc(path: str) -> LoadedModel:
    """Read the folder: safetensors and JSON, nothing that runs."""
    is_run = (Path(path) / "run.json").exists()
    return LoadedModel(load_run(path) if is_run else load(path))
