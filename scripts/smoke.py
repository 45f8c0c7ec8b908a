"""A minute with an installed APFEx, as a new user has it: run by scripts/release.py."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import apfex


def main() -> None:
    here = Path(apfex.__file__)
    assert "site-packages" in here.parts, f"apfex must be the installed one, got {here}."
    with tempfile.TemporaryDirectory() as folder:
        fit_save_and_load(Path(folder))
        use_the_command(Path(folder))
    train_in_a_loop()
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    print(f"apfex {apfex.__version__} fits, saves, loads, explores, predicts, audits ({versions}).")


def fit_save_and_load(folder: Path) -> None:
    data = apfex.make_biased(n=1500, random_state=0)
    clf = apfex.APFExClassifier(model=("linear", "boosting"), max_gap=1.0, random_state=0)
    clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    decided = clf.predict(data.X)
    assert (decided == data.y).mean() > 0.6
    clf.save(folder / "model")
    assert np.array_equal(apfex.load(folder / "model").predict(data.X), decided)
    assert clf.audit(data.X, data.y, sensitive_features=data.sensitive).to_frame().size


def use_the_command(folder: Path) -> None:
    data = apfex.make_biased(n=1500, random_state=1)
    table = data.X.assign(hired=data.y, **dict(data.sensitive))
    table.to_csv(folder / "people.csv", index=False)
    columns = ["--label", "hired", "--sensitive", "sex,origin"]
    explore = ["explore", "people.csv", *columns, "--positive", "1", "--model", "linear"]
    apfex_(folder, *explore, "--out", "run", "--max-gap", "1")
    assert "<html" in (folder / "run" / "report.html").read_text()[:1000].lower()
    apfex_(folder, "predict", "run", "people.csv", "--out", "decided.csv")
    assert len((folder / "decided.csv").read_text().splitlines()) == 1501
    table.assign(decision=1 - data.y).to_csv(folder / "audit.csv", index=False)
    apfex_(folder, "audit", "audit.csv", "--prediction", "decision", *columns, "--positive", "1")


def apfex_(folder: Path, *arguments: str) -> None:
    command = [str(Path(sys.executable).with_name("apfex")), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"


def train_in_a_loop() -> None:
    torch.manual_seed(0)
    x, y, groups = torch.randn(64, 3), torch.arange(64) % 2, torch.arange(64) % 4
    model = torch.nn.Linear(3, 1)
    optimizer = apfex.APFEx(torch.optim.Adam(model.parameters()), window=5)
    task, dp = apfex.CrossEntropy(), apfex.FairnessLoss("dp")
    for _ in range(10):
        scores = model(x)
        optimizer.backward([task(scores, y), dp(scores, y, groups)])
        optimizer.step()
    assert optimizer.history.n_windows == 2


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
