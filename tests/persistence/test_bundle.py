"""A folder is there whole or not at all, and every damage to it is found."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from apfex.persistence import Bundle, read_bundle, write_bundle

ARRAYS = {
    "weight": torch.tensor([[0.1, float("nan")], [-0.0, 1e-320]], dtype=torch.float64),
    "steps": torch.tensor(3),
    "half": torch.tensor([1.5], dtype=torch.bfloat16),
    "none": torch.zeros(0, 2),
}
BUNDLE = Bundle({"a": [1, None, "é\ud800"]}, ARRAYS, {"trees-0.json": b"{}\n", "raw": b"\x00"})


def write(folder, bundle=BUNDLE, **changes):
    return write_bundle(folder, bundle, **{"kind": "thing", "format": 2, **changes})


def read(folder, **changes):
    return read_bundle(folder, **{"kind": "thing", "format": 2, **changes})


def forge(folder: Path, **changes) -> None:
    """Change the manifest, and make it match itself and the files as they are now."""
    path = folder / "manifest.json"
    manifest = {**json.loads(path.read_text()), **changes}
    files = {}
    for name in manifest["files"]:
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            files[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    path.write_text(json.dumps(manifest))
    sign(folder, files)


def sign(folder: Path, files: dict) -> None:
    """Let the manifest say this of files, with a sha256 of its own that fits."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest.pop("sha256", None)
    manifest["files"] |= files
    text = json.dumps(manifest, sort_keys=True)
    manifest["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(manifest))


def is_refused(folder: Path) -> bool:
    """With a sentence that names the place."""
    try:
        read(folder)
    except (ValueError, FileNotFoundError) as error:
        return str(folder) in str(error)
    return False


def test_what_is_written_comes_back_bit_by_bit(tmp_path):
    found = read(write(tmp_path / "deep" / "new"))
    assert found.content == BUNDLE.content
    assert found.files == BUNDLE.files
    assert found.arrays.keys() == ARRAYS.keys()
    for name, array in found.arrays.items():
        assert array.dtype == ARRAYS[name].dtype
        assert array.shape == ARRAYS[name].shape
        assert array.view(-1).view(torch.uint8).equal(ARRAYS[name].view(-1).view(torch.uint8))
        assert array.data_ptr() % 64 == 0  # as torch allocates, so that sums round alike
    assert os.listdir(tmp_path / "deep") == ["new"]


def test_arrays_may_share_memory_and_be_views(tmp_path):
    whole = torch.arange(6.0).reshape(2, 3)
    found = read(write(tmp_path / "new", Bundle(1, {"a": whole, "b": whole, "c": whole.T})))
    assert found.arrays["b"].equal(whole)
    assert found.arrays["c"].equal(whole.T)


def test_equal_bundles_make_equal_files(tmp_path):
    first, second = write(tmp_path / "a"), write(tmp_path / "b")
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_a_changed_byte_is_found_wherever_it_is(tmp_path):
    folder = write(tmp_path / "new")
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        for place in range(len(data)):
            changed = bytearray(data)
            changed[place] ^= 1 << place % 7
            path.write_bytes(changed)
            harmless = path.name == "manifest.json" and chr(data[place]).isspace()
            assert harmless or is_refused(folder), (path.name, place)
        path.write_bytes(data)
    assert not is_refused(folder)


def test_a_file_that_was_cut_off_is_found(tmp_path):
    folder = write(tmp_path / "new")
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        for length in range(0, len(data), 1 + len(data) // 20):
            path.write_bytes(data[:length])
            found = f"it has {length} bytes where the manifest says {len(data)}"
            found = "must be JSON" if path.name == "manifest.json" else f"is damaged: {found}"
            with pytest.raises(ValueError, match=f"{path.name}' {found}"):
                read(folder)
        path.write_bytes(data)


@pytest.mark.parametrize(
    "name", ["manifest.json", "content.json", "arrays.safetensors", "trees-0.json"]
)
def test_a_missing_file_is_named(tmp_path, name):
    folder = write(tmp_path / "new")
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        read(folder)
    (folder / name).mkdir()
    with pytest.raises(FileNotFoundError, match=name):
        read(folder)


def test_another_kind_and_a_newer_format_are_refused(tmp_path):
    folder = write(tmp_path / "new")
    with pytest.raises(ValueError, match="must hold 'other', got 'thing'; choose"):
        read(folder, kind="other")
    with pytest.raises(ValueError, match=r"must be of format 1 or older, got format 2: .* Update"):
        read(folder, format=1)
    assert read(folder, format=3).content == BUNDLE.content
    forge(folder, format="2")
    with pytest.raises(ValueError, match="got format '2'"):
        read(folder)


def test_a_place_that_holds_no_bundle_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="none' must be a folder that was saved, got noth"):
        read(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"got one without manifest\.json"):
        read(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="must be a folder that was saved, got a file"):
        read(tmp_path / "file")
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(ValueError, match="is damaged: it is no JSON object"):
        read(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["../secret", "/etc/passwd", "a/b", "..", ".hidden", "", "a\\b", "c:x", "manifest.json", "é"],
)
def test_a_manifest_can_name_nothing_outside_of_the_folder(tmp_path, name):
    (tmp_path / "secret").write_text("{}")
    folder = write(tmp_path / "new")
    forge(folder, files={"content.json": {}, name: {}})
    with pytest.raises(ValueError, match="is no plain file name"):
        read(folder)


FORGED = {
    "arrays.safetensors": [
        (2**62).to_bytes(8, "little") + b"{}",
        (2**26).to_bytes(8, "little") + b" " * 2**10,
        b"",
        b"\x80\x04N.",
        (2).to_bytes(8, "little") + b"[]",
    ],
    "content.json": [b"[" * 100_000, b"", b"\xff", b'{"a": Infinity}', b"1" * 10_000],
}


@pytest.mark.parametrize(
    ("name", "data"),
    [(name, data) for name, several in FORGED.items() for data in several],
    ids=lambda part: str(part)[:20],
)
def test_a_file_that_only_pretends_is_refused(tmp_path, name, data):
    """Also where the manifest agrees with it: a huge header, a pickle, JSON without end."""
    folder = write(tmp_path / "new")
    (folder / name).write_bytes(data)
    forge(folder)
    with pytest.raises(ValueError, match=f"{name}' (is damaged|must be JSON)"):
        read(folder)


@pytest.mark.parametrize("files", [None, [], {"content.json": 1}, {"raw": {}}], ids=str)
def test_a_manifest_must_list_files(tmp_path, files):
    folder = write(tmp_path / "new")
    path = folder / "manifest.json"
    rest = {"kind": "thing", "format": 2, "files": files}
    if files == {"raw": {}}:
        rest["files"] = {"raw": json.loads(path.read_text())["files"]["raw"]}
    text = json.dumps(rest, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps({**rest, "sha256": digest}))
    with pytest.raises(
        ValueError, match=r"manifest.json' is damaged: it (lists no files|does not)"
    ):
        read(folder)


def test_a_manifest_of_any_size_is_not_read(tmp_path):
    folder = write(tmp_path / "new")
    with (folder / "manifest.json").open("ab") as file:
        file.truncate(2**25)
    with pytest.raises(ValueError, match=r"it has 33,554,432 bytes, more than any manifest"):
        read(folder)


def test_a_folder_that_is_there_is_refused_and_kept(tmp_path):
    folder = write(tmp_path / "new")
    with pytest.raises(FileExistsError, match=r"new' must not be there yet.*overwrite=True"):
        write(folder, Bundle(2))
    assert read(folder).content == BUNDLE.content
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileExistsError, match="must not be there yet"):
        write(empty)
    assert read(write(empty, overwrite=True)).content == BUNDLE.content
    (tmp_path / "file").write_text("kept")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match="got a file of this name"):
            write(tmp_path / "file", overwrite=overwrite)
    assert (tmp_path / "file").read_text() == "kept"
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "new"]


def test_overwriting_replaces_all_and_leaves_nothing_behind(tmp_path):
    folder = write(tmp_path / "new")
    write(folder, Bundle(2), overwrite=True)
    assert sorted(os.listdir(folder)) == ["content.json", "manifest.json"]
    assert read(folder).content == 2
    assert os.listdir(tmp_path) == ["new"]


def test_what_was_not_saved_there_is_never_overwritten(tmp_path):
    folder = write(tmp_path / "new")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"got \['notes.txt'\]; move that away"):
        write(folder, overwrite=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").write_text("mine")
    with pytest.raises(FileExistsError, match=r"got \['letter'\]"):
        write(tmp_path / "home", overwrite=True)
    assert (folder / "notes.txt").read_text() == (tmp_path / "home" / "letter").read_text()


def test_a_link_to_a_folder_stays_one(tmp_path):
    write(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", Bundle(3), overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert read(tmp_path / "real").content == 3


LIMITED = """
import resource, sys
from apfex.persistence import Bundle, write_bundle
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
for folder in sys.argv[1:]:
    try:
        bundle = Bundle(9, {}, {"raw": bytes(10_000)})
        write_bundle(folder, bundle, kind="thing", format=2, overwrite=True)
    except OSError as error:
        print(error)
"""


def test_no_room_leaves_the_old_folder_whole(tmp_path):
    folder = write(tmp_path / "old")
    places = [folder, tmp_path / "new"]
    told = subprocess.run(
        [sys.executable, "-c", LIMITED, *places], capture_output=True, text=True, check=True
    ).stdout
    for place in places:
        assert f"'{place}' could not be written: File too large." in told
    assert read(folder).content == BUNDLE.content
    assert os.listdir(tmp_path) == ["old"]


def test_what_cannot_be_stored_is_refused_before_anything_is_written(tmp_path):
    cases = [
        (Bundle({"a": float("nan")}), "not JSON compliant"),
        (Bundle({"a": {1}}), "not JSON serializable"),
        (Bundle(1, {}, {"../up": b""}), "plain names of their own, got '../up'"),
        (Bundle(1, {}, {"Manifest.json": b""}), "plain names of their own"),
        (Bundle(1, {"a": torch.zeros(2, 2).to_sparse()}), "arrays must be"),
    ]
    for bundle, message in cases:
        with pytest.raises((TypeError, ValueError), match=message):
            write(tmp_path / "new", bundle)
    assert os.listdir(tmp_path) == []


def test_a_parent_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"new' could not be written: '.*file' is a file"):
        write(tmp_path / "file" / "deep" / "new")
