"""The training of ``explore``, with the library's warnings in words of the command line."""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING, Any

from apfex.cli._errors import CommandError
from apfex.cli._screen import Screen, shown
from apfex.cli._settings import ExploreSettings

if TYPE_CHECKING:
    from apfex.estimator import APFExClassifier

_LEFT_OUT = re.compile(r"Groups without rows that count among the (\d+) .* gaps: (.*)\. Merge ")
_RATE_OF = re.compile(r"(\w+) of (\[.*?\])(?:; |$)")
_UNMEASURABLE = re.compile(r"criteria must be measurable on the (\d+) .* got '(\w+)'")
_NAMED = 5
_REMEDY = "Put levels together (--bins for numbers), add rows, or lower --test-fraction"


def train(
    settings: ExploreSettings, favorable: Any, rows: dict[str, Any], screen: Screen
) -> APFExClassifier:
    """Fit to rows, with a progress bar on a terminal."""
    import rich

    from apfex.estimator import APFExClassifier

    rich.reconfigure(stderr=True)  # the bar of the classifier is drawn on rich's own console
    clf = APFExClassifier(
        settings.criteria,
        model=settings.models,
        search=settings.search,  # pyright: ignore[reportArgumentType] - it checks
        n_points=settings.points,
        max_gap=dict(settings.max_gap),
        favorable_label=favorable,
        random_state=settings.seed,
        verbose=int(screen.asides.is_terminal),
    )
    with warnings.catch_warnings():
        # The line "Chosen" at the end says so in words of the command line.
        warnings.filterwarnings("ignore", message="No non-trivial point")
        warnings.showwarning = lambda message, *_, **__: screen.warn(in_our_words(str(message)))
        try:
            return clf.fit(**rows).set_params(verbose=0)
        except ValueError as error:
            found = _UNMEASURABLE.match(str(error))
            if found is None:
                raise
            raise CommandError(
                f"--criteria {found[2]} cannot be measured on the {int(found[1]):,} rows that "
                "choose the points: a gap needs two groups with rows that count there. "
                f"{_REMEDY}, or choose other --criteria."
            ) from error


def in_our_words(message: str) -> str:
    """A warning of ``fit`` for those who do not call it."""
    found = _LEFT_OUT.match(message)
    if found is None:
        return message
    try:
        parts = [
            f"{rate} of {_together(ast.literal_eval(names))}"
            for rate, names in _RATE_OF.findall(found[2])
        ]
    except (SyntaxError, ValueError):  # a name with marks of its own
        parts = [found[2]]
    return (
        f"Among the {int(found[1]):,} rows that choose the points, groups without rows that count "
        f"are left out of the gaps: {'; '.join(parts)}. {_REMEDY}."
    )


def _together(names: list[str]) -> str:
    """Names of groups, which have commas themselves."""
    more = [f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    return " and ".join([*(shown(name, 80) for name in names[:_NAMED]), *more])
