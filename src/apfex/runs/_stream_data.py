"""A table on disk that is read in chunks: rows to fit, test rows, and what was found in them."""

from __future__ import annotations

import glob
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.plain import printable
from apfex.runs._columns import (
    FeatureType,
    GroupCounts,
    check_features,
    find_columns,
    group_columns,
    is_numeric,
    make_features,
    read_groups,
    with_days,
)
from apfex.runs._data import (
    MOST_GROUPS,
    MOST_LEVELS,
    RunData,
    classes_of,
    favorable_of,
)
from apfex.runs._data_checks import find_identifiers, find_leaks, find_proxies
from apfex.runs._dates import is_date, is_unclear_date
from apfex.runs._errors import RunError, hint, named
from apfex.runs._labels import MISSING, read_outcomes
from apfex.runs._settings import ExploreSettings
from apfex.runs._tables import Table
from apfex.streams import RowSample, Stream, StreamSettings, count_cells, open_files

if TYPE_CHECKING:
    import pandas as pd

    from apfex.estimator import APFExClassifier
    from apfex.groups import Groups
    from apfex.report import MeasuredFront

_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_SHARE_OF_MEMORY = 8
"""A file larger than one over this of the machine's memory is read in chunks."""
_TEST_ROWS = 1_000_000
"""Most test rows of a table that is read in chunks."""
_LOOKED_AT = 20_000
"""Rows that are looked at for what a user should know."""
_LABEL, _WEIGHT, _SENSITIVE = "apfex:label", "apfex:weight", "apfex:sensitive:"


def is_streamed(source: Any, stream: bool | None) -> bool:
    """Whether a source is read in chunks: if it is asked for, or a pattern, a folder, or large."""
    if not isinstance(source, str | os.PathLike):
        if stream:
            raise RunError(f"{hint('stream')} is for files: a frame is in memory already.")
        return False
    path = Path(source)
    if stream is not None:
        return stream
    if path.is_dir() or (glob.has_magic(str(source)) and not path.exists()):
        return True
    is_stored = path.suffix.lower() in _ENDINGS and path.is_file()
    return is_stored and path.stat().st_size > _memory() / _SHARE_OF_MEMORY


def _memory() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # as on Windows
        return float("inf")


@final
@dataclass(frozen=True, eq=False)
class StreamedData:
    """Rows of a table on disk, dealt into rows to fit and test rows, and what was found in them.

    It answers as :class:`~apfex.runs._data.SplitData` does.
    """

    prepared: _Prepared
    seed: int
    about: RunData
    share: float

    @property
    def classes(self) -> tuple[Any, Any]:
        """The labels as the classifier has them."""
        return classes_of(*self.words)

    @property
    def words(self) -> tuple[str, str]:
        """The labels as the file has them."""
        return self.prepared.words

    @cached_property
    def favorable(self) -> int:
        """Code of the label that a person would want."""
        return favorable_of(self.prepared.settings, self.words)

    def fit_arguments(self) -> dict[str, Any]:
        """The rows to fit, as a classifier takes them."""
        prepared = self.prepared
        stream = Stream(
            prepared.name,
            (*prepared.features, *prepared.group_names, *prepared.others),
            lambda _, rows: self._rows(rows, test=False),
            label=_LABEL,
            weight=_WEIGHT if prepared.columns.get("weight") else None,
            sensitive=prepared.group_names,
        )
        return {"X": stream}

    def measure(self, clf: APFExClassifier, **limits: Any) -> MeasuredFront:
        """Decide for the test rows chunk by chunk, and measure all points on them."""
        from apfex.estimator import read_audit_rows
        from apfex.groups import make_groups
        from apfex.report import measure_decisions

        names, features = self.prepared.group_names, list(self.prepared.features)
        parts: list[tuple[Any, ...]] = []
        for frame in self._rows(StreamSettings().chunk_rows, test=True):
            people = frame[list(names)].rename(columns=dict(names))
            given = people if clf.fitted_.groups is not None else None
            X = frame[features]
            decided = np.searchsorted(clf.classes_, clf.decide_all(X, sensitive_features=given))
            favored = np.searchsorted(clf.classes_, clf.front_.favorable_label)
            score = clf.predict_proba(X, sensitive_features=given)[:, favored]
            weight = frame[_WEIGHT].to_numpy(np.float64) if _WEIGHT in frame else None
            codes = self.prepared.codes_of(people)
            parts.append((decided.astype(np.int8), score, frame[_LABEL].to_numpy(), codes, weight))
        decided, score, y, codes, weight = zip(*parts, strict=True)
        crossing = replace(self.prepared.groups, codes=np.concatenate(codes))
        crossing = crossing.take(np.arange(len(crossing.codes)), drop_empty=True)
        n = len(crossing.codes)
        rows = read_audit_rows(
            clf,
            np.zeros((n, 0)),
            np.concatenate(y),
            sensitive_features=make_groups(crossing),
            sample_weight=None if weight[0] is None else np.concatenate(weight),
            **limits,
        )
        together = np.concatenate(decided, axis=1).astype(np.int64)
        return measure_decisions(clf, rows, together, np.concatenate(score))

    def _rows(self, rows: int, *, test: bool) -> Iterator[pd.DataFrame]:
        dealer = self.prepared.dealer(self.share, self.seed)
        for frame in self.prepared.frames(rows):
            is_test = dealer.deal(frame.pop("apfex:stratum").to_numpy())[0]
            chosen = frame[is_test if test else ~is_test].reset_index(drop=True)
            chosen[_LABEL] = np.array(self.classes)[chosen[_LABEL].to_numpy()]
            if len(chosen):
                yield chosen


class _Prepared:
    """Rows with features, codes of labels, groups and weights, as every pass makes them."""

    def __init__(self, stream: Stream, settings: ExploreSettings) -> None:
        table = Table(stream.name, stream.columns)
        self.settings, self.stream, self.name = settings, stream, stream.name
        needed = ("label", "sensitive")
        self.columns, self.sensitive = find_columns(table, settings, ("label", "weight"), needed)
        if set(self.sensitive) & set(self.columns.values()):
            raise RunError(f"{named(*self.columns, 'sensitive')} must name different columns.")
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
        return {f"{_SENSITIVE}{name}": name for name in self.sensitive}

    @property
    def others(self) -> tuple[str, ...]:
        """Columns that are neither features nor groups."""
        return (_LABEL, _WEIGHT) if "weight" in self.columns else (_LABEL,)

    def dealer(self, share: float, seed: int) -> Any:
        """Who says which row is a test row, from the first row on."""
        from apfex.front import Dealer

        return Dealer(self.counts, share, 1, 2, seed)

    def frames(self, rows: int) -> Iterator[pd.DataFrame]:
        """Labelled rows in chunks, each with its stratum."""
        for frame in self._raw(rows):
            codes = self._codes[_words(frame[self.columns["label"]])].to_numpy()
            labelled = np.flatnonzero(codes != MISSING)
            if len(labelled):
                yield self._prepare(frame.iloc[labelled].reset_index(drop=True), codes[labelled])

    def codes_of(self, people: pd.DataFrame) -> np.ndarray:
        """Groups of rows by their attributes."""
        return self.groups.encode(people)

    def _raw(self, rows: int) -> Iterator[pd.DataFrame]:
        wanted = dict.fromkeys([*self.features, *self.sensitive, *self.columns.values()])
        return self.stream.frames(list(wanted), rows)

    def _prepare(self, frame: pd.DataFrame, codes: np.ndarray) -> pd.DataFrame:
        X = self._features_of(frame)
        people = group_columns(read_groups(frame[self.sensitive], self.settings.bins))
        strata = self.codes_of(_frame(people)) * 2 + codes
        more: dict[str, Any] = {f"{_SENSITIVE}{name}": column for name, column in people.items()}
        if "weight" in self.columns:
            more[_WEIGHT] = _read_weight(frame[self.columns["weight"]])
        return X.assign(**more, **{_LABEL: codes, "apfex:stratum": strata})

    def _features_of(self, frame: pd.DataFrame) -> pd.DataFrame:
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

    def _set_groups(
        self, known: Sequence[tuple[Any, ...]], cells: Mapping[Any, int], by_word: Mapping[Any, int]
    ) -> None:
        import pandas as pd

        from apfex.groups import make_groups

        if not known:
            raise RunError(f"{self.name} has no row with a label.")
        columns = {
            name: pd.Series([cell[place] for cell in known], dtype=object).infer_objects()
            for place, name in enumerate(self.sensitive)
        }
        groups: Groups = make_groups(columns)
        labels = np.array([by_word[cell[-1]] for cell in known])
        rows = np.array([cells[cell] for cell in known])
        size = 2 * len(groups)
        counts = np.bincount(groups.codes * 2 + labels, rows, size).astype(np.int64)
        self.counts: np.ndarray = counts.reshape(-1, 2)
        self.groups = groups.take(np.arange(0))
        if len(groups) > MOST_GROUPS:
            raise RunError(
                f"{hint('sensitive')} makes {len(groups):,} groups where its columns are combined; "
                f"at most {MOST_GROUPS} are possible: name fewer columns, or put values together.",
                found=len(groups),
            )

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

    def __getitem__(self, words: pd.Series) -> pd.Series:
        import pandas as pd

        places, values = pd.factorize(words, use_na_sentinel=True)
        missing = self._codes.get(None, MISSING)
        known = np.array([*(self._codes[v] for v in np.asarray(values).tolist()), missing])
        return pd.Series(known[places])


def _words(column: pd.Series) -> pd.Series:
    """Labels as values that compare alike in every chunk; missing ones are None."""
    plain = column.astype(object)
    return plain.where(plain.notna(), None)


def _frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: np.asarray(column) for name, column in columns.items()})


def _read_weight(column: pd.Series) -> np.ndarray:
    values = column.to_numpy(np.float64) if is_numeric(column) else np.array([np.nan])
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise RunError(
            f"{hint('weight')} {column.name} must have a number of at least 0 in every row.",
            found=column.name,
        )
    return values


def read_streamed(settings: ExploreSettings) -> StreamedData:
    """Read the data of a run once in chunks, and look for what a user should know."""
    source = str(settings.source)
    try:
        stream = open_files(source)
    except (OSError, ValueError, TypeError) as error:
        raise RunError(printable(str(error))) from error
    prepared = _Prepared(stream, settings)
    n, base = int(prepared.counts.sum()), prepared.counts.sum(0) / prepared.counts.sum()
    share = min(settings.test_fraction, _TEST_ROWS / n)
    if prepared.counts.sum(0).min() < 2:
        raise RunError(f"{n:,} rows are too few: each outcome must have two rows.", found=n)
    test = int(prepared.dealer(share, settings.seed).validation.sum())
    about = RunData(
        name=Path(source).name,
        description=f"{printable(Path(source).name)} (read in chunks)",
        path=str(Path(source).absolute()),
        sha256=hash_of_files(source),
        rows=n,
        fit_rows=n - test,
        test_rows=test,
        dropped={"without a label": prepared.unlabelled} if prepared.unlabelled else {},
        label=prepared.columns["label"],
        positive=prepared.words[1],
        base_rate=float(base[1]),
        favorable=prepared.words[favorable_of(settings, prepared.words)],
        groups=_group_counts(prepared),
        features=prepared.types,
        **_found(prepared, settings),
    )
    return StreamedData(prepared, settings.seed, about, share)


def _group_counts(prepared: _Prepared) -> GroupCounts:
    groups, sizes = prepared.groups, prepared.counts.sum(1)
    levels = dict(zip(groups.attributes, map(len, groups.levels), strict=True))
    place = int(sizes.argmin())
    return GroupCounts(levels, len(groups), groups.names[place], int(sizes[place]))


def _found(prepared: _Prepared, settings: ExploreSettings) -> dict[str, Any]:
    """Leaks, proxies, identifiers and unclear dates, in a sample of the rows."""
    frame = prepared.sample
    codes = prepared._codes[_words(frame[prepared.columns["label"]])].to_numpy()
    labelled = np.flatnonzero(codes != MISSING)
    rows = prepared._prepare(frame.iloc[labelled].reset_index(drop=True), codes[labelled])
    X, y = rows[list(prepared.features)], rows[_LABEL].to_numpy()
    proxies = []
    if not settings.include_sensitive:
        groups = replace(prepared.groups, codes=rows["apfex:stratum"].to_numpy() // 2)
        proxies = find_proxies(X, groups, settings.seed)
    texts = [name for name, kind in prepared.types.items() if kind == "text"]
    return {
        "leaks": tuple(find_leaks(X, y, settings.seed)),
        "identifiers": tuple(find_identifiers(X, prepared.types)),
        "proxies": tuple(proxies),
        "unclear_dates": tuple(
            str(name) for name, column in X[texts].items() if is_unclear_date(column)
        ),
    }


def hash_of_files(source: str) -> str:
    """Of the bytes of a file; of several those of their names and hashes."""
    from apfex.streams import paths_of

    paths = paths_of(source)
    found = []
    for path in paths:
        with path.open("rb") as stream:
            found.append(hashlib.file_digest(stream, "sha256").hexdigest())
    if len(paths) == 1:
        return found[0]
    lines = (f"{path.name} {one}\n" for path, one in zip(paths, found, strict=True))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
