"""M-MAMO: the cross-entropy and several fairness losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from apfex.rates import RateName
from apfex_reproduction.baselines._base import NetworkClassifier
from apfex_reproduction.baselines._inputs import Rows
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
class MMAMO(NetworkClassifier):
    """M-MAMO: cross-entropy, and for every attribute a loss for dp and one for tpr.

    Parameters
    ----------
    attributes : sequence of str, optional
        Which of the sensitive attributes; all by default. With a attributes there are 1 + 2a
        objectives; one is the paper's M-MAMO, several its "Multi" variant.
    losses : {"two_groups", "pairs"}
        The losses of Padh et al. for two-valued attributes, or those over all pairs of any number
        of groups.
    solver : {"converged", "published"}
        The min-norm weights, or what the public code comes to: see the notes of :class:`SMAMO`.
    epochs, batch_size, learning_rate, hidden, dropout, validation_fraction, random_state
        As for :class:`PlainNetwork`.
    selection : {"nearest", "fairest", "accurate", "last"}
    min_accuracy : float, optional
        As for :class:`SMAMO`.

    Attributes
    ----------
    archive_, history_, epoch_, constant_, network_, windows_, objectives_
        As for :class:`PlainNetwork` and :class:`PaperAPFEx`; the archive is by error and
        the gaps that are minimised.

    Notes
    -----
    Each attribute is taken by itself, never the crossing. Source, scales and what "published"
    means: see :class:`SMAMO` and [1]_ (code: github.com/kirtanp/MAMO-fair).

    References
    ----------
    .. [1] K. Padh, D. Antognini, E. Lejal-Glaude, B. Faltings, C. Musat, "Addressing Fairness in
       Classification with a Model-Agnostic Multi-Objective Algorithm", UAI 2021.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> data = make_biased(400, random_state=0)
    >>> clf = MMAMO(epochs=5, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> clf.archive_.values.shape[1]
    5
    """

    def __init__(
        self,
        *,
        attributes: Sequence[str] | None = None,
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
        self.attributes = attributes
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
        axes = self._axes(rows)
        check_values([place for _, place in axes[::2]], rows, self.losses, "MMAMO")
        return plan_of(axes, self.losses, self.solver)

    def _axes(self, rows: Rows) -> list[tuple[RateName, int]]:
        wanted = [self.attributes] if isinstance(self.attributes, str) else self.attributes
        places = places_of(wanted, rows, "MMAMO")
        return [(rate, place) for place in places for rate in ("dp", "tpr")]
