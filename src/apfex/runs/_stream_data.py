"""A table on disk that is read in chunks: rows to fit, test rows, and what was found in them."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.files import unpacked_size
from apfex.memory import usable_memory
from apfex.plain import printable
from apfex.runs._columns import GroupCounts, without_bins
from apfex.runs._data import RunData, classes_of, favorable_of
from apfex.runs._data_checks import find_identifiers, find_leaks, find_proxies
from apfex.runs._dates import is_unclear_date
from apfex.runs._prepared_stream import LABEL, STRATUM, WEIGHT, PreparedStream
from apfex.runs._settings import ExploreSettings
from apfex.sources import ENDINGS, RunError, check_encoding, hint, path_of, told_as_run_errors
from apfex.streams import Stream, StreamSettings, open_files, paths_of

if TYPE_CHECKING:
    from apfex.estimator import APFExClassifier
    from apfex.report import MeasuredFront

_ENDINGS = tuple(ending for ending, form in ENDINGS.items() if form != "excel")
_SHARE_OF_MEMORY = 8
"""A file larger than one over this of the memory of machine or container is read in chunks."""
_TEST_ROWS = 1_000_000
"""Most test rows of a table that is read in chunks."""


def is_streamed(source: Any, stream: bool | None) -> bool:
    """Whether a source is read in chunks: if it is asked for, or a pattern, a folder, or large."""
    if not isinstance(source, str | os.PathLike):
        if stream:
            raise RunError(f"{hint('stream')} is for files: a frame is in memory already.")
        return False
    path = path_of("source", source)
    if stream is not None:
        return stream
    if path.is_dir() or (glob.has_magic(str(source)) and not path.exists()):
        return True
    is_stored = path.name.lower().endswith(_ENDINGS) and path.is_file()
    return is_stored and unpacked_size(path) > usable_memory() / _SHARE_OF_MEMORY


@final
@dataclass(frozen=True, eq=False)
class StreamedData:
    """Rows of a table on disk, dealt into rows to fit and test rows, and what was found in them.

    It answers as :class:`~apfex.runs._data.SplitData` does.
    """

    prepared: PreparedStream
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
            label=LABEL,
            weight=WEIGHT if prepared.columns.get("weight") else None,
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
            weight = frame[WEIGHT].to_numpy(np.float64) if WEIGHT in frame else None
            codes = self.prepared.codes_of(people)
            parts.append((decided.astype(np.int8), score, frame[LABEL].to_numpy(), codes, weight))
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

    def _rows(self, rows: int, *, test: bool) -> Iterator[Any]:
        dealer = self.prepared.dealer(self.share, self.seed)
        for frame in self.prepared.frames(rows):
            is_test = dealer.deal(frame.pop(STRATUM).to_numpy())[0]
            chosen = frame[is_test if test else ~is_test].reset_index(drop=True)
            chosen[LABEL] = np.array(self.classes)[chosen[LABEL].to_numpy()]
            if len(chosen):
                yield chosen


def read_streamed(settings: ExploreSettings, stored: Path | None = None) -> StreamedData:
    """Read the data of a run once in chunks, and look for what a user should know.

    ``stored`` is a folder of files that were written for the run, from a frame of Dask.
    """
    source = str(stored or settings.source)
    name = _name(source) if stored is None else "frame"
    if settings.search == "inprocess":
        raise RunError(
            f"{hint('search')} must be auto or postprocess where a table is read in chunks, got "
            f"inprocess: models of their own need all rows in memory ({hint('stream')}).",
            found=settings.search,
            stream=False,
        )
    if settings.sheet is not None:
        said = f"{hint('sheet')} is for Excel files, got '{settings.sheet}'."
        raise RunError(said, found=settings.sheet)
    try:
        with told_as_run_errors():
            stream = open_files(source, check_encoding(settings.encoding), _codes(settings))
    except (OSError, TypeError) as error:
        raise RunError(str(error)) from error
    prepared = PreparedStream(stream, settings)
    n, base = int(prepared.counts.sum()), prepared.counts.sum(0) / prepared.counts.sum()
    share = min(settings.test_fraction, _TEST_ROWS / n)
    if prepared.counts.sum(0).min() < 2:
        raise RunError(f"{n:,} rows are too few: each outcome must have two rows.", found=n)
    test = int(prepared.dealer(share, settings.seed).validation.sum())
    about = RunData(
        name=name,
        description=f"{printable(name)} (read in chunks)",
        path=str(Path(source).absolute()) if stored is None else None,
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


def _codes(settings: ExploreSettings) -> list[str]:
    """Sensitive columns without bins, as they are named before the columns of files are known."""
    given = [settings.sensitive] if isinstance(settings.sensitive, str) else settings.sensitive
    names = [name for one in given for name in (one, *map(str.strip, str(one).split(",")))]
    return without_bins(names, settings.bins)


def _name(source: str) -> str:
    """Of a file or folder; a pattern says little without its folder."""
    return "/".join(Path(source).absolute().parts[-2 if glob.has_magic(source) else -1 :])


def _group_counts(prepared: PreparedStream) -> GroupCounts:
    groups, sizes = prepared.groups, prepared.counts.sum(1)
    levels = dict(zip(groups.attributes, map(len, groups.levels), strict=True))
    place = int(sizes.argmin())
    return GroupCounts(levels, len(groups), groups.names[place], int(sizes[place]))


def _found(prepared: PreparedStream, settings: ExploreSettings) -> dict[str, Any]:
    """Leaks, proxies, identifiers and unclear dates, in a sample of the rows."""
    rows = prepared.sampled()
    X, y = rows[list(prepared.features)], rows[LABEL].to_numpy()
    proxies = []
    if not settings.include_sensitive:
        groups = replace(prepared.groups, codes=rows[STRATUM].to_numpy() // 2)
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
    paths = paths_of(source)
    found = []
    for path in paths:
        with path.open("rb") as stream:
            found.append(hashlib.file_digest(stream, "sha256").hexdigest())
    if len(paths) == 1:
        return found[0]
    lines = (f"{path.name} {one}\n" for path, one in zip(paths, found, strict=True))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
