"""Tables and settings that the tests of the baselines share."""

from typing import Any

from apfex.datasets import make_biased

DATA = make_biased(600, kind="marginal", strength=0.4, random_state=0)
FRESH = make_biased(600, kind="marginal", strength=0.4, random_state=1)
SEX: Any = DATA.sensitive["sex"]
QUICK: dict[str, Any] = {
    "epochs": 9,
    "batch_size": 128,
    "learning_rate": 0.05,
    "hidden": (8, 5),
    "random_state": 0,
}
"""Settings with which a fit takes a fraction of a second."""


def fitted(estimator, sensitive=SEX, **more):
    """The estimator, fitted to the shared table."""
    return estimator.fit(DATA.X, DATA.y, sensitive_features=sensitive, **more)
