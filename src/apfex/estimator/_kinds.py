"""From the model that a user asks for to encoders and kinds of cell models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, final

import numpy as np

from apfex.estimator._settings import Settings
from apfex.models import (
    ColumnsLearner,
    JointLearner,
    TreeLearner,
    TreeSettings,
    import_xgboost,
    network_learners,
)
from apfex.tables import TableEncoder


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of one family of models beside those of another.

    Attributes
    ----------
    encoders : mapping from family to fitted TableEncoder
        "networks", "trees", or both.
    """

    encoders: Mapping[str, TableEncoder]

    @staticmethod
    def fit(X: Any, y: np.ndarray, settings: Settings, n: int) -> Inputs:
        """Fit an encoder for each family; trees take categories and missing values as they are."""
        encoders = {}
        if settings.has_networks:
            encoders["networks"] = TableEncoder(bins=settings.bins_for(n)).fit(X, y)
        if settings.has_trees:
            import_xgboost()
            encoders["trees"] = TableEncoder(categories="codes").fit(X)
        return Inputs(encoders)

    def transform(self, X: Any) -> np.ndarray:
        """Rows as float32 [n, d]."""
        return np.hstack([encoder.transform(X) for encoder in self.encoders.values()])

    @property
    def names(self) -> list[str]:
        """Of the inputs of trees."""
        return [str(name) for name in self.encoders["trees"].get_feature_names_out()]

    @property
    def feature_types(self) -> list[str]:
        """Of the inputs of trees: "q" or "c"."""
        return self.encoders["trees"].feature_types_

    def trees(self, settings: Settings, n: int, seed: int) -> TreeSettings:
        """How to grow trees on n rows of these inputs."""
        constant = {str(name) for name in self.encoders["trees"].dropped_}
        return settings.trees(n, seed, self.names, self.feature_types, constant)

    @property
    def n_inputs(self) -> int:
        """Columns of all families."""
        return sum(encoder.n_features_out_ for encoder in self.encoders.values())

    def kinds(self, settings: Settings, n: int, seed: int) -> list[JointLearner]:
        """Kinds of cell models to train on n rows, each on its own inputs."""
        widths = [encoder.n_features_out_ for encoder in self.encoders.values()]
        places = pairwise(accumulate(widths, initial=0))
        found: list[JointLearner] = []
        for family, place in zip(self.encoders, places, strict=True):
            made: list[JointLearner]
            if family == "networks":
                made = [*network_learners(settings.hidden, settings.training(n, seed))]
            else:
                trees = self.trees(settings, n, seed)
                made = [TreeLearner(trees, self.feature_types, settings.n_folds)]
            found += made if len(widths) == 1 else [ColumnsLearner(kind, *place) for kind in made]
        return found
