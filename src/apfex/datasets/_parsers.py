"""From the published files of a data set to inputs, labels and sensitive columns.

What the options of a parser mean is told in the registry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Parts = tuple[pd.DataFrame, NDArray[np.int64], pd.DataFrame]
"""Inputs, labels and sensitive columns."""


_ADULT_COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
]
_NOT_IN_MAMO = ["education", "fnlwgt"]
_CAPITAL = ["capital-gain", "capital-loss"]
_RARE_COUNTRY = 150


def parse_adult(
    paths: Sequence[Path], *, include_sensitive: bool, columns: str, race: str
) -> Parts:
    """UCI Adult: comma-separated, no header, '?' for missing; labels of one part end in a dot."""
    rows = pd.concat([_read_adult(path, columns) for path in paths], ignore_index=True)
    y = rows.pop("income").str.rstrip(".").eq(">50K").to_numpy(np.int64)
    sensitive = rows.filter(["sex", "race"])
    if race == "binary":
        sensitive["race"] = np.where(rows["race"] == "White", "White", "Non-White")
    X = rows if include_sensitive else rows.drop(columns=["sex", "race"])
    if columns != "all":
        X = _mamo(X, capital=columns == "mamo+capital")
    return X, y, sensitive


def _read_adult(path: Path, columns: str) -> pd.DataFrame:
    # In the MAMO variants a missing value is a category like any other.
    missing = ["?"] if columns == "all" else []
    return pd.read_csv(
        path,
        names=_ADULT_COLUMNS,
        skipinitialspace=True,
        comment="|",
        na_values=missing,
        keep_default_na=False,
    )


def _mamo(X: pd.DataFrame, *, capital: bool) -> pd.DataFrame:
    country = X["native-country"]
    counts = Counter(country)
    joined = ["other" if counts[name] <= _RARE_COUNTRY else name for name in country]
    X = X.assign(**{"native-country": joined})
    return X.drop(columns=_NOT_IN_MAMO + ([] if capital else _CAPITAL))


_CELEBA_LABEL = "Smiling"
_HAIR = {"Black_Hair": "Black", "Blond_Hair": "Blond", "Brown_Hair": "Brown", "Gray_Hair": "Gray"}


def parse_celeba(
    paths: Sequence[Path], *, include_sensitive: bool, hair: str, hide_hair: bool
) -> Parts:
    """CelebA attributes: row count, names, then per image its file name and 40 values -1 or 1."""
    rows = _read_celeba(paths[0])
    y = (rows.pop(_CELEBA_LABEL) == 1).to_numpy(np.int64)
    sensitive = pd.DataFrame({"Male": np.where(rows["Male"] == 1, "Male", "Not male")})
    if hair == "five":
        sensitive["hair"] = _hair_colour(rows)
    else:
        sensitive["Black_Hair"] = np.where(rows["Black_Hair"] == 1, "Black hair", "Other hair")
    hidden = set() if include_sensitive else {"Male", "Black_Hair"}
    if hide_hair:
        hidden |= _HAIR.keys()
    return rows.drop(columns=sorted(hidden)), y, sensitive


def _read_celeba(path: Path) -> pd.DataFrame:
    with path.open(encoding="ascii") as stream:
        stream.readline()
        names = stream.readline().split()
        return pd.read_csv(stream, sep=r"\s+", names=["image", *names], usecols=names, dtype="int8")


def _hair_colour(rows: pd.DataFrame) -> NDArray[np.str_]:
    """Return the one colour whose flag is set, or Other."""
    flags = rows[list(_HAIR)].to_numpy() == 1
    colour = np.array(list(_HAIR.values()))[flags.argmax(axis=1)]
    return np.where(flags.sum(axis=1) == 1, colour, "Other")


_COMPAS_INPUTS = [
    *("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
    *("age_cat", "c_charge_degree", "c_charge_desc"),
]
_COMPAS_SENSITIVE = ["race", "sex"]
_COMPAS_FILTER = ["days_b_screening_arrest", "is_recid", "score_text"]
_COMPAS_LABEL = "two_year_recid"
_COMPAS_RACES = {"binary": ["Caucasian"], "three": ["African-American", "Caucasian"]}


def parse_compas(
    paths: Sequence[Path], *, include_sensitive: bool, race: str, charge_description: bool
) -> Parts:
    """ProPublica COMPAS: a csv with header, of which names and birth dates are never read."""
    wanted = {*_COMPAS_INPUTS, *_COMPAS_SENSITIVE, *_COMPAS_FILTER, _COMPAS_LABEL}
    rows = pd.read_csv(paths[0], usecols=lambda column: column in wanted)
    rows = pd.DataFrame(rows[_passes_filter(rows)]).reset_index(drop=True)
    y = rows[_COMPAS_LABEL].to_numpy(np.int64)
    sensitive = rows.filter(_COMPAS_SENSITIVE)
    if race in _COMPAS_RACES:
        named = rows["race"].isin(_COMPAS_RACES[race])
        sensitive["race"] = rows["race"].where(named, "Other")
    inputs = _COMPAS_INPUTS[:] if charge_description else _COMPAS_INPUTS[:-1]
    inputs += _COMPAS_SENSITIVE if include_sensitive else []
    return rows.filter(inputs), y, sensitive


def _passes_filter(rows: pd.DataFrame) -> pd.Series:
    """ProPublica's filter, and a charge text, so that all variants have the same rows."""
    return (
        rows["days_b_screening_arrest"].between(-30, 30)
        & (rows["is_recid"] != -1)
        & (rows["c_charge_degree"] != "O")
        & rows["score_text"].notna()
        & rows["c_charge_desc"].notna()
    )


_GERMAN_COLUMNS = [
    *("checking_status", "duration", "credit_history", "purpose", "credit_amount", "savings"),
    *("employment", "installment_rate", "personal_status_sex", "other_debtors"),
    *("residence_since", "property", "age", "other_plans", "housing", "existing_credits", "job"),
    *("dependents", "telephone", "foreign_worker", "label"),
]
_GERMAN_WOMEN = ["A92", "A95"]
_GERMAN_FOREIGN = "A201"


def parse_german(paths: Sequence[Path], *, include_sensitive: bool, foreign_worker: bool) -> Parts:
    """UCI German Credit: space-separated codes, no header; the label is 1 for good, 2 for bad."""
    rows = pd.read_csv(paths[0], sep=r"\s+", names=_GERMAN_COLUMNS)
    y = (rows.pop("label") == 1).to_numpy(np.int64)
    sensitive = pd.DataFrame(
        {
            "age": np.where(rows["age"] > 25, "over 25", "up to 25"),
            "sex": np.where(rows["personal_status_sex"].isin(_GERMAN_WOMEN), "female", "male"),
        }
    )
    raw = ["age", "personal_status_sex"]
    if foreign_worker:
        sensitive["foreign_worker"] = np.where(
            rows["foreign_worker"] == _GERMAN_FOREIGN, "yes", "no"
        )
        raw.append("foreign_worker")
    return (rows if include_sensitive else rows.drop(columns=raw)), y, sensitive


_HEART_COLUMNS = [
    *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak"),
    *("slope", "ca", "thal", "num"),
]
_HEART_CODES = ["cp", "restecg", "slope", "ca", "thal"]


def parse_heart(paths: Sequence[Path], *, include_sensitive: bool, rows: str) -> Parts:
    """UCI Heart Disease, Cleveland: comma-separated numbers, no header, '?' for missing."""
    table = pd.read_csv(paths[0], names=_HEART_COLUMNS, na_values=["?"])
    if rows == "complete":
        table = table.dropna().reset_index(drop=True)
    y = (table.pop("num") > 0).to_numpy(np.int64)
    sensitive = pd.DataFrame(
        {
            "age": np.where(table["age"] >= 55, "55 and over", "under 55"),
            "sex": np.where(table["sex"] == 1, "male", "female"),
        }
    )
    # Numbers without an order become text, so that each gets an input of its own.
    for code in _HEART_CODES:
        table[code] = table[code].map("{:.0f}".format, na_action="ignore").astype(object)
    return (table if include_sensitive else table.drop(columns=["age", "sex"])), y, sensitive


PARSERS: Mapping[str, Callable[..., Parts]] = MappingProxyType(
    {
        "adult": parse_adult,
        "celeba": parse_celeba,
        "compas": parse_compas,
        "german": parse_german,
        "heart": parse_heart,
    }
)
"""Paths of the files, ``include_sensitive`` and the options of the data set to its parts."""
