"""A release is refused for every reason that the script names."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

import apfex

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
assert _spec is not None
assert _spec.loader is not None
release = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(release)

CHANGES = "# Changelog\n\n## Unreleased\n{now}\n## 0.2.0 - 2026-01-01\n{then}\n## 0.1.0\n- Began.\n"


def test_this_tree_knows_its_version():
    version = release.version_of((ROOT / "src" / "apfex" / "__init__.py").read_text())
    assert version == apfex.__version__
    release.check_changelog((ROOT / "CHANGELOG.md").read_text(), version)
    release.check_citation((ROOT / "CITATION.cff").read_text(), version)
    reproduction = (ROOT / "reproduction" / "pyproject.toml").read_text()
    assert re.findall(r'^version = "(.+?)"', reproduction, re.M) == [version]


@pytest.mark.parametrize(
    ("version", "now", "then"),
    [("0.2.0", "", "- New."), ("0.2.1.dev0", "- New.", "- Old."), ("0.1.0", "", "")],
)
def test_a_changelog_that_tells_the_version_is_taken(version, now, then):
    release.check_changelog(CHANGES.format(now=now, then=then), version)


@pytest.mark.parametrize(
    ("version", "now", "then", "why"),
    [
        ("0.3.0", "", "- New.", "says nothing of version 0.3.0"),
        ("0.2.0", "", "", "says nothing of version 0.2.0"),
        ("0.2.0", "- More.", "- New.", "that version 0.2.0 would ship"),
        ("0.2.1.dev0", "", "- New.", "nothing under 'Unreleased'"),
        ("0.2.1rc1", "  \n", "- New.", "nothing under 'Unreleased'"),
    ],
)
def test_a_stale_changelog_is_refused(version, now, then, why):
    with pytest.raises(release.NotReadyError, match=why):
        release.check_changelog(CHANGES.format(now=now, then=then), version)


def test_a_citation_of_another_version_is_refused():
    release.check_citation("title: x\nversion: 1.0.0\n", "1.0.0")
    for text, told in (("version: 0.9.0\n", "0.9.0"), ("title: x\n", "none")):
        with pytest.raises(release.NotReadyError, match=f"must have version 1.0.0, got {told}"):
            release.check_citation(text, "1.0.0")


RECORD = {
    "version": "1.0.0",
    "commit": "0123456789abcdef",
    "date": "2026-01-01",
    "machine": "a GPU",
    "passed": 40,
    "failed": 0,
    "skipped": 1,
    "sources": {"models": "a", "cli": "b"},
}
NOW = {"models": "a", "cli": "b"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (None, "nobody has recorded the GPU tests of version 1.0.0; run python"),
        ({"version": "0.9.0"}, "were recorded for version 0.9.0, not for 1.0.0"),
        ({"failed": 2}, "40 passed and 2 failed"),
        ({"passed": 0}, "0 passed and 0 failed"),
        ({"sources": {"models": "a"}}, "changed since the GPU tests were recorded, in cli; run py"),
        ({"sources": {"models": "x", "cli": "b", "old": "c"}}, "recorded, in models, old; run"),
    ],
)
def test_a_version_without_gpu_tests_is_refused(tmp_path, change, why):
    path = tmp_path / "gpu-tests.json"
    if change is not None:
        path.write_text(json.dumps(RECORD | change))
    with pytest.raises(release.NotReadyError, match=why):
        release.gpu_line(path, "1.0.0", NOW)


def test_recorded_gpu_tests_are_told(tmp_path):
    path = tmp_path / "gpu-tests.json"
    path.write_text(json.dumps(RECORD))
    told = release.gpu_line(path, "1.0.0", NOW)
    assert told == "GPU tests: 40 passed on a GPU, 2026-01-01, at commit 0123456789."


def test_a_record_without_sources_is_stale(tmp_path):
    path = tmp_path / "gpu-tests.json"
    path.write_text(json.dumps({name: one for name, one in RECORD.items() if name != "sources"}))
    with pytest.raises(release.NotReadyError, match="in cli, models; run"):
        release.gpu_line(path, "1.0.0", NOW)


def test_digests_follow_names_and_bytes_of_a_room(tmp_path):
    def write(files):
        for name, text in files.items():
            path = tmp_path / "apfex" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return release.digests(tmp_path)

    first = write({"models/_a.py": "1", "plain.py": "2"})
    assert first.keys() == {"models", "plain"}
    later = write({"models/_a.py": "3", "models/__pycache__/_a.pyc": "4"})
    assert later["plain"] == first["plain"]
    assert later["models"] != first["models"]
    assert write({"models/_b.py": ""})["models"] != later["models"]


def test_an_sdist_that_is_not_what_git_tracks_is_refused():
    release.check_sdist(["PKG-INFO", "src/a.py"], ["src/a.py", ""])
    with pytest.raises(release.NotReadyError, match=r"lacks \['docs/a.md'\] and has \['x'\] besid"):
        release.check_sdist(["PKG-INFO", "x"], ["docs/a.md"])


def test_an_sdist_has_a_place_for_all_that_the_repository_holds():
    """Folders and files at the top, by name: what tests read is there where tests are."""
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = {
        name.strip("/") for name in given["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    }
    read = {"benchmarks", "scripts", "reproduction", "examples", "docs", "website", "tests", "src"}
    read |= {
        "SECURITY.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "Makefile",
        "constraints.txt",
        ".github",
    }
    assert read <= included
    assert all((ROOT / name).exists() for name in included)


def test_pythons_that_are_not_here_are_named():
    found = {"3.11": "/a", "3.12": "/b"}
    assert release.choose(found, None) == found
    assert release.choose(found, ["3.12"]) == {"3.12": "/b"}
    with pytest.raises(release.NotReadyError, match=r"no Python 3\.13 is here; there are 3\.11, 3"):
        release.choose(found, ["3.13"])
    with pytest.raises(release.NotReadyError, match=r"no Python 3\.11 or newer is here"):
        release.choose({}, None)
