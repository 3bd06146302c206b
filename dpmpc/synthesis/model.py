"""The model of greatest entropy with the tables of a tree of cliques, and rows drawn from it.

A clique is a child, its parents and the target, if there is one. The graph of the tables is triangulated, its cliques
are a junction tree, and a law that is a product of factors of its edges is that of its cliques: p(first, target) prod
p(child | parents, target) (Lauritzen 1996, section 4.4). Of the laws with given tables the one of greatest entropy is
such a product, and iterative proportional fitting from the product of the margins finds it (Csiszar 1975). It goes
along the junction tree, to and fro: in each clique its own tables are fitted, and what changed is handed to the next
one by the columns that both have, so that every clique that is fitted has the margin of the whole law (Jirousek and
Preucil 1995, On the effective implementation of the iterative proportional fitting procedure).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.statistics.cells import Ints
from dpmpc.statistics.intervals import Floats
from dpmpc.synthesis.tree import Edge, Family

_SWEEPS = 100
_ROUNDS = 30  # along all cliques
_CLOSE = 1e-6  # a fit ends where margins agree to this part of the whole
_NEAR = 1e-4  # likewise, of the cliques: noisy tables never agree altogether


@dataclass(frozen=True, eq=False)
class SynthesisModel:
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


@dataclass(eq=False)
class _Clique:
    """`axes`: its columns, the child last; `law`: its margin of the law, in records; `tables`: (axes, counts) that are
    fitted here; `up`: the clique that it hangs from; `shared`, `above`: the axes that both have, here and there."""

    axes: tuple[str, ...]
    law: Floats
    tables: list[tuple[tuple[int, int], Floats]]
    up: int | None
    shared: tuple[int, ...]
    above: tuple[int, ...]


def fitted(
    names: Sequence[str], target: str | None, families: Sequence[Family], one: Mapping[str, Floats],
    two: Mapping[Edge, Floats],
) -> SynthesisModel:  # fmt: skip
    """The model. families: children and parents without the target, parents first; one: (cells,) of each column, at
    least 0; two: tables of every child with each parent, and of every column with the target, at least 0."""
    sizes = {name: len(one[name]) for name in names}
    cliques = _cliques(target, families, one, two)
    before = np.inf
    for _ in range(_ROUNDS if len(cliques) > 1 or target is not None else 0):
        off = _round(cliques)
        if off < _NEAR or off > 0.98 * before:
            break
        before = off
    for clique in cliques:
        _hand(cliques, clique, down=True)
    laws: list[tuple[str, tuple[str, ...], Floats]] = []
    if target is not None:
        laws.append((target, (), _conditional(cliques[0].law.sum(axis=1))))
    laws += [(clique.axes[-1], clique.axes[:-1], _conditional(clique.law)) for clique in cliques]
    return SynthesisModel(tuple(names), sizes, tuple(laws))


def _cliques(
    target: str | None, families: Sequence[Family], one: Mapping[str, Floats], two: Mapping[Edge, Floats]
) -> list[_Clique]:
    """The cliques in the order of families, each with the law of independent columns."""
    hub = () if target is None else (target,)
    place = {child: k for k, (child, _) in enumerate(families)}
    made: list[_Clique] = []
    for child, parents in families:
        axes = (*parents, *hub, child)
        law = np.ones(())
        for name in axes:
            law = np.multiply.outer(law, one[name] / (float(one[name].sum()) or 1.0))
        tables = []
        for k, name in enumerate(axes[:-1]):
            tables.append(((k, len(axes) - 1), raked(_table(two, name, child), one[name], one[child])))
        up = max(place[parent] for parent in parents) if parents else None
        above = () if up is None else tuple(made[up].axes.index(name) for name in axes[:-1])
        total = float(one[child].sum()) or 1.0
        made.append(_Clique(axes, law * total, tables, up, tuple(range(len(above))), above))
    return made


def _round(cliques: Sequence[_Clique]) -> float:
    """Fits every clique once on a walk along the whole tree and back; the largest part of the records by which a table
    was off when its clique was reached."""
    below: dict[int, list[int]] = {}
    for k, clique in enumerate(cliques):
        if clique.up is not None:
            below.setdefault(clique.up, []).append(k)
    worst = _fit(cliques[0])
    waiting = [(0, iter(below.get(0, ())))]
    while waiting:
        at, children = waiting[-1]
        child = next(children, None)
        if child is None:
            waiting.pop()
            if waiting:
                _hand(cliques, cliques[at], down=False)
            continue
        _hand(cliques, cliques[child], down=True)
        worst = max(worst, _fit(cliques[child]))
        waiting.append((child, iter(below.get(child, ()))))
    return worst


def _fit(clique: _Clique) -> float:
    """Fits a clique's own tables once, one after another."""
    worst = 0.0
    for axes, table in clique.tables:
        found = _margin(clique.law, axes)
        worst = max(worst, float(np.abs(found - table).sum()) / (float(table.sum()) or 1.0))
        clique.law = _times(clique.law, _ratio(table, found), axes)
    return worst


def _hand(cliques: Sequence[_Clique], clique: _Clique, down: bool) -> None:
    """Makes the margin of the columns that a clique shares with the one it hangs from that of the other: `down`, its
    own follows, else the other's."""
    if clique.up is None:
        return
    above = cliques[clique.up]
    here, there = _margin(clique.law, clique.shared), _margin(above.law, clique.above)
    if down:
        clique.law = _times(clique.law, _ratio(there, here), clique.shared)
    else:
        above.law = _times(above.law, _ratio(here, there), clique.above)


def _margin(law: Floats, axes: Sequence[int]) -> Floats:
    """The sum over all other axes, with these in their order here."""
    kept = law.sum(axis=tuple(k for k in range(law.ndim) if k not in axes))
    return np.asarray(kept.transpose(np.argsort(np.argsort(axes))))


def _times(law: Floats, factor: Floats, axes: Sequence[int]) -> Floats:
    """The law times a factor of these axes."""
    ordered = factor.transpose(np.argsort(axes))
    shape = [law.shape[k] if k in axes else 1 for k in range(law.ndim)]
    return np.asarray(law * ordered.reshape(shape))


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
