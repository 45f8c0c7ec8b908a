"""Training many trade-offs together, as one population of models."""

from apfex.training._aims import Aims, weight_ladder
from apfex.training._population import Population, StackedMLP, StackedModules
from apfex.training._running import RunningMasses
from apfex.training._train import TrainingRows, TrainingSettings, train_population

__all__ = [
    "Aims",
    "Population",
    "RunningMasses",
    "StackedMLP",
    "StackedModules",
    "TrainingRows",
    "TrainingSettings",
    "train_population",
    "weight_ladder",
]
