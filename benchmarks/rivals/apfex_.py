"""APFEx itself, fitted as a user fits it, in its default form and in others.

Everything in this file counts as ours in the report, and everything in the other files as a rival.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray

from apfex.estimator import APFExClassifier
from rivals.common import BOUNDS, Handed, Method, Part, mark

CRITERIA = {"dp": "dp", "tpr": "tpr", "eo": "equalized_odds", "both": ("dp", "tpr")}
DEFAULT = "APFEx"


def ours(*, slow: bool = False, **given: Any) -> Method:
    """The classifier, with nothing set but what is given, on one thread of the processor."""
    reads = given.get("group_thresholds", False)

    @mark(needs_attribute=reads, slow=slow)
    def method(rows: Part, test: Part, seed: int):  # noqa: ANN202
        for problem, criteria in CRITERIA.items():
            fitted = fit(rows, seed, criteria=criteria, **given)
            shown = {"sensitive_features": test.sensitive} if reads else {}
            decided = fitted.decide_all(test.table, **shown)
            within = {bound: decided[place_within(fitted, bound)] for bound in BOUNDS}
            figures = figures_of(fitted) if problem == "both" else None
            yield problem, Handed([*decided], within, figures)

    return method


def fit(rows: Part, seed: int, **given: Any) -> APFExClassifier:
    model = APFExClassifier(device="cpu", n_jobs=1, random_state=seed, **given)
    return model.fit(rows.table, rows.y, sensitive_features=rows.sensitive)


def place_within(fitted: APFExClassifier, bound: float | dict[str, float]) -> int:
    """The point that ``select`` hands out; where it refuses, the one that ``fit`` takes instead."""
    try:
        return fitted.select(max_gap=bound).point_
    except ValueError:
        names = fitted.front_[0].gaps
        bounds = bound if isinstance(bound, dict) else dict.fromkeys(names, bound)
        return fitted.front_.first_choice(bounds, None)


def figures_of(fitted: APFExClassifier) -> NDArray[np.float64]:
    """Error and gaps of the points, as the front itself shows them."""
    return np.array([[p.error, *(gap.gap for gap in p.gaps.values())] for p in fitted.front_])


def own_joint(
    rows: Part, test: Part, seed: int, **given: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """What our rules are fitted to: q out of fold, q of the test rows, groups of the former.

    It is caught on its way from the joint model to the rules, so that it is the same by
    construction, whatever the settings. Rows that ``fit`` holds out to choose by are not in it.
    """
    from apfex.front import _postprocess

    caught: list[Any] = []
    learn = _postprocess.fit_joint_model

    def catch(learned_from: Any, *others: Any, **options: Any) -> Any:
        model, out_of_fold = learn(learned_from, *others, **options)
        caught.append((model, out_of_fold, learned_from.targets // learned_from.shape[1]))
        return model, out_of_fold

    with mock.patch.object(_postprocess, "fit_joint_model", catch):
        fitted = fit(rows, seed, **given)
    model, out_of_fold, groups = caught[-1]
    dtype = next((p.dtype for p in model.parameters()), torch.float32)
    x = fitted.fitted_.encode(test.table).to(dtype)
    with torch.no_grad():
        new = torch.cat([model(part) for part in x.split(2**14)])
    return out_of_fold.double().numpy(), new.double().numpy(), groups.numpy()


FORMS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "APFEx, trees": {"model": "boosting", "slow": True},
    "APFEx, networks": {"model": "mlp", "slow": True},
    "APFEx, linear": {"model": "linear", "slow": True},
    "APFEx, inprocess": {"search": "inprocess", "slow": True},
    "APFEx, group thresholds": {"group_thresholds": True, "slow": True},
}
METHODS: dict[str, Method] = {name: ours(**given) for name, given in FORMS.items()}
