"""Synthetic tables whose unfairness is known exactly."""

from __future__ import annotations

from typing import Literal

import numpy as np

from apfex.arguments import as_generator, require_numbers
from apfex.datasets._dataset import Dataset
from apfex.memory import free_memory, in_bytes, is_too_much

_KINDS = ("crossing", "marginal", "none")
_SEX, _ORIGIN = ("female", "male"), ("north", "south")
_TOWNS = ("Ashford", "Bexley", "Corby", "Dover")
_LEANING = 0.7
_BYTES = 200
"""Of a row, while it is drawn."""


def make_biased(
    n: int = 2000,
    *,
    kind: Literal["crossing", "marginal", "none"] = "crossing",
    strength: float = 0.3,
    base_rate: float = 0.5,
    random_state: int | np.random.Generator | None = None,
) -> Dataset:
    """Make a table whose label depends on two sensitive attributes in a known way.

    Parameters
    ----------
    n : int, default 2000
        Rows.
    kind : "crossing", "marginal" or "none", default "crossing"
        Where the bias lies: at the crossing only (each attribute alone looks fair), in one
        attribute, or nowhere.
    strength : float, default 0.3
        Gap between the most and the least favoured group.
    base_rate : float, default 0.5
        Share of label 1 among all rows.
    random_state : int, Generator or None
        Seed; the same one gives the same table.

    Returns
    -------
    Dataset
        ``true_rates`` holds the exact probability of label 1 in each group. ``X`` has two numbers
        that tell of the label, one category that leans to the group, and two columns of noise.

    Notes
    -----
    ``sex`` and ``origin`` are independent and even, so each of the four groups expects a quarter
    of the rows. With s = ``strength``, P(y = 1) is ``base_rate`` + s/2 or ``base_rate`` - s/2:

    - "crossing": plus for (female, south) and (male, north), minus for the other two. Both values
      of either attribute average to ``base_rate``: the marginal gaps are 0, the crossing's is s.
    - "marginal": plus for male, minus for female; the gap in ``sex`` and at the crossing is s, in
      ``origin`` 0.
    - "none": ``base_rate`` everywhere.

    Given y, ``merit_1`` and ``merit_2`` are normal with mean y and variance 1, independent of the
    group. ``town`` is the group's own with probability 0.7, otherwise any of the four.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> data = make_biased(1000, kind="crossing", strength=0.4, random_state=0)
    >>> for (sex, origin), rate in data.true_rates.items():
    ...     print(sex, origin, round(rate, 3))
    female north 0.3
    female south 0.7
    male north 0.7
    male south 0.3
    """
    import pandas as pd

    _check(n, kind, strength, base_rate)
    rng = as_generator(random_state)
    sex, origin = rng.integers(0, 2, n), rng.integers(0, 2, n)
    rates = base_rate + strength / 2 * _signs(kind)  # [2, 2]
    y = (rng.random(n) < rates[sex, origin]).astype(np.int64)
    own = rng.random(n) < _LEANING
    town = np.where(own, 2 * sex + origin, rng.integers(0, len(_TOWNS), n))
    X = pd.DataFrame(
        {
            "merit_1": rng.normal(y, 1.0),
            "merit_2": rng.normal(y, 1.0),
            "town": np.array(_TOWNS)[town],
            "noise_1": rng.normal(size=n),
            "noise_2": rng.choice(["low", "middle", "high"], n),
        }
    )
    sensitive = pd.DataFrame({"sex": np.array(_SEX)[sex], "origin": np.array(_ORIGIN)[origin]})
    groups = pd.MultiIndex.from_product([_SEX, _ORIGIN], names=["sex", "origin"])
    return Dataset(
        X=X,
        y=y,
        sensitive=sensitive,
        favorable_label=1,
        name=f"biased-{kind}",
        description=f"Synthetic; bias: {kind}, strength {strength:g}, base rate {base_rate:g}.",
        licence="None needed: made up.",
        citation="None needed: made up.",
        true_rates=pd.Series(rates.ravel(), groups, name="rate"),
    )


def _signs(kind: str) -> np.ndarray:
    """Return the direction of the bias, rows by sex and columns by origin."""
    crossing, marginal = [[-1.0, 1.0], [1.0, -1.0]], [[-1.0, -1.0], [1.0, 1.0]]
    return np.array({"crossing": crossing, "marginal": marginal, "none": np.zeros((2, 2))}[kind])


def _check(n: int, kind: str, strength: float, base_rate: float) -> None:
    if not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be an integer of at least 1, got {n!r}.")
    if is_too_much(_BYTES * n):
        raise ValueError(
            f"n must be such that the table fits into memory, got {n:,} rows, which take "
            f"{in_bytes(_BYTES * n)} where {in_bytes(free_memory())} are free; use fewer."
        )
    require_numbers(strength=strength, base_rate=base_rate)
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}.")
    if not 0 <= base_rate - abs(strength) / 2 <= base_rate + abs(strength) / 2 <= 1:
        raise ValueError(
            "base_rate - strength / 2 and base_rate + strength / 2 must lie between 0 and 1, got "
            f"base_rate={base_rate!r} and strength={strength!r}; lower strength."
        )
