"""A small table with names that are awkward to show, and a quick training."""

from typing import Any

import numpy as np
import pandas as pd

from apfex import make_biased


def people(n: int = 300, seed: int = 0) -> pd.DataFrame:
    data = make_biased(n, random_state=seed)
    frame = pd.concat([data.X, data.sensitive], axis=1)
    frame["town"] = frame["town"].replace({"Ashford": "=HYPERLINK(1)", "Bexley": "[red]x[/red]"})
    return frame.assign(hired=np.where(data.y == 1, "hired", "rejected"))


COLUMNS: dict[str, Any] = {"label": "hired", "positive": "hired", "sensitive": "sex,origin"}
TRAINING: dict[str, Any] = {
    "model": "linear",
    "search": "inprocess",
    "points": 4,
    "criteria": "dp",
}


def options(arguments: dict[str, Any]) -> list[str]:
    """The same for the command line."""
    return [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
