"""Which tables a model is made of: a spanning tree of the columns, those that depend most side by side.

The dependence of two columns is the total variation between their table and the product of its margins, as far as it
stands out of the noise: of a difference y = d + noise of deviation s, E[y^2] - s^2 = d^2, so sqrt(max(y^2 - s^2, 0))
says of |d| what is more than noise. Without this, large tables of independent columns would look dependent.
With a target, every column is joined to it too, and the tree is that of the other columns (Friedman, Geiger and
Goldszmidt 1997, tree-augmented naive Bayes): what is learnt about the target from the synthetic table is then what the
tables with the target say.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from dpmpc.statistics.intervals import Floats

Edge = tuple[str, str]


def dependence(table: Floats, deviation: float) -> float:
    """The total variation, between 0 and 1, between a noisy table (rows, columns) and the product of its margins, less
    what noise of this deviation a cell makes."""
    n = max(float(table.sum()), 1.0)
    product = np.maximum(table.sum(axis=1), 0)[:, None] * np.maximum(table.sum(axis=0), 0)[None, :] / n
    rows, columns = table.shape
    # centred along both axes, a cell keeps this part of its noise
    left = deviation**2 * (1 - 1 / rows) * (1 - 1 / columns)
    # a cell stands out by three deviations; a sum of many that each stand out by less is noise as likely as not
    found = np.maximum((table - product) ** 2 - left, 0.0)
    return float(np.sqrt(found).sum() - _expected(found.size, left)) / (2 * n)


def _expected(cells: int, variance: float) -> float:
    """E sum sqrt(max(y^2 - v, 0)) of pure noise: 2 int_1^inf sqrt(z^2 - 1) phi(z) dz = 0.3426 v^(1/2) a cell."""
    return 0.342624 * cells * float(np.sqrt(variance))


def spanning_tree(names: Sequence[str], weight: Mapping[Edge, float]) -> tuple[Edge, ...]:
    """The edges (parent, child) of the tree of greatest weight, parents first (Prim); ties go by the order of names."""
    if not names:
        return ()
    of = {frozenset(edge): value for edge, value in weight.items()}
    best = {name: (of.get(frozenset((names[0], name)), 0.0), names[0]) for name in names[1:]}
    edges = []
    while best:
        child = max(best, key=lambda name: best[name][0])
        edges.append((best.pop(child)[1], child))
        for name in best:
            value = of.get(frozenset((child, name)), 0.0)
            if value > best[name][0]:
                best[name] = (value, child)
    return tuple(edges)
