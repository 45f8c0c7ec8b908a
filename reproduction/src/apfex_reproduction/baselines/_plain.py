"""The plain network: cross-entropy and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from apfex.rates import RateName
from apfex_reproduction.baselines._base import NetworkClassifier
from apfex_reproduction.baselines._inputs import Rows
from apfex_reproduction.baselines._judge import Rule
from apfex_reproduction.baselines._weigh import Plan


@final
class PlainNetwork(NetworkClassifier):
    """A network trained by cross-entropy alone: the paper's baseline.

    Parameters
    ----------
    epochs, batch_size, learning_rate
        Of Adam at a constant rate; ``batch_size=None``: all rows at once. The defaults are those
        for Adult, ``BUDGETS`` has the others. A last batch of less than half the size is left out.
    hidden : sequence of int
    dropout : float
    selection : {"accurate", "nearest", "fairest", "last"}
        Which epoch is kept, by validation rows: the most accurate; nearest to no error and no
        gaps; the one with the smallest largest gap among those of at least ``min_accuracy`` that
        are not constant; the last. Gaps need sensitive features.
    min_accuracy : float, optional
    validation_fraction : float
        Share of the rows that choose, where ``fit`` is given no others.
    random_state : int, RandomState or None

    Attributes
    ----------
    archive_ : ParetoFront
        The non-dominated epochs by error and gaps (dp and tpr of each attribute) on validation
        rows.
    history_ : DataFrame
        All epochs.
    epoch_ : int
    constant_ : bool
        Whether the chosen epoch is no better than a constant decision on the validation rows.
    network_ : nn.Module

    Notes
    -----
    The architecture is that of Padh et al. [1]_ (code: github.com/kirtanp/MAMO-fair): layers
    60-25-1, ReLU, dropout 0.2, normal weights of standard deviation 0.02, biases zero. Unlike
    there, numbers are standardised. Sensitive features are used for choosing only.

    References
    ----------
    .. [1] K. Padh, D. Antognini, E. Lejal-Glaude, B. Faltings, C. Musat, "Addressing Fairness in
       Classification with a Model-Agnostic Multi-Objective Algorithm", UAI 2021.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> data = make_biased(400, random_state=0)
    >>> clf = PlainNetwork(epochs=5, random_state=0).fit(data.X, data.y)
    >>> clf.predict_proba(data.X).shape
    (400, 2)
    """

    def __init__(
        self,
        *,
        epochs: int = 35,
        batch_size: int | None = 512,
        learning_rate: float = 1e-2,
        hidden: Sequence[int] = (60, 25),
        dropout: float = 0.2,
        selection: Rule = "accurate",
        min_accuracy: float | None = None,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.hidden = hidden
        self.dropout = dropout
        self.selection = selection
        self.min_accuracy = min_accuracy
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _plan(self, rows: Rows) -> Plan:  # noqa: ARG002 - the seam's signature
        return Plan()

    def _axes(self, rows: Rows) -> list[tuple[RateName, int]]:
        return [(rate, place) for place in range(len(rows.attributes)) for rate in ("dp", "tpr")]
