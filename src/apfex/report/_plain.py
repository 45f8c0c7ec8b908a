"""Numbers as short as a page needs them."""

from __future__ import annotations

from typing import Any

_DIGITS = 5


def rounded(value: Any) -> Any:
    """Numbers with as many digits as a page can show: it is a third of the size."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
