"""Quantiles from a noisy binary tree: least squares over its nodes, and intervals by tests of ranks.

Least squares of the leaves from the counts of all nodes, all of one variance, is diagonal in Haar's basis:
a wavelet over 2^j leaves meets the nodes of 1, 2, ..., 2^(j-1) leaves below it, so its eigenvalue is 2^j - 1, that of
the constant 2 L - 1. Estimates and variances of sums over leaves follow without a matrix.

The q-quantile is the least value up to which lie at least q N of the N values. A leaf from a to b holds it if fewer
than q N values lie below a and at least q N below b; the interval has all leaves of which neither
is rejected, each with half the error. It does not depend on smoothing; where leaves are finer than the noise, its
coverage is near the level, else above.
"""

import numpy as np

from dpmpc.outcome import NONE, Level, Number
from dpmpc.statistics.intervals import Floats


def leaves(nodes: Floats) -> Floats:
    """(..., L) least squares of the leaves' counts, from all nodes (..., 2 L - 1), the root first, level by level."""
    size = (nodes.shape[-1] + 1) // 2
    depth = size.bit_length() - 1
    below = np.zeros((*nodes.shape[:-1], size))  # of each leaf, the sum over all nodes that it lies under
    for level in range(depth + 1):
        first = (1 << level) - 1
        below += np.repeat(nodes[..., first : first + (1 << level)], size >> level, axis=-1)
    estimate = below.sum(axis=-1, keepdims=True) / (2 * size - 1)
    for level in range(depth):
        half = size >> (level + 1)
        sums = below.reshape(*below.shape[:-1], -1, 2, half).sum(axis=-1)
        difference = (sums[..., 0] - sums[..., 1]) / (2 * (2 * half - 1))
        halves = np.stack([estimate / 2 + difference, estimate / 2 - difference], axis=-1)
        estimate = halves.reshape(*halves.shape[:-2], -1)
    return np.asarray(estimate)


def rank_variances(size: int, q: float) -> Floats:
    """(L + 1,) the variance, over that of a node, of (values in the first i leaves) - q (all values), i = 0 ... L."""
    i = np.arange(size + 1, dtype=np.float64)
    found = (i - q * size) ** 2 / (size * (2 * size - 1))
    width = 2
    while width <= size:
        half = width // 2
        found += (half - np.abs(np.mod(i, width) - half)) ** 2 / (width * (width - 1))
        width *= 2
    return np.asarray(found)


def quantile(nodes: Floats, deviation: float, q: float, level: Level) -> Number:
    """The q-quantile, in parts of the range from 0 to 1, from the nodes (2 L - 1,) of one group.

    About the population: the number of values below a point is binomial.
    """
    counts = leaves(nodes)
    size, total = len(counts), float(counts.sum())
    root = deviation * np.sqrt(rank_variances(size, 0.0)[-1])
    if total <= level.z * root or total <= 0:
        return NONE
    ranks = np.concatenate([[0.0], np.cumsum(counts)])
    variance = deviation**2 * rank_variances(size, q) + (q * (1 - q) * total if level.population else 0.0)
    excess, reach = ranks - q * total, level.z * np.sqrt(variance)
    possible = np.flatnonzero((excess[:-1] <= reach[:-1]) & (excess[1:] >= -reach[1:]))
    at = _crossing(ranks, q * total)
    if not len(possible):  # ranks fall where the noise is large: between the ends of what is not rejected
        possible = np.array([int(at * size)])
    steps = float(np.interp(at, np.linspace(0, 1, size + 1), np.sqrt(variance)))
    slope = _slope(ranks, at)
    noise = steps / slope / size if slope > 0 and not level.population else None
    low, high = float(possible[0]) / size, float(possible[-1] + 1) / size
    return Number(at, noise, min(low, at), max(high, at), "conservative")


def _crossing(ranks: Floats, rank: float) -> float:
    """Where isotonic ranks reach `rank`, linear within a leaf; in parts of the range."""
    size = len(ranks) - 1
    rising = isotonic(ranks)
    leaf = min(max(int(np.searchsorted(rising[1:], rank)), 0), size - 1)
    step = rising[leaf + 1] - rising[leaf]
    inside = min(max((rank - rising[leaf]) / step, 0.0), 1.0) if step > 0 else 0.5
    return float((leaf + inside) / size)


def isotonic(values: Floats) -> Floats:
    """The non-decreasing sequence nearest to the values, in the sum of squares: neighbours that fall are pooled into
    their mean until none does. Cost: linear. Source: Ayer et al. 1955."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            before = sizes.pop()
            mean = (mean * size + means.pop() * before) / (size + before)
            size += before
        means.append(mean)
        sizes.append(size)
    return np.repeat(np.array(means), sizes)


def _slope(ranks: Floats, at: float) -> float:
    """How many values a leaf holds about a place, over 5 leaves."""
    size = len(ranks) - 1
    leaf = min(int(at * size), size - 1)
    first, last = max(leaf - 2, 0), min(leaf + 3, size)
    return float(ranks[last] - ranks[first]) / (last - first)
