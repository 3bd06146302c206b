"""Which tables a model is made of: a tree of cliques of the columns, those that depend most side by side.

The dependence of two columns is the total variation between their table and the product of its margins, as far as it
stands out of the noise (`shrunk`). Without that, large tables of independent columns would look dependent.

The first column stands alone; each one after it (child) gets one or two parents that are joined already, so that the
graph is triangulated: a 2-tree or a part of one. Greedy: next comes the child whose dependence on its parents is
greatest. A second parent is taken only where its dependence exceeds what the next release's noise will move of a table
of that size: a table that would drown is not asked for. With a target, every column is joined to it too (Friedman,
Geiger and Goldszmidt 1997, tree-augmented naive Bayes): what is learnt about the target from the synthetic table is
then what the tables with the target say.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from dpmpc.statistics.intervals import Floats

Edge = tuple[str, str]
Family = tuple[str, tuple[str, ...]]  # a child and its parents


def shrunk(table: Floats, deviation: float) -> Floats:
    """The table (rows, columns) with what stands out of noise of this deviation a cell alone: the product of its
    margins, and the rest with its singular values shrunk.

    Columns that depend do so in few ways, so that their rest is near a matrix of low rank; noise has no such order. The
    shrinking is the best one in the Frobenius norm for even noise (Gavish and Donoho 2017, Optimal shrinkage of
    singular values): with d deviations, sizes r <= c, b = r / c and y = s / (d sqrt(c)) a singular value s becomes d
    sqrt(c) sqrt((y^2 - b - 1)^2 - 4 b) / y, and 0 where y <= 1 + sqrt(b). Centred along both axes, noise has (rows - 1)
    (columns - 1) dimensions; a half off each puts the edge of small matrices where it is (Ma 2012, Accuracy of the
    Tracy-Widom limits).
    """
    product = _product(table)
    r, c = sorted(size - 1.5 for size in table.shape)
    if r < 0 or not deviation:
        return product if r < 0 else table
    left, values, right = np.linalg.svd(table - product, full_matrices=False)
    unit, b = deviation * c**0.5, r / c
    y = values / unit
    inside = np.maximum((y**2 - b - 1) ** 2 - 4 * b, 0.0)
    kept = np.where(y > 1 + b**0.5, np.sqrt(inside) / np.maximum(y, 1.0), 0.0) * unit
    return np.asarray(product + (left * kept) @ right)


def dependence(table: Floats, deviation: float) -> float:
    """The total variation, between 0 and 1, between a noisy table (rows, columns) and the product of its margins, less
    what noise of this deviation a cell makes."""
    n = max(float(table.sum()), 1.0)
    return float(np.abs(shrunk(table, deviation) - _product(table)).sum()) / (2 * n)


def _product(table: Floats) -> Floats:
    n = max(float(table.sum()), 1.0)
    return np.asarray(np.outer(table.sum(axis=1), table.sum(axis=0)) / n)


def clique_tree(
    names: Sequence[str], weight: Mapping[Edge, float], least: Callable[[str, str], float],
    fits: Callable[[tuple[str, ...]], bool],
) -> tuple[Family, ...]:  # fmt: skip
    """(child, parents) of every column, parents first. weight: the dependence of pairs; least: what it must exceed for
    a second parent; fits: whether a clique of these columns is small enough. Ties go by the order of names."""
    if not names:
        return ()
    of = {frozenset(edge): max(value, 0.0) for edge, value in weight.items()}

    def depends(child: str, parents: tuple[str, ...]) -> float:
        each = [of.get(frozenset((child, parent)), 0.0) for parent in parents]
        second = len(each) > 1
        if second and (min(each) <= least(child, parents[int(np.argmin(each))]) or not fits((*parents, child))):
            return -1.0
        return math.fsum(each)

    first = max(combinations(names, 2), key=lambda edge: of.get(frozenset(edge), 0.0), default=(names[0],))[0]
    found: list[Family] = [(first, ())]
    best: dict[str, tuple[float, tuple[str, ...]]] = {
        name: (depends(name, (first,)), (first,)) for name in names if name != first
    }
    while best:
        child = max(best, key=lambda name: best[name][0])
        _, parents = best.pop(child)
        found.append((child, parents))
        for name in best:
            for more in ((child,), *((parent, child) for parent in parents)):
                value = depends(name, more)
                if value > best[name][0]:
                    best[name] = (value, more)
    return tuple(found)
