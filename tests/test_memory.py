"""What is free is what a process can have: in a container, what the container can give."""

import pytest

from apfex import memory

LIMIT, OWN, READ = 2**28, 2**24, 2**27
"""Of a container, what its processes hold, and the files that they have read."""


@pytest.fixture(params=["2", "1"])
def container(request, tmp_path, monkeypatch):
    """The folder of either kind of cgroups, which counts as used what files take, too."""
    limit, used = {
        "2": ("memory.max", "memory.current"),
        "1": ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    }[request.param]
    stat = {
        "2": f"anon {OWN}\nfile {READ}\ninactive_file {READ}\n",
        "1": f"inactive_file 0\ntotal_rss {OWN}\ntotal_inactive_file {READ}\n",
    }[request.param]
    (tmp_path / limit).write_text(f"{LIMIT}\n")
    (tmp_path / used).write_text(f"{OWN + READ}\n")
    (tmp_path / "memory.stat").write_text(stat)
    names = ((str(tmp_path / limit), str(tmp_path / used)),)
    monkeypatch.setattr(memory, "_CGROUPS", names)
    return tmp_path


@pytest.mark.usefixtures("container")
def test_files_that_were_read_take_no_room_in_a_container():
    assert memory.free_memory() == LIMIT - OWN
    assert not memory.is_too_much(LIMIT - OWN)
    assert memory.is_too_much(LIMIT)


@pytest.mark.parametrize("stat", [None, "", "a line\nthat is none", "inactive_file many"])
def test_a_container_that_does_not_tell_of_files_is_taken_at_its_word(container, stat):
    (container / "memory.stat").unlink()
    if stat is not None:
        (container / "memory.stat").write_text(stat)
    assert memory.free_memory() == LIMIT - OWN - READ
