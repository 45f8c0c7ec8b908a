"""What a classifier does on fresh rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from apfex.estimator._criteria import Criteria, gap_of_classes
from apfex.groups import Groups
from apfex.metrics import group_rates

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = ("gap", "lower", "upper", "p_value", "noise_floor")


@final
@dataclass(frozen=True, eq=False)
class Audit:
    """Gaps and rates of decisions on fresh rows.

    Attributes
    ----------
    gaps : pandas.DataFrame
        A row per criterion, rate and attribute (``crossing`` for the cells): gap, 95% interval,
        p-value of parity and noise floor.
    groups : pandas.DataFrame
        A row per rate and group: count, numerator, denominator, rate.

    Examples
    --------
    >>> from apfex import make_biased
    >>> from apfex.estimator import APFExClassifier
    >>> data, fresh = make_biased(n=400, random_state=0), make_biased(n=400, random_state=1)
    >>> clf = APFExClassifier(epochs=2, max_gap=1.0, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> audit = clf.audit(fresh.X, fresh.y, sensitive_features=fresh.sensitive)
    >>> audit.gaps["criterion"].tolist(), len(audit.groups)
    (['dp'], 4)
    """

    gaps: pd.DataFrame
    groups: pd.DataFrame

    def __repr__(self) -> str:
        """Both tables."""
        gaps, groups = self.gaps.round(3).to_string(), self.groups.round(3).to_string()
        return f"Gaps on fresh rows\n{gaps}\n\nRates of groups\n{groups}"


def audit_decisions(
    y: np.ndarray,
    decisions: np.ndarray,
    crossing: Groups,
    criteria: Criteria,
    grouping: str,
    sample_weight: np.ndarray | None,
    n_classes: int,
) -> Audit:
    """Measure decisions; labels and decisions are codes of classes."""
    import pandas as pd

    groupings = {"crossing": crossing}
    if grouping == "attributes":
        groupings = {name: crossing.parent(name) for name in crossing.attributes}
    rows, rates = [], []
    for name in criteria.names:
        for rate in criteria.rates_of(name):
            for attribute, groups in groupings.items():
                interval = gap_of_classes(y, decisions, rate, groups, sample_weight, n_classes)
                row = {"criterion": name, "rate": rate, "grouping": attribute}
                rows.append(row | {key: getattr(interval, key) for key in _SHOWN})
                table = group_rates(
                    y,
                    decisions,
                    rate=rate,
                    sensitive_features=groups,
                    sample_weight=sample_weight,
                    # Of several classes two may occur; the table is then of the last of them.
                    pos_label=max(1, int(y.max()), int(decisions.max())),
                )
                table.insert(0, "of", rate)
                rates.append(table)
    return Audit(pd.DataFrame(rows), pd.concat(rates, ignore_index=True))
