"""Ensembles of XGBoost as stored: checked, read into arrays, and answering a few rows at once."""

from apfex.boosters._arrays import EnsembleArrays, TreeArrays, read_ensemble
from apfex.boosters._check import read_booster, written_again
from apfex.boosters._few_rows import FewRows, few_rows_of

__all__: list[str] = []
