"""``torchrun ... -m apfex explore``: one run, printed and written once."""

import json
import subprocess
import sys

import pytest
import torch
from tests.distributed.ranks import SECONDS, environment
from tests.test_readme import run_page
from website.console import run_commands

from apfex.datasets import make_biased

pytestmark = pytest.mark.slow
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
OPTIONS = ["--label", "hired", "--sensitive", "sex", "--model", "linear", "--search", "inprocess"]


@pytest.fixture
def people(tmp_path):
    data = make_biased(n=400, random_state=0)
    data.X.assign(hired=data.y, sex=data.sensitive["sex"]).to_csv(
        tmp_path / "people.csv", index=False
    )
    return tmp_path


def run(command, folder):
    """Its exit code and what it says; torchrun ends its workers when it is ended itself."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, errors = process.communicate(timeout=SECONDS)
    finally:
        process.terminate()
    return process.returncode, out, errors


def said(errors):
    """What apfex says, among what torchrun adds."""
    start = "Error: "
    return [line.removeprefix(start) for line in errors.splitlines() if line.startswith(start)]


def test_a_run_of_two_workers_is_that_of_one(people):
    explore = ["explore", "people.csv", *OPTIONS, "--points", "4"]
    code, out, errors = run([*TORCHRUN, "-m", "apfex", *explore, "--out", "two"], people)
    assert code in (0, 1), errors
    assert out.count("Report") == 1
    assert run([sys.executable, "-m", "apfex", *explore, "--out", "one"], people)[0] == code
    assert sorted(path.name for path in people.iterdir()) == ["one", "people.csv", "two"]
    one, two = (json.loads((people / name / "run.json").read_text()) for name in ("one", "two"))
    assert (one["workers"], two["workers"]) == (1, 2)
    best = [min(p["error"] for p in record["results"]["points"]) for record in (one, two)]
    assert abs(best[0] - best[1]) <= 0.02


def test_what_is_wrong_for_all_is_said_once(people):
    words = ["-m", "apfex", "explore", "people.csv", "--label", "hierd", "--sensitive", "sex"]
    code, _, errors = run([*TORCHRUN, *words], people)
    assert code != 0
    assert said(errors) == ["people.csv has no column 'hierd' (--label); did you mean 'hired'?"]
    code, _, errors = run([*TORCHRUN, "-m", "apfex", "predict", "run", "people.csv"], people)
    assert code != 0
    (message,) = set(said(errors))
    assert message.startswith("torchrun must run `apfex explore`, got `apfex predict`")


def test_a_worker_that_fails_stops_the_others(people):
    (people / "start.py").write_text(
        "import os, sys\n"
        "from apfex.cli import main\n"
        "file = 'people.csv' if os.environ['RANK'] == '0' else 'nowhere.csv'\n"
        f"sys.exit(main(['explore', file, *{OPTIONS!r}, '--out', 'two']))\n"
    )
    code, _, errors = run([*TORCHRUN, "start.py"], people)
    assert code != 0
    assert any(line.startswith("Worker 1: ") and "nowhere.csv" in line for line in said(errors))
    assert not (people / "two").exists()


DIES = """
import os, signal, sys
from apfex.cli import main
from apfex.persistence import _checkpoint as checkpoints

checkpoints._SECONDS = checkpoints._TIMES = 0.0
write, left = checkpoints.FolderCheckpoint.write, [int(sys.argv[1])]


def counted(self, name, state):  # of the first worker, the only one that writes
    write(self, name, state)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)


checkpoints.FolderCheckpoint.write = counted
sys.exit(main(sys.argv[2:]))
"""


def test_a_run_that_a_worker_has_left_goes_on_with_another_number_of_them(people):
    """Two processes, then one, then three; the first worker of two of them is killed."""
    (people / "dies.py").write_text(DIES)
    explore = ["explore", "people.csv", *OPTIONS, "--points", "4", "--threads", "1"]
    assert run([sys.executable, "-m", "apfex", *explore, "--out", "whole"], people)[0] in (0, 1)
    words = [*explore, "--out", "run"]
    code, _, errors = run([*TORCHRUN, "dies.py", "20", *words], people)
    assert code == 1
    assert "SIGKILL" in errors  # torchrun says which worker was killed, and ends the other
    assert not (people / "run").exists()
    kept = people / "run.checkpoint" / "training.state"
    first = kept.read_bytes()
    code, _, errors = run([sys.executable, "dies.py", "20", *words], people)
    assert code == -9
    assert "Going on from" in errors
    assert kept.read_bytes() != first
    code, out, errors = run([*TORCHRUN[:-1], "3", "-m", "apfex", *words], people)
    assert code in (0, 1), errors
    assert out.count("Report") == 1
    assert "Going on from" in errors
    assert not (people / "run.checkpoint").exists()
    one, other = (json.loads((people / n / "run.json").read_text()) for n in ("whole", "run"))
    assert other["workers"] == 3
    best = [min(p["error"] for p in record["results"]["points"]) for record in (one, other)]
    assert abs(best[0] - best[1]) <= 0.02


def test_the_page_of_workers_runs_as_printed(tmp_path, monkeypatch):
    """Its three workers and then two are where one worker is that has gone as far."""
    monkeypatch.chdir(tmp_path)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MPLBACKEND", "agg")
    averaged = run_page("docs/workers.md")["averaged"]
    assert averaged[32] > 1.5 * averaged[1]
    run_commands("torchrun --standalone --nproc-per-node 1 train.py one.pt")
    one, several = (torch.load(f"{name}.pt")["model"] for name in ("one", "three"))
    for name, value in one.items():
        torch.testing.assert_close(several[name], value, rtol=0, atol=1e-5)
