"""The model of greatest entropy with the tables of a tree, and rows drawn from it.

Without a target the model is that of the tree: a root, and for every child its law given its parent. With one it is
p(target) p(root | target) prod p(child | parent, target). Each clique (parent, child, target) has the greatest entropy
for its three tables of two columns, which iterative proportional fitting finds (Csiszar 1975). Cliques meet in
(parent, target) alone, which the graph of the model, being triangulated, makes a separator: so the product of the
cliques' laws is the law of greatest entropy with all these tables (Lauritzen 1996, section 4.4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpmpc.statistics.cells import Ints
from dpmpc.statistics.intervals import Floats
from dpmpc.synthesis.tree import Edge

_SWEEPS = 100
_CLOSE = 1e-6  # a fit ends where margins agree to this part of the whole


@dataclass(frozen=True, eq=False)
class Model:
    """`laws`: (child, parents, p (..., cells of the child)) in the order of drawing, each row of p adding up to 1.
    `sizes`: the cells of every column."""

    names: tuple[str, ...]
    sizes: Mapping[str, int]
    laws: tuple[tuple[str, tuple[str, ...], Floats], ...]

    def draw(self, rows: int, rng: np.random.Generator) -> dict[str, Ints]:
        """(rows,) cells of each column. In every group of rows with the same parents the cells' numbers are what is
        expected, rounded up or down: the tables of the model show through with less than a sample's error."""
        drawn: dict[str, Ints] = {}
        for child, parents, law in self.laws:
            group = np.zeros(rows, dtype=np.int64)
            for parent in parents:
                group = group * self.sizes[parent] + drawn[parent]
            drawn[child] = _rounded(group, law.reshape(-1, law.shape[-1]), rng)
        return drawn

    def table(self, names: Sequence[str], drawn: Mapping[str, Ints]) -> Floats:
        """The counts of drawn rows in the cells of some columns."""
        shape = [self.sizes[name] for name in names]
        place = np.ravel_multi_index([drawn[name] for name in names], shape)
        return np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def fitted(
    names: Sequence[str], target: str | None, edges: Sequence[Edge], one: Mapping[str, Floats],
    two: Mapping[Edge, Floats],
) -> Model:  # fmt: skip
    """The model. edges: of the tree without the target, parents first; one: (cells,) of each column, at least 0; two:
    tables of the edges and of every column with the target, at least 0."""
    sizes = {name: len(one[name]) for name in names}
    laws: list[tuple[str, tuple[str, ...], Floats]] = []
    with_target: dict[str, Floats] = {}  # (cells, target's cells)
    others = [name for name in names if name != target]
    if target is not None:
        laws.append((target, (), _conditional(one[target])))
        for name in others:
            with_target[name] = raked(_table(two, name, target), one[name], one[target])
    root = edges[0][0] if edges else others[0]
    if target is None:
        laws.append((root, (), _conditional(one[root])))
    else:
        laws.append((root, (target,), _conditional(with_target[root].T)))
    for parent, child in edges:
        pair = raked(_table(two, parent, child), one[parent], one[child])
        if target is None:
            laws.append((child, (parent,), _conditional(pair)))
        else:
            clique = _clique(pair, with_target[parent], with_target[child])
            laws.append((child, (parent, target), _conditional(clique)))
    return Model(tuple(names), sizes, tuple(laws))


def on_simplex(values: Floats, total: float) -> Floats:
    """The nearest array, in the L2 norm, of numbers at least 0 that add up to `total` (Duchi et al. 2008)."""
    flat = np.sort(values.ravel())[::-1]
    spare = (np.cumsum(flat) - total) / np.arange(1, len(flat) + 1)
    level = spare[int(np.flatnonzero(flat > spare)[-1])]
    return np.asarray(np.maximum(values - level, 0.0))


def raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The table with these margins that is nearest to `table` in Kullback and Leibler's sense. A cell that is 0 stays
    0; a row or column of zeros that must not be one is filled in proportion to the other margin."""
    total = float(rows.sum()) or 1.0
    found = table + 1e-9 * np.outer(rows, columns) / total
    for _ in range(_SWEEPS):
        found = found * _ratio(rows, found.sum(axis=1))[:, None]
        found = found * _ratio(columns, found.sum(axis=0))[None, :]
        if np.abs(found.sum(axis=1) - rows).sum() < _CLOSE * total:
            break
    return np.asarray(found)


def _clique(pair: Floats, parent: Floats, child: Floats) -> Floats:
    """(parent, target, child) of greatest entropy with its three tables of two columns."""
    found = np.ones((pair.shape[0], parent.shape[1], pair.shape[1]))
    total = float(pair.sum()) or 1.0
    for _ in range(_SWEEPS):
        found = found * _ratio(child.T, found.sum(axis=0))[None, :, :]
        found = found * _ratio(pair, found.sum(axis=1))[:, None, :]
        found = found * _ratio(parent, found.sum(axis=2))[:, :, None]
        if np.abs(found.sum(axis=0) - child.T).sum() < _CLOSE * total:
            break
    return np.asarray(found)


def _ratio(wanted: Floats, found: Floats) -> Floats:
    return np.asarray(np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0))


def _table(two: Mapping[Edge, Floats], a: str, b: str) -> Floats:
    return two[a, b] if (a, b) in two else two[b, a].T


def _conditional(joint: Floats) -> Floats:
    """The law of the last axis given the others; where there is nothing, that of the whole."""
    whole = joint.reshape(-1, joint.shape[-1]).sum(axis=0)
    usual = whole / whole.sum() if whole.sum() > 0 else np.full(len(whole), 1 / len(whole))
    sums = joint.sum(axis=-1, keepdims=True)
    return np.where(sums > 0, joint / np.where(sums > 0, sums, 1.0), usual)


def _rounded(group: Ints, law: Floats, rng: np.random.Generator) -> Ints:
    """(rows,) a cell for each row by the law of its group, in numbers that are within one of what is expected."""
    found = np.empty(len(group), dtype=np.int64)
    order = np.argsort(rng.random(len(group)), kind="stable")
    order = order[np.argsort(group[order], kind="stable")]
    counts = np.bincount(group, minlength=len(law))
    begin = 0
    for k in np.flatnonzero(counts):
        mine = order[begin : begin + counts[k]]
        # one draw u for the group: cells at u, 1 + u, 2 + u, ... along the cumulative law (systematic sampling)
        at = (rng.random() + np.arange(counts[k])) / counts[k]
        cells = np.searchsorted(np.cumsum(law[k]), at, side="right")
        found[mine] = np.minimum(cells, _last(law[k]))
        begin += counts[k]
    return found


def _last(law: Floats) -> int:
    return int(np.flatnonzero(law > 0)[-1])
