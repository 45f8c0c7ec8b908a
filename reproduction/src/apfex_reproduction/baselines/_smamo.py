"""S-MAMO: the cross-entropy and one fairness loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, final

from apfex.rates import RateName
from apfex_reproduction.baselines._base import NetworkClassifier
from apfex_reproduction.baselines._inputs import Rows, require_groups
from apfex_reproduction.baselines._judge import Rule
from apfex_reproduction.baselines._mamo import (
    Family,
    SolverName,
    check_choices,
    check_values,
    places_of,
    plan_of,
)
from apfex_reproduction.baselines._weigh import Plan


@final
class SMAMO(NetworkClassifier):
    """S-MAMO: cross-entropy and one fairness loss, combined along the min-norm direction.

    Parameters
    ----------
    notion : {"dp", "tpr"}
        Demographic parity or equal opportunity.
    attribute : str, optional
        Which of several sensitive attributes; may be left out where there is one.
    losses : {"two_groups", "pairs"}
        The losses of Padh et al. for a two-valued attribute, or those over all pairs of any number
        of groups (:class:`~apfex.objectives.FairnessLoss`).
    solver : {"converged", "published"}
        "published" is what the public code comes to, see Notes.
    epochs, batch_size, learning_rate, hidden, dropout, validation_fraction, random_state
        As for :class:`PlainNetwork`.
    selection : {"nearest", "fairest", "accurate", "last"}
        Which epoch is kept, see :class:`PlainNetwork`; by default the authors' rule: of the
        non-dominated epochs the nearest to no error and no gap.
    min_accuracy : float, optional
        Least validation accuracy, for "fairest".

    Attributes
    ----------
    archive_, history_, epoch_, constant_, network_, windows_, objectives_
        As for :class:`PlainNetwork` and :class:`PaperAPFEx`; the archive is by error and
        the gap of ``notion``.

    Notes
    -----
    The method of [1]_ (code: github.com/kirtanp/MAMO-fair, trainer: github.com/swisscom/
    ai-research-mamo-framework). Gradients are divided by the mean of their loss over the training
    batches at the start, dropout on; the weights are those of the shortest vector in the hull of
    the gradients, and Adam takes the step. "two_groups" is
    ``|R_0 - R_1| + 0.1 * MSE``, R a group's mean of a tanh step of steepness 5. "published" differs
    in three ways: only rows whose step exceeds 1/2 count, with steepness 3 for dp, so that
    selecting nobody is a minimum (not with "pairs", which the public code does not have); every
    loss has a forward pass with a dropout of its own; and of three or more gradients the weights
    are those after one Frank-Wolfe step, as the public loop returns in its first round (for two
    gradients both are exact). A group that is absent from a batch makes the gap 0 here, and its
    rate 0 there.

    References
    ----------
    .. [1] K. Padh, D. Antognini, E. Lejal-Glaude, B. Faltings, C. Musat, "Addressing Fairness in
       Classification with a Model-Agnostic Multi-Objective Algorithm", UAI 2021.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> data = make_biased(400, random_state=0)
    >>> clf = SMAMO("dp", attribute="sex", epochs=5, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> clf.archive_.values.shape[1]
    2
    """

    def __init__(
        self,
        notion: Literal["dp", "tpr"] = "dp",
        *,
        attribute: str | None = None,
        losses: Family = "two_groups",
        solver: SolverName = "converged",
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
        self.notion: Literal["dp", "tpr"] = notion
        self.attribute = attribute
        self.losses: Family = losses
        self.solver: SolverName = solver
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.hidden = hidden
        self.dropout = dropout
        self.selection = selection
        self.min_accuracy = min_accuracy
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _plan(self, rows: Rows) -> Plan:
        check_choices(self.losses, self.solver)
        if self.notion not in ("dp", "tpr"):
            raise ValueError(f"notion must be 'dp' or 'tpr', got {self.notion!r}.")
        axes = self._axes(rows)
        check_values([place for _, place in axes], rows, self.losses, "SMAMO")
        return plan_of(axes, self.losses, self.solver)

    def _axes(self, rows: Rows) -> list[tuple[RateName, int]]:
        if self.attribute is None:
            require_groups(rows, "SMAMO without an attribute", most_attributes=1)
        wanted = None if self.attribute is None else [self.attribute]
        return [(self.notion, place) for place in places_of(wanted, rows, "SMAMO")]
