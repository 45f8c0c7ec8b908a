"""What ``fit`` asks of a stream: columns by their roles, and settings that a stream can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from apfex.estimator._inputs import column_names
from apfex.front import SearchSettings
from apfex.streams import Stream, StreamSettings


@final
@dataclass(frozen=True)
class Roles:
    """What the columns of a stream are taken for.

    Attributes
    ----------
    features : list of str
        Inputs of the model.
    label : str
    sensitive : list of str
        Empty where nobody named any.
    weight : str or None
    attributes : list of str
        What the sensitive columns are called in groups.
    """

    features: list[str]
    label: str
    sensitive: list[str]
    weight: str | None
    attributes: list[str]

    @property
    def known(self) -> list[str]:
        """Those that are no inputs, or need not be: label, sensitive columns and weight."""
        return [*self.sensitive, self.label, *([] if self.weight is None else [self.weight])]

    @property
    def crossed(self) -> list[str]:
        """Sensitive columns and the label: rows are counted by these."""
        return [*self.sensitive, self.label]

    def argument_of(self, name: str) -> str:
        """What ``fit`` calls one of these."""
        return "y" if name == self.label else "sensitive_features"

    @property
    def columns(self) -> list[str]:
        """All that must be read, once each."""
        return list(dict.fromkeys([*self.features, *self.known]))


def read_roles(
    stream: Stream,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
    *,
    sensitive: Sequence[str] | str | None,
    include_sensitive: bool,
) -> Roles:
    """Columns of a stream by the names that ``fit`` was given, or by what the stream says."""
    label = _column(stream, "y", y, stream.label)
    if label is None:
        raise ValueError(
            "y must name the column of the stream that holds the labels, got None; it has "
            f"{list(stream.columns)}."
        )
    weight = _column(stream, "sample_weight", sample_weight, stream.weight)
    if sensitive is not None and sensitive_features is not None:
        raise ValueError(
            "sensitive_features must be None where sensitive names columns of X, got both."
        )
    given = sensitive if sensitive is not None else sensitive_features
    argument = "sensitive" if sensitive is not None else "sensitive_features"
    groups = [*stream.sensitive] if given is None else _columns(stream, argument, given)
    if include_sensitive and sensitive is None and groups:
        raise ValueError(
            "include_sensitive must be False where sensitive_features are passed to fit, as "
            "predict would not have them; name columns of X in sensitive instead."
        )
    taken = [label, *([] if weight is None else [weight])]
    repeated = sorted({name for name in [*groups, *taken] if [*groups, *taken].count(name) > 1})
    if repeated:
        raise ValueError(
            f"y, sensitive_features and sample_weight must name different columns, got {repeated} "
            "more than once."
        )
    out = taken if include_sensitive else [*taken, *groups]
    features = [name for name in stream.columns if name not in out]
    if not features:
        raise ValueError("X must have a column that is an input of the model, got none.")
    attributes = [*stream.sensitive.values()] if given is None else groups
    return Roles(features, label, groups, weight, attributes)


def names_given(*given: Any) -> list[str]:
    """Names among arguments that may name columns, before those of the stream are known.

    Examples
    --------
    >>> names_given(None, "sex"), names_given(["sex", "race"], None)
    (['sex'], ['sex', 'race'])
    """
    several = ([one] if isinstance(one, str) else one for one in given if one is not None)
    lists = (one for one in several if isinstance(one, list | tuple))
    return [name for one in lists for name in one if isinstance(name, str)]


def _column(stream: Stream, argument: str, given: Any, own: str | None) -> str | None:
    """The column that an argument names; that of the stream itself where it is None."""
    if given is None:
        return own
    if not isinstance(given, str):
        raise TypeError(
            f"{argument} must be the name of a column where X is a stream, got "
            f"{type(given).__name__}; the stream has {list(stream.columns)}."
        )
    return _columns(stream, argument, [given])[0]


def _columns(stream: Stream, argument: str, given: Any) -> list[str]:
    is_names = isinstance(given, str | list | tuple) and all(isinstance(n, str) for n in given)
    if not is_names or not given:
        found = f"{given!r}" if is_names else type(given).__name__
        raise TypeError(
            f"{argument} must be names of columns where X is a stream, got {found}; the stream "
            f"has {list(stream.columns)}."
        )
    names = column_names(given)
    lacking = [name for name in names if name not in stream.columns]
    if lacking:
        raise ValueError(
            f"{argument} must name columns of the stream, got {lacking}; it has "
            f"{list(stream.columns)}."
        )
    return names


def read_streaming(given: StreamSettings | None, settings: SearchSettings) -> StreamSettings:
    """Settings of a stream; what cannot be had from one is refused before it is read."""
    if given is not None and not isinstance(given, StreamSettings):
        raise TypeError(f"streaming must be StreamSettings or None, got {type(given).__name__}.")
    reasons = {
        "search must be 'auto' or 'postprocess'": settings.search == "inprocess",
        "init must be None": settings.init is not None,
        "model must be of 'auto', 'mlp', 'linear' and 'boosting'": settings.estimator is not None,
        "validation must be 'auto' or 'split'": settings.validation == "cross",
    }
    for rule, broken in reasons.items():
        if broken:
            raise ValueError(
                f"{rule} where X is a stream, got another: only rules on models of ours learn from "
                "rows that are not all in memory. Give X as a table, or leave it at its default "
                "(a factory as model and monotone_constraints mean search='inprocess')."
            )
    return StreamSettings() if given is None else given
