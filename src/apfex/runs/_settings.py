"""What a run is asked for, as one value that checks itself, is stored, and can be repeated."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Self, final, get_args, get_origin, get_type_hints

import numpy as np

from apfex.plain import printable
from apfex.sources import RunError, hint, unknown

Bins = Mapping[str, Sequence[float]]
Names = str | Sequence[str]
_TOLERANCE = 0.05
"""The limit of verdicts where none is given, and several criteria have several."""


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """What every run on a table is asked for; checked where no data is needed for it.

    ``source`` is the name of a data set, or a file; None for a frame. Of each argument the forms
    that users may write are taken, and one form is kept.
    """

    source: str | None
    label: str | None
    positive: str | tuple[str, ...] | None
    sensitive: tuple[str, ...]
    bins: Bins | None
    weight: str | None
    criteria: tuple[str, ...]
    tolerance: float
    confidence: float
    encoding: str | None

    def __post_init__(self) -> None:
        """Bring every argument into its one form."""
        from apfex.auditing import AuditSettings

        _check_kinds(self)
        source: Any = self.source
        is_named = isinstance(source, str | os.PathLike)
        self._set(
            source=os.fspath(source) if is_named else None,
            positive=_check_positive(self.positive),
            sensitive=as_names(self.sensitive),
            bins=_check_bins(self.bins),
            criteria=_check_criteria(self.criteria),
        )
        AuditSettings(self.criteria, self.tolerance, self.confidence)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """From the arguments of a function, which may have others."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls)})

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """From JSON; a setting of another version is an error, not ignored."""
        hints = get_type_hints(cls)
        strange = sorted(set(stored) ^ set(hints))
        if strange:
            raise RunError(
                f"The settings of the run are of another version of apfex: {strange}.",
                found=strange,
            )
        for name, value in stored.items():
            if not fits(value, hints[name]):
                raise RunError(
                    f"The settings of the run are damaged: {name} is {printable(repr(value), 40)}.",
                    found=printable(repr(value), 40),
                )
        return cls(**stored)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@final
@dataclass(frozen=True, kw_only=True)
class ExploreSettings(TableSettings):
    """Arguments of :func:`apfex.explore`."""

    favorable: str | None
    drop: tuple[str, ...]
    max_gap: Mapping[str, float]
    max_error_increase: float | None
    scoring: str
    cost: Mapping[str, float] | None
    class_weight: str | Mapping[str, float] | None
    selection_rate: float | None
    include_sensitive: bool
    group_thresholds: bool
    model: str
    search: str
    strategy: tuple[str, ...]
    points: int
    seed: int
    threads: int | None
    test_fraction: float
    sheet: str | None
    stream: bool | None

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """From JSON; runs from before tables were read in chunks were all in memory."""
        return super().from_dict({"stream": False, **stored})

    def __post_init__(self) -> None:
        """Bring every argument into its one form."""
        given: Any = self.tolerance
        self._set(tolerance=_TOLERANCE if given is None else given)
        super().__post_init__()
        self._set(
            favorable=None if self.favorable is None else spelled(self.favorable),
            drop=as_names(self.drop),
            max_gap=_check_max_gap(self.max_gap, self.criteria),
            model="+".join(as_names(self.model)),
            strategy=_check_strategy(self.strategy),
            cost=_check_cost(self.cost),
            class_weight=_check_class_weight(self.class_weight),
        )
        limits = {*self.max_gap.values()}
        if given is None and len(limits) == 1 and max(limits) < 1:  # 1 is no limit
            self._set(tolerance=limits.pop())  # one for choosing and for verdicts
        _check_share("max_error_increase", self.max_error_increase)
        _check_share("selection_rate", self.selection_rate, is_open=True)
        self._check_ranking()
        if not 0 < self.test_fraction < 1:
            raise RunError(
                f"{hint('test_fraction')} must lie between 0 and 1, got {self.test_fraction}.",
                found=self.test_fraction,
            )

    def _check_ranking(self) -> None:
        """Refuse what contradicts itself, before any data is read."""
        if self.cost is not None and self.scoring != "accuracy":
            raise RunError(
                f"{hint('cost')} must not be given with {hint('scoring')} {self.scoring}: "
                "models are "
                "ranked by one of the two.",
                found=self.scoring,
            )
        if self.class_weight is not None and (self.cost or self.scoring == "balanced_accuracy"):
            other = hint("cost") if self.cost else f"{hint('scoring')} balanced_accuracy"
            raise RunError(
                f"{hint('class_weight')} must not be given with {other}: both say what an error "
                "on an outcome costs.",
                found=self.class_weight,
            )
        for name, most in (("threads", _MOST_THREADS), ("points", _MOST_POINTS)):
            value = getattr(self, name)
            if value is not None and not (fits(value, int) and 1 <= value <= most):
                raise RunError(
                    f"{hint(name)} must be a whole number from 1 to {most:,}, got {value}.",
                    found=value,
                )

    def classifier_arguments(self) -> dict[str, Any]:
        """Those of the classifier that say how models are ranked and made.

        What was not asked for is left to its defaults.
        """
        costs = None
        if self.cost is not None:  # a row for each label, a column for each decision
            costs = [[0.0, self.cost["false_positive"]], [self.cost["false_negative"], 0.0]]
        models = self.model.split("+")
        weights = self.class_weight
        if isinstance(weights, Mapping):
            weights = {1: weights["positive"], 0: weights["negative"]}
        asked = {
            "class_weight": weights,
            "max_error_increase": self.max_error_increase,
            "cost_matrix": costs,
            "selection_rate": self.selection_rate,
            "n_jobs": self.threads,
        }
        return {
            "model": tuple(models) if len(models) > 1 else models[0],
            "search": self.search,
            "strategy": list(self.strategy),
            "n_points": self.points,
            "max_gap": dict(self.max_gap),
            "scoring": self.scoring,
            "group_thresholds": self.group_thresholds,
            "random_state": self.seed,
            **{name: value for name, value in asked.items() if value is not None},
        }


@final
@dataclass(frozen=True, kw_only=True)
class AuditFileSettings(TableSettings):
    """Arguments of :func:`audit_file`."""

    prediction: str
    positive_prediction: str | None
    threshold: float | None
    score: str | None
    metrics: tuple[str, ...]
    control: tuple[str, ...]
    min_count: float
    drop_missing: bool
    where: Mapping[str, str | Sequence[str]] | None
    table: str | None

    def __post_init__(self) -> None:
        """Bring every argument into its one form."""
        super().__post_init__()
        word = self.positive_prediction
        self._set(
            positive_prediction=None if word is None else spelled(word),
            metrics=tuple(map(str, named_metrics(self.metrics) or ())),
            control=as_names(self.control),
            where=_check_where(self.where),
        )
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise RunError(
                f"{hint('threshold')} must be a finite number, got {self.threshold}.",
                found=self.threshold,
            )
        if self.score is not None and self.threshold is not None:
            raise RunError(
                f"{hint('score')} must not be given with {hint('threshold')}: the "
                "predictions are scores then."
            )


_NAMES = ("model", "strategy", "criteria", "sensitive", "drop", "control")
"""Arguments that take one name, or several."""
_ANY = ("source", "positive", "favorable", "positive_prediction", "metrics", "class_weight")
"""Arguments that take values of a table, or what is checked elsewhere."""
_OWN_RULE = ("max_gap", "cost", "max_error_increase", "selection_rate", "tolerance", "confidence")
_OWN_RULE += ("where",)
_MOST_SEED, _MOST_THREADS, _MOST_POINTS = 2**32 - 1, 4_096, 2**31 - 1


def _check_kinds(given: TableSettings) -> None:
    """Refuse values of other kinds than the arguments are for, before anything is made of them."""
    for name, wanted in get_type_hints(type(given)).items():
        value, kinds = getattr(given, name), get_args(wanted) or (wanted,)
        if name in (*_ANY, *_OWN_RULE) or value is None:
            continue
        if name in _NAMES:
            several = [value] if isinstance(value, str) else value
            is_known = isinstance(several, list | tuple | set)
            fine = is_known and all(isinstance(one, str) for one in several)
            rule = "a name or several"
        elif str in kinds:
            fine, rule = isinstance(value, str), "a text"
        elif bool in kinds:
            fine, rule = isinstance(value, bool | np.bool_), "True or False"
        elif float in kinds and name != "bins":
            fine = isinstance(value, Real) and not isinstance(value, bool)
            rule = "a number"
        elif name == "bins":
            fine = isinstance(value, Mapping) and all(map(_is_numbers, value.values()))
            rule = "a mapping from columns to numbers, such as {'age': [25, 45]}"
        elif name == "seed":
            fine = isinstance(value, Integral) and not isinstance(value, bool)
            fine = fine and 0 <= int(value) <= _MOST_SEED
            rule = "a whole number from 0 to 2**32 - 1"
        else:
            continue
        if not fine:
            shown = printable(repr(value), 60)
            raise RunError(f"{hint(name)} must be {rule}, got {shown}.", found=value)


def _is_numbers(given: Any) -> bool:
    several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes)
    return several and all(isinstance(one, Real) and not isinstance(one, bool) for one in given)


def _check_where(given: Any) -> dict[str, Any] | None:
    """Which rows: columns and the values that they must have."""
    if given is None or not isinstance(given, Mapping):
        if given is not None:
            raise RunError(
                f"{hint('where')} must map columns to values, got {given!r}.", found=given
            )
        return None
    return dict(given) or None


def as_names(given: Names | None) -> tuple[str, ...]:
    """One name, or several."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def spelled(value: Any) -> str:
    """A value of a table as a user would write it: 1.0 is 1."""
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value) if is_whole else value)


def _check_positive(given: Any) -> str | tuple[str, ...] | None:
    """One value, or several that count as one, as a user would write them."""
    if isinstance(given, list | tuple | set):
        several = [spelled(value) for value in given]
        if not several:
            raise RunError(f"{hint('positive')} must name at least one value, got none.")
        return tuple(several) if len(several) > 1 else several[0]
    return None if given is None else spelled(given)


def _check_share(name: str, given: float | None, *, is_open: bool = False) -> None:
    """Refuse what is no share of something; ``is_open``: neither nothing nor everything."""
    if given is None:
        return
    is_share = fits(given, float) and 0 <= given <= 1
    if not is_share or (is_open and given in (0, 1)):
        rule = "lie between 0 and 1" if is_open else "be a number from 0 to 1"
        raise RunError(f"{hint(name)} must {rule}, got {given}.", found=given)


def _check_cost(given: Mapping[str, float] | None) -> dict[str, float] | None:
    """What the two kinds of errors cost."""
    if given is None:
        return None
    kinds = ("false_positive", "false_negative")
    stray = next((name for name in given if name not in kinds), None)
    if stray is not None:
        raise unknown(stray, kinds, f"{hint('cost')}: there is no '{stray}'")
    cost = {name: given.get(name, 1) for name in kinds}
    for name, value in cost.items():
        if not (fits(value, float) and 0 < value < float("inf")):
            raise RunError(
                f"{hint('cost')} must be a number above 0 for {name}, got {value}.", found=value
            )
    return {name: float(value) for name, value in cost.items()}


def _check_class_weight(given: Any) -> str | dict[str, float] | None:
    """How much errors on each of the two outcomes count."""
    if given is None or given == "balanced":
        return given
    if not isinstance(given, Mapping):
        raise RunError(
            f"{hint('class_weight')} must be balanced, or such as positive=5, got {given}.",
            found=given,
        )
    kinds = ("positive", "negative")
    stray = next((name for name in given if name not in kinds), None)
    if stray is not None:
        raise unknown(stray, kinds, f"{hint('class_weight')}: there is no '{stray}'")
    weights = {name: given.get(name, 1) for name in kinds}
    for name, value in weights.items():
        if not (fits(value, float) and 0 < value < float("inf")):
            raise RunError(
                f"{hint('class_weight')} must be a number above 0 for {name}, got {value}.",
                found=value,
            )
    return {name: float(value) for name, value in weights.items()}


def _check_criteria(given: Names) -> tuple[str, ...]:
    """Criteria by any of their names, also with commas between; our words for them."""
    from apfex.metrics import CRITERIA, read_criteria

    names = [name.strip() for value in as_names(given) for name in value.split(",")]
    for name in filter(None, names):
        if name not in CRITERIA:
            known = sorted(CRITERIA)
            raise unknown(name, known, f"{hint('criteria')}: there is no '{name}'")
    if not any(names):
        raise RunError(f"{hint('criteria')} must name at least one, such as dp or tpr.")
    return read_criteria([name for name in names if name])


def _check_strategy(given: Names) -> tuple[str, ...]:
    """Names of strategies, also with commas between."""
    from apfex.strategies import STRATEGIES

    names = [name.strip() for value in as_names(given) for name in value.split(",")]
    names = [name for name in names if name]
    stray = next((name for name in names if name not in STRATEGIES), None)
    if stray is not None:
        raise unknown(stray, list(STRATEGIES), f"{hint('strategy')}: there is no '{stray}'")
    if not names:
        raise RunError(f"{hint('strategy')} must name at least one, such as switch or pcp.")
    return tuple(names)


def named_metrics(given: Any) -> Any:
    """Metrics as names, also with commas between, or as a mapping to functions."""
    from apfex.metrics import METRIC_NAMES

    if given is None or isinstance(given, Mapping):
        return given
    names = [name.strip() for value in as_names(given) for name in str(value).split(",")]
    for name in filter(None, names):
        if name not in METRIC_NAMES:
            raise unknown(name, METRIC_NAMES, f"{hint('metrics')}: there is no '{name}'")
    return list(dict.fromkeys(filter(None, names)))


def _check_max_gap(
    given: float | Mapping[str, float] | None, criteria: Sequence[str]
) -> dict[str, float]:
    """Bounds: a number for all criteria, or one for each that is named.

    By default 0.05 for the first: parity in several at once is often out of reach.
    """
    if given is None:
        return {criteria[0]: 0.05}
    bounds = given if isinstance(given, Mapping) else dict.fromkeys(criteria, given)
    found: dict[str, Any] = {}
    for name, bound in bounds.items():
        of, *others = _check_criteria(name)
        if others or of in found:
            raise RunError(
                f"{hint('max_gap')} must name each criterion once, by itself, got {name!r}"
                f"{f' beside {of!r}' if of in found else ''}.",
                found=name,
            )
        found[of] = bound
    for name, bound in found.items():
        if name not in criteria:
            raise RunError(
                f"{hint('max_gap')}: {name} is not among {hint('criteria')}.", found=name
            )
        if not (fits(bound, float) and 0 <= bound <= 1):
            raise RunError(
                f"{hint('max_gap')} must be a number from 0 to 1, got {bound}.", found=bound
            )
    return {name: float(bound) for name, bound in found.items()}


def _check_bins(given: Bins | None) -> dict[str, list[float]]:
    """Where columns of numbers are cut."""
    found = {str(name): [float(cut) for cut in cuts] for name, cuts in (given or {}).items()}
    for name, cuts in found.items():
        if not all(map(math.isfinite, cuts)):
            raise RunError(
                f"{hint('bins')} must have finite numbers for '{name}', got {cuts}.", found=cuts
            )
        if not cuts or sorted(set(cuts)) != cuts:
            raise RunError(
                f"{hint('bins')} must have rising numbers for '{name}', such as 25, 45, 65, got "
                f"{cuts}.",
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
