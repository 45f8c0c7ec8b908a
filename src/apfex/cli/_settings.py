"""What ``explore`` is asked for, as one value that is stored with the run and can be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, final

from apfex.cli._errors import CommandError, nearest
from apfex.cli._screen import shown
from apfex.cli._shape import Check, is_number, is_text, is_texts, is_whole, maybe


@final
@dataclass(frozen=True)
class ExploreSettings:
    """Options of ``explore``, checked where no data is needed for it."""

    source: str
    label: str | None = None
    positive: str | None = None
    favorable: str | None = None
    sensitive: tuple[str, ...] = ()
    bins: Mapping[str, Sequence[float]] | None = None
    drop: tuple[str, ...] = ()
    weight: str | None = None
    criteria: tuple[str, ...] = ("dp", "tpr")
    max_gap: Mapping[str, float] = field(default_factory=lambda: {"dp": 0.05})
    model: str = "mlp"
    search: str = "auto"
    points: int = 16
    seed: int = 0
    test_fraction: float = 0.25
    tolerance: float = 0.05
    confidence: float = 0.95
    encoding: str | None = None

    def check(self) -> None:
        """Refuse limits of the report that would stop it after the training."""
        from apfex.auditing import AuditSettings

        AuditSettings(self.criteria, self.tolerance, self.confidence)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> ExploreSettings:
        """From JSON; an option of another version is an error, not ignored."""
        names = {one.name for one in fields(ExploreSettings)}
        unknown = sorted(set(stored) - names)
        if unknown or "source" not in stored:
            raise CommandError(
                f"The settings of the run are of another version of apfex: {unknown or stored}."
            )
        for name, value in stored.items():
            if not _FITS[name](value):
                raise CommandError(
                    f"The settings of the run are damaged: {name} is {shown(repr(value), 40)}."
                )
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
        }
        return ExploreSettings(**values)

    @property
    def models(self) -> str | tuple[str, ...]:
        """As the classifier wants it."""
        return tuple(self.model.split("+")) if "+" in self.model else self.model


def _is_bounds(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_number, value.values()))


def _is_bins(value: Any) -> bool:
    lists = list(value.values()) if isinstance(value, dict) else [0]
    return all(isinstance(one, list) and all(map(is_number, one)) for one in lists)


_FITS: dict[str, Check] = {
    **dict.fromkeys(("source", "model", "search"), is_text),
    **dict.fromkeys(("label", "positive", "favorable", "weight", "encoding"), maybe(is_text)),
    **dict.fromkeys(("sensitive", "drop", "criteria"), is_texts),
    **dict.fromkeys(("points", "seed"), is_whole),
    **dict.fromkeys(("test_fraction", "tolerance", "confidence"), is_number),
    "max_gap": _is_bounds,
    "bins": maybe(_is_bins),
}


def read_criteria_option(given: Sequence[str]) -> tuple[str, ...]:
    """Criteria from values with commas between; our words for them."""
    from apfex.metrics import CRITERIA, read_criteria

    names = [name.strip() for value in given for name in value.split(",") if name.strip()]
    for name in names:
        if name not in CRITERIA:
            near = nearest(name, CRITERIA)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(sorted(CRITERIA))}."
            raise CommandError(f"--criteria: there is no {name!r}; {hint}")
    if not names:
        raise CommandError("--criteria must name at least one, such as dp or tpr.")
    return read_criteria(names)


def read_max_gap(text: str | None, criteria: Sequence[str]) -> dict[str, float]:
    """``0.05`` for all criteria, or ``dp=0.05,tpr=0.1``.

    By default 0.05 for the first: parity in several at once is often out of reach.
    """
    from apfex.metrics import read_criteria

    if text is None:
        return {criteria[0]: 0.05}
    if "=" not in text:
        return dict.fromkeys(criteria, _bound(text))
    bounds = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        found = read_criteria_option([name])
        if found[0] not in read_criteria(criteria):
            raise CommandError(f"--max-gap: {name.strip()} is not among --criteria.")
        bounds[found[0]] = _bound(value)
    return bounds


def _bound(text: str) -> float:
    try:
        bound = float(text)
    except ValueError:
        bound = -1.0
    if not 0 <= bound <= 1:
        raise CommandError(
            f"--max-gap must be a number from 0 to 1, or such as dp=0.05,tpr=0.1, got {text!r}."
        )
    return bound


def read_bins(given: Sequence[str]) -> dict[str, list[float]]:
    """``age=25,45,65``: where a column of numbers is cut."""
    found = {}
    for text in given:
        name, _, edges = text.rpartition("=")
        try:
            cuts = [float(edge) for edge in edges.split(",")]
        except ValueError:
            cuts = []
        if not name or not cuts or sorted(set(cuts)) != cuts:
            raise CommandError(
                f"--bins must be a column and rising numbers, such as age=25,45,65, got {text!r}."
            )
        found[name] = cuts
    return found
