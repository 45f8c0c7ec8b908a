"""The paper's own method in the paper's setting: one network, several losses, a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, final, get_args

from apfex.rates import RateName
from apfex.strategies import AdaptiveSwitch, Strategy
from apfex_reproduction.baselines._base import NetworkClassifier
from apfex_reproduction.baselines._inputs import Rows, require_groups
from apfex_reproduction.baselines._judge import Rule
from apfex_reproduction.baselines._losses import Form, Relaxation, Term
from apfex_reproduction.baselines._mamo import Family, check_values, places_of
from apfex_reproduction.baselines._weigh import Plan, ScaleKind

Variant = Literal["single", "multi", "intersectional"]
Steps = Literal["adam", "sgd"]


@final
class PaperAPFEx(NetworkClassifier):
    """APFEx as the paper runs it: one network whose gradients a switching rule combines.

    This is the method that is reproduced, beside those that it is compared with. To get the whole
    front of trade-offs, use :class:`apfex.APFExClassifier`.

    Parameters
    ----------
    variant : {"intersectional", "multi", "single"}
        Fairness losses over the cells of the crossing, over each attribute, or over one of them.
    criteria : sequence of {"dp", "tpr"}
    attribute : str, optional
        For "single", where there are several.
    losses : {"two_groups", "pairs"}, optional
        L_DP and L_TPR of Padh et al., for two groups, or L_fairDP and L_fairTPR over all pairs of
        any number of groups. By default as in the columns of the paper's tables: two groups for
        "single" and "multi", all pairs for "intersectional".
    strategy : Strategy, optional
        The paper's switching rule by default (:class:`~apfex.strategies.AdaptiveSwitch`).
    scales : {"largest", "mean", "range", "none"}
        What losses and gradients are divided by: the largest loss of a batch at the start, dropout
        off; the mean there, dropout on (MAMO's); the value of an uninformed model and the largest
        possible gap; nothing.
    relaxation : {"tanh", "ccr", "identity"}
        What stands for a decision in a fairness loss: the tanh step of steepness 5, the clipped
        ramp of half-width 0.25, or the probability itself.
    task_weight : float
        Share of the task in each fairness loss: of the squared error with "two_groups", of the
        cross-entropy with "pairs".
    steps : {"adam", "sgd"}
        "sgd" is plain gradient descent, for the paper's literal unit-length direction.
    epochs, batch_size, learning_rate, hidden, dropout, validation_fraction, random_state
        As for :class:`PlainNetwork`.
    selection, min_accuracy
        As for :class:`SMAMO`.

    Attributes
    ----------
    archive_, history_, epoch_, constant_, network_
        As for :class:`PlainNetwork`; the archive is by error and the gaps of the fairness losses.
    windows_ : DataFrame
        A row per window (an epoch; 10 steps where the batch is all rows): the strategy, and means
        over its steps: losses over their scales, weights, length of the direction, length of each
        scaled gradient (``norm0``, ...), ``omega`` (length of their shortest combination) and
        ``aligned`` (share of the pairs with a positive cosine).
    objectives_ : list of str
        What the losses are called.

    Notes
    -----
    Algorithm 1 of the paper [1]_ without its constraint step, which its tables do not use. All
    losses come from one forward pass; the step goes downhill (the paper's line 11 goes uphill).
    No code of the paper is public; ``docs/open_points.md`` says how each open point is settled.

    References
    ----------
    .. [1] P. Mondal, F. Ansari, S. Das, "APFEx: Adaptive Pareto Front Explorer for Intersectional
       Fairness", arXiv:2509.13908, 2025.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> data = make_biased(400, random_state=0)
    >>> clf = PaperAPFEx(epochs=10, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> clf.objectives_, clf.windows_["strategy"].iloc[0]
    (['cross-entropy', 'dp sex x origin', 'tpr sex x origin'], 'AW')
    """

    def __init__(
        self,
        variant: Variant = "intersectional",
        *,
        criteria: Sequence[RateName] = ("dp", "tpr"),
        attribute: str | None = None,
        losses: Family | None = None,
        strategy: Strategy | None = None,
        scales: ScaleKind = "largest",
        relaxation: Relaxation = "tanh",
        task_weight: float = 0.1,
        steps: Steps = "adam",
        epochs: int = 35,
        batch_size: int | None = 512,
        learning_rate: float = 1e-2,
        hidden: Sequence[int] = (60, 25),
        dropout: float = 0.2,
        selection: Rule = "nearest",
        min_accuracy: float | None = None,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.variant: Variant = variant
        self.criteria = criteria
        self.attribute = attribute
        self.losses: Family | None = losses
        self.strategy = strategy
        self.scales: ScaleKind = scales
        self.relaxation: Relaxation = relaxation
        self.task_weight = task_weight
        self.steps: Steps = steps
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.hidden = hidden
        self.dropout = dropout
        self.selection = selection
        self.min_accuracy = min_accuracy
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @property
    def family(self) -> Family:
        """The losses that are used: ``losses``, or those of the paper's column."""
        if self.losses is not None:
            return self.losses
        return "pairs" if self.variant == "intersectional" else "two_groups"

    def _plan(self, rows: Rows) -> Plan:
        self._check()
        axes, family = self._axes(rows), self.family
        check_values({place for _, place in axes}, rows, family, "PaperAPFEx")
        form: Form = "pairs" if family == "pairs" else "plain"
        terms = tuple(
            Term(rate, place, form, self.relaxation, self.task_weight) for rate, place in axes
        )
        strategy = AdaptiveSwitch() if self.strategy is None else self.strategy
        return Plan(terms, strategy=strategy, scales=self.scales, steps=self.steps)

    def _axes(self, rows: Rows) -> list[tuple[RateName, int]]:
        groups = require_groups(rows, "PaperAPFEx")
        if self.variant == "intersectional":
            places = [len(rows.groupings) - 1]
        else:
            if self.variant == "single" and self.attribute is None and len(groups.attributes) > 1:
                raise ValueError(
                    "attribute must name one of the sensitive features for variant='single', got "
                    f"None; they are {list(groups.attributes)}."
                )
            places = places_of(
                None if self.attribute is None else [self.attribute], rows, "PaperAPFEx"
            )
        return [(rate, place) for place in places for rate in self.criteria]

    def _check(self) -> None:
        for name, value, allowed in (
            ("variant", self.variant, get_args(Variant)),
            ("losses", self.family, get_args(Family)),
            ("scales", self.scales, get_args(ScaleKind)),
            ("relaxation", self.relaxation, get_args(Relaxation)),
            ("steps", self.steps, get_args(Steps)),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}.")
        known = ("dp", "tpr")
        if (
            isinstance(self.criteria, str)
            or not self.criteria
            or set(self.criteria) - set(known)
            or len(set(self.criteria)) < len(self.criteria)
        ):
            raise ValueError(
                f"criteria must be a sequence of 'dp' and 'tpr', got {self.criteria!r}."
            )
        if self.attribute is not None and self.variant != "single":
            raise ValueError(
                f"attribute is for variant='single' only, got {self.attribute!r} with "
                f"{self.variant!r}."
            )
        if not self.task_weight >= 0:
            raise ValueError(f"task_weight must be at least 0, got {self.task_weight}.")
        if self.strategy is not None and not isinstance(self.strategy, Strategy):
            raise TypeError(f"strategy must have a decide method, got {self.strategy!r}.")
