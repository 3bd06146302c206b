"""What a release has opened: each block's raw values, in records, and how far the noise moves them."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property, dataclass
from dpmpc.privacy.checks import check_nonnegative
from dpmpc.statistics.blocks import SECOND, Block, CellCounts, Moments
from dpmpc.statistics.cells import Axis
from dpmpc.statistics.layout import Layout
from dpmpc.statistics.where import Where

Floats = NDArray[np.float64]
Weights = dict[Axis, Floats]  # what the cells of an axis count in a sum; an axis that is not named: 1 each


@dataclass(frozen=True, eq=False)
class Opened:
    """One opened release, public. `total` (dimension,): the noisy sum in grid steps; `sigma`: the noise's deviation a
    coordinate in grid steps; `sizes`: every owner's number of records, or of
    places where they are not `counted`: how many records there are is then private. `rows`: of
    one person there may be so many records."""

    layout: Layout
    total: Floats
    sigma: float
    sizes: tuple[int, ...]
    counted: bool = True
    rows: int = 1

    def __post_init__(self) -> None:
        check_nonnegative("the noise's deviation", self.sigma)
        if np.shape(self.total) != (self.layout.dimension,):
            raise UsageError(
                f"these questions have {self.layout.dimension} numbers; got {np.shape(self.total)}; ask the same ones",
                code="shape",
            )

    @property
    def known(self) -> float | None:
        """The number of records, where the promise makes it public; None where it hides it."""
        public = self.counted and self.layout.unit.kind in ("record", "owner")
        return float(sum(self.sizes)) if public else None

    def deviation(self, block: Block) -> float:
        """Of the noise, in records, in a coordinate of weight 1."""
        return self.sigma / self.layout.scales[self.layout.blocks.index(block)]

    def weights(self, block: Block) -> Floats:
        """(inner,) what 1 is in each coordinate, over the block's scale."""
        if isinstance(block, Moments) and block.second:
            scale = self.layout.scales[self.layout.blocks.index(block)]
            return np.array([block.count_steps(scale) / scale, 1.0, SECOND])
        return np.ones(block.inner)

    def raw(self, block: Block) -> Floats:
        """(groups, inner) what was opened of a block, in records: divided by its scale and its coordinates' weights."""
        k = self.layout.blocks.index(block)
        part = self.total[self.layout.offsets[k] : self.layout.offsets[k + 1]].reshape(-1, block.inner)
        return np.asarray(part / (self.layout.scales[k] * self.weights(block)))

    def variances(self, block: Block) -> Floats:
        """(inner,) of what `raw` gives, in every group."""
        return np.asarray((self.deviation(block) / self.weights(block)) ** 2)

    @cached_property
    def tables(self) -> dict[Where, "Consistent"]:
        """The counts of cells, made consistent, for each condition."""
        found: dict[Where, list[CellCounts]] = {}
        for block in self.layout.blocks:
            if isinstance(block, CellCounts):
                found.setdefault(block.where, []).append(block)
        return {where: Consistent.of(self, blocks) for where, blocks in found.items()}


@dataclass(frozen=True, eq=False)
class Consistent:
    """The counts of cells of all tables with one condition, by least squares: margins that tables share agree.

    The sum of a table over some axes, centred along the others, is a *component*; white noise has independent errors in
    different components, so the best estimate of each is the mean of what the tables say of it, weighted by inverse
    variances, and least squares over all tables is that. The grand total is the number of records where that is known.

    `components`: for a set of axes, in the order of their names, the centred sums over all others, and the variance of
    the sums before centring.
    """

    components: dict[tuple[Axis, ...], tuple[Floats, float]]

    @staticmethod
    def of(opened: Opened, blocks: Sequence[CellCounts]) -> "Consistent":
        """The least squares of some tables with one condition."""
        sums: dict[tuple[Axis, ...], tuple[Floats, float]] = {}
        for block in blocks:
            axes = _ordered(block.axes)
            table = opened.raw(block).reshape([len(axis.labels) for axis in block.axes])
            table = table.transpose([block.axes.index(axis) for axis in axes])
            shape = table.shape
            precise = 1.0 / max(opened.deviation(block), 1e-9) ** 2
            for chosen in _subsets(len(shape)):
                others = tuple(i for i in range(len(shape)) if i not in chosen)
                part = table.sum(axis=others) if others else table
                for axis in range(part.ndim):
                    part = part - part.mean(axis=axis, keepdims=True)
                weight = precise / float(np.prod([shape[i] for i in others]))
                key = tuple(axes[i] for i in chosen)
                before, total = sums.get(key, (np.zeros(part.shape), 0.0))
                sums[key] = before + weight * part, total + weight
        noiseless = opened.sigma == 0
        found = {key: (part / weight, 0.0 if noiseless else 1 / weight) for key, (part, weight) in sums.items()}
        if opened.known is not None and not blocks[0].where:
            found[()] = np.array(opened.known), 0.0
        return Consistent(found)

    def value(self, axes: Sequence[Axis]) -> Floats:
        """The counts of the table of these axes, in this order; all of them in one table that was asked."""
        order = _ordered(axes)
        shape = tuple(len(axis.labels) for axis in order)
        total = np.zeros(shape)
        for chosen in _subsets(len(order)):
            part, _ = self.components[tuple(order[i] for i in chosen)]
            others = [shape[i] for i in range(len(order)) if i not in chosen]
            total += np.expand_dims(part, tuple(i for i in range(len(order)) if i not in chosen)) / np.prod(others)
        return np.asarray(total.transpose([order.index(axis) for axis in axes]))

    def covariance(self, axes: Sequence[Axis], f: Weights, g: Weights) -> float:
        """Of the errors of two sums over the table of these axes, of cells times the product of their axes' weights."""
        order = _ordered(axes)
        inside, outside = [], []
        for axis in order:
            size = len(axis.labels)
            one = np.ones(size)
            u, v = f.get(axis, one), g.get(axis, one)
            level = float(u.sum() * v.sum()) / size
            inside.append(float(u @ v) - level)
            outside.append(level / size)
        total = 0.0
        for chosen in _subsets(len(order)):
            factors = [inside[i] if i in chosen else outside[i] for i in range(len(order))]
            total += self.components[tuple(order[i] for i in chosen)][1] * float(np.prod(factors))
        return total


def _ordered(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    return tuple(sorted(axes, key=lambda axis: (axis.name, axis.labels)))


@lru_cache(maxsize=16)
def _subsets(count: int) -> tuple[tuple[int, ...], ...]:
    return tuple(chosen for size in range(count + 1) for chosen in combinations(range(count), size))


def unit_weights(axis: Axis, cell: int) -> Floats:
    """(cells,) 1 in one cell."""
    found = np.zeros(len(axis.labels))
    found[cell] = 1.0
    return found
