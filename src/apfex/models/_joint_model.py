"""The joint model: probabilities of group and label together, cross-fitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import final

import torch
from torch import Tensor, nn

from apfex.models._calibration import calibrate_joint

TINY = 1e-30


@final
class JointModel(nn.Module):
    """Probabilities of each group and label given the inputs: a weighted mean of models.

    Parameters
    ----------
    models : sequence of modules with k * c logits as outputs
    weights : sequence of float
        Weights of the models' probabilities; they sum to one.
    shape : pair of int
        k and c.
    calibration : sequence of 1 + c floats, optional
        A slope and offsets that mend the probabilities of the label; those of the group given the
        label stay as they are. See :func:`fit_calibration`.
    cells : int64 Tensor of shape [cells, s], optional
        Where the k groups are those of s groupings of many cells: the groups of each cell.

    Examples
    --------
    >>> model = JointModel([nn.Linear(3, 4)], [1.0], (2, 2))
    >>> model(torch.zeros(5, 3)).shape
    torch.Size([5, 2, 2])
    """

    cells: Tensor | None

    def __init__(
        self,
        models: Sequence[nn.Module],
        weights: Sequence[float],
        shape: tuple[int, int],
        calibration: Sequence[float] | None = None,
        cells: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("cells", cells)
        self.calibration = None if calibration is None else tuple(map(float, calibration))
        self.models = nn.ModuleList(models)
        self.weights = tuple(weights)
        self.shape = shape

    def mixture(self) -> dict[str, float]:
        """Return how much each kind of model counts, by the names of ``model=``.

        A user's own model goes by the name of its class.
        """
        shares: dict[str, float] = {}
        for weight, model in zip(self.weights, self.models, strict=True):
            kind = kind_of(model)
            shares[kind] = shares.get(kind, 0.0) + weight
        return {kind: round(share, 4) for kind, share in shares.items()}

    def forward(self, x: Tensor) -> Tensor:
        """Return probabilities [n, k, c]."""
        parts = zip(self.weights, _logits(self.models, x), strict=True)
        total = sum(weight * torch.softmax(logits, 1) for weight, logits in parts)
        joint = torch.as_tensor(total).unflatten(1, self.shape)
        return joint if self.calibration is None else calibrate_joint(joint, self.calibration)

    def of_cells(self, cells: Tensor) -> JointModel:
        """The same models, where the groups are those of several groupings of many cells."""
        return JointModel(
            list(self.models), self.weights, self.shape, self.calibration, cells.to(torch.int64)
        )

    def given(self, probabilities: Tensor, codes: Tensor) -> Tensor:
        """Condition probabilities [n, k, c] on known groups, or cells, [n]; -1: not known."""
        if self.cells is not None:
            own = self.cells[codes.clamp_min(0)]
            codes = torch.where((codes >= 0).unsqueeze(1), own, -1)
        return given_groups(probabilities, codes)


@final
class ColumnsModel(nn.Module):
    """A model that is given some of the inputs only.

    Parameters
    ----------
    model : module
    start, stop : int
        The model sees the inputs from ``start`` up to, but not including, ``stop``.

    Examples
    --------
    >>> ColumnsModel(nn.Linear(2, 4), 1, 3)(torch.zeros(5, 3)).shape
    torch.Size([5, 4])
    """

    def __init__(self, model: nn.Module, start: int, stop: int) -> None:
        super().__init__()
        self.model, self.start, self.stop = model, start, stop
        self.kind = kind_of(model)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of the model."""
        return self.model(x[:, self.start : self.stop])


def _logits(models: Iterable[nn.Module], x: Tensor) -> Iterator[Tensor]:
    """What each model says of the rows; neighbours that are linear take one product together."""
    for inputs, neighbours in groupby(models, _inputs_of_layer):
        some = list(neighbours)
        if inputs is None:
            yield from (model(x) for model in some)
            continue
        layers = [_layer(model) for model in some]
        weight = torch.cat([layer.weight for layer in layers])
        bias = torch.cat([layer.bias for layer in layers])
        outputs = nn.functional.linear(x[:, slice(*inputs)], weight, bias)
        yield from outputs.split([layer.out_features for layer in layers], 1)


def _inputs_of_layer(model: nn.Module) -> tuple[int, int | None] | None:
    """Where the inputs of a model begin and end that is one linear layer; None of any other."""
    if isinstance(model, ColumnsModel):
        return (model.start, model.stop) if _inputs_of_layer(model.model) else None
    is_layer = isinstance(model, nn.Linear) or (
        isinstance(model, nn.Sequential) and len(model) == 1 and isinstance(model[0], nn.Linear)
    )
    return (0, None) if is_layer else None


def _layer(model: nn.Module) -> nn.Linear:
    return next(part for part in model.modules() if isinstance(part, nn.Linear))


def kind_of(model: nn.Module) -> str:
    """What ``model=`` calls a module: what it says itself; of a network, by its layers.

    Examples
    --------
    >>> kind_of(nn.Linear(2, 4)), kind_of(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4)))
    ('linear', 'mlp')
    """
    kind = getattr(model, "kind", None)
    if isinstance(kind, str):
        return kind
    if not isinstance(model, nn.Linear | nn.Sequential):
        raise TypeError(
            "models must be linear layers, sequences of layers, or have a kind, got "
            f"{type(model).__name__} without one."
        )
    layers = [part for part in model.modules() if isinstance(part, nn.Linear)]
    return "linear" if len(layers) == 1 else "mlp"


def given_groups(probabilities: Tensor, codes: Tensor) -> Tensor:
    """Condition probabilities [n, k, c] on known groups [n]; a code of -1 leaves a row as it is.

    With codes [n, s] on a known group of each of s groupings, which count the same.

    Examples
    --------
    >>> given_groups(torch.tensor([[[0.4, 0.1], [0.2, 0.3]]]), torch.tensor([1]))
    tensor([[[0.0000, 0.0000],
             [0.4000, 0.6000]]])
    """
    places = codes.clamp_min(0).view(len(codes), -1)
    own = torch.zeros_like(probabilities[:, :, 0]).scatter_(1, places, 1.0)
    kept = probabilities * own.unsqueeze(2)
    if codes.ndim == 2:
        known = kept / (codes.shape[1] * kept.sum(2, keepdim=True)).clamp_min(TINY)
        return torch.where((codes >= 0).all(1)[:, None, None], known, probabilities)
    known = kept / kept.sum((1, 2), keepdim=True).clamp_min(TINY)
    return torch.where((codes >= 0)[:, None, None], known, probabilities)
