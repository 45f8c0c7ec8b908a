"""Chunks of a table on disk as the rows of a run: features, labels, groups, weights and strata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.runs._columns import (
    FeatureType,
    check_features,
    find_columns,
    group_columns,
    is_numeric,
    make_features,
    read_groups,
    with_days,
)
from apfex.runs._data import MOST_LEVELS
from apfex.runs._dates import is_date
from apfex.runs._labels import MISSING, read_outcomes
from apfex.runs._settings import ExploreSettings
from apfex.sources import RunError, Table, hint
from apfex.streams import RowSample, Stream, StreamSettings, column_of, count_cells

if TYPE_CHECKING:
    from apfex.groups import Groups

_LOOKED_AT = 20_000
"""Rows that are looked at for what a user should know."""
LABEL, WEIGHT, SENSITIVE = "apfex:label", "apfex:weight", "apfex:sensitive:"
STRATUM = "apfex:stratum"
"""Columns that are added to the features; that of groups is followed by the attribute."""


@final
class PreparedStream:
    """Rows with features, codes of labels, groups and weights, as every pass makes them."""

    def __init__(self, stream: Stream, settings: ExploreSettings) -> None:
        table = Table(stream.name, stream.columns)
        self.settings, self.stream, self.name = settings, stream, stream.name
        needed = ("label", "sensitive")
        self.columns, self.sensitive = find_columns(table, settings, ("label", "weight"), needed)
        drop = table.names(settings.drop, "drop")
        taken = (*self.columns.values(), *self.sensitive, *drop)
        self.features: Sequence[str] = [name for name in table.columns if name not in taken]
        if settings.include_sensitive:
            self.features += [name for name in self.sensitive if name not in drop]
        if not self.features:
            raise RunError(f"{table.name} has no column left for the model to decide by.")
        self.types: Mapping[str, FeatureType] = {}
        self._look()

    @property
    def group_names(self) -> dict[str, str]:
        """Columns of the groups, and the attribute of each."""
        return {f"{SENSITIVE}{name}": name for name in self.sensitive}

    @property
    def others(self) -> tuple[str, ...]:
        """Columns that are neither features nor groups."""
        return (LABEL, WEIGHT) if "weight" in self.columns else (LABEL,)

    def dealer(self, share: float, seed: int) -> Any:
        """Who says which row is a test row, from the first row on."""
        from apfex.front import Dealer

        return Dealer(self.counts, share, 1, 2, seed)

    def frames(self, rows: int) -> Iterator[Any]:
        """Labelled rows in chunks, each with its stratum."""
        for frame in self._raw(rows):
            codes = self._codes[_words(frame[self.columns["label"]])].to_numpy()
            labelled = np.flatnonzero(codes != MISSING)
            if len(labelled):
                yield self._prepare(frame.iloc[labelled].reset_index(drop=True), codes[labelled])

    def codes_of(self, people: Any) -> np.ndarray:
        """Groups of rows by their attributes."""
        return self.groups.encode(people)

    def _raw(self, rows: int) -> Iterator[Any]:
        wanted = dict.fromkeys([*self.features, *self.sensitive, *self.columns.values()])
        return self.stream.frames(list(wanted), rows)

    def _prepare(self, frame: Any, codes: np.ndarray) -> Any:
        X = self._features_of(frame)
        people = group_columns(read_groups(frame[self.sensitive], self.settings.bins))
        strata = self.codes_of(_frame(people)) * 2 + codes
        more: dict[str, Any] = {f"{SENSITIVE}{name}": column for name, column in people.items()}
        if "weight" in self.columns:
            more[WEIGHT] = _read_weight(frame[self.columns["weight"]])
        return X.assign(**more, **{LABEL: codes, STRATUM: strata})

    def _features_of(self, frame: Any) -> Any:
        X = frame[list(self.features)]
        for name, kind in self.types.items():
            if kind == "date" and X[name].count() and not is_date(X[name]):
                raise RunError(
                    f"{self.name}: {name} holds dates in most rows, and other text in some; leave "
                    f"it out ({hint('drop')}), or write them alike.",
                    drop=[name],
                    found=name,
                )
        return check_features(with_days(X, self.types), self.name)

    def _look(self) -> None:
        """One pass: labels, groups, how many rows of each, and a sample."""
        import pandas as pd

        cells: Counter[tuple[Any, ...]] = Counter()
        sample, label = RowSample(_LOOKED_AT), self.columns["label"]
        for frame in self._raw(StreamSettings().chunk_rows):
            people = group_columns(read_groups(frame[self.sensitive], self.settings.bins))
            cells.update(count_cells(_frame(people).assign(**{label: _words(frame[label])})))
            self._check_levels(cells)
            sample.add(frame)
        if not cells:
            raise RunError(f"{self.name} has column names, but no rows.")
        words = pd.Series([cell[-1] for cell in cells], dtype=object, name=label)
        distinct = words.drop_duplicates().reset_index(drop=True)
        outcome = read_outcomes({"label": distinct.infer_objects()}, self.settings.positive)[0]
        self.words = (outcome.negative, outcome.positive)
        by_word = dict(zip(distinct, outcome.codes, strict=True))
        self._codes = _Lookup(by_word)
        known = [cell for cell in cells if by_word[cell[-1]] != MISSING]
        self.unlabelled = sum(cells[cell] for cell in cells if by_word[cell[-1]] == MISSING)
        self._set_groups(known, cells, by_word)
        self.sample = sample.frame()
        _, self.types = make_features(self.sample[list(self.features)], self.name)

    def sampled(self) -> Any:
        """The labelled rows of the sample, as chunks have them."""
        codes = self._codes[_words(self.sample[self.columns["label"]])].to_numpy()
        labelled = np.flatnonzero(codes != MISSING)
        return self._prepare(self.sample.iloc[labelled].reset_index(drop=True), codes[labelled])

    def _set_groups(
        self, known: Sequence[tuple[Any, ...]], cells: Mapping[Any, int], by_word: Mapping[Any, int]
    ) -> None:
        from apfex.groups import make_groups

        if not known:
            raise RunError(f"{self.name} has no row with a label.")
        columns = {
            name: column_of([cell[place] for cell in known])
            for place, name in enumerate(self.sensitive)
        }
        groups: Groups = make_groups(columns)
        labels = np.array([by_word[cell[-1]] for cell in known])
        rows = np.array([cells[cell] for cell in known])
        size = 2 * len(groups)
        counts = np.bincount(groups.codes * 2 + labels, rows, size).astype(np.int64)
        self.counts: np.ndarray = counts.reshape(-1, 2)
        self.groups = groups.take(np.arange(0))

    def _check_levels(self, cells: Mapping[tuple[Any, ...], int]) -> None:
        for place, name in enumerate(self.sensitive):
            levels = len({cell[place] for cell in cells})
            if levels > MOST_LEVELS:
                raise RunError(
                    f"{hint('sensitive')} {name} has more than {MOST_LEVELS:,} different values. "
                    "Does it name single rows? Put values together, or take another column.",
                    found=levels,
                )


class _Lookup:
    """Codes of words, for a whole column at a time."""

    def __init__(self, codes: Mapping[Any, int]) -> None:
        self._codes = codes

    def __getitem__(self, words: Any) -> Any:
        import pandas as pd

        places, values = pd.factorize(words, use_na_sentinel=True)
        missing = self._codes.get(None, MISSING)
        known = np.array([*(self._codes[v] for v in np.asarray(values).tolist()), missing])
        return pd.Series(known[places])


def _words(column: Any) -> Any:
    """Labels as values that compare alike in every chunk; missing ones are None."""
    plain = column.astype(object)
    return plain.where(plain.notna(), None)


def _frame(columns: Mapping[str, Any]) -> Any:
    import pandas as pd

    return pd.DataFrame({name: np.asarray(column) for name, column in columns.items()})


def _read_weight(column: Any) -> np.ndarray:
    values = (
        column.to_numpy(np.float64, na_value=np.nan) if is_numeric(column) else np.array([np.nan])
    )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise RunError(
            f"{hint('weight')} {column.name} must have a number of at least 0 in every row.",
            found=column.name,
        )
    return values
