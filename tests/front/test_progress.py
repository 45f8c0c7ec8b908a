"""Progress without a terminal: a line now and then, with named figures."""

import pytest

from apfex.front import _progress


def shown(capsys, steps, verbose=1):
    with _progress.progress(verbose, 100, ["balanced error", "dp gap", "tpr gap"]) as show:
        for step, best in steps:
            show(step, best)
    return capsys.readouterr().err.splitlines()


def test_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_SECONDS", 0.0)
    first, second = shown(capsys, [(1, []), (50, [0.25, 0.1, 0.2])])
    assert first.startswith("Training: step 1 of 100, ")
    assert second.endswith("; best so far: balanced error 0.250, dp gap 0.100, tpr gap 0.200")


def test_lines_do_not_come_at_every_step_but_the_end_is_told(capsys):
    steps = [(step, []) for step in range(1, 101)]
    (line,) = shown(capsys, [*steps, (100, [0.25, 0.1, 0.2])])
    assert line.startswith("Training: step 100 of 100, ")


@pytest.mark.parametrize("verbose", [0, False])
def test_nothing_unless_asked_for(capsys, monkeypatch, verbose):
    monkeypatch.setattr(_progress, "_SECONDS", 0.0)
    assert shown(capsys, [(100, [0.25, 0.1, 0.2])], verbose) == []
