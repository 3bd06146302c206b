"""The field against Python's integers, on edges and at random; sharing against its definition."""

import itertools

import numpy as np
import pytest

from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import P
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import recombine

EDGES = np.array([0, 1, 2, 7, P - 1, P - 2, P // 2, P // 2 + 1, 1 << 32, (1 << 32) - 1], dtype=np.uint64)
RANDOM = np.random.default_rng(1).integers(0, P, 200).astype(np.uint64)


def _pairs() -> tuple[field.Words, field.Words]:
    values = np.concatenate([EDGES, RANDOM])
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


def test_arithmetic_is_that_of_integers_mod_p() -> None:
    a, b = _pairs()
    x, y = [int(v) for v in a], [int(v) for v in b]
    assert [int(v) for v in field.add(a, b)] == [(i + j) % P for i, j in zip(x, y, strict=True)]
    assert [int(v) for v in field.sub(a, b)] == [(i - j) % P for i, j in zip(x, y, strict=True)]
    assert [int(v) for v in field.mul(a, b)] == [i * j % P for i, j in zip(x, y, strict=True)]
    assert [int(v) for v in field.neg(a)] == [-i % P for i in x]


@pytest.mark.parametrize("factor", [0, 1, 3, 7, 8, -1, -5, -8, P, P - 3, 1 << 70, -(1 << 65)])
def test_public_factors_of_any_size_and_sign(factor: int) -> None:
    assert [int(v) for v in field.mul(EDGES, factor)] == [int(v) * factor % P for v in EDGES]


@pytest.mark.parametrize("rows", [0, 1, 6, 7, 8, 100])
def test_totals(rows: int) -> None:
    values = np.full((rows, 3), P - 1, dtype=np.uint64)
    assert [int(v) for v in field.total(values)] == [rows * (P - 1) % P] * 3


def test_signed_integers_survive() -> None:
    values = np.array([0, 1, -1, (P - 1) // 2, -((P - 1) // 2)], dtype=np.int64)
    assert (field.to_int64(field.from_int64(values)) == values).all()


@pytest.mark.parametrize(("n", "t"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (7, 3)])
def test_any_t_plus_1_shares_give_the_values(n: int, t: int) -> None:
    values = RANDOM[:15].reshape(3, 5)
    shares = field.share(values, n, t, Prg.from_os())
    assert shares.shape == (n, 3, 5)
    for holders in itertools.combinations(range(n), t + 1):
        assert (recombine([shares[i] for i in holders], holders) == values).all()


def _below(values: field.Words, cut: int) -> float:
    return float((values < np.uint64(cut)).mean())


@pytest.mark.parametrize(("n", "t"), [(3, 1), (5, 2)])
def test_any_t_shares_are_uniform_whatever_the_values(n: int, t: int) -> None:
    """Each share, and each difference of two, below p/2 half of the time: 6 sigma, so false alarms 2e-9 a
    comparison."""
    count = 40_000
    for secret in (0, P - 1):
        shares = field.share(np.full(count, secret, dtype=np.uint64), n, t, Prg(b"test", "uniform", secret % 97))
        columns = [shares[i] for i in range(n)]
        if t > 1:
            columns += [field.sub(shares[i], shares[j]) for i, j in itertools.combinations(range(n), 2)]
        for column in columns:
            assert abs(_below(column, P // 2) - 0.5) < 6 * 0.5 / count**0.5


def test_shares_of_two_owners_are_independent() -> None:
    """The same value twice has different shares."""
    shares = field.share(np.zeros((2, 1000), dtype=np.uint64), 3, 1, Prg.from_os())
    assert not (shares[:, 0] == shares[:, 1]).any()


@pytest.mark.parametrize(("n", "t"), [(3, 1), (4, 1), (5, 2)])
def test_subset_weights_are_the_polynomials_of_replicated_sharing(n: int, t: int) -> None:
    """f_S is 1 at 0, 0 outside S, of degree t: interpolating the weights of any t + 1 parties gives 1."""
    for subset in field.subsets(n, t):
        weights = [field.subset_weight(subset, n, i) for i in range(n)]
        assert all(weights[j] == 0 for j in range(n) if j not in subset)
        for holders in itertools.combinations(range(n), t + 1):
            at_zero = field.lagrange(tuple(i + 1 for i in holders), 0)
            assert sum(w * weights[i] for w, i in zip(at_zero, holders, strict=True)) % P == 1


@pytest.mark.parametrize("nodes", [(1,), (1, 2), (3, 1, 7), (0, 2, 4, 9)])
def test_interpolation_gives_every_polynomial_of_low_degree_anywhere(nodes: tuple[int, ...]) -> None:
    def value(x: int) -> int:
        return sum(int(RANDOM[k]) * x**k for k in range(len(nodes))) % P

    for x in (0, 5, 100, P - 1):
        weights = field.lagrange(nodes, x)
        assert sum(w * value(node) for w, node in zip(weights, nodes, strict=True)) % P == value(x)
