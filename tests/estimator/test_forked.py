"""A forked child decides as its parent does, though OpenMP would wait there for lost threads."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys, time, warnings
import numpy as np, torch
from apfex import APFExClassifier, load, make_biased

warnings.simplefilter("ignore")
model, search, again, folder = sys.argv[1:]
torch.set_num_threads(2)
small, large = make_biased(300, random_state=0), make_biased(20_000, random_state=1)
settings = dict(model=model, search=search, n_points=2, n_members=2, epochs=2, n_estimators=4)

def fit():
    clf = APFExClassifier(**settings, max_gap=1.0, n_jobs=2, random_state=0)
    return clf.fit(small.X, small.y, sensitive_features=small.sensitive)

clf = fit()
clf.save(folder)
clf = load(folder)
before = clf.predict_proba(large.X)
child = os.fork()
if child == 0:
    one = fit() if again == "fit" else clf
    os._exit(0 if np.array_equal(one.predict_proba(large.X), before) else 3)
ended = time.monotonic() + 120
while time.monotonic() < ended:
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        sys.exit(os.waitstatus_to_exitcode(status))
    signal.sigtimedwait([signal.SIGCHLD], 0.1)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
sys.exit(4)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    ("model", "search", "again"),
    [
        ("boosting", "postprocess", "predict"),
        pytest.param("linear", "postprocess", "predict", marks=pytest.mark.slow),
        pytest.param("mlp", "inprocess", "predict", marks=pytest.mark.slow),
        pytest.param("linear", "postprocess", "fit", marks=pytest.mark.slow),
        pytest.param("boosting", "postprocess", "fit", marks=pytest.mark.slow),
        pytest.param("mlp", "inprocess", "fit", marks=pytest.mark.slow),
        pytest.param("boosting", "inprocess", "fit", marks=pytest.mark.slow),
    ],
)
def test_a_forked_child_ends_and_agrees(model, search, again, tmp_path):
    words = [sys.executable, "-c", SCRIPT, model, search, again, str(tmp_path / "model")]
    found = subprocess.run(
        words,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert found.returncode == 0, {3: "it differs", 4: "it hangs"}.get(
        found.returncode, found.stderr
    )
