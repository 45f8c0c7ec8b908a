"""Plain values: text that a terminal may show, and values that JSON can hold.

Nothing heavy is imported, as the command line prints its help with it.
"""

from __future__ import annotations

import html
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from pathlib import PurePath
from types import ModuleType
from typing import Any

__all__: list[str] = []

MOST_NESTED = 64
"""Levels of JSON within each other beyond which a file is refused; ours have a dozen."""
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
"""Text, also one that does not end, and brackets."""
_UNDRAWN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Letters and marks that nothing is drawn for; by their category they are like any other."""
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IN_USE = re.compile(
    f"(?<=[\u0600-\u109f\u1780-\u18af{_EMOJI}])[\u200c\u200d]|(?<=[{_EMOJI}]\ufe0f)\u200d"
    f"|(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[{_HAN}])[\ufe00-\ufe0d\U000e0100-\U000e01ef]"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]"
)
"""Joiners, and choices of a form, after signs that they are made for."""


def printable(text: object, most: int | None = None) -> str:
    r"""A name from data for people: what is invisible, or turns the direction, is shown by number.

    That is whatever Unicode counts as a control, a format, unassigned, or a space or line end
    other than the plain space, and what nothing is drawn for. Joiners and choices of a form stay
    after emoji and in scripts that need them. The pages follow the same rule.

    Parameters
    ----------
    text : object
        Shown as ``str`` has it.
    most : int, optional
        Characters beyond which it is cut.

    Examples
    --------
    >>> print(printable("a\nb\x1b[0m"), printable("a long name", 6), printable("F\u00ad"))
    a\nb\x1b[0m a lon… F\xad
    """
    safe = str(text)
    if not (safe.isascii() and safe.isprintable()):
        used = {found.start() for found in _IN_USE.finditer(safe)}
        safe = "".join(
            mark if place in used or _is_drawn(mark) else ascii(mark)[1:-1]
            for place, mark in enumerate(safe)
        )
    return safe if most is None or len(safe) <= most else safe[: most - 1] + "…"


def _is_drawn(mark: str) -> bool:
    return mark.isprintable() and not _UNDRAWN.match(mark)


def in_markdown(text: object) -> str:
    r"""A name from data for Markdown, also for a cell of a table: it is text, whatever it holds.

    Examples
    --------
    >>> print(in_markdown("a|b <b>*c*"))
    a\|b &lt;b&gt;\*c\*
    """
    safe = html.escape(printable(text), quote=False)
    return "".join(f"\\{mark}" if mark in "\\|`*_[]~#" else mark for mark in safe)


def in_html(text: object) -> str:
    """A name from data for HTML: markup and quotes are text, and its direction ends with it.

    Examples
    --------
    >>> in_html('<b title="x">')
    '<bdi>&lt;b title=&quot;x&quot;&gt;</bdi>'
    """
    return f"<bdi>{html.escape(printable(text), quote=True)}</bdi>"


def html_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], marked: str = ""
) -> str:
    """A table of HTML, without colours, so that it is read on light and on dark pages.

    Parameters
    ----------
    caption : str
    columns : names
        Text or HTML, as are the cells and the caption: whatever comes from data was escaped.
    rows : cells
    marked : str
        Name of an attribute of a row that holds its last cell; none by default.

    Examples
    --------
    >>> print(html_table("Sizes", ["group", "rows"], [[in_html("<a>"), "3"]]))
    <table>
    <caption>Sizes</caption>
    <thead><tr><th scope="col">group</th><th scope="col">rows</th></tr></thead>
    <tbody>
    <tr><td><bdi>&lt;a&gt;</bdi></td><td>3</td></tr>
    </tbody>
    </table>
    """
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = "\n".join(
        f"<tr{f' {marked}={chr(34)}{row[-1]}{chr(34)}' if marked else ''}>"
        f"{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return (
        f"<table>\n<caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>"
    )


def html_section(name: str, *parts: str) -> str:
    r"""Parts of HTML as one section; text without markup becomes a paragraph.

    Examples
    --------
    >>> html_section("apfex-front", "3 points", "")
    '<section class="apfex-front">\n<p>3 points</p>\n</section>'
    """
    shown = [part if part.startswith("<") else f"<p>{part}</p>" for part in parts if part]
    return "\n".join([f'<section class="{name}">', *shown, "</section>"])


def told_apart(names: Iterable[object], most: int | None) -> dict[Any, str]:
    """Names for one table, each :func:`printable`; those that would be cut alike stay whole.

    Examples
    --------
    >>> told_apart(["a long name", "a long word", "another long name"], 8)
    {'a long name': 'a long name', 'a long word': 'a long word', 'another long name': 'another…'}
    """
    cut = {name: printable(name, most) for name in dict.fromkeys(names)}
    seen = Counter(cut.values())
    return {name: text if seen[text] == 1 else printable(name) for name, text in cut.items()}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant.

    Examples
    --------
    >>> nearest("Rase", ["sex", "race"])
    'race'
    """
    by_form: dict[str, str] = {}
    for one in known:
        by_form.setdefault(one.strip().casefold(), one)
    near = get_close_matches(name.strip().casefold(), list(by_form), n=1, cutoff=0.65)
    return by_form[near[0]] if near else None


def listed(names: Sequence[str], most: int = 12) -> str:
    """Some names, and how many more there are.

    Examples
    --------
    >>> listed(["sex", "race", "age"], 2)
    'sex, race and 1 more'
    """
    some = ", ".join(printable(name, 40) for name in names[:most])
    return some if len(names) <= most else f"{some} and {len(names) - most:,} more"


def read_strict_json(data: bytes | str) -> Any:
    """The value of JSON that anybody may have written; a ValueError says why it is refused.

    It must be UTF-8 without a mark, a name may occur once in an object, numbers are finite, and
    nesting is checked before anything is built.

    Examples
    --------
    >>> read_strict_json(b'{"gap": 0.25}')
    {'gap': 0.25}
    >>> read_strict_json('{"gap": 0.25, "gap": 0.5}')
    Traceback (most recent call last):
    ValueError: the name 'gap' occurs twice in one object
    """
    text = data.decode() if isinstance(data, bytes | bytearray) else data
    check_nesting(text)
    return json.loads(
        text, object_pairs_hook=_object, parse_constant=_no_number, parse_float=_finite
    )


def check_nesting(text: str, most: int = MOST_NESTED) -> None:
    """Refuse JSON that is nested deeper than so many levels, before anybody builds it."""
    level = 0
    for found in _PARTS.finditer(text):
        if found[0] in "[{":
            level += 1
            if level > most:
                raise ValueError(f"it is nested deeper than {most} levels")
        elif found[0] in "]}":
            level -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise ValueError(f"the name {printable(name, 40)!r} occurs twice in one object")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{printable(text, 40)} is beyond all numbers")
    return number


_KINDS: dict[str, Any] = {"str": str, "bool": bool, "int": int, "float": (int, float)}


def check_record(kind: Any, values: Mapping[str, Any]) -> None:
    """Refuse values that the fields of a dataclass are not made for; others are not looked at.

    Parameters
    ----------
    kind : dataclass
        Fields of type ``str``, ``bool``, ``int``, ``float`` and tuples of one of them are checked;
        a scalar of numpy counts as Python's own.
    values : mapping from names of fields to values

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> check_record(make_dataclass("Point", [("error", "float")]), {"error": "low"})
    Traceback (most recent call last):
    ValueError: error must be float, got 'low'
    """
    for field in fields(kind):
        hint = str(field.type)
        inner = hint.removeprefix("tuple[").removesuffix(", ...]")
        if field.name not in values or inner not in _KINDS:
            continue
        value = values[field.name]
        if inner != hint and not isinstance(value, tuple):
            raise ValueError(f"{field.name} must be {hint}, got {repr(value)[:40]}")
        for part in value if inner != hint else (value,):
            plain: Any = getattr(part, "item", lambda part=part: part)()
            is_odd = isinstance(plain, bool) and inner != "bool"
            if is_odd or not isinstance(plain, _KINDS[inner]):
                raise ValueError(f"{field.name} must be {hint}, got {repr(part)[:40]}")


def need_extra(extra: str, module: str, what: str, package: str | None = None) -> ModuleType:
    """A module that an extra brings; where it is missing, an error of one line names the extra.

    Parameters
    ----------
    extra : str
        As in ``pip install "apfex[extra]"``.
    module : str
        What is imported, such as "onnx" or "plotly.graph_objects".
    what : str
        What needs it, as the message begins.
    package : str, optional
        What the package is called; the first part of ``module`` by default.

    Examples
    --------
    >>> need_extra("onnx", "no_such_module", "ONNX export")
    Traceback (most recent call last):
    ImportError: ONNX export needs the package no_such_module: pip install "apfex[onnx]".
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = package or module.partition(".")[0]
        raise ImportError(
            f'{what} needs the package {name}: pip install "apfex[{extra}]".'
        ) from error


def jsonable(value: Any, *, strict: bool = False, where: str = "value") -> Any:
    """Only what JSON has a word for: a number that is missing or not finite becomes None.

    Parameters
    ----------
    value : mappings, sequences, arrays, text, numbers, dates, paths, None
        Numpy's and pandas' values become Python's own.
    strict : bool
        Whether a value of another kind is refused; it becomes text otherwise.
    where : str
        What the value is, for messages.

    Examples
    --------
    >>> import numpy as np
    >>> jsonable({"gap": np.float64(0.25), "lower": np.nan, "rows": np.array([1, 2])})
    {'gap': 0.25, 'lower': None, 'rows': [1, 2]}
    """
    if isinstance(value, Mapping):
        plain = {
            str(key): jsonable(part, strict=strict, where=f"{where}[{key!r}]")
            for key, part in value.items()
        }
        if len(plain) < len(value):
            raise ValueError(f"{where} must have names that differ as text, got {list(value)}.")
        return plain
    if hasattr(value, "tolist"):  # of numpy or pandas
        is_time = getattr(value.dtype, "kind", "O") in "mM"
        value = (value.astype(str) if is_time else value).tolist()
    if isinstance(value, list | tuple):
        return [
            jsonable(part, strict=strict, where=f"{where}[{place}]")
            for place, part in enumerate(value)
        ]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or _is_missing(value):
        return None
    if isinstance(value, str | int | bool):
        return value
    if strict and not (isinstance(value, PurePath) or hasattr(value, "isoformat")):
        raise TypeError(
            f"{where} must be a mapping, a sequence, text, a number or None to be written as JSON, "
            f"got {type(value).__name__}."
        )
    return str(value)


def _is_missing(value: object) -> bool:
    """Whether it is the missing value of pandas, which is not imported for that."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)
