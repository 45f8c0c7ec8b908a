"""The Python of README and docs runs as printed, and commands where their output is shown."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from website.run_pages import Block, read_blocks, run_blocks

ROOT = Path(__file__).parents[1]


def blocks_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


BLOCKS = blocks_of("README.md")


def run(blocks: list[str]) -> dict:
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, "docs", "exec"), namespace)
    return namespace


def run_page(page: str, chosen: Callable[[Block], bool] = lambda _: True) -> dict:
    """Run a page, whose blocks print what it shows: words as they are, numbers nearly.

    Scripts are written to the folder where we are, and the commands behind them run.
    """

    def compare(block: Block, printed: str) -> None:
        if block.shown is not None:
            assert words_of(printed) == words_of(block.shown)
            found, told = numbers_of(printed), numbers_of(block.shown)
            assert found == pytest.approx(told, rel=0.05, abs=0.03)
        if block.picture and block.language == "console":
            assert Path(Path(block.picture).name).exists()

    blocks = read_blocks((ROOT / page).read_text(encoding="utf-8"))
    try:
        return run_blocks([block for block in blocks if chosen(block)], compare)
    finally:
        if "matplotlib.pyplot" in sys.modules:  # what was drawn is nothing for later tests
            sys.modules["matplotlib.pyplot"].close("all")


NUMBER = r"-?\d[\d,]*(?:\.\d+)?"


def words_of(output: str) -> list[str]:
    """Words of an output, without its numbers and the lines that are drawn around tables."""
    return re.findall(r"[^\W\d]+", re.sub(NUMBER, " ", output))


def numbers_of(output: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(NUMBER, output)]


def test_the_loop_and_the_metrics_run_in_order():
    loop, metrics = (block for block in BLOCKS if "load_dataset" not in block)
    assert run([loop, metrics])["optimizer"].history.n_windows == 5


def test_the_examples_of_the_method_run(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = run_page("docs/method.md")
    deciding = names["deciding"]
    assert deciding.loc[60, ["aim", "bound"]].tolist() == [18, 8]
    assert deciding.loc[61:, ["aim", "bound"]].drop_duplicates().to_numpy().tolist() == [[1, 8]]
    rows, member = names["rows"], names["members"].member(0)
    before, after = (
        float(names["dp"](model(rows.x)[:, 0], rows.y, names["groups"]))
        for model in (names["base"], member)
    )
    assert after < 0.7 * before, "members of the page are boosted against twice the gap"


def test_the_examples_of_the_criteria_have_the_gaps_that_the_page_says(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = run_page("docs/criteria.md")
    gaps = names["result"].gaps.set_index("criterion").gap
    assert gaps.round(2).to_dict() == {"dp": 0.3, "tpr": 0, "fpr": 0, "ppv": 0}
    selected = [names["equal"][names["group"] == name].mean() for name in "ab"]
    assert selected == pytest.approx([0.45, 0.45], abs=0.01)


def test_the_examples_of_limits_close_the_gap_as_the_page_says(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = run_page("docs/limits.md")
    first, *closed = names["rates"].values()
    assert first == pytest.approx([0.69, 0.31], abs=0.02)
    assert all(one[0] == pytest.approx(one[1], abs=0.03) for one in closed)
    assert names["measured"].min(1).mean() == pytest.approx(0.045, abs=0.005)


def test_the_examples_of_deciding_run_in_order(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = run_page("docs/deciding.md")
    assert 0.02 < names["flipped"].mean() < 0.3
    selected = names["table"].groupby("town").fair.mean()
    assert np.ptp(selected) < 0.15  # the page says that they come out nearly alike
    near = (names["table"].accurate == 1) != (names["table"].qualified > 0.5)
    assert near.mean() < 0.05


def test_the_examples_of_the_gate_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page("docs/gate.md")
    names["test_no_group_is_left_behind"]()
    held_out, model = names["held_out"], names["model"]

    def result_of(decided):
        return names["audit"](held_out.y, decided, sensitive_features=held_out.sensitive)

    gaps = result_of(model.predict(held_out.X)).gaps.query("criterion == 'dp'").gap
    assert gaps.between(0, 0.15).all(), f"the page says that gaps are at most 0.15:\n{gaps}"
    first = held_out.sensitive.iloc[:, 0]
    with pytest.raises(AssertionError, match=r"0\.15"):
        names["assert_gap"](result_of((first == first[0]).astype(int)), max_gap=0.15)


def test_no_page_has_python_that_no_test_runs():
    told = {path.name for path in (ROOT / "docs").glob("*.md") if blocks_of(f"docs/{path.name}")}
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    assert not {name for name in told if not any(f'{name}"' in test for test in tests)}


def test_pages_show_no_output_and_no_picture_that_nobody_makes():
    """Whatever stands behind a block is compared; pictures are drawn by the page or by a script."""
    from website.figures import FIGURES

    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    drawn = {f"figures/{name}.png" for name in FIGURES}
    for path in (ROOT / "docs").glob("*.md"):
        page = path.read_text(encoding="utf-8")
        blocks = read_blocks(page)
        shown = [block for block in blocks if block.shown is not None]
        assert page.count("{.text .output}") == len(shown), path.name
        assert not shown or f'run_page("docs/{path.name}"' in tests, path.name
        drawn |= {block.picture for block in blocks if block.picture}
    kept = {f"figures/{path.name}" for path in (ROOT / "docs" / "figures").glob("*")}
    assert kept == drawn


def test_the_front_page_shows_what_the_first_tutorial_runs():
    (shown,) = blocks_of("docs/index.md")
    start = (ROOT / "docs" / "tutorials" / "start.py").read_text(encoding="utf-8")
    own = ("from ", "clf.fit(", "clf.front_.plot(")  # on all rows, and without the test rows
    assert [
        line for line in shown.splitlines() if not line.startswith(own) and line not in start
    ] == []


def test_the_examples_of_choosing_run_in_order(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = run_page("docs/choosing.md")
    clf, decided = names["clf"], names["decided"]
    assert ((names["margin"] > 0) == (decided == 1)).all()
    assert abs(names["probability"].mean() - names["data"].y.mean()) < 0.05
    assert clf.front_[clf.point_].error <= clf.front_[0].error + 0.1


def test_the_examples_of_streams_run_in_order():
    names = run_page("docs/streams.md")
    assert len(names["clf"].front_) > 1
    assert names["trees"].predict(names["fresh"].X).shape == (1_000,)


def test_the_examples_of_runs_run_in_order(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = run_page("docs/runs.md")
    assert len(names["hit"]) == 2


def test_the_examples_of_the_audit_run_in_order(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = run_page("docs/audit.md")
    names["test_no_group_is_left_behind"]()
    assert names["result"].gaps["verdict"].nunique() == 3


@pytest.mark.slow
def test_the_tour_of_the_command_line_runs_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page("docs/cli.md")
    assert {"audit-before", "apfex-people", "audit-after", "again"} <= set(os.listdir())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of MLflow
def test_the_examples_of_integrations_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = run(blocks_of("docs/integrations.md"))
    written = {path.name for path in tmp_path.iterdir()}
    assert {"front.png", "gaps.png", "front.html", "mlflow.db", "logs"} <= written
    assert names["loaded"].predict(names["new"].X).equals(names["run"].predict(names["new"].X))
    assert names["card"].startswith("---\nlicense")


@pytest.mark.slow
def test_the_examples_of_clusters_run_as_scripts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page("docs/dask.md")


@pytest.mark.slow  # fetches Adult where it is not at hand
def test_the_first_example_runs(capsys):
    names = run(BLOCKS[:1])
    assert len(names["clf"].front_) > 5
    assert "dp_gap" in capsys.readouterr().out
    assert len(BLOCKS[0].strip().splitlines()) <= 10
