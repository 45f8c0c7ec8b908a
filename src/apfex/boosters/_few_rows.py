"""Trees that answer for a few rows without a call of XGBoost, with the same bits.

A call of XGBoost costs 0.2 ms before it looks at a row, and a classifier makes ten of them for a
row. NumPy follows a row through all trees of an ensemble at once: one step down in each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.boosters._check import gbtree_of, ints, outputs_of, width_of
from apfex.strict_json import read_strict_json

_MOST_CODES, _MOST_NODES, _MOST_FEATURES = 2**20, 2**22, 2**13
"""What the tables of an ensemble may take: beyond it, XGBoost is asked."""
_CODE_END = 2**24
"""XGBoost sends what is no code below it to the left."""
_PROBES = 64
_WORK, _WORK_WITH_CODES = 20_000, 12_000
"""Steps down a tree, of all rows in all trees, in which XGBoost catches up (measured)."""


@final
@dataclass(frozen=True, eq=False)
class FewRows:
    """The nodes of all trees of an ensemble, one tree after the other, output by output.

    Attributes
    ----------
    roots : int array of shape [trees]
    ends : sequence of int
        Where the trees of each output end.
    depth : int
        Steps from a root to the deepest leaf.
    feature, first : int arrays of shape [nodes]
        What a node splits by, and its left child, which the right one follows; a leaf is its own.
    threshold : float32 array of shape [nodes]
        A row goes right from there on. NaN at leaves and where categories split.
    missing_right : bool array of shape [nodes]
    leaf : float32 array of shape [nodes]
        What is added to the margin.
    base : float32 array of shape [outputs]
    n_features : int
    codes : tuple of arrays, or None
        For splits on categories: where a node's part of the table begins, the number of its codes,
        and the table: whether a code goes right, and at last False for all others. Nodes that split
        on numbers have no codes and share the first of these. None: nothing splits on categories.
    """

    roots: np.ndarray
    ends: tuple[int, ...]
    depth: int
    feature: np.ndarray
    first: np.ndarray
    threshold: np.ndarray
    missing_right: np.ndarray
    leaf: np.ndarray
    base: np.ndarray
    n_features: int
    codes: tuple[np.ndarray, np.ndarray, np.ndarray] | None

    def is_faster_for(self, x: np.ndarray) -> bool:
        """Whether rows [n, d] are so few that XGBoost would take longer; others it refuses."""
        work = len(x) * len(self.roots) * self.depth
        most = _WORK if self.codes is None else _WORK_WITH_CODES
        return work <= most and x.shape[1] == self.n_features

    def margins(self, x: np.ndarray) -> np.ndarray:
        """Return margins [n, outputs], float32, of rows [n, d], float32.

        Sums are made tree by tree in float32, as XGBoost makes them.
        """
        begins = np.arange(0, x.size, x.shape[1])[:, None]
        cells, has_gaps = x.ravel(), bool(np.isnan(x).any())
        is_code = (cells >= 0) & (cells < _CODE_END)
        codes = np.where(is_code, cells, _CODE_END).astype(np.int64)  # fractions are cut off
        node = np.broadcast_to(self.roots, (len(x), len(self.roots)))
        for _ in range(self.depth):
            cell = begins + self.feature.take(node)
            right = cells.take(cell) >= self.threshold.take(node)
            if self.codes is not None:
                starts, sizes, goes_right = self.codes
                place = np.minimum(codes.take(cell), sizes.take(node)) + starts.take(node)
                right |= goes_right.take(place)
            if has_gaps:
                is_gap = np.isnan(cells.take(cell))
                right = np.where(is_gap, self.missing_right.take(node), right)
            node = self.first.take(node) + right
        added = self.leaf.take(node)
        margins = np.empty((len(x), len(self.base)), np.float32)
        for output, (start, end) in enumerate(zip((0, *self.ends), self.ends, strict=False)):
            parts = np.empty((len(x), 1 + end - start), np.float32)
            parts[:, 0], parts[:, 1:] = self.base[output], added[:, start:end]
            margins[:, output] = np.add.accumulate(parts, axis=1)[:, -1]
        return margins


def few_rows_of(
    content: Mapping[str, Any], margins: Callable[[np.ndarray], np.ndarray]
) -> FewRows | None:
    """Read a booster's JSON that was checked; None where only XGBoost can say what its bits are.

    Parameters
    ----------
    content : mapping
        What ``read_booster`` has returned, all of it checked.
    margins : callable
        XGBoost's own margins, float32 [n, outputs], of rows [n, d]. They are compared on some
        rows: another version of XGBoost may add in another order.
    """
    learner = content["learner"]
    trees = gbtree_of(learner)["trees"]
    if (
        learner["gradient_booster"]["name"] != "gbtree"
        or not trees
        or width_of(trees[0]) > 1
        or sum(len(tree["left_children"]) for tree in trees) > _MOST_NODES
        or int(learner["learner_model_param"]["num_feature"]) > _MOST_FEATURES
    ):
        return None
    found = _read(learner)
    if found is None:
        return None
    x = _probes(found)
    same = found.margins(x).view(np.int32) == margins(x).view(np.int32)
    return found if same.all() else None


def _read(learner: Mapping[str, Any]) -> FewRows | None:
    model, n_outputs = gbtree_of(learner), outputs_of(learner)
    outputs = ints(model["tree_info"])
    trees = [model["trees"][place] for place in np.argsort(outputs, kind="stable")]
    sizes = np.array([len(tree["left_children"]) for tree in trees])
    roots = np.cumsum(sizes) - sizes
    left = _joined(trees, "left_children")
    is_leaf = left < 0
    first = np.where(is_leaf, np.arange(len(left)), left + np.repeat(roots, sizes))
    depth = _depth(first, is_leaf, roots)
    numbers = _float32([value for tree in trees for value in tree["split_conditions"]])
    base, codes = _base_of(learner), _codes_of(trees, roots, len(left))
    if depth is None or numbers is None or base is None or codes is None:
        return None
    by_code = _joined(trees, "split_type") > 0
    return FewRows(
        roots,
        tuple(np.cumsum(np.bincount(outputs, minlength=n_outputs)).tolist()),
        depth,
        np.where(is_leaf, 0, _joined(trees, "split_indices")),
        first,
        np.where(is_leaf | by_code, np.float32(np.nan), numbers),
        ~is_leaf & (_joined(trees, "default_left") == 0),
        np.where(is_leaf, numbers, np.float32(0)),
        np.broadcast_to(base, n_outputs),
        int(learner["learner_model_param"]["num_feature"]),
        codes if by_code.any() else None,
    )


def _joined(trees: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    return np.concatenate([ints(tree[name]) for tree in trees])


def _float32(values: list[float]) -> np.ndarray | None:
    """Numbers as XGBoost reads them from text; None if one were rounded twice, and differently."""
    exact = np.array(values, dtype=np.float64)
    found = exact.astype(np.float32)
    ends = (np.nextafter(exact, end).astype(np.float32) for end in (-np.inf, np.inf))
    return found if all((end == found).all() for end in ends) else None


def _base_of(learner: Mapping[str, Any]) -> np.ndarray | None:
    """What trees are added to: probabilities are stored as such."""
    stored = read_strict_json(learner["learner_model_param"]["base_score"])
    base = _float32(stored if isinstance(stored, list) else [stored])
    if base is not None and learner["objective"]["name"] == "binary:logistic":
        with np.errstate(all="ignore"):  # a forged one may be no probability
            base = -np.log(np.float32(1) / base - np.float32(1))
    return base


def _depth(first: np.ndarray, is_leaf: np.ndarray, roots: np.ndarray) -> int | None:
    """Steps to the deepest leaf; None if they are too many even for one row."""
    level = roots
    for steps in range(_WORK // len(roots)):
        level = level[~is_leaf[level]]
        if not level.size:
            return steps
        level = np.concatenate([first[level], first[level] + 1])
    return None


def _codes_of(
    trees: Sequence[Mapping[str, Any]], roots: np.ndarray, n_nodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Where each node's codes begin in a table, how many they are, and whether they go right."""
    starts, sizes = np.zeros((2, n_nodes), dtype=np.int64)
    sets, end = [], 1
    for tree, root in zip(trees, roots, strict=True):
        codes = ints(tree["categories"])
        parts = (ints(tree[f"categories_{name}"]) for name in ("nodes", "segments", "sizes"))
        for node, start, size in zip(*parts, strict=True):
            own = codes[start : start + size]
            starts[root + node], sizes[root + node] = end, own.max() + 1
            sets.append(end + own)
            end += own.max() + 2
            if end > _MOST_CODES:
                return None
    table = np.zeros(end, dtype=bool)
    table[np.concatenate(sets) if sets else []] = True
    return starts, sizes, table


def _probes(trees: FewRows) -> np.ndarray:
    """Rows of thresholds, some of them missing."""
    rng = np.random.default_rng(0)
    numbers = np.append(trees.threshold[~np.isnan(trees.threshold)], np.arange(3)).astype("f4")
    rows = rng.choice(numbers, (_PROBES, trees.n_features))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows
