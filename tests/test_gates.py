"""The gates that users copy: the shell of the workflow is run, and pre-commit runs the hook."""

import os
import re
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "fairness-gate.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
if not WORKFLOW.exists():
    pytest.skip("the files are in the repository, not in the package", allow_module_level=True)

DOCUMENT = yaml.safe_load(WORKFLOW.read_text())
INPUTS = DOCUMENT[True]["workflow_call"]["inputs"]  # "on" is a word for true in YAML 1.1
STEPS = DOCUMENT["jobs"]["audit"]["steps"]
PAGE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
SHOWN = [yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", PAGE, re.S)]
CALLED = next(one["jobs"]["fairness"]["with"] for one in SHOWN if "fairness" in one.get("jobs", ()))
CONFIG = next(one for one in SHOWN if "repos" in one)
BIN = Path(sys.executable).parent


@pytest.fixture
def decisions(tmp_path):
    rng = np.random.default_rng(0)
    sex = rng.choice(["female", "male"], 600)
    approved = rng.random(600) < np.where(sex == "male", 0.6, 0.3)
    frame = pd.DataFrame({"sex": sex, "approved": approved.astype(int)})
    frame["repaid"] = rng.integers(0, 2, 600)
    frame["race"] = rng.choice(["a", "b"], 600)
    frame.to_csv(tmp_path / "decisions.csv", index=False)
    return tmp_path / "decisions.csv"


def run_step(name, folder, given):
    """The shell of a step, with its environment as GitHub would make it of the inputs."""
    step = next(step for step in STEPS if step.get("name") == name)
    values = {key: str(one.get("default", "")) for key, one in INPUTS.items()} | given
    env = {
        key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: values[found[1]], value)
        for key, value in step["env"].items()
    }
    own = {"GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "RUNNER_TEMP": str(folder / "temp")}
    path = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    (folder / "temp").mkdir(exist_ok=True)
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **env, **own, **path},
        capture_output=True,
        text=True,
        timeout=300,
    )


BASIC = {"decisions": "decisions.csv", "prediction": "approved", "sensitive": "sex"}


def test_the_workflow_is_made_of_inputs_that_are_used_and_never_run():
    text = WORKFLOW.read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(INPUTS)
    assert all("${{" not in step.get("run", "") for step in STEPS)
    assert all(one["description"] for one in INPUTS.values())
    required = {name for name, one in INPUTS.items() if one.get("required")}
    assert required == set(BASIC)
    assert DOCUMENT["permissions"] == {"contents": "read"}


@pytest.mark.slow
def test_the_shell_of_the_workflow_stops_a_job_and_sums_up(decisions, tmp_path):
    assert run_step("Install", tmp_path, {}).returncode == 0
    hit = run_step("Audit", tmp_path, BASIC)
    assert hit.returncode == 1, hit.stderr
    summary = (tmp_path / "summary.md").read_text()
    assert "- **HIT**: `violation`" in summary
    assert "| dp | sex |" in summary
    assert (tmp_path / "temp" / "fairness-gate" / "report.html").exists()
    assert decisions.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("decisions")
def test_the_call_that_the_page_shows_is_hit(tmp_path):
    assert run_step("Audit", tmp_path, CALLED).returncode == 1
    summary = (tmp_path / "summary.md").read_text()
    rules = CALLED["fail-on"].splitlines()
    assert [f"- **HIT**: `{rule}`" in summary for rule in rules] == [True, True]


@pytest.mark.slow
@pytest.mark.usefixtures("decisions")
def test_the_shell_takes_rules_and_arguments_line_by_line_and_runs_nothing_in_them(tmp_path):
    given = {
        "label": "repaid",
        "fail-on": "dp_gap[sex] > 0.9\n\ntpr_gap > 0.9\n",
        "arguments": "--tolerance=0.5\n--criteria=dp,tpr\n",
    }
    fine = run_step("Audit", tmp_path, {**BASIC, **given})
    assert fine.returncode == 0, fine.stderr
    summary = (tmp_path / "summary.md").read_text()
    assert "- passed: `dp_gap[sex] > 0.9`\n- passed: `tpr_gap > 0.9`" in summary
    nasty = "$(touch hacked); `touch hacked`"
    run_step("Audit", tmp_path, dict.fromkeys([*BASIC, "label", "fail-on", "arguments"], nasty))
    assert not (tmp_path / "hacked").exists()


@pytest.mark.slow
def test_pre_commit_runs_the_hook_where_the_file_is_committed(decisions, tmp_path):
    """By the hook that uses the installed apfex: the other one installs it, which needs a net."""
    hooks, mine = tmp_path / "hooks", tmp_path / "mine"
    for folder in (hooks, mine):
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
    shutil.copy(HOOKS, hooks)
    commit(hooks)
    shutil.move(decisions, mine / "decisions.csv")
    write_config(mine, hooks, "dp_gap > 0.9")
    commit(mine)
    passed = pre_commit(mine, tmp_path)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    write_config(mine, hooks, "violation")
    stopped = pre_commit(mine, tmp_path)
    assert stopped.returncode == 1
    assert "HIT   violation" in stopped.stdout
    (mine / "other.txt").write_text("x")
    git(mine, "add", "other.txt")
    skipped = pre_commit(mine, tmp_path, "--files", "other.txt")
    assert "no files to check" in skipped.stdout


def test_both_hooks_are_the_same_command():
    hooks = yaml.safe_load(HOOKS.read_text())
    assert {hook["entry"] for hook in hooks} == {"apfex audit"}
    assert {hook["language"] for hook in hooks} == {"python", "unsupported"}


def write_config(folder, hooks, rule):
    """The configuration that the page shows, with the hook that needs no net."""
    config = deepcopy(CONFIG)
    (repo,) = config["repos"]
    repo.update(repo=str(hooks), rev=git(hooks, "rev-parse", "HEAD").strip())
    (hook,) = repo["hooks"]
    hook.update(id="apfex-audit-installed", args=[*hook["args"][:-1], f"--fail-on={rule}"])
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(folder, "add", ".pre-commit-config.yaml")


def pre_commit(folder, home, *more):
    more = more or ("--all-files",)
    env = {
        **os.environ,
        "PRE_COMMIT_HOME": str(home / "cache"),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }
    command = [sys.executable, "-m", "pre_commit", "run", *more]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x")


def git(folder, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    command = ["git", "-c", "core.hooksPath=/dev/null", *words]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=60, env=env
    ).stdout
