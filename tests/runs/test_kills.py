"""SIGKILL at random moments: what is there is whole, and what goes on comes out the same."""

import json
import subprocess
import sys

import pytest
from tests.distributed.ranks import environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="there processes cannot fork"),
]
KILLS = 100
MINUTES = 40


def test_a_hundred_kills_lose_nothing_and_change_no_bit(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.runs.killed", str(tmp_path), str(KILLS), "0"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60 * MINUTES,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["kills"] >= KILLS
    assert told["inside writes"] >= 20
    assert told["after a finished part"] >= 30
