"""Dominance, hypervolume and the archive of non-dominated points; smaller is better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, final, overload

import numpy as np
from numpy.typing import ArrayLike

from apfex.arguments import as_names

if TYPE_CHECKING:
    from torch import Tensor


@overload
def non_dominated(values: Tensor) -> Tensor: ...
@overload
def non_dominated(values: ArrayLike) -> np.ndarray: ...
def non_dominated(values: ArrayLike | Tensor) -> np.ndarray | Tensor:
    """Which points no other point dominates.

    Parameters
    ----------
    values : numbers of shape [n, m]
        Without NaN.

    Returns
    -------
    boolean array of shape [n], or Tensor for a Tensor
        Copies of a non-dominated point are all marked.

    Notes
    -----
    Computed by moocore.

    Examples
    --------
    >>> non_dominated(np.array([[0.1, 0.9], [0.5, 0.5], [0.6, 0.5], [0.5, 0.5]]))
    array([ True,  True, False,  True])
    """
    points = _to_numpy("values", values)
    if points.ndim != 2 or np.isnan(points).any():
        raise ValueError(
            f"values must have shape [n, m] and no NaN, got shape {list(points.shape)} with "
            f"{int(np.isnan(points).sum())} NaN."
        )
    mask = np.ones(len(points), dtype=bool)
    if points.size:
        import moocore

        mask = moocore.is_nondominated(points, keep_weakly=True)
    if not _is_tensor(values):
        return mask
    import torch

    return torch.from_numpy(mask).to(values.device)


def hypervolume(values: ArrayLike | Tensor, reference: ArrayLike) -> float:
    """Volume that the points dominate, up to a reference point.

    Parameters
    ----------
    values : numbers of shape [n, m]
    reference : numbers of shape [m]
        The worst value that counts in each objective. Points that are not better than it in
        every objective contribute nothing.

    Notes
    -----
    Computed by moocore.

    Examples
    --------
    >>> hypervolume([[0.25, 0.75], [0.5, 0.5]], reference=[1.0, 1.0])
    0.3125
    """
    points, limit = _to_numpy("values", values), _to_numpy("reference", reference)
    if limit.ndim != 1 or not np.isfinite(limit).all():
        raise ValueError(f"reference must be m finite numbers, got {reference!r}.")
    if points.size == 0:
        return 0.0
    if points.ndim != 2 or points.shape[1] != len(limit):
        raise ValueError(
            f"values must have shape [n, {len(limit)}], one column per entry of reference, got "
            f"{list(points.shape)}."
        )
    if np.isnan(points).any():
        raise ValueError(f"values must have no NaN, got {int(np.isnan(points).sum())}.")
    inside = points[(points < limit).all(axis=1)]
    if len(inside) == 0:
        return 0.0
    if len(limit) == 1:
        return float(limit[0] - inside.min())
    import moocore

    return float(moocore.hypervolume(inside, ref=limit))


@final
@dataclass(frozen=True)
class FrontPoint:
    """A point of the front: its m objective values, and what was stored with it.

    Examples
    --------
    >>> FrontPoint((0.2, 0.6), "model 3").payload
    'model 3'
    """

    values: tuple[float, ...]
    payload: Any = None


@final
class ParetoFront:
    """Archive of the points that no other point dominates.

    It changes over time, by design: points come in, and points that they dominate go. Whatever
    the order in which points come, the same values remain; of equal points the first is kept.

    Parameters
    ----------
    points : iterable of FrontPoint or of m numbers, optional

    Examples
    --------
    >>> front = ParetoFront()
    >>> front.insert([0.2, 0.6], "a"), front.insert([0.5, 0.5], "b"), front.insert([0.6, 0.6], "c")
    (True, True, False)
    >>> [point.payload for point in front]
    ['a', 'b']
    >>> front.best(0, {1: 0.55}).payload
    'b'
    """

    def __init__(self, points: Iterable[FrontPoint | Sequence[float]] = ()) -> None:
        self._points: list[FrontPoint] = []  # in the order in which they came
        self._table = np.zeros((0, 0))  # their values, and room for more points
        self.extend(as_names("points", points))

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self._points)

    def __iter__(self) -> Iterator[FrontPoint]:
        """Go through the points by rising first objective."""
        return iter(sorted(self._points, key=lambda point: point.values))

    def __repr__(self) -> str:
        """Show how many points there are, and of how many objectives."""
        return f"<ParetoFront: {len(self)} points, {self._m} objectives>"

    @property
    def values(self) -> np.ndarray:
        """Values of all points, shape [n, m], by rising first objective."""
        return np.array([point.values for point in self]).reshape(len(self), self._m)

    def insert(self, values: ArrayLike | Tensor, payload: Any = None) -> bool:
        """Offer a point; return whether it is now on the front."""
        return self._offer(_read_point(values, self._m), payload)

    def extend(self, points: Iterable[FrontPoint | Sequence[float]]) -> None:
        """Offer many points: rows of numbers, ``FrontPoint`` or another front.

        All are checked before the first comes in, so that an error changes nothing.
        """
        offers, m = [], self._m
        for point in points:
            known = isinstance(point, FrontPoint)
            values = _read_point(point.values if known else point, m)
            offers.append((values, point.payload if known else None))
            m = len(values)
        for values, payload in offers:
            self._offer(values, payload)

    def nearest(self, target: ArrayLike) -> FrontPoint:
        """Return the point at the smallest Euclidean distance from ``target`` (MAMO's rule)."""
        self._require_points()
        goal = _to_numpy("target", target)
        if goal.ndim != 1 or not np.isfinite(goal).all():
            raise ValueError(f"target must be {self._m} finite numbers, got {goal.tolist()}.")
        _check_length("target", goal.size, self._m)
        return list(self)[int(np.linalg.norm(self.values - goal, axis=1).argmin())]

    def best(self, objective: int, bounds: Mapping[int, float] | None = None) -> FrontPoint:
        """Return the point with the smallest ``objective`` among those within ``bounds``.

        Parameters
        ----------
        objective : int
        bounds : mapping from objective to its largest allowed value, optional
            If no point meets all of them, the error names the one that misses by least.
        """
        self._require_points()
        bounds = dict(bounds or {})
        values = self.values
        for name, indexes in (("objective", [objective]), ("bounds", list(bounds))):
            if not all(0 <= index < self._m for index in indexes):
                raise ValueError(
                    f"{name} must name objectives from 0 to {self._m - 1}, got {indexes}."
                )
        limits = np.full(self._m, np.inf)
        limits[list(bounds)] = list(bounds.values())
        excess = (values - limits).max(axis=1)
        allowed = np.flatnonzero(excess <= 0)
        if not len(allowed):
            near = list(self)[int(excess.argmin())]
            raise ValueError(
                f"No point is within the bounds {bounds}; the nearest has the values "
                f"{list(near.values)} and misses by {excess.min():.4g}."
            )
        return list(self)[int(allowed[values[allowed, objective].argmin()])]

    @property
    def _m(self) -> int:
        """Number of objectives; 0 before the first point."""
        return self._table.shape[1]

    def _offer(self, values: np.ndarray, payload: Any) -> bool:
        n = len(self)
        known = self._table[:n].reshape(n, len(values))
        if (known <= values).all(axis=1).any():
            return False
        stays = np.flatnonzero((known < values).any(axis=1))
        if len(stays) < n:
            n = len(stays)
            self._points = [self._points[index] for index in stays]
            self._table[:n] = known[stays]
        if n == len(self._table):  # twice the room, so that a point rarely means a new table
            self._table = np.zeros((max(2 * n, 16), len(values)))
            self._table[:n] = known
        self._table[n] = values
        self._points.append(FrontPoint(tuple(values.tolist()), payload))
        return True

    def _require_points(self) -> None:
        if not self._points:
            raise ValueError("The front has no points yet; insert some first.")


def _read_point(values: Any, m: int) -> np.ndarray:
    """Check a point of m objectives, or of any number where m is 0 as none is known yet."""
    array = _to_numpy("values", values)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise ValueError(f"values must be m finite numbers, got {array.tolist()}.")
    _check_length("values", len(array), m or len(array))
    return array + 0.0  # which turns -0 into 0


def _check_length(name: str, found: int, m: int) -> None:
    if found != m:
        raise ValueError(f"{name} must have one number per objective ({m}), got {found}.")


def _to_numpy(name: str, values: Any) -> np.ndarray:
    if _is_tensor(values):
        values = values.detach().cpu().double().numpy()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, got {values!r}.") from error


def _is_tensor(values: Any) -> TypeGuard[Tensor]:
    return hasattr(values, "detach")  # without an import of torch
