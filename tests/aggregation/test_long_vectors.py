"""Vectors longer than a frame: they travel by columns, and come out the same; what is computed on them stays small."""

import tracemalloc

import numpy as np

import dpmpc
from dpmpc.aggregation.wire.frames import BLOCK_WORDS, FramePiece, columns_of, pieces_of
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.residues import recombine
from dpmpc.mpc.transport.wire import HEADER

D = BLOCK_WORDS + 3


def test_the_pieces_of_a_long_vector_cover_it_once() -> None:
    assert columns_of(D) == [(0, BLOCK_WORDS), (BLOCK_WORDS, D)]
    assert columns_of(BLOCK_WORDS) == [(0, BLOCK_WORDS)] and columns_of(7) == [(0, 7)]
    assert pieces_of(4, 6, D) == tuple(FramePiece(k, k + 1, *column) for k in (4, 5) for column in columns_of(D))
    assert pieces_of(0, 5, 7) == (FramePiece(0, 5, 0, 7),)


def test_long_vectors_add_up_as_short_ones_do() -> None:
    """Through real parties, without noise; the owners send as many frames as there are pieces."""
    rng = np.random.default_rng(1)
    vectors = [rng.normal(size=D).astype(np.float32) for _ in range(2)]
    settings = {"owners": 2, "dimension": D, "clip": 1.0, "scale": 0.0, "delta": 1e-5}
    with dpmpc.Aggregator(**settings, engine="clear") as clear:  # type: ignore[arg-type]
        expected = clear.mean(vectors)
    with dpmpc.Aggregator(**settings) as aggregator:  # type: ignore[arg-type]
        aggregator.wait_for_noise()
        before = aggregator.session.bytes_sent
        assert (aggregator.mean(vectors) == expected).all()
        pieces = pieces_of(0, 2, D)
        payloads = [
            BACKENDS["sharing"].payload_bytes(3, 1, each.end - each.first, each.stop - each.begin) for each in pieces
        ]
        assert len(pieces) > 2
        assert aggregator.session.bytes_sent - before == sum(map(sum, payloads)) + 3 * len(pieces) * HEADER.size


def test_arithmetic_on_long_vectors_is_that_on_short_ones() -> None:
    rng = np.random.default_rng(2)
    size = (1 << 16) * 2 + 5
    a, b, c = (rng.integers(0, field.P, size, dtype=np.uint64) for _ in range(3))
    for long, short in (
        (field.add(a, b), [field.add(a[i : i + 999], b[i : i + 999]) for i in range(0, size, 999)]),
        (field.to_int64(a), [field.to_int64(a[i : i + 999]) for i in range(0, size, 999)]),
        (
            recombine([a, b, c], [0, 2, 1]),
            [recombine([x[i : i + 999] for x in (a, b, c)], [0, 2, 1]) for i in range(0, size, 999)],
        ),
    ):
        assert (long == np.concatenate(short)).all()


def test_recombining_takes_little_more_memory_than_its_result() -> None:
    """Of 2^21 words; whole arrays on the way would take some ten times the result."""
    shares = [np.full(1 << 21, k, dtype=np.uint64) for k in (5, 7)]
    tracemalloc.start()
    try:
        recombine(shares, [0, 1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * shares[0].nbytes
