"""Strategies: what is known at a step in, weights of the objectives out.

A strategy is a value without memory: what it needs of the past is in the history, and random
draws are functions of seed and step. All quantities have leading axes for members, so one call
serves a whole population.
"""

from apfex.strategies._base import Decision, StepView, Strategy
from apfex.strategies._cagrad import CAGrad
from apfex.strategies._cone import ConeProjection, active_min_norm, direction_length
from apfex.strategies._equal_and_mgda import MGDA, EqualWeights
from apfex.strategies._fixed import FixedWeights
from apfex.strategies._named import (
    STRATEGIES,
    check_strategies,
    check_weights,
    name_of,
    read_strategies,
)
from apfex.strategies._pcgrad import PCGrad
from apfex.strategies._sampling import SetSampling
from apfex.strategies._switch import AdaptiveSwitch, Choice
from apfex.strategies._tchebycheff import SmoothTchebycheff
from apfex.strategies._upgrad import UPGrad
from apfex.strategies._weighting import AdaptiveWeighting

__all__ = [
    "MGDA",
    "AdaptiveSwitch",
    "AdaptiveWeighting",
    "CAGrad",
    "ConeProjection",
    "Decision",
    "EqualWeights",
    "FixedWeights",
    "PCGrad",
    "SetSampling",
    "SmoothTchebycheff",
    "StepView",
    "Strategy",
    "UPGrad",
]
