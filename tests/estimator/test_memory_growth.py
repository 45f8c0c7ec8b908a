"""A service that fits again every night does not grow."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WARM, FITS = 5, 20
GROWTH = 24 * 2**20
"""Bytes by which memory may grow over the twenty fits; kept, each would hold 2 MB at the least."""
CHILD = """
import gc, json, sys, warnings
import numpy as np
from apfex import APFExClassifier, make_biased

warnings.simplefilter("ignore")
warm, fits, keep = map(int, sys.argv[2:])
data = make_biased(6000, random_state=0)
wide = data.X.assign(**{f"x{k}": np.random.default_rng(k).normal(size=6000) for k in range(40)})
kept = []


def resident():
    gc.collect()
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * 4096


def fit(seed):
    settings = {"model": sys.argv[1], "epochs": 1, "n_estimators": 5, "n_members": 4}
    clf = APFExClassifier(**settings, max_gap=1.0, validation="split", n_jobs=1, random_state=seed)
    clf.fit(wide, data.y, sensitive_features=data.sensitive).predict(wide)
    if keep:
        kept.append((clf, clf.fitted_.encode(wide)))


for seed in range(warm):
    fit(seed)
before = resident()
for seed in range(fits):
    fit(seed)
print(json.dumps(resident() - before))
"""


def growth(model: str, keep: int, fits: int = FITS) -> int:
    command = [sys.executable, "-c", CHILD, model, str(WARM), str(fits), str(keep)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's account of memory")
@pytest.mark.parametrize("model", ["linear", "mlp", "boosting"])
def test_fits_in_a_row_do_not_add_up(model):
    assert growth(model, keep=0) < GROWTH


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's account of memory")
def test_the_bound_tells_fits_that_are_kept():
    assert growth("linear", keep=1) > GROWTH
