"""A synthetic table: the model that noisy tables lead to, rows drawn from it, and how far off its tables will be."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.statistics.cells import Ints
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.pooled import pooled
from dpmpc.synthesis import asking
from dpmpc.synthesis.model import SynthesisModel, fitted
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.tree import Edge, Family, clique_tree

_FORCED = 2.0  # the weight of an edge that a constraint needs: more than any dependence
_ROUNDS = 50  # of drawing again rows that constraints exclude
REPEATS = 6  # of the noise, for expected errors
_ENOUGH = 50_000  # rows to see them in
MOST_OF_A_CLIQUE = 1 << 16  # cells: of one with two parents


@dataclass(frozen=True)
class Structure:
    """Which tables a model is of: those of every child with its parents (`families`, without the target, parents
    first), and every column with the target; `more`: further pairs, of a model by Private-PGM."""

    names: tuple[str, ...]
    target: str | None
    families: tuple[Family, ...]
    more: tuple[Edge, ...] = ()

    @property
    def tree(self) -> tuple[Edge, ...]:
        """(parent, child) of the tree of cliques."""
        return tuple((parent, child) for child, parents in self.families for parent in parents)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All tables of two columns that the model is fitted to."""
        hub = ((name, self.target) for name in self.names if name != self.target) if self.target else ()
        return (*self.tree, *hub, *self.more)


class Drawn(Protocol):
    """A fitted model."""

    def draw(self, rows: int, rng: np.random.Generator) -> dict[str, Ints]:
        """(rows,) cells of each column."""
        ...


Fit = Callable[[Noisy, Sequence[Opened], Structure], Drawn]  # to all that was opened, and release by release


def structure(noisy: Noisy, target: str | None) -> Structure:
    """What the first release leads to: public post-processing."""
    weight = {edge: value for edge, value in noisy.dependence().items() if target not in edge}
    for edge in noisy.zeros.edges:
        for known in (edge, edge[::-1]):
            if known in weight:
                weight[known] += _FORCED
    names = noisy.columns.names
    sizes = {name: len(axis.labels) for name, axis in noisy.axes.items()}
    each = sizes[target] if target else 1
    others = [name for name in names if name != target]
    quieter = asking.quieter(len(names), target is not None)

    def least(a: str, b: str) -> float:
        """A half of what the second release's noise alone moves of a table: half of E|noise| a cell."""
        return 0.2 * (noisy.size(a) - 1) * (noisy.size(b) - 1) * noisy.apart((a, b)) * quieter / noisy.n

    def fits(clique: tuple[str, ...]) -> bool:
        return math.prod(sizes[name] for name in clique) * each <= MOST_OF_A_CLIQUE

    return Structure(names, target, clique_tree(others, weight, least, fits))


def model_of(noisy: Noisy, shape: Structure) -> SynthesisModel:
    """The model of greatest entropy with the noisy tables of a structure, as all releases together have them."""
    one = {name: noisy.one(name) for name in shape.names}
    return fitted(shape.names, shape.target, shape.families, one, {edge: noisy.two(edge) for edge in shape.edges})


def draw(model: Drawn, noisy: Noisy, rows: int, rng: np.random.Generator) -> dict[str, Ints]:
    """(rows,) cells of each column; none in a combination that constraints exclude. Errors: nothing else is left."""
    drawn = model.draw(rows, rng)
    bad = _excluded(noisy, drawn)
    for _ in range(_ROUNDS):
        wrong = np.flatnonzero(bad)
        if not len(wrong):
            return drawn
        again = model.draw(max(len(wrong), 64), rng)
        good = np.flatnonzero(~_excluded(noisy, again))[: len(wrong)]
        for name, cells in drawn.items():
            cells[wrong[: len(good)]] = again[name][good]
        bad = _excluded(noisy, drawn)
    if bad.all():
        raise UsageError(f"<<constraints>> leave some rows possible; none of {rows} that were drawn is; mend them")
    like = rng.choice(np.flatnonzero(~bad), int(bad.sum()))  # possible rows are rare: they are drawn more than once
    for cells in drawn.values():
        cells[bad] = cells[like]
    return drawn


def _excluded(noisy: Noisy, drawn: Mapping[str, Ints]) -> NDArray[np.bool_]:
    rows = len(next(iter(drawn.values())))
    found = np.zeros(rows, dtype=bool)
    for a, b in noisy.zeros.edges:
        found |= noisy.zeros.of_two((a, b), noisy.axes)[drawn[a], drawn[b]]
    return found


@dataclass(frozen=True)
class PairError:
    """How far the table of two columns is expected to be off, in total variation: what noise and drawing make of it,
    what the tree leaves out, both together; `fitted`: whether the model holds this very table."""

    pair: Edge
    noise: float
    model: float
    fitted: bool

    @property
    def whole(self) -> float:
        return float(np.hypot(self.noise, self.model))


def expected_errors(
    noisy: Noisy, releases: Sequence[Opened], shape: Structure, drawn: Mapping[str, Ints], rng: np.random.Generator,
    fit: Fit,
) -> tuple[PairError, ...]:  # fmt: skip
    """What every pair's table is off by, without touching a record.

    Noise: its law is known, so the release is repeated from the synthetic table in place of the records, with fresh
    noise of the same deviations, fitted and drawn again (a parametric bootstrap). Model: a pair that the tree leaves
    out agrees with its noisy table but for the noise, whose square is known and taken off.
    """
    pairs = list(combinations(noisy.columns.names, 2))
    rows = len(next(iter(drawn.values())))
    own = {pair: _table(noisy, drawn, pair) / rows for pair in pairs}
    off = dict.fromkeys(pairs, 0.0)
    for again, opened in _repeated(noisy, releases, drawn, rng):
        few = min(rows, _ENOUGH)
        repeat = fit(again, opened, shape).draw(few, rng)
        for pair in pairs:
            off[pair] += 0.5 * float(np.abs(_table(noisy, repeat, pair) / few - own[pair]).sum()) / REPEATS
    known = {frozenset(edge) for edge in shape.edges}
    found = []
    for pair in pairs:
        left = 0.0 if frozenset(pair) in known else _misfit(noisy, own[pair], pair)
        found.append(PairError(pair, off[pair], left, frozenset(pair) in known))
    return tuple(found)


def _table(noisy: Noisy, drawn: Mapping[str, Ints], pair: Edge) -> Floats:
    shape = [len(noisy.axes[name].labels) for name in pair]
    place = drawn[pair[0]] * shape[1] + drawn[pair[1]]
    return np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _misfit(noisy: Noisy, own: Floats, pair: Edge) -> float:
    """The total variation between the model's table of a pair and the true one, if differences are as large as the
    table's cells are: |d| = c p gives sum d^2 = c^2 sum p^2, and half of sum |d| = c / 2."""
    away = noisy.raw(pair) / noisy.n - own
    square = float((away**2).sum()) - away.size * (noisy.deviation(pair) / noisy.n) ** 2
    return 0.5 * float(np.sqrt(max(square, 0.0) / (own**2).sum()))


def _repeated(
    noisy: Noisy, releases: Sequence[Opened], drawn: Mapping[str, Ints], rng: np.random.Generator
) -> Iterator[tuple[Noisy, list[Opened]]]:
    """What would have been opened, were the synthetic rows the records."""
    n, rows = noisy.n, len(next(iter(drawn.values())))
    totals: list[Floats] = []
    for opened in releases:
        parts: list[Floats] = []
        for block, scale in zip(opened.layout.blocks, opened.layout.scales, strict=True):
            names = [axis.name for axis in block.axes]
            if not names:  # moments: cells alone are fitted
                parts.append(np.zeros(block.inner))
                continue
            shape = [len(axis.labels) for axis in block.axes]
            place = np.ravel_multi_index([drawn[name] for name in names], shape)
            counts: Floats = np.bincount(place, minlength=int(np.prod(shape))).astype(np.float64)
            parts.append(counts * (scale * n / rows))
        totals.append(np.concatenate(parts))
    for _ in range(REPEATS):
        again = [
            replace(opened, total=total + rng.normal(0.0, opened.sigma, len(total)))
            for opened, total in zip(releases, totals, strict=True)
        ]
        yield Noisy(noisy.columns, pooled(again), noisy.zeros), again
