"""Decisions that an engine counts where they are, read by the same words as rows in memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.files import CSV_ENDINGS
from apfex.plain import printable
from apfex.runs._audit_data import (
    MOST_LEVELS,
    AuditData,
    check_groups,
    check_strata,
    missing_values,
    named_columns,
)
from apfex.runs._chosen_rows import condition_in_words
from apfex.runs._columns import (
    GroupCounts,
    check_bins,
    in_bins,
    read_groups,
    warn_of_many_levels,
    without_bins,
)
from apfex.runs._labels import MISSING, Outcome, check_finite, read_decisions, read_reached
from apfex.runs._settings import AuditFileSettings, spelled
from apfex.sources import (
    Table,
    check_encoding,
    open_table,
    path_of,
    told_as_run_errors,
)

if TYPE_CHECKING:
    import pandas as pd

    from apfex.auditing import Audit, AuditSettings, TableQuery, TableScores, Tally
    from apfex.engines import EngineTable
    from apfex.groups import Groups
    from apfex.metrics import Inputs, Measure

_LARGE = 2**30
"""Bytes of a CSV file beyond which it is not read into memory."""


def wants_engine(source: Any, settings: AuditFileSettings, measures: Sequence[Measure]) -> bool:
    """Whether an engine counts the rows: always where only it can, else where it gives the same."""
    from apfex.engines import is_for_engine

    is_path = isinstance(source, str | os.PathLike)
    is_file = is_path and path_of("source", source).is_file()
    if settings.where is not None or settings.table is not None:
        return True
    if is_file and not all(one.is_of_sums for one in measures):
        return False  # such as an AUC, which needs the rows
    if is_file and str(source).lower().endswith((".csv", ".tsv")):
        return Path(source).stat().st_size > _LARGE
    return is_for_engine(source)


@final
@dataclass(frozen=True, eq=False)
class EngineRows:
    """Different rows of a table, read, with what an audit needs to ask for more."""

    data: Inputs
    tally: Tally
    strata: Groups | None
    scores: TableScores | None
    shown: AuditData
    identity: dict[str, str | None]

    def audit(
        self, settings: AuditSettings, notes: Sequence[str], measures: Sequence[Measure]
    ) -> Audit:
        """The audit; the engine is asked again where there are scores."""
        from apfex.auditing import audit_tallied

        rest = notes, measures, self.strata, self.scores
        return audit_tallied(self.data, self.tally, settings, *rest)


@final
@dataclass(frozen=True, eq=False)
class OpenedTable:
    """A table in an engine, and what a record says of it, if that is known already."""

    opened: EngineTable
    identity: dict[str, str | None] | None

    def close(self) -> None:
        """Give back what was opened."""
        self.opened.close()

    def read(self, settings: AuditFileSettings, measures: Sequence[Measure]) -> EngineRows:
        """Count rows in the engine, and refuse what would have to be guessed."""
        return _read(self.opened, self.identity, settings, measures)


def _read(
    opened: EngineTable,
    identity: dict[str, str | None] | None,
    settings: AuditFileSettings,
    measures: Sequence[Measure],
) -> EngineRows:
    from apfex.auditing import TableQuery, moments_of
    from apfex.engines import no_match, where_of
    from apfex.metrics import Inputs

    table = Table(opened.name, opened.columns)
    columns, sensitive, control = named_columns(table, settings)
    bins = settings.bins or {}
    check_bins(bins, [*sensitive, *control])
    roles = _roles(columns, sensitive, control, settings)
    roles = replace(roles, moments=moments_of(measures, roles))
    codes = [name for name in (*sensitive, *control) if name not in bins]
    chosen = where_of(opened, settings.where, codes)
    query = TableQuery.of(replace(opened, table=chosen), roles)
    tally = query.tally()
    if settings.where and not len(tally.repeats.rows):
        raise no_match(opened, settings.where)
    decided, label, tally, dropped = _complete(tally, columns, opened, settings)
    rows = tally.repeats.rows
    frame, strata = _binned(tally.frame("sensitive"), bins), None
    groups = check_groups(read_groups(frame, {}, most_levels=MOST_LEVELS))
    if control:
        own = _binned(tally.frame("control"), bins)
        strata = check_strata(read_groups(own, {}, most_levels=MOST_LEVELS))
    warn_of_many_levels(frame.drop(columns=[name for name in bins if name in frame]), rows)
    y = None if label is None else label.codes
    data = Inputs(y, decided.codes.astype(np.int64), (), groups, None, None, tally.repeats)
    shown = AuditData(
        _described(opened, settings),
        decided,
        label,
        GroupCounts.of(groups, rows),
        dropped,
        columns.get("score"),
        None if strata is None else GroupCounts.of(strata, rows),
    )
    scores = None if roles.scored is None else _scores(query, data, tally, label, bins)
    identity = identity or _identity(opened, tally)
    return EngineRows(data, tally, strata, scores, shown, identity)


def open_for_engine(
    source: Any, settings: AuditFileSettings, encoding: str | None, sheet: str | None
) -> OpenedTable:
    """The table; forms that no engine reads are read here, and handed on."""
    from apfex.engines import is_for_engine, open_engine_table

    is_path = isinstance(source, str | os.PathLike)
    is_csv = is_path and str(source).lower().endswith(CSV_ENDINGS)
    if is_for_engine(source) or is_csv:
        with told_as_run_errors():
            known = check_encoding(encoding)
            return OpenedTable(open_engine_table(source, settings.table, known), None)
    table = open_table(source, encoding, sheet)
    _, sensitive, control = named_columns(table, settings)
    codes = without_bins([*sensitive, *control], settings.bins)
    opened = open_engine_table(table.read_arrow(codes), settings.table)
    return OpenedTable(replace(opened, name=table.name), table.identity())


def _roles(
    columns: dict[str, str],
    sensitive: Sequence[str],
    control: Sequence[str],
    settings: AuditFileSettings,
) -> Any:
    from apfex.auditing import Roles

    return Roles(
        prediction=columns["prediction"],
        sensitive=tuple(sensitive),
        label=columns.get("label"),
        control=tuple(control),
        score=columns.get("score"),
        weight=columns.get("weight"),
        threshold=settings.threshold,
        bins=settings.bins or {},
    )


def _complete(
    tally: Tally, columns: dict[str, str], opened: EngineTable, settings: AuditFileSettings
) -> tuple[Outcome, Outcome | None, Tally, int]:
    """Decisions and labels as codes, of the rows that have all, and how many have not."""
    if not len(tally.repeats.rows):
        raise missing_values(opened.name, {}, 0)
    outcomes = {
        name: tally.values[name].rename(columns[name])
        for name in ("prediction", "label")
        if name in columns
    }
    threshold, words = settings.threshold, settings.positive_prediction
    if threshold is None:
        decided, label, _ = read_decisions(outcomes, settings.positive, None, words)
    else:
        codes = outcomes["prediction"].fillna(MISSING).to_numpy(np.int64)
        decided, label = read_reached(outcomes, codes, settings.positive, threshold, words)
    rows = tally.repeats.rows
    decided = replace(decided, rows=rows)
    label = None if label is None else replace(label, rows=rows)
    found = {one.name: one.missing for one in (decided, label) if one is not None and one.missing}
    complete = decided.codes != MISSING
    if label is not None:
        complete &= label.codes != MISSING
    if "unscored" in tally.values:
        lacking = tally.values["unscored"].to_numpy(bool)
        complete &= ~lacking
        if "score" in columns and lacking.any():
            found[columns["score"]] = int(rows[lacking].sum())
    dropped = int(rows[~complete].sum())
    if dropped and not settings.drop_missing:
        raise missing_values(opened.name, found, int(rows.sum()))
    if not complete.any():
        raise missing_values(opened.name, found, int(rows.sum()))
    kept = np.flatnonzero(complete)
    tally = tally.take(kept)
    _check_scores(tally, columns, settings)
    own = None if label is None else label.take(kept)
    return decided.take(kept), own, tally, dropped


def _check_scores(tally: Tally, columns: dict[str, str], settings: AuditFileSettings) -> None:
    if "s_low" not in tally.sums:
        return
    argument = "score" if settings.threshold is None else "prediction"
    ends = np.concatenate([tally.sums["s_low"], tally.sums["s_high"]])
    check_finite(ends, argument, columns[argument])


def _binned(frame: pd.DataFrame, bins: Any) -> pd.DataFrame:
    """Names of bins in the place of places among the cuts."""
    columns = {str(name): column for name, column in frame.items() if name in bins}
    return frame.assign(**{name: in_bins(places, bins[name]) for name, places in columns.items()})


def _scores(
    query: TableQuery, data: Inputs, tally: Tally, label: Outcome | None, bins: Any
) -> TableScores:
    from apfex.auditing import TableScores

    known: dict[str, int] = {}
    if label is not None:
        words = map(spelled, tally.values["label"])
        known = dict(zip(words, label.codes.tolist(), strict=True))

    def read(other: Tally) -> tuple[np.ndarray, np.ndarray | None]:
        codes = data.groups.encode(_binned(other.frame("sensitive"), bins))
        if label is None:
            return codes, None
        found = [known.get(spelled(value), MISSING) for value in other.values["label"]]
        return codes, np.array(found, dtype=np.int64)

    return TableScores(query, data, tally, read)


def _described(opened: EngineTable, settings: AuditFileSettings) -> str:
    from apfex.engines import without_secrets

    form = {"csv": "CSV", "duckdb": "DuckDB", "sqlite": "SQLite"}.get(opened.format)
    form = form or ("Parquet" if opened.format == "parquet" else opened.engine)
    n = len(opened.files)
    name = Path(without_secrets(opened.files[0])).name if n == 1 else opened.name
    said = f"{printable(name)} ({f'{n:,} {form} files' if n > 1 else form})"
    if settings.where:
        said += f", where {condition_in_words(settings.where)}"
    return said


def _identity(opened: EngineTable, tally: Tally) -> dict[str, str | None]:
    """What a record says of it: the bytes of its files, or the counts where there are none."""
    local = [Path(file) for file in opened.files if Path(file).is_file()]
    if not local:
        digest = hashlib.sha256()
        for part in (*tally.values.values(), tally.repeats.rows):
            digest.update(repr(list(part)).encode())
        return {"name": opened.name, "path": None, "sha256": digest.hexdigest()}
    sums = [_sha256(file) for file in local]
    if len(local) == 1:
        path = str(local[0].resolve())
        return {"name": local[0].name, "path": path, "sha256": sums[0]}
    lines = "".join(f"{own}  {file}\n" for own, file in zip(sums, local, strict=True))
    name = str(Path(opened.name).absolute())
    return {
        "name": opened.name,
        "path": name,
        "sha256": hashlib.sha256(lines.encode()).hexdigest(),
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
