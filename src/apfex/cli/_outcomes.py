"""Labels and decisions of a file as 0 and 1; nothing is guessed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.cli._errors import CommandError, listed, nearest
from apfex.cli._screen import shown

if TYPE_CHECKING:
    import pandas as pd

MISSING = -1
_NUMBERS, _BOOLEANS = ("0", "1"), ("False", "True")


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
        The values as they are written; of several others "not" and the positive one.
    """

    name: str
    codes: np.ndarray
    positive: str
    negative: str

    @property
    def missing(self) -> int:
        """Rows without a value."""
        return int((self.codes == MISSING).sum())

    @property
    def share(self) -> float:
        """Positive rows of those with a value."""
        return float((self.codes[self.codes != MISSING] == 1).mean())


def read_outcomes(columns: Mapping[str, pd.Series], positive: str | None) -> list[Outcome]:
    """Columns of 0 and 1 as they are, others by the positive value.

    Parameters
    ----------
    columns : mapping from the option that named a column to the column
        One at least must have the positive value; another may be of 0 and 1, or, as where a model
        decides against everybody, have only other values of the first.
    positive : str, optional
        The positive value as it is written; all others are 0.
    """
    found = [_Values.of(option, column) for option, column in columns.items()]
    whole = [values.words for values in found if positive and values.find(positive)]
    if positive is not None and not whole:
        raise _no_value(positive, found)
    return [values.outcome(positive, whole) for values in found]


@final
@dataclass(frozen=True, eq=False)
class _Values:
    """The values of a column, in words."""

    option: str
    name: str
    words: Sequence[str]
    codes: np.ndarray

    @staticmethod
    def of(option: str, column: pd.Series) -> _Values:
        import pandas as pd

        name = str(column.name)
        if is_score(column):
            numbers = column.dropna()
            raise CommandError(
                f"{option} {shown(name)} must hold labels, got numbers from {numbers.min():.4g} to "
                f"{numbers.max():.4g}, such as {numbers.iloc[0]:.4g}."
            )
        codes, values = pd.factorize(column)
        if not len(values):
            raise CommandError(f"{option} {shown(name)} has no values at all.")
        return _Values(option, name, [spelled(value) for value in values], codes)

    def find(self, positive: str) -> str | None:
        """The value that is meant: 1.0 is 1, and true may be written in any case."""
        forms = [positive]
        if set(self.words) <= {*_BOOLEANS}:
            forms.append(positive.capitalize())
        with suppress(ValueError):
            forms.append(spelled(float(positive)))
        return next((form for form in forms if form in self.words), None)

    def outcome(self, positive: str | None, whole: Sequence[Sequence[str]]) -> Outcome:
        """Codes by the positive value, which other columns have."""
        chosen = self.find(positive) if positive is not None else None
        if chosen is None and any(set(self.words) <= set(words) for words in whole):
            chosen = positive
        for plain in (_NUMBERS, _BOOLEANS):
            if chosen is None and set(self.words) <= {*plain}:
                chosen = plain[1]
        if chosen is None:
            raise self._unclear()
        self._check_spelling(chosen)
        codes = np.array([*(int(word == chosen) for word in self.words), MISSING])[self.codes]
        return Outcome(self.name, codes, chosen, self._negative(chosen))

    def _check_spelling(self, positive: str) -> None:
        """Refuse a value that is the positive one but for case or blanks: it would count as 0."""
        same = positive.strip().casefold()
        for word in self.words:
            if word != positive and word.strip().casefold() == same:
                raise CommandError(
                    f"{self.option} {shown(self.name)} spells one value in two ways, "
                    f"'{shown(positive)}' and '{shown(word)}': write it alike in all rows."
                )

    def _negative(self, positive: str) -> str:
        others = [word for word in self.words if word != positive]
        for plain in (_NUMBERS, _BOOLEANS):
            if positive in plain and set(self.words) <= {*plain}:
                return plain[1 - plain.index(positive)]
        return others[0] if len(others) == 1 else f"not {positive}"

    def _unclear(self) -> CommandError:
        words = sorted(self.words)
        example = shlex.quote(shown(words[-1], 40))
        return CommandError(
            f"{self.option} {shown(self.name)} holds {len(words):,} values ({listed(words)}): say "
            f"which one is positive, for instance --positive {example}"
        )


def spelled(value: Any) -> str:
    """A value as a user would write it."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value)


def is_score(column: pd.Series) -> bool:
    """Whether a column holds numbers that are no labels."""
    if getattr(column.dtype, "kind", "O") != "f":
        return False
    values = column.dropna().to_numpy()
    return bool((values != np.floor(values)).any())


def _no_value(positive: str, found: Sequence[_Values]) -> CommandError:
    words = sorted({word for values in found for word in values.words})
    near = nearest(positive, words)
    names = " or ".join(shown(values.name) for values in found)
    hint = f"did you mean '{shown(near)}'?" if near else f"there are {listed(words)}."
    return CommandError(f"--positive '{shown(positive)}' is no value of {names}; {hint}")
