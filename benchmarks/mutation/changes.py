"""Every small change of a tree: what is written there before and after, and what does it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

SWAPS: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
PAIRS = (
    ("min", "max"),
    ("amin", "amax"),
    ("argmin", "argmax"),
    ("minimum", "maximum"),
    ("any", "all"),
    ("floor", "ceil"),
    ("sum", "mean"),
    ("zeros_like", "ones_like"),
    ("zeros", "ones"),
)
RENAMED = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}
DROPPED = {"abs", "clamp", "sqrt", "square", "detach", "clone", "double", "cumsum", "log", "exp"}
"""Methods that are left out: what they are called on takes their place."""
Change = tuple[int, str, Callable[[], None]]
"""The line, what is written there before and after, and what does it to the tree."""


def changes(tree: ast.AST) -> Iterator[Change]:
    """Every change, as long as nobody has applied one."""
    for node in ast.iter_child_nodes(tree):
        if not is_left_alone(node):
            yield from own_changes(node, tree)
            yield from changes(node)


def is_left_alone(node: ast.AST) -> bool:
    """Imports and what is only read by people: docstrings, annotations, messages."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Raise | ast.JoinedStr | ast.arg):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def own_changes(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    if node in getattr(parent, "decorator_list", ()) or is_annotation(node, parent):
        return
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            yield from swapped(node, op, lambda new, i=i, n=node: n.ops.__setitem__(i, new))
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        yield from swapped(node, node.op, lambda new, n=node: setattr(n, "op", new))
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield replaced(node, node.operand, parent)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield from conditions(node)
    elif isinstance(node, ast.Constant):
        yield from constants(node)
    elif isinstance(node, ast.Call):
        yield from calls(node, parent)
    elif isinstance(node, ast.Expr):
        yield replaced(node, ast.copy_location(ast.Pass(), node), parent)


def is_annotation(node: ast.AST, parent: ast.AST) -> bool:
    return node in (getattr(parent, "annotation", None), getattr(parent, "returns", None))


def swapped(node: Any, op: ast.AST, put: Callable[[Any], None]) -> Iterator[Change]:
    for other in SWAPS.get(type(op), ()):
        shown = copy.deepcopy(node)
        text = f"{ast.unparse(shown)} becomes {type(other()).__name__}"
        yield node.lineno, text, lambda other=other: put(other())


def conditions(node: Any) -> Iterator[Change]:
    for value in (True, False):
        if not (isinstance(node, ast.While) and value):
            put = ast.copy_location(ast.Constant(value), node.test)
            text = f"condition {ast.unparse(node.test)} becomes {value}"
            yield node.test.lineno, text, lambda put=put: setattr(node, "test", put)


def constants(node: ast.Constant) -> Iterator[Change]:
    old = node.value
    if isinstance(old, bool):
        new = not old
    elif isinstance(old, int):
        new = old + 1
    elif isinstance(old, float):
        new = old * 2 if old else 1.0
    else:
        return
    yield node.lineno, f"{old!r} becomes {new!r}", lambda: setattr(node, "value", new)


def calls(node: ast.Call, parent: ast.AST) -> Iterator[Change]:
    shown, function = ast.unparse(node), node.func
    for i, keyword in enumerate(node.keywords):
        text = f"{shown} without {keyword.arg}"
        yield node.lineno, text, lambda i=i: node.keywords.pop(i) and None
    for field in ("id", "attr"):
        other = RENAMED.get(getattr(function, field, ""))
        if other is not None:
            text = f"{shown} calls {other}"
            yield node.lineno, text, lambda f=field, o=other: setattr(function, f, o)
    if isinstance(function, ast.Attribute) and function.attr in DROPPED:
        _, _, put = replaced(node, function.value, parent)
        yield node.lineno, f"{shown} without {function.attr}", put


def replaced(node: ast.AST, new: ast.AST, parent: ast.AST) -> Change:
    def put() -> None:
        for field, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, field, new)
            elif isinstance(value, list) and node in value:
                value[value.index(node)] = new

    text = f"{ast.unparse(node)} becomes {ast.unparse(new)}"
    return getattr(node, "lineno", 0), text, put
