"""Copies that others re-arranged, written out in the published layout again (checksums decide)."""

from __future__ import annotations

import io
import zipfile

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
