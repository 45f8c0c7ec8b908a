"""A table ready for a fairness study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


@final
@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table, its labels, and the sensitive columns beside it.

    Parameters
    ----------
    X : pandas.DataFrame with n rows
        Inputs, without the sensitive columns unless they were asked for.
    y : array of shape [n]
        Labels, 0 or 1.
    sensitive : pandas.DataFrame with n rows
        One column per sensitive attribute; same index as ``X``.
    favorable_label : int
        The outcome a person would want.
    name, description, licence, citation : str
    true_rates : pandas.Series, optional
        Known probability of label 1 in each group (synthetic tables only).

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> make_biased(100, random_state=0)
    <Dataset biased-crossing: 100 rows, 5 columns, sensitive: sex, origin, favorable label: 1>
    """

    X: pd.DataFrame
    y: NDArray[np.int64]
    sensitive: pd.DataFrame
    favorable_label: int
    name: str
    description: str
    licence: str
    citation: str
    true_rates: pd.Series | None = None

    def __repr__(self) -> str:
        """Return name and sizes in one line."""
        rows, columns = self.X.shape
        return (
            f"<Dataset {self.name}: {rows:,} rows, {columns} columns, "
            f"sensitive: {', '.join(self.sensitive.columns)}, "
            f"favorable label: {self.favorable_label}>"
        )
