"""Whether the files of a run agree: what is signed is its record, and what is shown are others."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apfex.plain import jsonable, printable
from apfex.runs._data import classes_of
from apfex.runs._folder import is_finished
from apfex.sources import RunError

if TYPE_CHECKING:
    from apfex.auditing import Audit
    from apfex.estimator import APFExClassifier

_CLOSE = 1e-6
_LIMITS = ("tolerance", "confidence", "min_count")


def results_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """What a repeated run must find again: figures of every point on validation and test rows."""
    return {
        "point": described["chosen"],
        "points": [
            {
                "error": point["error"],
                **{f"{gap['criterion']} by {gap['by']}": gap["gap"] for gap in point["gaps"]},
                "error on validation rows": point["validation"]["error"],
                **{
                    f"{name} on validation rows": gap["gap"]
                    for name, gap in point["validation"]["gaps"].items()
                },
            }
            for point in described["points"]
        ],
    }


def sha256_of(described: Mapping[str, Any]) -> str:
    """Of all that a page shows, but for what tells of the run and where it is."""
    shown = {name: part for name, part in described.items() if name not in ("run", "command")}
    return hashlib.sha256(json.dumps(jsonable(shown), sort_keys=True).encode()).hexdigest()


@contextmanager
def _whole(folder: Path) -> Iterator[None]:
    """A part that is missing, or of another kind, is told as a disagreement."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise _disagree(folder, f"a part is missing or of another kind ({error!r})") from error


def check_front(described: Mapping[str, Any], record: Mapping[str, Any], folder: Path) -> None:
    """Refuse points whose figures are not those of the record, by which a run is signed."""
    with _whole(folder):
        own = jsonable(results_of(described))
        told = _are_of(record, own["point"], own["points"])
        told = told and described["conclusion"] == record["conclusion"]
        limits = {name: record["settings"].get(name) for name in ("tolerance", "confidence")}
        told = told and all(
            value is None or described["settings"][name] == value for name, value in limits.items()
        )
        if not told or described["rows"] > record["data"]["test_rows"]:
            raise _disagree(folder, "front.json has other figures than run.json")
        whole = record.get("front_sha256")  # runs of earlier versions have none
        if whole is not None and whole != sha256_of(described):
            raise _disagree(folder, "front.json is not the one that run.json tells of")


def check_model(clf: APFExClassifier, record: Mapping[str, Any], folder: Path) -> None:
    """Refuse a model that decides in other words, by other columns or points than the record."""
    with _whole(folder):
        found = (clf.classes_.tolist(), [str(name) for name in clf.feature_names_in_])
        if found != (record["classes"], list(record["features"])):
            raise _disagree(folder, "model/ has other classes or features than run.json")
        if list(classes_of(*record["words"])) != record["classes"]:
            raise _disagree(
                folder, f"run.json has words that are not those of its classes, {record['words']}"
            )
        points = [{"error on validation rows": point.error} for point in clf.front_]
        if is_finished(record) and not _are_of(record, clf.point_, points):
            raise _disagree(folder, "model/ has other points than run.json")


def _are_of(record: Mapping[str, Any], chosen: int, points: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a choice and figures of points are those that a record tells."""
    told = record["results"]
    pairs = [
        (own[name], value)  # other versions may have told fewer figures
        for own, found in zip(told["points"], points, strict=False)
        for name, value in found.items()
        if name in own
    ]
    same = all(a == b or _is_near(a, b) for a, b in pairs)
    return same and (chosen, len(points)) == (told["point"], len(told["points"]))


def _is_near(one: Any, other: Any) -> bool:
    return None not in (one, other) and math.isclose(one, other, rel_tol=1e-9)


def check_audit(
    audit: Audit,
    record: Mapping[str, Any],
    folder: Path,
    described: Mapping[str, Any] | None = None,
) -> None:
    """Refuse an audit that is not of the record, or of the chosen point that pages show."""
    with _whole(folder):
        for name in _LIMITS:
            asked, found = record["settings"].get(name), getattr(audit.settings, name)
            if asked is not None and asked != found:
                raise _disagree(
                    folder, f"audit.json has the {name} {found}, run.json {printable(asked, 40)}"
                )
        if described is None:
            rows = audit.n_rows + audit.counts.outside
            if rows != record["data"]["rows"]:
                raise _disagree(
                    folder,
                    f"audit.json is of {rows:,} rows, run.json of {record['data']['rows']:,}",
                )
            return
        gaps = {
            (gap["criterion"], gap["by"]): gap["gap"]
            for gap in described["points"][described["chosen"]]["gaps"]
        }
        own = {(row["criterion"], row["by"]): row["gap"] for row in audit.gaps.to_dict("records")}
        is_same = audit.n_rows == described["rows"] and gaps.keys() == own.keys()
        if not is_same or not all(_is_close(gaps[key], own[key]) for key in own):
            raise _disagree(folder, "audit.json is not of the point that front.json proposes")


def _is_close(stored: float | None, own: float) -> bool:
    if stored is None or math.isnan(own):
        return stored is None and math.isnan(own)
    return abs(stored - own) <= _CLOSE


def _disagree(folder: Path, said: str) -> RunError:
    return RunError(
        f"The files of {folder} disagree: {said}. One was changed, or is of another run; take the "
        "folder from a copy, or do the run again.",
        found=folder,
    )
