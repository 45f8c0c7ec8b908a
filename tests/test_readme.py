"""The README's Python runs as printed."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def run(blocks: list[str]) -> dict:
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    return namespace


def test_the_loop_and_the_metrics_run_in_order():
    loop, metrics = (block for block in BLOCKS if "load_dataset" not in block)
    assert run([loop, metrics])["optimizer"].history.n_windows == 5


@pytest.mark.slow  # fetches Adult where it is not at hand
def test_the_first_example_runs(capsys):
    names = run(BLOCKS[:1])
    assert len(names["clf"].front_) > 5
    assert "dp_gap" in capsys.readouterr().out
    assert len(BLOCKS[0].strip().splitlines()) <= 10
