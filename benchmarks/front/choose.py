"""What a user gets who asks for a bound: chosen on validation rows, measured on test rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from rivals.common import GAPS

from front.judge import pick
from front.records import Record, Run


def choose(
    records: Mapping[Run, Record],
    table: str,
    gap: str,
    bounds: Sequence[float],
    own: Collection[str],
) -> str:
    """Mean test error and gap of the point that validation rows choose, for each bound."""
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for run, record in records.items():
        points = record.get("points")
        if run.table == table and points and "validation" in points[0]:
            found[run.method, run.encoding].append(record)
    lines = [f"| method | inputs | seeds | {' | '.join(f'{gap} <= {b:g}' for b in bounds)} |"]
    lines.append("| --- " * (3 + len(bounds)) + "|")
    for (method, encoding), kept in found.items():
        name = f"{method} (o)" if method in own else f"{method} *" if _reads(kept) else method
        cells = [_cell(kept, gap, bound) for bound in bounds]
        lines.append(f"| {name} | {encoding} | {len(kept)} | {' | '.join(cells)} |")
    return "\n".join(
        [
            f"## {table}: error and {gap} gap on test rows, of the point of least error within "
            "the bound on validation rows (means over seeds, +- standard error)",
            "",
            *lines,
        ]
    )


def _reads(records: Sequence[Record]) -> bool:
    return bool(records[0]["needs_attribute"])


def _cell(records: Sequence[Record], gap: str, bound: float) -> str:
    column, values = 1 + GAPS.index(gap), []
    for record in records:
        known, new = (
            np.array([point[part] for point in record["points"]]) for part in ("validation", "test")
        )
        chosen = pick(known[:, 0], known[:, column], bound)
        values.append(new[chosen][[0, column]])
    means = np.mean(values, axis=0)
    errors = np.std(values, axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else [0, 0]
    parts = zip(means, errors, strict=True)
    return ", ".join(f"{mean:.4f} +- {error:.4f}" for mean, error in parts)
