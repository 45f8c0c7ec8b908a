"""Tables and settings that the tests of the estimator share."""

import copy
from functools import cache

from apfex.datasets import make_biased
from apfex.estimator import APFExClassifier

QUICK = {
    "model": "mlp",
    "epochs": 6,
    "n_members": 5,
    "batch_size": 64,
    "learning_rate": 0.02,
    "random_state": 0,
}
"""Settings of networks with which a fit takes a fraction of a second."""

DATA = make_biased(600, kind="marginal", strength=0.4, random_state=0)
FRESH = make_biased(600, kind="marginal", strength=0.4, random_state=1)


def quick(**changes):
    """An unfitted classifier; any gap is within its bound."""
    return APFExClassifier(**{"max_gap": 1.0, **QUICK, **changes})


def fitted(**changes):
    """One fitted on the shared table."""
    return quick(**changes).fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)


def shared(**changes):
    """The same, fitted once for all tests that only look at it."""
    return copy.copy(_kept(**changes))


_kept = cache(fitted)
