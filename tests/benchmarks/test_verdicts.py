"""The tables of the decision on intervals are those that the script prints."""
# pyright: reportMissingImports=false

from pathlib import Path

import pytest

DECISION = Path(__file__).parents[2] / "docs" / "decisions" / "0002-statistics-of-a-gap.md"


def rows_of(text):
    return [line for line in text.splitlines() if line.startswith("|")]


def test_documented_designs_are_those_of_the_script(capsys, monkeypatch):
    import bench_verdicts

    monkeypatch.setattr(bench_verdicts, "SIZES", ((10, 10),))
    bench_verdicts.main()
    printed, documented = rows_of(capsys.readouterr().out), rows_of(DECISION.read_text("utf-8"))
    differ = [one for one, other in zip(documented, printed, strict=True) if one != other]
    assert [row.split(" | ")[0] for row in differ] == ["| before", "| normal", "| now"]


@pytest.mark.slow
def test_documented_grid_is_that_of_the_script(capsys):
    import bench_verdicts

    bench_verdicts.main()
    printed = capsys.readouterr().out
    assert rows_of(DECISION.read_text("utf-8")) == rows_of(printed)
    assert (
        "Width over that of Bonferroni-Wilson: median 0.86, at most 1.24, wider in 4.4%" in printed
    )
