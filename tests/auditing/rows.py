"""Rows to audit."""

from typing import Any

import numpy as np
import pandas as pd

import apfex

audit: Any = apfex.audit
"""Untyped here: pyright takes a cell of a frame for a frame."""


def rows(n=600, n_classes=2, seed=0, attributes=2):
    """Labels, decisions, a sensitive table and weights, all random."""
    generator = np.random.default_rng(seed)
    levels = {"sex": ["F", "M"], "race": ["A", "B", "C"], "age": ["old", "young"]}
    table = pd.DataFrame(
        {name: generator.choice(levels[name], n) for name in list(levels)[:attributes]}
    )
    y, decided = generator.integers(0, n_classes, (2, n))
    return y, decided, table, generator.uniform(0.5, 2.0, n)


def counts(sizes, successes, names="abcdefghijklmnopqrst"):
    """Decisions and one attribute with so many rows, and positives, in each group."""
    decided = np.concatenate([np.arange(n) < x for n, x in zip(sizes, successes, strict=True)])
    return decided.astype(int), {"g": np.repeat(list(names[: len(sizes)]), sizes)}
