"""Boosted trees: the same front, with XGBoost."""

from apfex.boosting._arrays import EnsembleArrays, TreeArrays
from apfex.boosting._cells import TreeCells, TreeKind
from apfex.boosting._grow import grow_trunk
from apfex.boosting._members import BoostedMembers, RepairedTrees, boost_members
from apfex.boosting._strategic import Strategic
from apfex.boosting._trees import Trees, TreeSettings, import_xgboost, quantise

__all__ = [
    "BoostedMembers",
    "EnsembleArrays",
    "RepairedTrees",
    "Strategic",
    "TreeArrays",
    "TreeCells",
    "TreeKind",
    "TreeSettings",
    "Trees",
    "boost_members",
    "grow_trunk",
    "import_xgboost",
    "quantise",
]
