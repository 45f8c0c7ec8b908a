"""Training many trade-offs together, as one population of models."""

from apfex.training._aims import Aims, weight_ladder
from apfex.training._cells import (
    CellKind,
    CellModel,
    CellRows,
    ColumnsModel,
    OfColumns,
    RuleModel,
    fit_cells,
)
from apfex.training._kinds import NetworkKind, network_kinds
from apfex.training._mlp import StackedMLP
from apfex.training._modules import StackedModules
from apfex.training._population import Population
from apfex.training._pressure import Pressure
from apfex.training._rows import TrainingRows
from apfex.training._rules import (
    Evidence,
    RuleSettings,
    Watch,
    fit_rules,
    given_groups,
    rule_scores,
)
from apfex.training._running import RunningMasses
from apfex.training._train import TrainingSettings, train_population

__all__ = [
    "Aims",
    "CellKind",
    "CellModel",
    "CellRows",
    "ColumnsModel",
    "Evidence",
    "NetworkKind",
    "OfColumns",
    "Population",
    "Pressure",
    "RuleModel",
    "RuleSettings",
    "RunningMasses",
    "StackedMLP",
    "StackedModules",
    "TrainingRows",
    "TrainingSettings",
    "Watch",
    "fit_cells",
    "fit_rules",
    "given_groups",
    "network_kinds",
    "rule_scores",
    "train_population",
    "weight_ladder",
]
