"""F_q for q = 2^130 - 5 on limbs, against Python integers."""

import random

import gmpy2
import numpy as np
import pytest
from wide_integers import from_ints, to_ints

from dpmpc.mpc.numbers import field, wide
from dpmpc.mpc.numbers.prg import Prg

Q = wide.Q
EDGES = [0, 1, 4, 5, 6, Q - 1, Q - 2, Q - 5, Q // 2, (1 << 26) - 1, 1 << 26, 1 << 104, 1 << 128, (1 << 128) - 1]
RNG = random.Random(7)
VALUES = [(a, b) for a in EDGES for b in EDGES] + [(RNG.randrange(Q), RNG.randrange(Q)) for _ in range(2000)]
LEFT = from_ints([a for a, _ in VALUES])
RIGHT = from_ints([b for _, b in VALUES])


def integers(x: wide.Wide) -> list[int]:
    """The canonical integers 0 .. q - 1; fails if `x` is not canonical."""
    assert ((x >= 0) & (x < 1 << wide.RADIX)).all()
    values = [sum(int(limb) << wide.RADIX * k for k, limb in enumerate(column)) for column in x.T]
    assert all(v < Q for v in values)
    return values


def test_q_is_prime() -> None:
    assert gmpy2.is_prime(Q, 50)


def test_ring_operations() -> None:
    assert integers(wide.canonical(wide.dot([(LEFT, RIGHT)]))) == [a * b % Q for a, b in VALUES]
    assert integers(wide.canonical(LEFT + RIGHT)) == [(a + b) % Q for a, b in VALUES]
    assert integers(wide.canonical(LEFT - RIGHT)) == [(a - b) % Q for a, b in VALUES]
    assert integers(wide.canonical(-LEFT)) == [-a % Q for a, _ in VALUES]
    assert list(to_ints(LEFT)) == [a if a <= Q // 2 else a - Q for a, _ in VALUES]


def test_long_sums_of_products_and_loose_limbs_do_not_overflow() -> None:
    loose = np.full((5, 4), 1 << 27, dtype=np.int64) * np.array([1, -1, 1, -1])
    value = [int(sign) * sum((1 << 27) << 26 * k for k in range(5)) for sign in (1, -1, 1, -1)]
    for count in (1, 6, 7, 40):
        assert integers(wide.canonical(wide.dot([(loose, loose)] * count))) == [count * v * v % Q for v in value]
        assert integers(wide.canonical(wide.dot([(loose, -loose)] * count))) == [-count * v * v % Q for v in value]
    assert np.abs(wide.carry(np.full((5, 1), -(1 << 61) + 1, dtype=np.int64))).max() < (1 << 26) + (1 << 10)


@pytest.mark.parametrize("factor", [0, 1, -1, 3, Q - 1, Q // 3, 1 << 129])
def test_multiples_by_public_integers(factor: int) -> None:
    assert integers(wide.canonical(wide.times(LEFT, factor))) == [a * factor % Q for a, _ in VALUES]
    assert integers(wide.canonical(wide.dot([(LEFT, wide.constant(factor))]))) == [a * factor % Q for a, _ in VALUES]


@pytest.mark.parametrize("bits", [0, 1, 25, 26, 27, 52, 60, 66, 77, 104, 129])
def test_shifts(bits: int) -> None:
    assert integers(wide.shift_right(LEFT, bits)) == [a >> bits for a, _ in VALUES]


def test_bytes_words_and_the_other_field() -> None:
    shape = (2, len(VALUES) // 2)
    both = np.stack([LEFT[:, : shape[1]], LEFT[:, shape[1] :]])
    payload = wide.pack(both)
    assert payload.nbytes == wide.PACKED_BYTES * len(VALUES)
    assert np.array_equal(wide.unpack(payload.tobytes(), shape), both)
    assert (wide.unpack(b"\xff" * 17 * 4, (4,)) < 1 << wide.RADIX).all()
    assert wide.mod_p(LEFT).tolist() == [a % field.P for a, _ in VALUES]
    small = wide.shift_right(LEFT, 2)
    low, high = wide.to_words(small)
    assert [int(l) + (int(h) << 64) for l, h in zip(low, high, strict=True)] == [a >> 2 for a, _ in VALUES]
    assert np.array_equal(wide.from_words(low, high, 0, (len(VALUES),)), small)


@pytest.mark.parametrize("bits", [1, 26, 27, 100, 128, 130])
def test_draws_fill_their_range_and_no_more(bits: int) -> None:
    drawn = wide.draw(Prg(b"draw"), (2, 1000), bits)
    flat = drawn.swapaxes(0, 1).reshape(5, -1)
    values = [sum(int(limb) << 26 * k for k, limb in enumerate(column)) for column in flat.T]
    assert max(values) < 1 << bits
    union = 0
    for v in values:
        union |= v
    assert union == (1 << bits) - 1  # no stuck bit: false alarm below 130 * 2^-2000


@pytest.mark.parametrize(("n", "t"), [(1, 0), (3, 1), (4, 1), (5, 2), (7, 3)])
def test_weights_interpolate(n: int, t: int) -> None:
    """A value that a subset knows is shared with degree n - |S|, zero outside S; 2t + 1 shares give it back."""
    holders = tuple(range(n - 2 * t - 1, n))
    for subset in field.subsets(n, t):
        weights = [wide.subset_weight(subset, n, i) for i in range(n)]
        assert all((w == 0) == (i not in subset) for i, w in enumerate(weights))
        assert sum(c * weights[i] for c, i in zip(wide.lagrange_at_zero(holders), holders, strict=True)) % Q == 1


def test_what_is_not_below_q_is_found() -> None:
    """As limbs and as packed bytes: the values that a peer could send, and no share has."""
    assert wide.is_canonical(LEFT) and wide.is_packed(wide.pack(LEFT))
    for k in range(5):  # q .. 2^130 - 1
        above = from_ints([1, 2, 3])
        above[:, 1] = [(1 << 26) - 5 + k, *4 * [(1 << 26) - 1]]
        assert not wide.is_canonical(above)
    packed = wide.pack(LEFT).copy()
    packed[-1] |= 4  # 2^130
    assert not wide.is_packed(packed)
    assert not wide.is_canonical(-LEFT)
