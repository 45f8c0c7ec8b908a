"""The one query of an audit: rows that are alike in all that counts, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
import pandas as pd

from apfex.auditing._settings import MOST_GROUPS
from apfex.auditing._thresholds import precise_threshold
from apfex.engines import EngineTable, exact_sum, literal, place_among
from apfex.metrics import check_scale
from apfex.rates import Repeats
from apfex.tables import inferred

_MOST_ROWS = 40 * MOST_GROUPS
"""Different rows beyond which nothing more is fetched: no audit has so many groups."""
_WEIGHTS = ("w_sum", "w_squares", "w_low", "w_high")
UNSCORED = "unscored"


@final
@dataclass(frozen=True)
class Roles:
    """The columns of a table by what they are.

    ``threshold``: predictions are scores, from this one on favorable. ``bins``: where columns of
    numbers are cut; what comes back are places among the cuts. ``moments``: sums of scores that
    metrics need, "means" for Brier score and calibration, "log_loss".
    """

    prediction: str
    sensitive: tuple[str, ...]
    label: str | None = None
    control: tuple[str, ...] = ()
    score: str | None = None
    weight: str | None = None
    threshold: float | None = None
    bins: Mapping[str, Sequence[float]] = field(default_factory=dict)
    moments: tuple[str, ...] = ()

    @property
    def scored(self) -> str | None:
        """Column with scores, beside the decisions or instead of them."""
        return self.score if self.threshold is None else self.prediction

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, each once."""
        single = (self.prediction, self.label, self.score, self.weight)
        given = [name for name in single if name is not None]
        return tuple(dict.fromkeys([*given, *self.sensitive, *self.control]))

    @property
    def numeric(self) -> dict[str, str]:
        """Columns that are read as numbers, by the argument that named them."""
        given = {
            "weight": self.weight,
            "score" if self.threshold is None else "prediction": self.scored,
            **{f"bins of {name}": name for name in self.bins},
        }
        return {argument: name for argument, name in given.items() if name is not None}

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are read as numbers."""
        return tuple(self.numeric.values())


@final
@dataclass(frozen=True, eq=False)
class Tally:
    """Different rows of a table, and how many each stands for.

    Attributes
    ----------
    values : mapping from "prediction", "label", "unscored" or a sensitive or control column, as
        ("sensitive", name) or ("control", name), to its values [m]
    repeats : Repeats
    sums : mapping from a name to sums over the rows that each stands for [m]
    """

    values: Mapping[Any, pd.Series]
    repeats: Repeats
    sums: Mapping[str, np.ndarray]

    def frame(self, role: str) -> pd.DataFrame:
        """The sensitive, or the control columns."""
        own = {key[1]: column for key, column in self.values.items() if key[0] == role}
        return pd.DataFrame(own)

    def take(self, kept: np.ndarray) -> Tally:
        """Some of the different rows, by their places."""
        return Tally(
            {key: column.iloc[kept].reset_index(drop=True) for key, column in self.values.items()},
            self.repeats.take(kept),
            {name: part[kept] for name, part in self.sums.items()},
        )


@final
@dataclass(frozen=True, eq=False)
class TableQuery:
    """A table with its roles: every query that an audit makes."""

    source: EngineTable
    roles: Roles

    @staticmethod
    def of(source: EngineTable, roles: Roles) -> TableQuery:
        """Check kinds of columns first, so that nothing is read as what it is not."""
        source.check(roles.columns, roles.numbers)
        for argument, name in roles.numeric.items():
            if source.format != "csv":
                kind = source.table[name].type()
                if not (kind.is_numeric() or (kind.is_boolean() and argument == "weight")):
                    raise TypeError(
                        f"{argument} {name} must hold numbers, got values of type {kind}."
                    )
        return TableQuery(source, roles)

    def tally(self) -> Tally:
        """Rows by all keys; sums of weights and scores."""
        keys = self._keys("sensitive", "control") | self._prediction()
        roles, made = self.roles, self._weight_sums()
        if roles.scored is not None:
            score = self.source.number(self.source.table[roles.scored])
            keys[UNSCORED] = self.source.lacks(score)
            made |= {"s_low": score.min(), "s_high": score.max(), "s_sum": self._sum(score)}
            made |= self._moments(score.clip(0, 1))
        return self._grouped(keys, made | self._no_numbers())

    def by_place(self, cuts: Mapping[str, np.ndarray]) -> Tally:
        """Rows that have all they need, by place of the score among each of several cuts."""
        assert self.roles.scored is not None
        table = self.complete()
        query = replace_table(self, table)
        score = self.source.number(table[self.roles.scored])
        places = {name: place_among(score, own) for name, own in cuts.items()}
        sums = query._weight_sums() | {"s_weighted": query._sum(query._weighted(score))}
        return query._grouped(query._keys("sensitive") | places, sums, most=None)

    def complete(self) -> Any:
        """The table without rows that lack decision, label or score."""
        table, roles = self.source.table, self.roles
        for name in dict.fromkeys((roles.prediction, roles.label, roles.scored)):
            if name is not None:
                column = table[name]
                needed = self.source.number(column) if name == roles.scored else column
                table = table.filter(~self.source.lacks(needed))
        return table

    def _keys(self, *which: str) -> dict[Any, Any]:
        """Columns that rows are told apart by, in places where there are bins."""
        table, roles = self.source.table, self.roles
        keys: dict[Any, Any] = {}
        for role in which:
            for name in getattr(roles, role):
                if name not in roles.bins:
                    keys[role, name] = self.source.key(name)
                    continue
                number, bits = self.source.number(table[name]), self.source.bits(name)
                cuts = [precise_threshold(cut, bits) for cut in roles.bins[name]]
                keys[role, name] = self.source.lacks(number).ifelse(None, place_among(number, cuts))
        if roles.label is not None:
            keys["label"] = table[roles.label]
        return keys

    def _prediction(self) -> dict[Any, Any]:
        column, threshold = self.source.table[self.roles.prediction], self.roles.threshold
        if threshold is None:
            return {"prediction": column}
        score = self.source.number(column)
        cut = precise_threshold(threshold, self.source.bits(self.roles.prediction))
        return {"prediction": self.source.lacks(score).ifelse(None, place_among(score, [cut]))}

    def _weighted(self, values: Any) -> Any:
        if self.roles.weight is None:
            return values
        return values * self.source.number(self.source.table[self.roles.weight])

    def _sum(self, values: Any) -> Any:
        return exact_sum(values, self.source.engine)

    def _weight_sums(self) -> dict[str, Any]:
        if self.roles.weight is None:
            return {}
        weight = self.source.number(self.source.table[self.roles.weight])
        parts = (self._sum(weight), self._sum(weight * weight), weight.min(), weight.max())
        return {**dict(zip(_WEIGHTS, parts, strict=True)), "weighed": weight.count()}

    def _moments(self, p: Any) -> dict[str, Any]:
        """Sums by weight of powers of p, and of 1 - p, of which a label has one."""
        values: dict[str, Any] = {}
        if "means" in self.roles.moments:
            for name, q in (("p", p), ("q", 1 - p)):
                values |= {f"{name}1": q, f"{name}2": q * q, f"{name}4": q * q * q * q}
        if "log_loss" in self.roles.moments:
            low, high = literal(1e-15), literal(1 - 1e-15)  # polars clips by plain numbers alone
            inner = (p < low).ifelse(low, (p > high).ifelse(high, p))
            for name, q in (("p", inner), ("q", 1 - inner)):
                values |= {f"{name}_log": -q.ln(), f"{name}_log2": q.ln() * q.ln()}
        return {name: self._sum(self._weighted(value)) for name, value in values.items()}

    def _no_numbers(self) -> dict[str, Any]:
        """How many cells of CSV are no numbers, where these are wanted."""
        if self.source.format != "csv":
            return {}
        columns = {name: self.source.table[own] for name, own in self.roles.numeric.items()}
        return {
            f"text {argument}": (column.notnull() & self.source.number(column).isnull()).sum()
            for argument, column in columns.items()
        }

    def _check_numbers(self, own: Mapping[str, np.ndarray]) -> None:
        for argument, name in self.roles.numeric.items():
            strange = int(np.nansum(own.get(f"text {argument}", np.zeros(1))))
            if strange:
                raise TypeError(
                    f"{argument} {name} must hold numbers, with '{self.source.decimal}' before "
                    f"decimals, got other text in {strange:,} rows."
                )

    def _grouped(
        self, keys: Mapping[Any, Any], sums: Mapping[str, Any], most: int | None = _MOST_ROWS
    ) -> Tally:
        named = {f"k{place}": key for place, key in enumerate(keys.values())}
        table = self.source.table
        made = {f"v_{name}": one for name, one in sums.items()}
        grouped = table.group_by(**named).aggregate(v_rows=table.count(), **made)
        found = self.source.fetch(grouped if most is None else grouped.limit(most + 1))
        values = {key: self._series(found[f"k{place}"], key) for place, key in enumerate(keys)}
        if most is not None and found.num_rows > most:
            raise _too_many(values, most)
        rows = found["v_rows"].to_numpy().astype(np.int64)
        own = {name: _floats(found[f"v_{name}"]) for name in sums}
        self._check_numbers(own)
        weights = None
        if self.roles.weight is not None:
            self._check_weights(rows, own)
            weights = np.stack([own[name] for name in _WEIGHTS])
        return Tally(values, Repeats(rows, weights), own)

    def _series(self, column: Any, key: Any) -> pd.Series:
        import pyarrow as pa

        if self.source.format == "csv":
            is_code = isinstance(key, tuple) and key[1] not in self.roles.bins
            values = self.source.codes(key[1], column) if is_code else self.source.values(column)
            return inferred(pd.Series(values, dtype=object))
        whole = column.to_pandas(integer_object_nulls=True).reset_index(drop=True)
        return inferred(whole) if pa.types.is_integer(column.type) else whole

    def _check_weights(self, rows: np.ndarray, own: Mapping[str, np.ndarray]) -> None:
        """Refuse weights as :func:`apfex.metrics.read_inputs` does in memory."""
        lacking = int(rows.sum() - own["weighed"].sum())
        if lacking:
            raise ValueError(
                f"weight {self.roles.weight} must have a number in every row, got {lacking:,} rows "
                "without one."
            )
        ends = np.concatenate([own["w_low"], own["w_high"], own["w_sum"]])
        bad = ends[~np.isfinite(ends) | (ends < 0)]
        if bad.size:
            raise ValueError(
                f"weight {self.roles.weight} must be finite and at least 0, got {bad[0]:g}."
            )
        if len(rows) and not own["w_high"].any():
            raise ValueError(f"weight {self.roles.weight} must be positive somewhere, got zeros.")
        if len(rows):
            check_scale(f"weight {self.roles.weight}", float(own["w_high"].max()))


def replace_table(query: TableQuery, table: Any) -> TableQuery:
    """The same query of another table, as of some of the rows."""
    return replace(query, source=replace(query.source, table=table))


def _floats(column: Any) -> np.ndarray:
    return column.to_pandas().to_numpy(dtype=np.float64, na_value=np.nan)


def _too_many(values: Mapping[Any, pd.Series], most: int) -> ValueError:
    levels = {key: column.nunique() for key, column in values.items()}
    key, found = max(levels.items(), key=lambda pair: pair[1])
    name = key if isinstance(key, str) else f"{key[0]} {key[1]}"
    return ValueError(
        f"Columns must have few different values, got more than {most:,} different rows; "
        f"{name} alone has {found:,} or more values: is it an identifier, a number or a score? Put "
        "it into bins, merge levels or leave it out."
    )
