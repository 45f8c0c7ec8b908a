"""What a run is asked for, as one value that is stored with it and can be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import UnionType
from typing import Any, Literal, final, get_args, get_origin, get_type_hints

from apfex.plain import printable
from apfex.runs._errors import Argument, RunError, unknown

Bins = Mapping[str, Sequence[float]]
Names = str | Sequence[str]


@final
@dataclass(frozen=True)
class ExploreSettings:
    """Arguments of :func:`apfex.explore`, checked where no data is needed for it.

    ``source`` is the name of a data set, or a file; None for a frame.
    """

    source: str | None
    label: str | None = None
    positive: str | None = None
    favorable: str | None = None
    sensitive: tuple[str, ...] = ()
    bins: Bins | None = None
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
        if not 0 < self.test_fraction < 1:
            raise RunError(
                Argument("test_fraction"),
                f" must lie between 0 and 1, got {self.test_fraction}.",
                found=self.test_fraction,
            )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> ExploreSettings:
        """From JSON; a setting of another version is an error, not ignored."""
        hints = get_type_hints(ExploreSettings)
        strange = sorted(set(stored) - set(hints))
        if strange or "source" not in stored:
            raise RunError(
                f"The settings of the run are of another version of apfex: {strange or stored}.",
                found=strange,
            )
        for name, value in stored.items():
            if not fits(value, hints[name]):
                raise RunError(
                    f"The settings of the run are damaged: {name} is {printable(repr(value), 40)}.",
                    found=printable(repr(value), 40),
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


@final
@dataclass(frozen=True)
class AuditFileSettings:
    """Arguments of :func:`audit_file`, as they are stored with a run."""

    source: str
    prediction: str
    sensitive: tuple[str, ...]
    label: str | None = None
    positive: str | None = None
    threshold: float | None = None
    bins: Bins | None = None
    weight: str | None = None
    criteria: tuple[str, ...] = ("dp", "tpr")
    tolerance: float = 0.05
    confidence: float = 0.95
    min_count: float = 10
    drop_missing: bool = False
    encoding: str | None = None


def as_names(given: Names | None) -> tuple[str, ...]:
    """One name, or several."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def check_criteria(given: Names) -> tuple[str, ...]:
    """Criteria by any of their names, also with commas between; our words for them."""
    from apfex.metrics import CRITERIA, read_criteria

    names = [name.strip() for value in as_names(given) for name in value.split(",")]
    for name in filter(None, names):
        if name not in CRITERIA:
            known = sorted(CRITERIA)
            raise unknown(name, known, Argument("criteria"), f": there is no '{name}'")
    if not any(names):
        raise RunError(Argument("criteria"), " must name at least one, such as dp or tpr.")
    return read_criteria([name for name in names if name])


def check_max_gap(
    given: float | Mapping[str, float] | None, criteria: Sequence[str]
) -> dict[str, float]:
    """Bounds: a number for all criteria, or one for each that is named.

    By default 0.05 for the first: parity in several at once is often out of reach.
    """
    if given is None:
        return {criteria[0]: 0.05}
    bounds = given if isinstance(given, Mapping) else dict.fromkeys(criteria, given)
    found = {check_criteria(name)[0]: bound for name, bound in bounds.items()}
    for name, bound in found.items():
        if name not in criteria:
            raise RunError(
                Argument("max_gap"),
                f": {name} is not among ",
                Argument("criteria"),
                ".",
                found=name,
            )
        if not (fits(bound, float) and 0 <= bound <= 1):
            raise RunError(
                Argument("max_gap"), f" must be a number from 0 to 1, got {bound}.", found=bound
            )
    return {name: float(bound) for name, bound in found.items()}


def check_bins(given: Bins | None) -> dict[str, list[float]]:
    """Where columns of numbers are cut."""
    found = {str(name): [float(cut) for cut in cuts] for name, cuts in (given or {}).items()}
    for name, cuts in found.items():
        if not cuts or sorted(set(cuts)) != cuts:
            raise RunError(
                Argument("bins"),
                f" must have rising numbers for '{name}', such as 25, 45, 65, got {cuts}.",
                found=cuts,
            )
    return found


def fits(value: Any, hint: Any) -> bool:
    """Whether a value that was stored as JSON is of a type; whole numbers count from 0 on."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind is Literal:
        return value in inner
    if kind is UnionType:
        return any(fits(value, one) for one in inner)
    if kind in (tuple, Sequence):
        return isinstance(value, list) and all(fits(part, inner[0]) for part in value)
    if kind is Mapping:
        return isinstance(value, dict) and all(fits(part, inner[1]) for part in value.values())
    if hint in (int, float):
        number = isinstance(value, int if hint is int else int | float)
        return number and not isinstance(value, bool) and (hint is float or value >= 0)
    return isinstance(value, hint)
