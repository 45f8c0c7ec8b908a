"""A run folder appears whole or not at all; nothing is replaced."""

import os
import shutil
from pathlib import Path

import pytest

from apfex.runs import RunError, RunWarning, free_folder, load_run
from apfex.runs._folder import MODEL, RUN, new_folder


def write(place, fill, error=None):
    with new_folder(place) as folder:
        fill(folder)
        if error is not None:
            raise error


def test_a_folder_gets_its_name_when_all_is_there(tmp_path):
    place = tmp_path / "deep" / "run"
    with new_folder(place) as folder:
        (folder / RUN).write_text("{}")
        assert not place.exists()
    assert [p.name for p in place.iterdir()] == [RUN]
    assert [p.name for p in place.parent.iterdir()] == ["run"]
    if os.name == "posix":
        (tmp_path / "plain").mkdir()
        assert place.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_after_an_error_nothing_is_left(tmp_path, error):
    with pytest.raises(error):
        write(tmp_path / "run", lambda folder: (folder / "front.json").touch(), error)
    assert list(tmp_path.iterdir()) == []


def stop(place, fill):
    with (
        pytest.warns(RunWarning, match="Not finished") as caught,
        pytest.raises(KeyboardInterrupt),
    ):
        write(place, fill, KeyboardInterrupt)
    message = caught[0].message
    assert isinstance(message, RunWarning)
    return message


def test_what_was_stopped_says_what_is_kept(tmp_path):
    assert "nothing is kept" in str(stop(tmp_path / "run", lambda _: None))
    assert list(tmp_path.iterdir()) == []
    for name in ("run.incomplete", "run.incomplete-2"):
        told = stop(tmp_path / "run", lambda folder: (folder / MODEL).mkdir())
        assert told.found == tmp_path / name
        assert f"load_run({str(told.found)!r}).predict" in str(told)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["run.incomplete", "run.incomplete-2"]


def test_what_exists_is_refused_unless_it_is_empty(tmp_path):
    full, empty, file = tmp_path / "full", tmp_path / "empty", tmp_path / "file"
    full.mkdir()
    empty.mkdir()
    (full / "precious").write_text("x")
    file.write_text("x")
    for place in (full, file):
        with pytest.raises(RunError, match="exists already"):
            free_folder(place, "people.csv")
    assert free_folder(empty, "people.csv") == empty
    with new_folder(empty) as folder:
        (folder / RUN).write_text("{}")
    assert (empty / RUN).exists()


def test_names_by_default_count_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("apfex-people", "apfex-people-2"):
        assert free_folder(None, "some/where/people.csv") == tmp_path / name
        Path(name).mkdir()
    assert free_folder(None, "../§ $.csv").name == "apfex-run"


def test_a_run_of_a_file_goes_beside_it_and_its_path_is_absolute(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "people.csv").touch()
    monkeypatch.chdir(tmp_path)
    assert free_folder(None, "data/people.csv") == tmp_path / "data" / "apfex-people"
    assert free_folder(None, "adult") == tmp_path / "apfex-adult"
    assert free_folder("here", "data/people.csv") == tmp_path / "here"


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="there are no devices here")
def test_nobody_is_told_to_remove_a_device():
    with pytest.raises(RunError, match=r"exists already; name another folder \(out\)\.$"):
        free_folder("/dev/null", "people.csv")


def test_a_place_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="cannot be made"):
        write(tmp_path / "file" / "run", lambda _: None)


def test_somebody_else_was_faster(tmp_path):
    place = tmp_path / "run"

    def fill(_):
        place.mkdir()
        (place / "theirs").write_text("x")

    with pytest.raises(RunError, match="in the meantime"):
        write(place, fill)
    assert [p.name for p in place.iterdir()] == ["theirs"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("text", [None, "{", "{}"])
def test_a_damaged_audit_is_told_by_the_name_of_its_file(finished, tmp_path, text):
    folder = shutil.copytree(finished, tmp_path / "copy")
    (folder / "audit.json").unlink()
    if text is not None:
        (folder / "audit.json").write_text(text)
    with pytest.raises(RunError, match=r"audit\.json is damaged or missing .*take it from a copy"):
        _ = load_run(folder).audit
