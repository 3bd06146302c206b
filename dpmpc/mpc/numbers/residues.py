"""Sums of products mod p = 2^61 - 1 with public factors."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice
from dpmpc.mpc.numbers import field

Words = NDArray[np.uint64]


def weighted_sum(values: Sequence[Words], factors: Sequence[int], constant: int = 0) -> Words:
    """constant + the sum of factor times value mod p, reduced, for words of any size; factors are public integers."""
    if choice.compiled is None or len(values) > 64:
        return weighted_sum_twin(values, factors, constant)
    out = np.empty(values[0].shape, dtype=np.uint64)
    reduced = np.array([factor % field.P for factor in factors], dtype=np.uint64)
    choice.compiled.weighted_sum(tuple(map(np.ascontiguousarray, values)), reduced, constant % field.P, out)
    return out


def recombine(shares: Sequence[Words], holders: Sequence[int]) -> Words:
    """The secrets whose shares the parties `holders` hold (as many as the degree + 1, in the same order)."""
    return weighted_sum(shares, field.lagrange(tuple(i + 1 for i in holders), 0))


def failing(rows: dict[int, Words], threshold: int) -> tuple[int, ...]:
    """The columns in which the shares of all parties, by number, are of no polynomial of degree `threshold`."""
    first = sorted(rows)[: threshold + 1]
    bad = np.zeros(rows[first[0]].size, dtype=bool)
    for i in sorted(rows)[threshold + 1 :]:
        weights = field.lagrange(tuple(k + 1 for k in first), i + 1)
        bad |= weighted_sum([rows[k] for k in first], weights) != rows[i]
    return tuple(int(j) for j in np.flatnonzero(bad))


def weighted_sum_twin(values: Sequence[Words], factors: Sequence[int], constant: int = 0) -> Words:
    """As `weighted_sum`."""
    total = np.full(values[0].shape, constant % field.P, dtype=np.uint64)
    for value, factor in zip(values, factors, strict=True):
        total = field.add(total, field.mul(field.fold(value), factor))
    return total
