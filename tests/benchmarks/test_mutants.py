"""The tool of mutants: keys that survive a move of the code, stale verdicts, processes of tests."""
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import json
import subprocess
import sys

import pytest

CODE = '''
"""A file."""

LIMIT = 3


class Thing:
    def add(self, a, b):
        """Sum."""
        return a + b

    def less(self, a):
        return a - 1 if a > 1 else a
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Mutants of a file that may be written again."""
    from mutation import mutant

    monkeypatch.setattr(mutant, "SOURCE", tmp_path)

    def write(code):
        (tmp_path / "thing.py").write_text(code)
        return {one.name: one.code for one in mutant.mutants_of(tmp_path / "thing.py")}

    return write


def test_names_say_where_and_what_and_no_number_of_a_line(module):
    found = module(CODE)
    assert "thing.py Thing.add: a + b becomes Sub, in: return a + b" in found
    assert "thing.py: 3 becomes 4, in: LIMIT = 3" in found
    assert "thing.py Thing.less: 1 becomes 2, in: return a - 1 if a > 1 else a (2)" in found


def test_what_moves_is_the_same_and_what_changes_is_another(module):
    before = module(CODE)
    assert module(CODE.replace("LIMIT = 3", "# More.\n\nLIMIT = 3")) == before
    after = module(CODE.replace("a > 1 else a", "a > 1 else 0 * a"))
    changed = {name for name, code in before.items() if after.get(name) != code}
    assert changed == {name for name in before if "Thing.less" in name}


def test_a_draw_keeps_its_order_while_other_mutants_go(module, tmp_path):
    from mutation.mutant import drawn_first, mutants_of

    module(CODE)
    everything = mutants_of(tmp_path / "thing.py")
    names = [one.name for one in drawn_first(everything, 0)]
    assert names != [one.name for one in everything]
    assert [one.name for one in drawn_first(everything[2:], 0)] == [
        name for name in names if name in {one.name for one in everything[2:]}
    ]


def test_stale_verdicts_are_told_and_forgotten(tmp_path):
    from mutants import Record, mutants_of_room

    kept, changed, *_ = mutants_of_room("relaxations")
    killed = {kept.name: kept.code, changed.name: "another", "gone.py: 1 becomes 2": "any"}
    room = {"seed": 0, "mutants": 9, "killed": killed, "survived": {}, "left out": []}
    (tmp_path / "record.json").write_text(json.dumps({"relaxations": room}))
    record = Record(tmp_path / "record.json", 0)
    assert record.drop_stale("relaxations") == [changed.name, "gone.py: 1 becomes 2"]
    assert record.of("relaxations")["killed"] == {kept.name: kept.code}
    again = [one.name for one in record.to_do("relaxations", 10**6, survivors=False)]
    assert changed.name in again
    assert kept.name not in again


def test_a_process_that_a_test_starts_has_the_mutant(tmp_path, monkeypatch):
    from mutation.mutant import SOURCE, mutants_of
    from mutation.processes import VARIABLE, tell_children

    mutant = next(
        one for one in mutants_of(SOURCE / "strict_json.py") if "64 becomes 65" in one.name
    )
    code = "from apfex.strict_json import MOST_NESTED; raise SystemExit(MOST_NESTED)"
    monkeypatch.setenv("PYTHONPATH", str(SOURCE.parent))  # and put back after the test
    monkeypatch.setenv(VARIABLE, "{}")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 64
    tell_children(tmp_path, path=str(mutant.path), place=mutant.place)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 65
