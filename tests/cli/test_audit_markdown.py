"""``apfex audit --markdown``: a summary for a pull request, added to a file."""

import errno
import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

OPTIONS = ["--prediction", "approved", "--positive", "yes", "--label", "repaid"]


def test_the_summary_is_added_and_says_what_gates_say(apfex, decisions, tmp_path):
    file = tmp_path / "summary.md"
    file.write_text("# Earlier steps\n\n")
    rules = ["--fail-on", "dp_gap[sex].lower > 0.05", "--fail-on", "tpr_gap > 0.99"]
    found = apfex(
        "audit", decisions, *OPTIONS, "--sensitive", "sex,race", *rules, "--markdown", file
    )
    assert found.code == 1
    text = file.read_text()
    assert text.startswith("# Earlier steps\n\n## Fairness audit of decisions.csv\n\n")
    assert re.search(
        r"^- \*\*HIT\*\*: `dp_gap\[sex\]\.lower > 0\.05`\n  - dp by sex: 0\.", text, re.M
    )
    assert "- passed: `tpr_gap > 0.99`" in text
    assert "| dp | sex |" in text
    assert "The gap exceeds the limit" in text
    first = len(text)
    assert apfex("audit", decisions, *OPTIONS, "--sensitive", "sex", "--markdown", file).code == 0
    assert file.read_text()[:first] == text
    assert file.read_text().count("## Fairness audit of") == 2


def test_names_from_data_stay_in_their_cell(apfex, tmp_path):
    file = tmp_path / "x.csv"
    rows = "".join(f"<img src=x>|{n % 2},{n % 3 == n % 2 * 1}\n" for n in range(100))
    file.write_text("who,decided\n" + rows)
    found = apfex("audit", file, "--prediction", "decided", "--sensitive", "who",
                  "--markdown", tmp_path / "s.md")  # fmt: skip
    assert found.code == 0
    text = (tmp_path / "s.md").read_text()
    assert "<img" not in text
    table = re.findall(r"^\|.*$", text, re.M)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table[:3]} == {9}


def test_a_file_that_cannot_be_written_is_said(apfex, decisions, tmp_path):
    found = apfex("audit", decisions, *OPTIONS, "--sensitive", "sex", "--markdown", tmp_path)
    assert found.code == 2
    assert str(tmp_path) in found.err


@pytest.mark.parametrize("before", [None, "# Earlier steps\n"])
def test_no_half_of_a_summary_is_left_where_the_disk_is_full(
    apfex, decisions, tmp_path, monkeypatch, before
):
    file = tmp_path / "summary.md"
    if before is not None:
        file.write_text(before)
    whole = Path.open

    @contextmanager
    def on_a_full_disk(path, *options, **named):
        with whole(path, *options, **named) as end:
            yield end
            if path == file:
                end.flush()
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", on_a_full_disk)
    said = apfex("audit", decisions, *OPTIONS, "--sensitive", "sex", "--markdown", file)
    assert said.code == 2
    assert f"summary.md cannot be written: {os.strerror(errno.ENOSPC)}" in " ".join(
        said.err.split()
    )
    monkeypatch.undo()
    assert (file.read_text() if file.exists() else None) == before


def test_a_summary_that_no_file_can_be_stops_before_anything_is_written(apfex, decisions, tmp_path):
    command = ["audit", decisions, *OPTIONS, "--sensitive", "sex", "--markdown", tmp_path]
    assert apfex(*command, "--out", tmp_path / "run").code == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["decisions.txt", "link.md", "other.CSV"])
def test_a_summary_is_never_added_to_a_table(apfex, decisions, tmp_path, name):
    """Neither to the audited one, whatever it is called, nor to another."""
    table = shutil.copy(decisions, tmp_path / "decisions.txt")
    (tmp_path / "link.md").symlink_to(table)
    shutil.copy(decisions, tmp_path / "other.CSV")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    said = apfex("audit", table, *OPTIONS, "--sensitive", "sex", "--markdown", tmp_path / name)
    assert said.code == 2
    assert f"--markdown {tmp_path / name} cannot be written: a summary would be added" in said.err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
