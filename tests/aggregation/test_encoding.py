"""Vectors on their way in: blocks of every kind of input, none copied whole, errors before anything is given out."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import dpmpc
from dpmpc.aggregation.owner.encoding import as_blocks
from tests.refusals import refuses

M, D = 11, 6
DENSE = np.random.default_rng(1).normal(size=(M, D)).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 3, 4, 11, 50])
@pytest.mark.parametrize(
    "vectors",
    [
        DENSE,
        DENSE.astype(np.float64),
        np.asfortranarray(DENSE),
        csr_array(DENSE),
        csr_array(DENSE).tocoo(),
        list(DENSE),
        [DENSE[:4], DENSE[4], DENSE[5:]],
        [csr_array(DENSE[:7]), csr_array(DENSE[7:])],
    ],
    ids=["single", "double", "columns", "csr", "coo", "rows", "blocks", "sparse blocks"],
)
def test_blocks_are_the_rows_in_double_precision(vectors: Any, rows: int) -> None:
    blocks = list(as_blocks(vectors, M, D, rows))
    assert [len(block) for block in blocks] == [min(rows, M - at) for at in range(0, M, rows)]
    assert all(block.dtype == np.float64 for block in blocks)
    assert np.array_equal(np.concatenate(blocks), DENSE.astype(np.float64))


@pytest.mark.parametrize("make", [lambda: np.zeros((400, 5000), dtype=np.float32), lambda: csr_array((400, 5000))])
def test_nothing_is_copied_whole(make: Any) -> None:
    """In double precision all of it would take 16 MB; a block of two rows takes 80 kB, and a check of one a byte a
    number."""
    vectors = make()
    tracemalloc.start()
    for block in as_blocks(vectors, 400, 5000, 2):
        assert block.shape == (2, 5000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_an_array_is_refused_before_a_block_is_given_out(kind: Any) -> None:
    wrong = DENSE.copy()
    wrong[-1, 2] = np.nan
    with refuses("range"):
        next(as_blocks(kind(wrong), M, D, 1))
    with refuses("shape", D + 1):
        next(as_blocks(kind(DENSE), M, D + 1, 1))
    with refuses("shape", M + 1, M):
        list(as_blocks(kind(DENSE), M + 1, D, 3))


def test_a_sparse_matrix_has_a_private_mean() -> None:
    vectors = random_array((5, 40), density=0.2, random_state=1)
    mean = dpmpc.private_mean(vectors, clip=1.0, epsilon=1.0, delta=1e-5, engine="clear", scale=0.0)
    rows = vectors.toarray()
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    assert np.allclose(mean, rows.mean(axis=0), atol=1e-3)
