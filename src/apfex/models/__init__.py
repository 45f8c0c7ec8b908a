"""Stacked networks, boosted trees, and joint models of group and label."""

from apfex.models._adam import Adam
from apfex.models._aims import Aims, spread_aims
from apfex.models._boosting import BoostedMembers, BoostedModel, boost_members
from apfex.models._calibration import calibrate, fit_calibration
from apfex.models._checkpoint import (
    NOWHERE,
    Checkpoint,
    as_it_is,
    check_codes,
    check_count,
    check_like,
    check_tensor,
    kept,
)
from apfex.models._explorer import Explorer
from apfex.models._groupings_model import GroupingsModel
from apfex.models._joint_learners import DECAY_ROWS, ColumnsLearner, network_learners
from apfex.models._joint_model import ColumnsModel, JointModel
from apfex.models._joint_trees import (
    Grown,
    JointTrees,
    TreeLearner,
    at_least_loss,
    groups_by_fold,
    paced,
    with_column,
)
from apfex.models._label_columns import InitModel, LabelColumnsLearner, LabelColumnsModel
from apfex.models._member_gradient import MemberGradient, MemberSchedule
from apfex.models._member_losses import cross_entropy_gradient
from apfex.models._mixture import JointLearner, fit_joint_model, mix_learners, mixture_gain
from apfex.models._modes import own_modes
from apfex.models._out_of_fold import OutOfFoldPredictions
from apfex.models._rows import JointRows, TrainingRows
from apfex.models._stacked_mlp import StackedMLP
from apfex.models._stacked_modules import StackedModules
from apfex.models._threads import beside, thread_count, use_threads
from apfex.models._training import TrainingSettings, cosine_rate, own_randomness, train_population
from apfex.models._trees import (
    Trees,
    TreeSettings,
    check_trees,
    fit_booster,
    objective_of,
    plain_matrix,
)

__all__ = ["TrainingRows", "TreeSettings", "Trees", "boost_members"]
