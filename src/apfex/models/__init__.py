"""Stacked networks, boosted trees, joint models of group and label, and decision rules on them."""

from apfex.models._boosting import BoostedMembers, RepairedTrees, boost_members
from apfex.models._decision_rules import (
    Evidence,
    RuleSettings,
    Watch,
    fit_rules,
    given_groups,
    rule_scores,
)
from apfex.models._gap_weights import Aims, weight_ladder
from apfex.models._grow import grow_trunk
from apfex.models._joint_learners import TreeCells, TreeKind
from apfex.models._joint_model import (
    CellKind,
    CellModel,
    CellRows,
    ColumnsModel,
    OfColumns,
    RuleModel,
    fit_cells,
)
from apfex.models._joint_networks import NetworkKind, network_kinds
from apfex.models._penalized_loss import Pressure
from apfex.models._population import Population
from apfex.models._rows import TrainingRows
from apfex.models._running import RunningMasses
from apfex.models._stacked_mlp import StackedMLP
from apfex.models._stacked_modules import StackedModules
from apfex.models._strategic import Strategic
from apfex.models._training import TrainingSettings, train_population
from apfex.models._tree_arrays import EnsembleArrays, TreeArrays
from apfex.models._trees import Trees, TreeSettings, import_xgboost, quantise

__all__ = [
    "Aims",
    "BoostedMembers",
    "CellKind",
    "CellModel",
    "CellRows",
    "ColumnsModel",
    "EnsembleArrays",
    "Evidence",
    "NetworkKind",
    "OfColumns",
    "Population",
    "Pressure",
    "RepairedTrees",
    "RuleModel",
    "RuleSettings",
    "RunningMasses",
    "StackedMLP",
    "StackedModules",
    "Strategic",
    "TrainingRows",
    "TrainingSettings",
    "TreeArrays",
    "TreeCells",
    "TreeKind",
    "TreeSettings",
    "Trees",
    "Watch",
    "boost_members",
    "fit_cells",
    "fit_rules",
    "given_groups",
    "grow_trunk",
    "import_xgboost",
    "network_kinds",
    "quantise",
    "rule_scores",
    "train_population",
    "weight_ladder",
]
