"""Changes that a hostile hand would make to files: hypothesis draws them, and makes them small."""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st
from safetensors.torch import load, save

ODD: list[Any] = [
    *(0, 1, -1, 2, 7, 255, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63),
    *(10**9, 10**30, -(2**31), -(2**63), 0.5, -0.0, 1e-46, 1e38, 4e38, 1e300, -1e300),
    *(True, False, None, "", "0", "-1", " 1", "1_0", "1e9", "1000000000", "nan", "x" * 2_000),
    *("\u202egnp", "\u00ad", "\u0661", "a\"b\\c", "../x", "/etc/passwd", "\x00", "\ud800"),
    *([], {}, [[]], [0], [1, 0], [0] * 2_000, [None], ["a"], {"a": 1}, [[0, 1], [0, 1]]),
    {"is": "array", "value": ["<U500000000", [1], ["a"]]},
    {"is": "array", "value": ["O", [2], [1, "a"]]},
    {"is": "array", "value": ["<f8", [10**9], []]},
    {"is": "timestamp", "value": [{"is": "scalar", "value": ["<M8[ns]", [], [0]]}, "dateutil//x"]},
    {"is": "index", "value": ["datetime64[ns, dateutil//etc/passwd]", [0]]},
    {"is": "decimal", "value": "1E+999999999"},
    {"is": "period", "value": [2**62, "D"]},
    {"is": "float", "value": "nan"},
    {"is": "tuple", "value": [1, 2]},
    {"is": "dict", "value": [[1, 2]]},
    {"is": "strategy", "value": ["StreamSettings", {"is": "dict", "value": []}]},
]  # fmt: skip
"""In the place of values: numbers at the ends of their types, odd text, bombs."""
RAW = [
    *(b"NaN", b"1e999", b"-Infinity", b"0x10", b"01", b"", b"1.0", b"1e5", b'"\\ud800"'),
    *(b"[" * 3_000 + b"]" * 3_000, b'{"a":' * 3_000 + b"1" + b"}" * 3_000),
    *(b"1" * 5_000, b'"' + b"a" * 100_000 + b'"'),
]
"""In the place of a number, in the text itself."""


def places_of(value: Any, path: tuple = ()) -> list[tuple]:
    """The place of every part, as the keys that lead there."""
    found = [path] if path else []
    if isinstance(value, dict):
        parts = value.items()
    else:
        parts = enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        found += places_of(part, (*path, key))
    return found


def _at(value: Any, path: tuple) -> Any:
    for key in path:
        value = value[key]
    return value


def _edit_list(draw: Callable, part: list) -> Any:
    kind = draw(st.sampled_from(["turn", "cut", "double", "swap"]))
    if kind == "swap" and len(part) > 1:
        a, b = (draw(st.integers(0, len(part) - 1)) for _ in range(2))
        part[a], part[b] = part[b], part[a]
        return part
    n = draw(st.integers(0, len(part)))
    return {"turn": part[::-1], "cut": part[:n], "double": part + part[n:]}.get(kind, part)


def edit(draw: Callable, value: Any) -> Any:
    """One change of one part: another value, one from elsewhere, none, one more."""
    places = places_of(value)
    if not places:
        return draw(st.sampled_from(ODD))
    # short ways, too: there are few of them among the numbers of a tree
    depth = draw(st.integers(1, max(map(len, places))))
    path = draw(st.sampled_from([place for place in places if len(place) <= depth]))
    above, key = _at(value, path[:-1]), path[-1]
    kind = draw(st.sampled_from(["odd", "odd", "near", "copy", "drop", "list", "new"]))
    part = above[key]
    if kind == "list" and isinstance(part, list):
        above[key] = _edit_list(draw, part)
    elif kind == "near" and type(part) in (int, float):
        above[key] = part + draw(st.integers(-2, 2))
    elif kind == "near" and isinstance(part, str) and part.isdecimal():
        above[key] = str(int(part) + draw(st.integers(-2, 2)))
    elif kind == "copy":
        above[key] = copy.deepcopy(_at(value, draw(st.sampled_from(places))))
    elif kind == "drop":
        del above[key]
    elif kind == "new" and isinstance(above, dict):
        above[draw(st.sampled_from(["is", "value", "id", 'a"b', "\u00e9", "num_nodes"]))] = part
    else:
        above[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return value


def _edit_text(draw: Callable, data: bytes) -> bytes:
    """A change that only the text of JSON can have: names twice or escaped, odd numbers."""
    marks = [place for place, one in enumerate(data) if one == ord('"')]
    if not marks:
        return data
    start = draw(st.sampled_from(marks[: len(marks) // 2 * 2 : 2]))
    kind = draw(st.sampled_from(["escape", "twice", "raw"]))
    end = data.find(b'"', start + 1)
    name = data[start + 1 : end]
    if kind == "escape" and name:
        return data[: start + 1] + b"\\u%04x" % name[0] + data[start + 2 :]
    if kind == "twice":
        return data[:start] + data[start : end + 1] + b": 1, " + data[start:]
    colon = data.find(b":", end) + 1
    if not colon:
        return data
    stop = min([p for p in (data.find(b",", colon), data.find(b"}", colon)) if p > 0] or [colon])
    return data[:colon] + draw(st.sampled_from(RAW)) + data[stop:]


def forge_json(draw: Callable, data: bytes) -> bytes:
    """JSON after one to three changes, mostly still JSON."""
    value = json.loads(data)
    for _ in range(draw(st.integers(1, 3))):
        value = edit(draw, value)
    written = json.dumps(value).encode()
    return _edit_text(draw, written) if draw(st.integers(0, 4)) == 0 else written


def forge_places(draw: Callable, data: bytes) -> bytes:
    """A booster whose places in trees are others, but not its numbers."""
    content = json.loads(data)
    model = content["learner"]["gradient_booster"]["model"]
    for _ in range(draw(st.integers(1, 3))):
        tree = draw(st.sampled_from([*model["trees"], model]))
        names = [k for k, v in tree.items() if isinstance(v, list) and v and type(v[0]) is int]
        part = tree[draw(st.sampled_from(sorted(names)))]
        place = draw(st.integers(0, len(part) - 1))
        near = part[place] + draw(st.integers(-2, 2))
        part[place] = draw(st.sampled_from([near, near, draw(st.sampled_from(part)), len(part)]))
        if draw(st.integers(0, 4)) == 0:
            _edit_list(draw, part)
    return json.dumps(content).encode()


def forge_bytes(draw: Callable, data: bytes) -> bytes:
    """Bytes after one to four changes."""
    found = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        # files say what they are at their ends: these are changed as often as all the rest
        near = draw(st.sampled_from([len(found), min(512, len(found))]))
        place = draw(st.integers(0, max(0, near - 1)))
        place = len(found) - 1 - place if draw(st.booleans()) else place
        kind = draw(st.sampled_from(["set", "flip", "cut", "drop", "insert", "word"]))
        if kind in ("set", "flip") and found:
            found[place] = draw(st.integers(0, 255)) if kind == "set" else found[place] ^ 0x80
        elif kind == "cut":
            found = found[: max(1, place)]
        elif kind == "drop":
            del found[place : place + draw(st.integers(1, 64))]
        elif kind == "insert":
            found[place:place] = draw(st.binary(min_size=1, max_size=16))
        else:
            word = draw(st.sampled_from([0, 1, -1, 2**31 - 1, 2**62, -(2**63), 10**9]))
            size = draw(st.sampled_from([4, 8]))
            found[place : place + size] = (word % 2 ** (8 * size)).to_bytes(size, "little")
    return bytes(found)


def forge_text(draw: Callable, data: bytes) -> bytes:
    """Text after a piece of it was changed."""
    pieces = [b'"', b"'", b",", b";", b"\n", b"\r", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"1e999",
              b"=1+1", b"," * 5_000, b"a" * 200_000, b"\n" * 1_000, "\u202e".encode(), b"9" * 400,
              b"NaN", b"-1", b"2000-01-01", b"<c r=\"XFD1048576\"><v>1</v></c>"]  # fmt: skip
    place = draw(st.integers(0, len(data)))
    gone = draw(st.sampled_from([0, 1, 10, 10**6]))
    return data[:place] + draw(st.sampled_from(pieces)) + data[place + gone :]


def forge_state(draw: Callable, data: bytes) -> bytes:
    """A state of a checkpoint with other parts, numbers or trees, and a checksum of its own."""
    arrays = load(data[_DIGEST:])
    kind = draw(st.sampled_from(["content", "content", "numbers", "file", "shape", "drop"]))
    own = sorted(name for name in arrays if (name[0] == "f") == (kind == "file"))
    own = [name for name in own if kind == "file" or (name != "content" and arrays[name].numel())]
    if kind == "content" or not own:
        arrays["content"] = _as_bytes(forge_json(draw, arrays["content"].numpy().tobytes()))
    else:
        name = draw(st.sampled_from(own))
        found = arrays[name]
        if kind == "file":
            inside = found.numpy().tobytes()
            forge = forge_json if inside[:1] == b"{" else forge_zip
            arrays[name] = _as_bytes(forge(draw, inside))
        elif kind == "numbers":
            flat = found.view(-1)
            odd = [0, 1, 2, -1, 2**31, -(2**62), 0.5, 1e30, float("nan"), float("inf")]
            fits = odd if found.is_floating_point() else odd[:6]
            place = draw(st.integers(0, found.numel() - 1))
            flat[place] = torch.tensor(draw(st.sampled_from(fits))).to(found.dtype)
        elif kind == "shape":
            arrays[name] = draw(
                st.sampled_from([found[:-1], found.repeat(2), found.double(), found.long()])
            )
        else:
            del arrays[name]
    written = save({name: one.contiguous().clone() for name, one in arrays.items()})
    return hashlib.sha256(written).digest() + written


_DIGEST = 32
"""Bytes of the checksum before a state."""


def _as_bytes(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def forge_gzip(draw: Callable, data: bytes) -> bytes:
    """A packed file: what is in it, or itself, changed; or one with next to nothing in it."""
    kind = draw(st.sampled_from(["inside", "itself", "bomb"]))
    if kind == "itself":
        return forge_bytes(draw, data)
    inside = gzip.decompress(data)
    if kind == "bomb":
        line = inside.splitlines(keepends=True)[draw(st.integers(0, 1))]
        times = draw(st.sampled_from([10**2, 10**4, 10**6]))
        return bomb(inside, line, times)
    return gzip.compress(forge_text(draw, inside), 1)


def bomb(head: bytes, line: bytes, times: int) -> bytes:
    """A gzipped file that repeats a line very often."""
    out, block = io.BytesIO(), line * 10_000
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9) as stream:
        stream.write(head)
        for _ in range(times // 10_000):
            stream.write(block)
    return out.getvalue()


def forge_zip(draw: Callable, data: bytes) -> bytes:
    """An archive: a part of it, or itself, changed."""
    if draw(st.integers(0, 3)) == 0:
        return forge_bytes(draw, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {one.filename: archive.read(one) for one in archive.infolist()}
    name = draw(st.sampled_from(sorted(parts)))
    kind = draw(st.sampled_from(["text", "bytes", "drop", "bomb", "json"]))
    if kind == "drop":
        del parts[name]
    elif kind == "bomb":
        parts[name] += bytes(2**27)
    elif kind == "json" and name.endswith(".json"):
        parts[name] = forge_json(draw, parts[name])
    else:
        parts[name] = (forge_bytes if kind == "bytes" else forge_text)(draw, parts[name])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, inside in parts.items():
            archive.writestr(part, inside)
    return out.getvalue()
