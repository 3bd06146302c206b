"""Shares of which t are expanded from seeds: the same polynomials, by Lagrange's formula; uniform and determining, by
exact linear algebra; fresh seeds; what is refused; what it costs."""

import itertools
import struct
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc.contract import seeded
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.seeded import SeededDealer, SeededShares, expanded, payload_bytes, shares_beside
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import P, lagrange
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import recombine
from tests.refusals import refuses

SIZES = [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (7, 3), (9, 4), (32, 15)]


class Holder(SeededShares):
    """A party's local half alone."""

    def __init__(self, party: int, threshold: int) -> None:
        self.party, self.threshold = party, threshold


def collected(payloads: list[Any], threshold: int, owners: int, dimension: int) -> list[field.Words]:
    holders = [Holder(i, threshold) for i in range(len(payloads))]
    return [h.collect(bytes(p), owners, dimension) for h, p in zip(holders, payloads, strict=True)]


@pytest.mark.parametrize(("n", "t"), SIZES)
def test_any_t_plus_1_of_the_collected_shares_give_the_sum(n: int, t: int) -> None:
    rng = np.random.default_rng(n)
    vectors = rng.integers(-(1 << 55), 1 << 55, (3, 7))
    shares = collected(SeededDealer(n, t).deal(vectors), t, 3, 7)
    for holders in itertools.islice(itertools.combinations(range(n), t + 1), 40):
        found = field.to_int64(recombine([shares[i] for i in holders], holders))
        assert (found == vectors.sum(axis=0)).all(), holders


@pytest.mark.parametrize(("n", "t"), SIZES)
def test_shares_lie_on_the_polynomial_of_the_seeds_across_blocks(
    n: int, t: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held against Lagrange's formula, word by word."""
    monkeypatch.setattr(seeded, "_BLOCK", 5)
    values = field.fold(np.random.default_rng(1).integers(0, 1 << 62, 13).astype(np.uint64))
    first = [expanded(Prg(b"test", i), 13) for i in range(t)]
    rest = shares_beside(values, n, [Prg(b"test", i) for i in range(t)])
    assert rest.shape == (n - t, 13) and (rest < P).all()
    known = [values, *first]
    for j, row in enumerate(rest, t + 1):
        weights = lagrange(tuple(range(t + 1)), j)
        for k in range(13):
            assert int(row[k]) == sum(w * int(v[k]) for w, v in zip(weights, known, strict=True)) % P


def _rank(rows: list[list[int]]) -> int:
    """Over F_p, by elimination with Python's whole numbers."""
    rows, rank = [list(row) for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((k for k in range(rank, len(rows)) if rows[k][column] % P), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, P)
        for k in range(rank + 1, len(rows)):
            factor = rows[k][column] * inverse % P
            rows[k] = [(a - factor * b) % P for a, b in zip(rows[k], rows[rank], strict=True)]
        rank += 1
    return rank


@pytest.mark.parametrize(("n", "t"), [(3, 1), (5, 2), (7, 3)])
def test_any_t_shares_are_uniform_and_t_plus_1_are_not(n: int, t: int) -> None:
    """Exactly: shares are linear in (secret, streams); t of them depend on the streams by an invertible matrix, so for
    each secret they are uniform where the streams are. Of t + 1 the streams' matrix is too small: they tell."""
    dealt = _matrix(n, t)
    for holders in itertools.combinations(range(n), t):
        assert _rank([dealt[i][1:] for i in holders]) == t
    for holders in itertools.combinations(range(n), t + 1):
        assert _rank([dealt[i][1:] for i in holders]) == t and _rank([dealt[i] for i in holders]) == t + 1


def _matrix(n: int, t: int) -> list[list[int]]:
    """How each share depends on (secret, stream 0, ...): read off `shares_beside` itself at unit vectors."""

    class Fixed:
        def __init__(self, value: int) -> None:
            self.value = value

        def words(self, shape: tuple[int, ...]) -> np.ndarray:
            return np.full(shape, self.value, dtype=np.uint64)

    columns = []
    for unit in range(t + 1):
        streams: Any = [Fixed(int(unit == i + 1)) for i in range(t)]
        rest = shares_beside(np.array([int(unit == 0)], dtype=np.uint64), n, streams)
        columns.append([*(int(unit == i + 1) for i in range(t)), *(int(row[0]) for row in rest)])
    return [list(row) for row in zip(*columns, strict=True)]


def test_seeds_are_fresh_for_every_block_and_party() -> None:
    dealer = SeededDealer(5, 2)
    vectors = np.zeros((2, 3), dtype=np.int64)
    seeds = [bytes(payload)[:16] for _ in range(50) for payload in dealer.deal(vectors)[:2]]
    assert len(set(seeds)) == 100
    rows = [bytes(dealer.deal(vectors)[4]) for _ in range(2)]
    assert rows[0] != rows[1]


def test_what_is_no_seed_or_for_other_words_is_refused() -> None:
    payload = bytes(SeededDealer(3, 1).deal(np.ones((2, 4), dtype=np.int64))[0])
    holder = Holder(0, 1)
    assert (holder.collect(payload, 2, 4) < P).all()
    for bad, owners in ((payload[:-1], 2), (payload + b"x", 2), (b"", 2), (payload, 3), (bytes(64), 2)):
        with refuses("message", 24, kind=PeerError):
            holder.collect(bad, owners, 4)
    words = struct.pack("<8Q", *[0] * 7, P)
    with refuses("message", kind=PeerError):  # a party that gets words checks them as before
        Holder(1, 1).collect(words, 2, 4)


@pytest.mark.parametrize("name", ["sharing", "shamir"])
@pytest.mark.parametrize(("n", "t"), [(3, 1), (5, 2), (7, 3)])
def test_an_owner_sends_n_minus_t_vectors(name: str, n: int, t: int) -> None:
    backend, d = BACKENDS[name], 1000
    vectors = np.zeros((1, d), dtype=np.int64)
    sizes = tuple(len(bytes(payload)) for payload in backend.dealer(n, t).deal(vectors))
    assert sizes == backend.payload_bytes(n, t, 1, d) == payload_bytes(n, t, d)
    assert sum(sizes) == 8 * d * (n - t) + 24 * t
