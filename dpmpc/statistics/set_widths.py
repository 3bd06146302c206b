"""How wide sets of coefficients will be, before there is a table: from a design, expected counts and the noise's size.

The root of the score has deviations by H^-1 V H^-1 of the expected table. Sets are wider, for three reasons, all of
which follow from public numbers:

*Hidden directions* take a quantile of more degrees: m is that of tables drawn about the expected one. *Noise in the
slope* makes A = H' V^-1 H that of H plus noise, so part of what is known of one coefficient is lost to another that
the noise hides, as if they were confounded; it is in the same tables. *Curvature*: Q of the expected table itself grows
slower than a parabola where effects are large and cells few, so its ends are looked for. A side that reaches more than
FURTHEST as far as the parabola counts as that: where sets end depends on single tables then, and many are open.

    foreseen_j = median over tables of sqrt(q(m) / A_o) / z, times the mean over both sides of reach / the parabola's

with q(m) the limit of Q, A_o what A leaves for j once the others are taken out, z = 1.96 = sqrt(q(0)).
"""

import numpy as np
from numpy.typing import NDArray

from dpmpc.statistics.chi_square import mixed_quantile
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.sets import REACH, CellModel, Ints

TABLES, SEED = 64, 20  # drawn tables: a median is good to some 2 % of a width
FURTHEST = 1.5
_ERROR = 0.05
_STEP, _HALVINGS = 0.4, 5  # of a parabola's reach: an end is found to some 1 % of it


def foreseen(expected: CellModel, theta: Floats, which: Ints) -> Floats:
    """(J,) half the width that the median set of each of these coefficients will have, over 1.96: the standard error of
    an estimate of that interval. expected: the model with the mean of its counts (C, J); theta (P,) the true
    parameters; all public. Infinite where one is told nothing of. The same numbers give the same answer.

    Cost: some 30 ms for a model of ten coefficients on 100 cells."""
    plain = expected.deviations(theta)[which]
    if not np.isfinite(plain).all():
        return np.full(len(which), np.inf)
    return np.asarray(_hidden(expected, theta, which) * _curved(expected, theta, which, plain))


def _hidden(expected: CellModel, theta: Floats, which: Ints) -> Floats:
    """(J,) the median over drawn tables of a set's half width by the parabola at the truth, over 1.96."""
    rng, T = np.random.default_rng(SEED), TABLES
    mean = np.maximum(expected.counts, 0.0)
    counts = rng.poisson(mean, (T, *mean.shape)) if expected.tau else np.broadcast_to(mean, (T, *mean.shape))
    noisy = counts + np.sqrt(expected.variance) * rng.standard_normal((T, *mean.shape))
    tables = CellModel(expected.family, expected.design, noisy, expected.variance, expected.offset, expected.tau)
    errors = tables.parabolas(np.tile(theta, (T, 1)), np.arange(T))[:, which]
    each, of = np.tile(which, T), np.repeat(np.arange(T), len(which))
    m = tables.hidden_beside(each, np.tile(theta, (len(each), 1)), of)
    limits = {int(k): mixed_quantile(_ERROR, 1, int(k)) for k in np.unique(m)}
    degrees = np.sqrt(np.array([limits[int(k)] for k in m]) / mixed_quantile(_ERROR, 1, 0)).reshape(T, -1)
    return np.asarray(np.median(errors * degrees, axis=0))


def _curved(expected: CellModel, theta: Floats, which: Ints, errors: Floats) -> Floats:
    """(J,) how much further the set of the expected table reaches than by the parabola, both sides' mean."""
    limit = mixed_quantile(_ERROR, 1, 0)
    each, side = np.repeat(which, 2), np.tile([-1.0, 1.0], len(which))
    reach = np.repeat(np.sqrt(limit) * errors, 2)
    inner, outer = np.zeros(len(each)), np.full(len(each), 1 - _STEP / 2)
    start, rows = np.tile(theta, (len(each), 1)), np.arange(len(each))

    def kept(at: Floats, some: Ints) -> NDArray[np.bool_]:
        value = np.clip(theta[each[some]] + side[some] * reach[some] * at, -REACH, REACH)
        Q, found = expected.follow(each[some], value, start[some])
        inside = Q <= limit
        start[some[inside]] = found[inside]
        return inside

    while len(rows):  # outward, each from the minimum before
        more = kept(outer[rows], rows)
        rows = rows[more]
        inner[rows] = outer[rows]
        outer[rows] += _STEP
        rows = rows[inner[rows] < FURTHEST]
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        more = kept(middle, np.arange(len(each)))
        inner, outer = np.where(more, middle, inner), np.where(more, outer, middle)
    found = np.minimum((inner + outer) / 2, FURTHEST)
    return np.asarray(found.reshape(-1, 2).mean(axis=1))
