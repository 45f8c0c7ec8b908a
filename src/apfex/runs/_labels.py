"""Labels and decisions of a file as 0 and 1; nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from apfex.plain import listed
from apfex.runs._columns import bits_of, is_numeric
from apfex.runs._settings import spelled
from apfex.sources import RunError, hint, unknown

if TYPE_CHECKING:
    import pandas as pd

MISSING = -1
_NUMBERS, _BOOLEANS = ("0", "1"), ("False", "True")
_LIKELY = {
    *("1", "true", "y", "yes", "good", "positive", "favorable", "pass", "passed"),
    *("accept", "accepted", "admitted", "approve", "approved", "grant", "granted", "hire"),
    *("hired", "offered", "paid", "repaid", "selected"),
}
"""Words for a value that is probably the positive one: for proposals, never for decisions."""


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """A column as codes; made by :func:`read_outcomes`.

    Attributes
    ----------
    name : str
    codes : int64 array of shape [n]
        1 for the positive value, 0 for any other, -1 where there is none.
    positive, negative : str
        The values as they are written; several have "or" between, and of several others it is
        "not" and the positive one.
    """

    name: str
    codes: np.ndarray
    positive: str
    negative: str
    rows: np.ndarray | None = None  # that each code stands for, where that is not one

    @property
    def n_rows(self) -> int:
        """All rows."""
        return len(self.codes) if self.rows is None else int(self.rows.sum())

    @property
    def missing(self) -> int:
        """Rows without a value."""
        return int(self._count(self.codes == MISSING))

    @property
    def share(self) -> float:
        """Positive rows of those with a value."""
        return float(self._count(self.codes == 1) / self._count(self.codes != MISSING))

    def take(self, rows: np.ndarray) -> Outcome:
        """Some of the rows."""
        own = None if self.rows is None else self.rows[rows]
        return replace(self, codes=self.codes[rows], rows=own)

    def _count(self, chosen: np.ndarray) -> int:
        return chosen.sum() if self.rows is None else self.rows[chosen].sum()


Positive = str | tuple[str, ...] | None
"""The positive value; several, also with commas between, count as one outcome."""


def read_outcomes(columns: Mapping[str, pd.Series], positive: Positive) -> list[Outcome]:
    """Columns of 0 and 1 as they are, others by the positive value.

    Parameters
    ----------
    columns : mapping from the argument that named a column to the column
        One at least must have the positive value; another may be of 0 and 1, or, as where a model
        decides against everybody, have only other values of the first.
    positive : str or tuple of str, optional
        The positive value as it is written, or several; all others are 0.
    """
    found = [_Values.of(argument, column) for argument, column in columns.items()]
    whole = [values for values in found if values.find(positive)]
    if positive is not None and not whole:
        known = sorted({word for values in found for word in values.words})
        names = " or ".join(values.name for values in found)
        stray = next((one for one in _parts(positive) if one not in known), _parts(positive)[0])
        raise unknown(stray, known, f"{hint('positive')} '{stray}' is no value of {names}")
    return [values.outcome(positive, whole) for values in found]


def _parts(positive: str | tuple[str, ...]) -> tuple[str, ...]:
    """Values with commas between."""
    if isinstance(positive, tuple):
        return positive
    return tuple(part.strip() for part in positive.split(",") if part.strip()) or (positive,)


def read_decisions(
    columns: Mapping[str, pd.Series],
    positive: Positive,
    threshold: float | None,
    positive_prediction: Positive = None,
) -> tuple[Outcome, Outcome | None, np.ndarray | None]:
    """Decisions, and where there are such: labels, and the scores that the decisions are made by.

    Parameters
    ----------
    columns : mapping with "prediction" and perhaps "label"
    positive : str, optional
        As for :func:`read_outcomes`.
    threshold : float, optional
        The column of predictions holds scores; from this one on it is decided positively.
    positive_prediction : str or tuple of str, optional
        Positive value of the decisions, where they are written in other words than the labels.
    """
    predicted = columns["prediction"]
    if threshold is None:
        _check_decided(predicted)
        if positive_prediction is not None:
            return *_read_apart(columns, positive, positive_prediction), None
        if "label" in columns:
            label_values = _Values.of("label", columns["label"])
            _check_words(_Values.of("prediction", predicted), label_values, positive)
        decided, *label = read_outcomes(columns, positive)
        return decided, label[0] if label else None, None
    if not is_numeric(predicted):
        raise RunError(
            f"{hint('threshold')} needs numbers, but {predicted.name} holds none.",
            found=predicted.name,
        )
    from apfex.auditing import precise_threshold

    score = check_finite(predicted.to_numpy(np.float64), "prediction", str(predicted.name))
    cut = precise_threshold(threshold, bits_of(predicted))
    codes = np.where(np.isnan(score), MISSING, score >= cut)
    return *read_reached(columns, codes, positive, threshold, positive_prediction), score


def check_finite(scores: np.ndarray, argument: str, name: str) -> np.ndarray:
    """Refuse an infinite score, of which no mean is one; a missing one is told elsewhere."""
    infinite = scores[np.isinf(scores)]
    if infinite.size:
        raise RunError(
            f"{hint(argument)} {name} must be finite, got {infinite[0]:g}; drop or fill these "
            "rows.",
            found=name,
        )
    return scores


def read_reached(
    columns: Mapping[str, pd.Series],
    codes: np.ndarray,
    positive: Positive,
    threshold: float,
    positive_prediction: Positive,
) -> tuple[Outcome, Outcome | None]:
    """Decisions by whether a threshold is reached, which ``codes`` tell, and labels."""
    if positive_prediction is not None:
        raise RunError(
            f"{hint('positive_prediction')} must not be given with {hint('threshold')}, "
            "which decides itself."
        )
    name = str(columns["prediction"].name)
    decided = Outcome(name, codes, f"{name} from {threshold:g} on", f"{name} below")
    if "label" in columns:
        return decided, read_outcomes({"label": columns["label"]}, positive)[0]
    if positive is not None:
        raise RunError(
            f"{hint('positive')} must not be given with {hint('threshold')} and no {hint('label')}."
        )
    return decided, None


def _read_apart(
    columns: Mapping[str, pd.Series], positive: Positive, positive_prediction: str | tuple[str, ...]
) -> tuple[Outcome, Outcome | None]:
    """Decisions by their own positive value, labels by theirs, or by the same if they have it."""
    decided = _Values.of("prediction", columns["prediction"])
    if not decided.find(positive_prediction):
        known, parts = sorted(decided.words), _parts(positive_prediction)
        stray = next((one for one in parts if one not in known), parts[0])
        said = f"{hint('positive_prediction')} '{stray}' is no value of {decided.name}"
        raise unknown(stray, known, said)
    outcome = decided.outcome(positive_prediction, [])
    if "label" not in columns:
        if positive is not None:
            raise RunError(
                f"{hint('positive')} must not be given with {hint('positive_prediction')} "
                f"and no {hint('label')}."
            )
        return outcome, None
    label = _Values.of("label", columns["label"])
    if positive is None and label.find(positive_prediction):
        positive = positive_prediction
    return outcome, read_outcomes({"label": columns["label"]}, positive)[0]


def _check_words(decided: _Values, label: _Values, positive: Positive) -> None:
    """Refuse decisions and labels in different words, and say by which options to tell them."""
    both = (decided, label)
    whole = [values for values in both if values.find(positive)]
    unclear = [values for values in both if not values.chosen(positive, whole)]
    if not unclear or set(decided.words) == set(label.words) or (positive and not whole):
        return
    proposed = {"positive_prediction": decided.likely(positive)}
    if len(unclear) == 2 or unclear == [label]:
        proposed["positive"] = label.likely(None)
    options = " ".join(f"{hint(name)}" for name in proposed)
    raise RunError(
        f"{hint('prediction')} {decided.name} holds {listed(sorted(decided.words))}, and "
        f"{hint('label')} "
        f"{label.name} {listed(sorted(label.words))}: say which value is positive in each, for "
        f"instance {options}",
        found=tuple(sorted(unclear[0].words)),
        **proposed,
    )


@final
@dataclass(frozen=True, eq=False)
class _Values:
    """The values of a column, in words."""

    argument: str
    name: str
    words: Sequence[str]
    codes: np.ndarray

    @staticmethod
    def of(argument: str, column: pd.Series) -> _Values:
        import pandas as pd

        name = str(column.name)
        if _is_score(column):
            numbers = column.dropna()
            raise RunError(
                f"{hint(argument)} {name} must hold labels, got numbers from {numbers.min():.4g} "
                f"to {numbers.max():.4g}, such as {numbers.iloc[0]:.4g}.",
                found=f"{numbers.iloc[0]:.4g}",
            )
        codes, values = pd.factorize(column)
        if not len(values):
            raise RunError(f"{hint(argument)} {name} has no values at all.")
        return _Values(argument, name, [spelled(value) for value in values], codes)

    def find(self, positive: Positive) -> tuple[str, ...]:
        """The values that are meant, if all are there: one that is written so comes first."""
        if positive is None:
            return ()
        if isinstance(positive, str) and (whole := self._find_one(positive)) is not None:
            return (whole,)
        parts = [self._find_one(part) for part in _parts(positive)]
        known = tuple(dict.fromkeys(part for part in parts if part is not None))
        return known if len(known) == len(parts) else ()

    def _find_one(self, positive: str) -> str | None:
        """The value that is meant: 1.0 is 1, and true may be written in any case."""
        forms = [positive]
        if set(self.words) <= {*_BOOLEANS}:
            forms.append(positive.capitalize())
        with suppress(ValueError):
            forms.append(spelled(float(positive)))
        return next((form for form in forms if form in self.words), None)

    def likely(self, positive: Positive) -> str:
        """A value to propose as the positive one."""
        words = sorted(self.words)
        known = [word for word in words if word.strip().casefold() in _LIKELY]
        return next(iter((*self.find(positive), *known, words[-1])))

    def chosen(self, positive: Positive, whole: Sequence[_Values]) -> tuple[str, ...]:
        """The positive values, which other columns may have; none where nobody can tell."""
        chosen = self.find(positive)
        for other in whole:
            if not chosen and set(self.words) <= set(other.words):
                chosen = other.find(positive)
        for plain in (_NUMBERS, _BOOLEANS):
            if not chosen and set(self.words) <= {*plain}:
                chosen = (plain[1],)
        return chosen

    def outcome(self, positive: Positive, whole: Sequence[_Values]) -> Outcome:
        """Codes by the positive value."""
        chosen = self.chosen(positive, whole)
        if not chosen:
            raise self._unclear()
        self._check_spelling(chosen)
        self._check_others(chosen)
        codes = np.array([*(int(word in chosen) for word in self.words), MISSING])[self.codes]
        return Outcome(self.name, codes, " or ".join(chosen), self._negative(chosen))

    def _check_spelling(self, positive: Sequence[str]) -> None:
        """Refuse a value that is the positive one but for case or blanks: it would count as 0."""
        same = {one.strip().casefold(): one for one in positive}
        for word in self.words:
            known = same.get(word.strip().casefold())
            if known is not None and word not in positive:
                raise RunError(
                    f"{hint(self.argument)} {self.name} spells one value in two ways, '{known}' "
                    f"and '{word}': write it alike in all rows.",
                    found=word,
                )

    def _check_others(self, positive: Sequence[str]) -> None:
        """Refuse several positive values that leave no other label."""
        is_all = len(positive) > 1 and set(self.words) <= set(positive)
        if is_all and self.argument == "label":
            raise RunError(
                f"{hint('positive')} must leave a value of {self.name} that is not positive, "
                "got all "
                f"of them: {listed(self.words)}.",
                found=tuple(positive),
            )

    def _negative(self, positive: Sequence[str]) -> str:
        others = [word for word in self.words if word not in positive]
        for plain in (_NUMBERS, _BOOLEANS):
            if positive[0] in plain and set(self.words) <= {*plain}:
                return plain[1 - plain.index(positive[0])]
        return others[0] if len(others) == 1 else f"not {' or '.join(positive)}"

    def _unclear(self) -> RunError:
        words = sorted(self.words)
        return RunError(
            f"{hint(self.argument)} {self.name} holds {len(words):,} values ({listed(words)}): say "
            f"which one is positive, for instance {hint('positive')}",
            positive=self.likely(None),
            found=tuple(words),
        )


def _is_score(column: pd.Series) -> bool:
    """Whether a column holds numbers that are no labels."""
    if getattr(column.dtype, "kind", "O") != "f":
        return False
    values = column.dropna().to_numpy()
    return bool((values != np.floor(values)).any())


def _check_decided(column: pd.Series) -> None:
    """Refuse scores where decisions are wanted."""
    if _is_score(column):
        low, high = column.min(), column.max()
        raise RunError(
            f"{hint('prediction')} {column.name} must hold decisions, got numbers from "
            f"{low:.3g} to "
            f"{high:.3g}. Are they scores? Then say from which on it is decided, for instance "
            f"{hint('threshold')}",
            threshold=0.5 if 0 <= low <= high <= 1 else 0,
            found=(low, high),
        )
