"""ProPublica COMPAS: a csv with header, of which names and birth dates are never read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from apfex.datasets._dataset import Parts

_INPUTS = [
    *("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
    *("age_cat", "c_charge_degree", "c_charge_desc"),
]
_SENSITIVE = ["race", "sex"]
_FILTER = ["days_b_screening_arrest", "is_recid", "score_text"]
_LABEL = "two_year_recid"
_RACES = {"binary": ["Caucasian"], "three": ["African-American", "Caucasian"]}


def parse(
    paths: Sequence[Path], *, include_sensitive: bool, race: str, charge_description: bool
) -> Parts:
    """Read and filter the rows; see the registry for the options."""
    wanted = {*_INPUTS, *_SENSITIVE, *_FILTER, _LABEL}
    rows = pd.read_csv(paths[0], usecols=lambda column: column in wanted)
    rows = pd.DataFrame(rows[_passes_filter(rows)]).reset_index(drop=True)
    y = rows[_LABEL].to_numpy(np.int64)
    sensitive = rows.filter(_SENSITIVE)
    if race in _RACES:
        named = rows["race"].isin(_RACES[race])
        sensitive["race"] = rows["race"].where(named, "Other")
    inputs = _INPUTS if charge_description else _INPUTS[:-1]
    return Parts(rows.filter(inputs + (_SENSITIVE if include_sensitive else [])), y, sensitive)


def _passes_filter(rows: pd.DataFrame) -> pd.Series:
    """ProPublica's filter, and a charge text, so that all variants have the same rows."""
    return (
        rows["days_b_screening_arrest"].between(-30, 30)
        & (rows["is_recid"] != -1)
        & (rows["c_charge_degree"] != "O")
        & rows["score_text"].notna()
        & rows["c_charge_desc"].notna()
    )
