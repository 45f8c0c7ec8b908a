"""What decides for new rows: a point of a run, with all that is needed to read its columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.files import is_code, to_values
from apfex.groups import UnseenGroupWarning
from apfex.plain import listed
from apfex.runs._columns import check_kind, check_lacking, group_columns, read_groups, to_features
from apfex.runs._unlike_training import UnlikeTraining
from apfex.sources import Batch, RunError, hint, to_pandas

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from apfex.estimator import APFExClassifier

NAMES = ("prediction", "probability", "decision_margin")
"""Columns that are added to every row."""


@final
@dataclass(frozen=True, eq=False)
class Decider:
    """A point of a run that decides for tables of Arrow.

    Attributes
    ----------
    classifier : APFExClassifier
        At the point that decides.
    features : mapping from column to "number", "text", "boolean" or "date"
    words : pair of str
        Of the labels, in the order of the classifier's classes.
    bins : mapping from sensitive column to where it is cut, optional
    unlike : UnlikeTraining, optional
        What looks at all rows that are decided.
    """

    classifier: APFExClassifier
    features: Mapping[str, str]
    words: Sequence[str]
    bins: Mapping[str, Sequence[float]] | None = None
    unlike: UnlikeTraining | None = None

    @property
    def sensitive(self) -> dict[str, str]:
        """Sensitive columns that decisions depend on, and what each holds; mostly none."""
        groups = self.classifier.fitted_.groups
        if groups is None:
            return {}
        parts = zip(groups.attributes, groups.levels, strict=True)
        binned = self.bins or {}
        return {name: "number" if name in binned else _kind(levels) for name, levels in parts}

    @property
    def columns(self) -> dict[str, str]:
        """All columns that are needed, and what each holds."""
        return {**self.sensitive, **self.features}

    def check(self, columns: Sequence[str], name: str) -> None:
        """Refuse a table that lacks a column."""
        check_lacking(columns, self.features, name)
        lacking = [column for column in self.sensitive if column not in columns]
        if lacking:
            raise RunError(
                f"{name} lacks the sensitive columns {listed(lacking)}: this run decides by "
                f"the group of each row ({hint('group_thresholds')}).",
                found=tuple(lacking),
            )

    def decide_batch(self, batch: Batch, decimal: str | None) -> dict[str, np.ndarray]:
        """Columns of :data:`NAMES` for rows of a stream; an error names the file it is about."""
        names = dict.fromkeys(name for name, _ in batch.origins)
        if len(names) == 1:
            return self._decide_part(batch.rows, next(iter(names)), decimal)
        try:
            return self._decide_part(batch.rows, "The table", decimal)
        except RunError:
            start = 0
            for name, count in batch.origins:
                self._decide_part(batch.rows.slice(start, count), name, decimal)
                start += count
            raise

    def _decide_part(self, rows: pa.Table, name: str, decimal: str | None) -> dict[str, np.ndarray]:
        import pyarrow as pa

        kinds = self.columns
        if decimal is not None:
            cells = {column: to_values(rows[column], kinds[column], decimal) for column in kinds}
            rows = pa.table(cells)
        return self.decide(rows, name)

    def decide(self, rows: pa.Table, name: str) -> dict[str, np.ndarray]:
        """Columns of :data:`NAMES` for rows of a table that is called so."""
        X = to_features(rows, self.features, name)
        if self.unlike is not None:
            self.unlike.see(X)
        given = {"sensitive_features": self._groups(rows, name)} if self.sensitive else {}
        labels, probabilities, margins = self.classifier.predict_with_margins(X, **given)
        words = np.array(self.words)[(labels == self.classifier.classes_[1]).astype(np.int64)]
        return dict(zip(NAMES, (words, probabilities[:, -1], margins), strict=True))

    def _groups(self, rows: pa.Table, name: str) -> dict[str, pd.Index]:
        """Sensitive columns, where decisions depend on them."""
        kinds = self.sensitive
        text = [column for column, kind in kinds.items() if kind == "text"]
        self._refuse_numbers(rows.select(text).schema, name)
        frame = to_pandas(rows.select(list(kinds)), text)
        for column, values in frame.items():
            if kinds[str(column)] != "any":
                check_kind(values, kinds[str(column)], name)
        return group_columns(read_groups(frame, self.bins))

    def _refuse_numbers(self, texts: pa.Schema, name: str) -> None:
        """Of codes such as 01 numbers do not tell which one is meant."""
        import pyarrow as pa

        groups = self.classifier.fitted_.groups
        for field in texts:
            if groups is None or not (
                pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
            ):
                continue
            levels = groups.levels[groups.attributes.index(field.name)]
            code = next((one for one in levels if one is not None and is_code(one)), None)
            if code is not None:
                raise RunError(
                    f"{name}: {field.name} must hold text, as it did in the run, where '{code}' is "
                    "a group, got numbers; read the column as text, with pandas by "
                    f"dtype={{'{field.name}': str}}.",
                    found="numbers",
                )


@contextmanager
def one_warning_of_unseen(decider: Decider) -> Iterator[None]:
    """Tell once, after all parts, of rows whose group did not occur in training.

    Where decisions need no groups nothing is caught: filters of warnings are those of all threads.
    """
    if not decider.sensitive:
        yield
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    unseen = [w.message for w in caught if isinstance(w.message, UnseenGroupWarning)]
    for one in caught:
        if not isinstance(one.message, UnseenGroupWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if unseen:
        said = (
            f"{sum(one.rows for one in unseen):,} rows fall into a group that did not occur in "
            f"training, and are decided by what the model guesses of it; in their first part: "
            f"{unseen[0]}"
        )
        told = UnseenGroupWarning(said)
        told.rows = sum(one.rows for one in unseen)
        warnings.warn(told, stacklevel=4)


def _kind(levels: Any) -> str:
    """What a sensitive column held in training; "any" where its values are of several kinds."""
    import pandas as pd

    known = pd.Index([level for level in levels if level is not None]).infer_objects()
    kinds = {"i": "number", "u": "number", "f": "number", "b": "boolean"}
    if known.dtype.kind in kinds:
        return kinds[known.dtype.kind]
    return "text" if all(isinstance(level, str) for level in known) else "any"
