"""A model of more tables than a tree's, by Private-PGM (McKenna, Sheldon and Miklau 2019, Graphical-model based
estimation and inference for differential privacy), where the package `mbi` is installed.

The noisy tables are those of the tree: nothing more is opened. Added to it are the pairs that depend most, as long as
the model stays small; each table counts with the deviation of its own noise.
"""

import importlib.util
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.statistics.cells import Ints
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.opened import Opened
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.table import Structure
from dpmpc.synthesis.tree import Edge

MOST_MEGABYTES = 0.5  # of the junction tree's tables: 65,536 cells
_STEPS = 1000
_CLOSE = 1e-5  # relative gain of 50 steps below which a fit ends


def check_installed() -> None:
    """Errors: UsageError where `mbi` is not installed."""
    if importlib.util.find_spec("mbi") is None:
        raise UsageError(
            "<<model=mbi>> needs the package mbi, which is not installed; pip install 'mbi>=2', or take <<model=tree>>",
            code="usage",
        )


@dataclass(frozen=True, eq=False)
class Pgm:
    """A fitted graphical model. `kept`: the cells of each column that are possible, in their own numbering."""

    names: tuple[str, ...]
    kept: Mapping[str, Ints]
    fitted: Any = field(repr=False)

    def draw(self, rows: int, rng: np.random.Generator) -> dict[str, Ints]:
        """(rows,) cells of each column, by mbi's randomised rounding."""
        before = np.random.get_state()
        np.random.seed(int(rng.integers(2**32)))
        try:
            with _doubles():
                made = self.fitted.synthetic_data(rows).to_dict()
        finally:
            np.random.set_state(before)
        return {name: self.kept[name][np.asarray(made[_label(k)], dtype=np.int64)] for k, name in enumerate(self.names)}


def widened(noisy: Noisy, shape: Structure) -> Structure:
    """The structure with further pairs, those that depend most first, while the model stays small. Errors: as of
    `check_installed`."""
    check_installed()
    with _doubles():
        from mbi import Domain
        from mbi.junction_tree import hypothetical_model_size

        kept = {name: np.flatnonzero(noisy.possible(name)) for name in shape.names}
        label = {name: _label(k) for k, name in enumerate(shape.names)}
        domain = Domain(tuple(label.values()), tuple(len(cells) for cells in kept.values()))
        known = {frozenset(edge) for edge in shape.edges}
        cliques = [tuple(label[name] for name in edge) for edge in shape.edges]
        more: list[Edge] = []
        weight = noisy.dependence()
        for edge in sorted(weight, key=lambda edge: -weight[edge]):
            if frozenset(edge) in known or weight[edge] <= 0:
                continue
            wider = [*cliques, tuple(label[name] for name in edge)]
            if hypothetical_model_size(domain, wider) <= MOST_MEGABYTES:
                cliques = wider
                more.append(edge)
    return replace(shape, more=tuple(more))


def fitted(noisy: Noisy, releases: Sequence[Opened], shape: Structure) -> Pgm:
    """The model of the structure's tables of one and two columns, as each release opened them."""
    with _doubles():
        from mbi import Constraint, Domain
        from mbi.estimation import MirrorDescent

        kept = {name: np.flatnonzero(noisy.possible(name)) for name in shape.names}
        label = {name: _label(k) for k, name in enumerate(shape.names)}
        domain = Domain(tuple(label.values()), tuple(len(cells) for cells in kept.values()))
        never = []
        for edge in noisy.zeros.edges:
            cells = noisy.zeros.of_two(edge, noisy.axes)[np.ix_(kept[edge[0]], kept[edge[1]])]
            if cells.any():
                part = domain.project(tuple(label[name] for name in edge))
                never.append(Constraint(part, invalid=np.argwhere(cells)))
        found = MirrorDescent().estimate(
            domain, list(_measured(releases, shape, kept, label)), known_total=noisy.n, constraints=never,
            iters=_STEPS, callback_fn=lambda *_: None, tol=_CLOSE,
        )  # fmt: skip
    return Pgm(shape.names, kept, found)


def _measured(
    releases: Sequence[Opened], shape: Structure, kept: Mapping[str, Ints], label: Mapping[str, str]
) -> Iterator[Any]:
    """Every opened table of one column, and of the structure's pairs, with the deviation of its noise."""
    from mbi import LinearMeasurement

    known = {frozenset(edge) for edge in shape.edges}
    for opened in releases:
        for block in opened.layout.blocks:
            names = [axis.name for axis in block.axes]
            if block.inner != 1 or not (len(names) == 1 or frozenset(names) in known):
                continue
            table: Floats = opened.raw(block).reshape([len(axis.labels) for axis in block.axes])
            table = table[np.ix_(*(kept[name] for name in names))]
            yield LinearMeasurement(table.ravel(), tuple(label[name] for name in names), opened.deviation(block))


@contextmanager
def _doubles() -> Iterator[None]:
    """JAX with 64-bit numbers, for this block alone; mbi's words about its settings are kept away from the user."""
    import jax

    with warnings.catch_warnings(), jax.enable_x64(True):
        warnings.simplefilter("ignore")
        yield


def _label(k: int) -> str:
    """A column's name inside mbi, which takes names as attributes."""
    return f"c{k}"
