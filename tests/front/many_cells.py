"""Tables with more cells than models and rules learn one by one."""

from functools import cache

import numpy as np
import pandas as pd

from apfex.estimator import APFExClassifier

LEVELS = (3, 3, 3, 3)


def table(n, seed=0, levels=LEVELS, classes=2):
    """Inputs, labels and sensitive attributes; labels follow the first two of the latter."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n) for size in levels], 1)
    lean = 0.6 * (codes[:, 0] - 1) + 0.4 * (codes[:, 1] - 1)
    y = (rng.normal(lean) > 0).astype(int) + (classes > 2) * (rng.random(n) < 0.3)
    X = pd.DataFrame({"merit": rng.normal(y, 1.0), "noise": rng.normal(size=n)})
    for place in range(len(levels)):
        X[f"proxy_{place}"] = rng.normal(codes[:, place], 0.7)
    sensitive = {f"a{place}": [f"v{v}" for v in own] for place, own in enumerate(codes.T)}
    return X, y, pd.DataFrame(sensitive)


def quick(**given):
    defaults = {"model": "boosting", "n_estimators": 8, "max_gap": 1.0, "n_members": 8}
    defaults |= {"validation": "split", "validation_fraction": 0.4}
    return APFExClassifier(random_state=0, n_jobs=1, **{**defaults, **given})


@cache
def shared(group_thresholds=False):
    """A classifier fitted to 81 cells, which no test may change."""
    X, y, A = table(5500)
    return quick(group_thresholds=group_thresholds).fit(X, y, sensitive_features=A)
