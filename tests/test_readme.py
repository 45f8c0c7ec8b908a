"""The Python of README and docs runs as printed."""

import re
import subprocess
import sys
from pathlib import Path

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


def run_page(page: str) -> dict:
    """Run a page, whose blocks print what it shows: words as they are, numbers nearly."""

    def compare(block: Block, printed: str) -> None:
        if block.shown is not None:
            assert words_of(printed) == words_of(block.shown)
            found, told = numbers_of(printed), numbers_of(block.shown)
            assert found == pytest.approx(told, rel=0.05, abs=0.03)

    return run_blocks(read_blocks((ROOT / page).read_text(encoding="utf-8")), compare)


NUMBER = r"-?\d[\d,]*(?:\.\d+)?"


def words_of(output: str) -> list[str]:
    """Words of an output, without its numbers and the lines that are drawn around tables."""
    return re.findall(r"[^\W\d]+", re.sub(NUMBER, " ", output))


def numbers_of(output: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(NUMBER, output)]


def test_the_loop_and_the_metrics_run_in_order():
    loop, metrics = (block for block in BLOCKS if "load_dataset" not in block)
    assert run([loop, metrics])["optimizer"].history.n_windows == 5


def test_the_boosted_member_of_the_method_has_a_smaller_gap_than_its_base():
    (block,) = blocks_of("docs/method.md")
    names = run([block])
    rows, member = names["rows"], names["members"].member(0)
    before, after = (
        float(names["dp"](model(rows.x)[:, 0], rows.y, names["groups"]))
        for model in (names["base"], member)
    )
    assert after < 0.7 * before, "members of the page are boosted against twice the gap"


def test_the_oracle_of_the_criteria_has_the_gap_that_the_page_says(capsys):
    gaps = run(blocks_of("docs/criteria.md"))["result"].gaps.set_index("criterion").gap
    assert gaps.round(2).to_dict() == {"dp": 0.3, "tpr": 0, "fpr": 0, "ppv": 0}
    assert "0.3" in capsys.readouterr().out


def test_the_example_of_deciding_runs(capsys):
    flipped = run(blocks_of("docs/deciding.md"))["flipped"]
    assert 0.02 < flipped.mean() < 0.3
    assert "are decided otherwise" in capsys.readouterr().out


def test_the_gate_of_its_page_is_open_and_shuts_on_decisions_by_group():
    names = run(blocks_of("docs/gate.md"))
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
        assert not shown or f'run_page("docs/{path.name}")' in tests, path.name
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


def test_the_examples_of_choosing_run_in_order():
    names = run(blocks_of("docs/choosing.md"))
    clf, decided = names["clf"], names["decided"]
    assert ((names["margin"] > 0) == (decided == 1)).all()
    assert abs(names["probability"].mean() - names["data"].y.mean()) < 0.05
    assert clf.front_[clf.point_].error <= clf.front_[0].error + 0.1


def test_the_examples_of_streams_run_in_order():
    names = run(blocks_of("docs/streams.md"))
    assert len(names["clf"].front_) > 1
    assert names["other"].predict(names["data"].X).shape == (6_000,)


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
@pytest.mark.parametrize(
    ("place", "check"),
    [(0, "len(scores) == 3 and min(scores) > 0.5"), (1, "(decisions == data.y).mean() > 0.6")],
)
def test_the_examples_of_clusters_run_as_scripts(place, check, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(blocks_of("docs/dask.md")[place] + f"    assert {check}\n")
    command = [sys.executable, "-W", "ignore::UserWarning", str(script)]
    subprocess.run(command, check=True, timeout=300)


@pytest.mark.slow  # fetches Adult where it is not at hand
def test_the_first_example_runs(capsys):
    names = run(BLOCKS[:1])
    assert len(names["clf"].front_) > 5
    assert "dp_gap" in capsys.readouterr().out
    assert len(BLOCKS[0].strip().splitlines()) <= 10
