"""Real processes: start, pipes, Ctrl-C, exit codes."""

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.cli.conftest import COLUMNS

import apfex
from apfex import make_biased

COMMAND = [sys.executable, "-m", "apfex.cli"]
SCRIPT = Path(sys.executable).with_name("apfex")


def run(*arguments, **options):
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )
    assert "Traceback" not in done.stderr
    return done


def test_the_version_and_the_help_come_from_the_process():
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"apfex {apfex.__version__}\n")
    done = run()
    assert done.returncode == 0
    assert "apfex explore adult" in done.stdout


@pytest.mark.skipif(not SCRIPT.exists(), reason="not installed as a command")
def test_the_command_is_installed():
    done = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"apfex {apfex.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["explore", "--help"], ["audit", "--help"]])
def test_help_loads_nothing_heavy(arguments):
    code = (
        "import sys; from apfex.cli import main; main(sys.argv[1:]); "
        "print([m for m in ('torch', 'numpy', 'pandas', 'pyarrow', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_usage_errors_are_one_line():
    done = run("audti")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "Error: No such command 'audti'. Did you mean 'audit'? (see apfex --help).\n"
    )


def test_a_reader_that_leaves_early_gets_no_complaint():
    """As in ``apfex --help | head``: stdout is closed before anything was written."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run(
            [*COMMAND, "--help"], stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes the streams")
@pytest.mark.parametrize(
    ("typed", "code"),
    [("--version >&-", 0), ("--version 2>&-", 0), ("audti >&- 2>&-", 2), ("audti 2>/dev/full", 2)],
)
def test_a_stream_that_is_closed_leads_nowhere(typed, code):
    if "full" in typed and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    line = f"{shlex.join(COMMAND)} {typed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_results_that_cannot_be_written_are_told(decisions, more, buffered):
    others = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    audit = ["audit", decisions, "--prediction", "approved", "--positive", "yes"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *audit, "--sensitive", "sex", *more],
            env=others if buffered else others | {"PYTHONUNBUFFERED": "1"},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    told = f"Error: Standard output cannot be written: {os.strerror(errno.ENOSPC)}."
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, told)


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_an_encoding_has_no_sign_for_is_shown_by_number(tmp_path, more):
    frame = pd.DataFrame({"sex": ["é", "日"] * 60, "d": [0, 1, 1, 1] * 30})
    frame.to_csv(tmp_path / "d.csv", index=False)
    arguments = ["--prediction", "d", "--sensitive", "sex", *more]
    done = run(
        *("audit", tmp_path / "d.csv", *arguments), env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 0, done.stderr
    if more:
        assert json.loads(done.stdout)["audit"]["gaps"][0]["lowest"] == "sex=é"
    else:
        assert "sex=\\xe9 has 50.0%, sex=\\u65e5 100.0%" in done.stdout


@pytest.mark.slow
def test_a_gate_ends_the_process_with_one(decisions):
    arguments = ["audit", decisions, "--prediction", "approved", "--positive", "yes"]
    done = run(*arguments, "--sensitive", "sex", "--fail-on", "violation", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["hit"] is True


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there Ctrl-C is no signal")
def test_ctrl_c_leaves_no_half_run(tmp_path):
    data = make_biased(20_000, random_state=0)
    frame = pd.concat([data.X, data.sensitive], axis=1).assign(hired=data.y)
    frame.to_csv(tmp_path / "people.csv", index=False)
    arguments = ["explore", "people.csv", "--label", "hired", "--sensitive", "sex,origin"]
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--out", "run"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Training"):
            process.send_signal(signal.SIGINT)
            break
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "Error: Stopped."
    assert "Traceback" not in err
    left = sorted(path.name for path in tmp_path.iterdir())
    if left == ["people.csv"]:  # nothing was finished yet
        assert "Warning: Not finished: nothing is kept." in err
        return
    assert left == ["people.csv", "run.checkpoint"]
    assert f"is kept in {tmp_path / 'run.checkpoint'}; the same command goes on from there." in err


def test_a_traceback_is_there_for_those_who_ask():
    done = subprocess.run(
        [*COMMAND, "datasets", "fetch", "none"],
        env=os.environ | {"APFEX_DEBUG": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_completion_of_the_shell():
    done = subprocess.run(
        COMMAND,
        env=os.environ
        | {"_APFEX_COMPLETE": "complete_bash", "COMP_WORDS": "apfex re", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert {"report", "rerun"} <= set(done.stdout.split())


@pytest.mark.slow
def test_the_whole_way_in_processes(table, tmp_path):
    """From a file to a front, decisions and their audit, each in a process of its own."""
    table = shutil.copy(table, tmp_path)  # what is made of a file is put beside it
    done = run("explore", table, *COLUMNS, "--model", "linear", "--points", 3, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "apfex-people/report.html" in done.stdout
    done = run("predict", "apfex-people", table, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    decided = "people-predictions.csv"
    arguments = ["--prediction", "prediction", "--label", "hired", "--positive", "hired"]
    done = run("audit", decided, *arguments, "--sensitive", "sex,origin", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("rerun", "apfex-people/run.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "The same as" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there Ctrl-C is no signal")
@pytest.mark.parametrize("module", ["typer", "rich", "apfex.cli._screen", "numpy"])
def test_ctrl_c_while_modules_are_imported_gives_no_traceback(tmp_path, module):
    """A real signal in a real process, at the moment a module is looked for."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stop())\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = run("explore", "people.csv", env={**os.environ, "PYTHONPATH": path})
    assert (done.returncode, done.stderr) == (130, "Error: Stopped.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="there Ctrl-C is no signal")
def test_a_second_ctrl_c_while_python_ends_gives_no_traceback():
    """What ends with the process, as torch, may take its time after the last word."""
    code = (
        "import atexit, os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "from apfex.cli import main\n"
        "sys.exit(main(['--version']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
