"""Rivals of synthetic tables: MST with a trusted curator by our own hand, and smartnoise-synth's programs where
they are installed.

Source: McKenna, Miklau and Sheldon 2021, Winning the NIST contest (MST): a third of rho each for single columns, for
choosing the pairs of a spanning tree one after another by the exponential mechanism, and for their tables; values
below three deviations are one. Departures: neighbours replace a record, so a table moves by sqrt(2) and a score by 2;
the model of the tree is fitted as ours is, which of a tree is the same as Private-PGM's up to how negative counts are
treated; rows are rounded as ours are.
"""

import importlib.util
import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from dpmpc.statistics.cells import Ints
from dpmpc.statistics.intervals import Floats
from dpmpc.synthesis.model import fitted, on_simplex
from dpmpc.synthesis.tree import Edge

_SURE = 3.0  # deviations of the noise below which values are merged
Cells = Mapping[str, Ints]


def mst(
    cells: Cells, sizes: Mapping[str, int], epsilon: float, delta: float, rng: np.random.Generator
) -> dict[str, Ints]:  # fmt: skip
    """(n,) cells of each column. The budget is spent by zero-concentrated differential privacy, as published."""
    names = list(cells)
    n = len(cells[names[0]])
    rho = (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2 / 3
    sigma = math.sqrt(len(names) / rho)  # sqrt(2)^2 / (2 rho / k)
    merged: dict[str, Ints] = {}  # where each cell goes
    one: dict[str, Floats] = {}
    for name in names:
        noisy = np.bincount(cells[name], minlength=sizes[name]) + rng.normal(0, sigma, sizes[name])
        kept = noisy >= _SURE * sigma
        place = np.where(kept, np.cumsum(kept) - 1, kept.sum())
        merged[name] = place
        few = int(place.max()) + 1
        one[name] = on_simplex(np.bincount(place, weights=noisy, minlength=few).astype(np.float64), n)
    small = {name: merged[name][cells[name]] for name in names}
    exact = {pair: _table(small, one, pair) for pair in combinations(names, 2)}
    edges = _chosen(names, exact, one, n, rho, rng)
    sigma = math.sqrt(max(len(edges), 1) / rho)
    two = {edge: on_simplex(exact[_known(exact, edge)] + rng.normal(0, sigma, exact[_known(exact, edge)].shape), n)
           for edge in edges}  # fmt: skip
    tree = [(names[0], ()), *((child, (parent,)) for parent, child in _rooted(names, edges))]
    drawn = fitted(names, None, tree, one, two).draw(n, rng)
    return {name: _spread(drawn[name], merged[name], rng) for name in names}


def _table(cells: Cells, one: Mapping[str, Floats], pair: Edge) -> Floats:
    shape = [len(one[name]) for name in pair]
    place = np.ravel_multi_index([cells[name] for name in pair], shape)
    return np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def _known(exact: Mapping[Edge, Floats], edge: Edge) -> Edge:
    return edge if edge in exact else edge[::-1]


def _chosen(
    names: list[str], exact: Mapping[Edge, Floats], one: Mapping[str, Floats], n: int, rho: float,
    rng: np.random.Generator,
) -> list[Edge]:  # fmt: skip
    """The pairs of a spanning tree, one after another by the exponential mechanism among those that join two parts."""
    score = {pair: float(np.abs(t - np.outer(one[pair[0]], one[pair[1]]) / n).sum()) for pair, t in exact.items()}
    epsilon = math.sqrt(8 * rho / max(len(names) - 1, 1))
    part = {name: k for k, name in enumerate(names)}
    edges: list[Edge] = []
    while len(edges) < len(names) - 1:
        open_ones = [pair for pair in score if part[pair[0]] != part[pair[1]]]
        power = np.array([epsilon * score[pair] / 4 for pair in open_ones])  # a score moves by 2
        chosen = open_ones[int(np.argmax(power + rng.gumbel(size=len(power))))]
        edges.append(chosen)
        old = part[chosen[1]]
        part = {name: part[chosen[0]] if k == old else k for name, k in part.items()}
    return edges


def _rooted(names: list[str], edges: list[Edge]) -> list[Edge]:
    """The edges (parent, child), parents first."""
    seen, found, left = {names[0]}, [], list(edges)
    while left:
        a, b = next(edge for edge in left if (edge[0] in seen) != (edge[1] in seen))
        left.remove((a, b))
        found.append((a, b) if a in seen else (b, a))
        seen |= {a, b}
    return found


def _spread(drawn: Ints, merged: Ints, rng: np.random.Generator) -> Ints:
    """Cells as they were before merging; among merged ones, evenly."""
    found = np.empty(len(drawn), dtype=np.int64)
    for k in range(int(merged.max()) + 1):
        places, mine = np.flatnonzero(merged == k), drawn == k
        found[mine] = rng.choice(places, size=int(mine.sum())) if len(places) else 0
    return found


def installed() -> tuple[str, ...]:
    """The programs of smartnoise-synth that are here."""
    return ("MST", "AIM") if importlib.util.find_spec("snsynth") is not None else ()


def theirs(name: str, cells: Cells, sizes: Mapping[str, int], epsilon: float, delta: float) -> dict[str, Ints]:
    """(n,) cells by a program of smartnoise-synth. Its neighbours differ by a record that is there or not; one that is
    replaced is two of them, so it gets half of epsilon and of delta."""
    import pandas as pd
    from snsynth import Synthesizer  # type: ignore[import-not-found,unused-ignore]

    names = list(cells)
    frame: Any = pd.DataFrame({f"c{k}": cells[column] for k, column in enumerate(names)})
    made = Synthesizer.create(name.lower(), epsilon=epsilon / 2, delta=delta / 2)
    made.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
    rows = made.sample(len(frame))
    return {
        column: np.clip(rows[f"c{k}"].astype(np.int64).to_numpy(), 0, sizes[column] - 1)
        for k, column in enumerate(names)
    }
