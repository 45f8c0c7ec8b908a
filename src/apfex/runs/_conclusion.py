"""What a run came to, in one sentence that terminal, page and record share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from apfex.plain import beside, printable

if TYPE_CHECKING:
    from apfex.front import Front
    from apfex.runs._settings import ExploreSettings

_CLOSEST = "No model meets your limit; this one comes closest. "
"""How the page begins where that is so."""


@final
@dataclass(frozen=True)
class Conclusion:
    """Whether a run has a model that can be used, and which one is handed out.

    Attributes
    ----------
    code : {"chosen", "limit_not_met", "no_usable_model"}
        A model meets the limit; none does, and the nearest is handed out; or all models are
        (nearly) constant, and none should be used.
    text : str
        The same in words, for a reader of the page or of the terminal.
    """

    code: Literal["chosen", "limit_not_met", "no_usable_model"]
    text: str

    @property
    def is_usable(self) -> bool:
        """Whether there is a model that does more than to decide alike for everybody."""
        return self.code != "no_usable_model"

    def to_dict(self) -> dict[str, str]:
        """For JSON."""
        return asdict(self)


def conclude(described: Mapping[str, Any], front: Front, settings: ExploreSettings) -> Conclusion:
    """Look at the points of a front and at the one that was chosen, on the validation rows.

    Parameters
    ----------
    described : mapping
        From ``describe_front``.
    """
    place = described["chosen"]
    chosen = front[place]
    if described["trivial"]:
        return Conclusion("no_usable_model", _no_model(described, settings))
    limit = ", ".join(f"{name} gap at most {most:g}" for name, most in settings.max_gap.items())
    if settings.max_error_increase is not None:
        kind = front.by.replace("_", " ")
        limit += f", {kind} at most {settings.max_error_increase:g} above the lowest"
    found = ", ".join(
        f"{name} gap {beside(chosen.gaps[name].gap, most)}"
        for name, most in settings.max_gap.items()
    )
    poor = (
        " It is nearly constant: little better than the same answer for everyone."
        if chosen.near_constant
        else ""
    )
    told = described["points"][place]
    headline = told["summary"]["headline"].removeprefix(_CLOSEST)
    poor += f" On the test rows: {headline}{_without_limit(settings)}"
    if settings.selection_rate is not None:
        share = told["share_favored"]
        poor += (
            f" Asked for were {100 * settings.selection_rate:g}% favorable decisions; on the test "
            f"rows it makes {100 * share:.1f}%."
        )
    if described["chosen_by"] == "nearest":
        text = (
            f"No model meets your limit ({limit}) on the validation rows; this one comes closest: "
            f"point {place} ({found} there).{poor}"
        )
        return Conclusion("limit_not_met", text)
    text = (
        f"Point {place} is chosen: of the models that meet your limit ({limit}) on the validation "
        f"rows it has the lowest {front.by.replace('_', ' ')} ({found} there).{poor}"
    )
    return Conclusion("chosen", text)


def _without_limit(settings: ExploreSettings) -> str:
    """That criteria without a limit had no part in the choice, and what their verdicts go by."""
    others = [name for name in settings.criteria if name not in settings.max_gap]
    if not others:
        return ""
    return (
        f" No limit was set for {_either(others, 'and')}: the choice did not look at "
        f"{'it' if len(others) == 1 else 'them'}, and verdicts go by the tolerance of "
        f"{settings.tolerance:g}. Set one with --max-gap {others[0]}={settings.tolerance:g}."
    )


def _no_model(described: Mapping[str, Any], settings: ExploreSettings) -> str:
    """That there is none, why, and what to do about it."""
    label = printable(described["constant"]["label"], 40)
    remedies = [
        (settings.scoring != "balanced_accuracy", "--scoring balanced_accuracy"),
        (settings.cost is None, "--cost false_positive=1,false_negative=5 (with your own costs)"),
        (settings.selection_rate is None, "--selection-rate 0.2 (with your own share)"),
    ]
    open_ones = [text for is_open, text in remedies if is_open]
    tried = f"Train again with {_either(open_ones)}." if open_ones else "More rows may help."
    return (
        "No usable model: every model that was found gives (nearly) everyone the same answer, or "
        f"is hardly better than “{label}” for everyone, which is wrong for "
        f"{100 * described['constant']['error']:.1f}% of the test rows. {tried}"
    )


def _either(parts: Sequence[str], word: str = "or") -> str:
    *others, last = parts
    return f"{', '.join(others)} {word} {last}" if others else last
