"""Soft memberships from learned scores."""

from __future__ import annotations

from torch import Tensor

from apfex.relaxations import ccr_step


def soft_memberships(
    scores: Tensor, threshold: float | Tensor = 0.5, width: float | Tensor = 0.25
) -> Tensor:
    """Soft memberships from (learned) membership scores, through the CCR step.

    Parameters
    ----------
    scores : Tensor of shape [n, k]
        How strongly row i belongs to group g; gradients flow back into it.
    threshold, width : float or Tensor of shape [k]
        Middle and half-width of the ramp, common or one per group.

    Returns
    -------
    Tensor of shape [n, k]
        h[i, g] in [0, 1]. A one-hot score is its own membership (for the defaults).

    Examples
    --------
    >>> import torch
    >>> soft_memberships(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    if scores.ndim != 2:
        raise ValueError(f"scores must have shape [n, k], got {list(scores.shape)}.")
    for name, value in (("threshold", threshold), ("width", width)):
        if isinstance(value, Tensor) and value.shape not in ((), (scores.shape[1],)):
            raise ValueError(
                f"{name} must be a number or have one entry for each of the {scores.shape[1]} "
                f"groups, got shape {list(value.shape)}."
            )
    return ccr_step(scores, threshold, width)
