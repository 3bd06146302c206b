"""Kernels mod 2^61 - 1 against their NumPy twins and against Python's integers, bit for bit, on every kind of processor
this one can pretend to be; what the extension refuses."""

import functools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from twins import Remembering

from dpmpc.mpc.native import choice
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.mersenne import Mersenne
from dpmpc.mpc.numbers.prg import Prg

Words = NDArray[np.uint64]
P = field.P
compiled_only = pytest.mark.skipif(choice.compiled is None, reason="nothing is compiled, or DPMPC_NATIVE=off")
ALL = tuple(choice.compiled.features()) if choice.compiled is not None else ()
LEVELS = [ALL[:k] for k in range(len(ALL) + 1)]
COMPILED, TWIN = Mersenne(), Mersenne(compiled=False)
KNOWN = Remembering(TWIN)
SIZES = [0, 1, 7, 8, 9, 31, 33, 255, 256, 257, 600]


@pytest.fixture(params=LEVELS, ids=lambda level: "+".join(level) or "portable")
def level(request: pytest.FixtureRequest) -> Iterator[tuple[str, ...]]:
    """The extension without some of this processor's features."""
    choice.compiled.restrict_to(request.param)
    yield request.param
    choice.compiled.restrict_to(ALL)


def draw(*shape: int) -> Words:
    """Field elements, many of them at the ends: 0, 1, p - 1, and words whose halves are all ones."""
    return drawn(shape).copy()


@functools.cache
def drawn(shape: tuple[int, ...]) -> Words:
    rng = np.random.default_rng(list(shape))
    words = rng.integers(0, P, shape, dtype=np.uint64)
    ends = np.array([0, 1, P - 1, (1 << 32) - 1, (1 << 31) - 1, P - (1 << 31), 1 << 60], dtype=np.uint64)
    chosen = rng.random(shape) < 0.3
    words[chosen] = rng.choice(ends, int(chosen.sum()))
    return words


def same(got: Words, expected: Words) -> bool:
    return got.shape == expected.shape and got.dtype == np.uint64 and bool((got == expected).all())


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((1,), (1,)), ((3,), (3,)), ((33,), (33,)), ((2, 5), (2, 1))]
SHAPES += [((8, 1, 2), (8, 4, 2)), ((1, 6, 1), (1, 1, 4)), ((2, 3), (2,)), ((0,), (0,)), ((2, 0), (2, 1))]


@compiled_only
@pytest.mark.parametrize("columns", SIZES)
def test_sums_of_products_equal_their_twin(level: tuple[str, ...], columns: int) -> None:
    for left, right in SHAPES:
        x, y = draw(*left, columns), draw(*right, columns)
        shape = np.broadcast_shapes(x.shape[1:], y.shape[1:])
        for scale, add in ((1, None), (-1, draw(*shape)), (P // 3, draw(*shape)), (P + 2, None)):
            for offset in (0, -1, P // 2):
                into = np.empty(shape, dtype=np.uint64)
                expected = KNOWN.dot(x, y, scale, add, offset)
                assert same(COMPILED.dot(x, y, scale, add, offset), expected)
                assert COMPILED.dot(x, y, scale, add, offset, into) is into and same(into, expected)
    strided = draw(2, 3, 2 * columns)[:, :, ::2]
    assert same(COMPILED.dot(strided, strided), KNOWN.dot(strided, strided))


@compiled_only
@pytest.mark.parametrize("columns", SIZES)
def test_matrices_totals_extractions_and_roots_equal_their_twins(level: tuple[str, ...], columns: int) -> None:
    rng = np.random.default_rng(columns)
    for terms in (1, 3, 4, 5, 31, 32, 33, 65, 200):
        public = rng.integers(-P + 1, P, (3, terms))
        public[0, :] = P - 1
        assert same(COMPILED.matrix(public, draw(terms, columns)), KNOWN.matrix(public, draw(terms, columns)))
        small = rng.integers(-4096, 4096, (3, terms))
        assert same(COMPILED.matrix(small, draw(terms, 1, columns)), KNOWN.matrix(small, draw(terms, 1, columns)))
    for rows in (1, 2, 7, 32):
        words = [draw(rows, columns, 1)[k, :, 0].copy() for k in range(rows)]
        assert same(COMPILED.total(words), KNOWN.total(words))
        for out in (1, 17, 32):
            assert same(COMPILED.extract(words, out), KNOWN.extract(words, out))
    assert same(COMPILED.inverse_root(draw(columns)), KNOWN.inverse_root(draw(columns)))


@compiled_only
@pytest.mark.parametrize("columns", SIZES)
def test_inner_products_and_sums_at_points_equal_their_twins(level: tuple[str, ...], columns: int) -> None:
    for v in (1, 2, 3, 6):
        u, w = draw(1 << v, columns), draw(1 << v, columns + 1)[:, :columns].copy()
        assert same(COMPILED.points(u, w), KNOWN.points(u, w))
        assert COMPILED.inner(u, w) == KNOWN.inner(u, w)
    largest = np.full((64, columns), P - 1, dtype=np.uint64)
    assert same(COMPILED.points(largest, largest), KNOWN.points(largest, largest))
    assert COMPILED.inner(largest, largest) == 64 * columns % P


class ByTwins:
    """What `field` gives where nothing is compiled."""

    def __init__(self) -> None:
        self.patch = pytest.MonkeyPatch()

    def total(self, words: Words) -> Words:
        with self.patch.context() as without:
            without.setattr(choice, "compiled", None)
            return field.total(words)

    def continued(self, rows: int, signed: NDArray[np.int64], known: Words) -> Words:
        into = np.zeros((rows, len(signed) + 5), dtype=np.uint64)
        with self.patch.context() as without:
            without.setattr(choice, "compiled", None)
            field.continue_into(into, 3, signed, known)
        return into


BY_TWINS = Remembering(ByTwins())


@compiled_only
@pytest.mark.parametrize("columns", SIZES)
def test_sums_of_rows_and_continued_polynomials_equal_their_twins(level: tuple[str, ...], columns: int) -> None:
    signed = draw(columns).astype(np.int64) - np.int64(P // 2)
    for rows in (0, 1, 6, 7, 13, 100):
        words = np.full((rows, columns), P - 1, dtype=np.uint64) if rows == 13 else draw(rows, columns)
        found = field.total(words)
        assert same(found, BY_TWINS.total(words))
        assert found.tolist() == [sum(map(int, column)) % P for column in words.T]
    for t, rows in ((0, 1), (0, 3), (1, 2), (2, 3), (3, 1), (15, 17), (32, 1), (33, 2)):
        known, into = draw(t, columns), np.zeros((rows, columns + 5), dtype=np.uint64)
        field.continue_into(into, 3, signed, known)
        assert same(into, BY_TWINS.continued(rows, signed, known))
        assert not into[:, :3].any() and not into[:, columns + 3 :].any()


def test_the_kernels_are_right_in_python_s_integers() -> None:
    """Both, for the twins are only as good as this."""
    for arithmetic in (COMPILED, TWIN):
        x, y, add = draw(70, 9), draw(70, 9), draw(9)
        sums = [sum(int(a) * int(b) for a, b in zip(x[:, i], y[:, i], strict=True)) for i in range(9)]
        scaled = [(12345 * s + int(a)) % P for s, a in zip(sums, add, strict=True)]
        assert arithmetic.dot(x, y, 12345, add).tolist() == scaled
        assert arithmetic.dot(x, y, 12345, add, -7).tolist() == [(s - 7) % P for s in scaled]
        public = np.random.default_rng(1).integers(-P + 1, P, (4, 70))
        products = [
            [sum(int(c) * int(a) for c, a in zip(row, x[:, i], strict=True)) % P for i in range(9)] for row in public
        ]
        assert arithmetic.matrix(public, x).tolist() == products
        rows = list(draw(32, 9))
        powers = [[sum(int(w[i]) << k * r for k, w in enumerate(rows)) % P for i in range(9)] for r in range(20)]
        assert arithmetic.extract(rows, 20).tolist() == powers
        assert arithmetic.total(rows).tolist() == [sum(int(w[i]) for w in rows) % P for i in range(9)]
        assert arithmetic.inverse_root(add).tolist() == [pow(int(a), (1 << 59) - 1, P) for a in add]
        assert arithmetic.rotate(add, -1).tolist() == [int(a) * pow(2, -1, P) % P for a in add]
        assert arithmetic.scale(add, -5).tolist() == [-5 * int(a) % P for a in add]
        assert arithmetic.inner(x, y) == sum(int(a) * int(b) for a, b in zip(x.ravel(), y.ravel(), strict=True)) % P
        u, v = draw(4, 9), draw(4, 9) // np.uint64(2)
        ends = [
            [[int(c) for c in (a, b, c_, d, b - a, d - c_, c_ - a, d - b, d - c_ - b + a)] for a, b, c_, d in rows]
            for rows in (u.astype(object).T, v.astype(object).T)
        ]
        order = [0, 1, 4, 2, 3, 5, 6, 7, 8]  # corners 00, 01, 0 inf, 10, 11, 1 inf, inf 0, inf 1, inf inf
        sums = [sum(f[k] * g[k] for f, g in zip(*ends, strict=True)) % P for k in order]
        assert arithmetic.points(u, v).tolist() == sums


@pytest.mark.parametrize("bits", [3, 5, 7, 61])
def test_roots_are_decided_by_the_square_alone(bits: int) -> None:
    for arithmetic in {Mersenne(bits), Mersenne(bits, compiled=False)}:
        values = np.arange(arithmetic.p, dtype=np.uint64) if bits < 61 else draw(4000)
        squares = arithmetic.multiply(values, values)
        inverse = arithmetic.inverse_root(squares)
        one = arithmetic.multiply(squares, arithmetic.multiply(inverse, inverse))
        assert (one == (values != 0)).all()
        sign = arithmetic.multiply(values, inverse)
        assert set(sign[values != 0].tolist()) == {1, arithmetic.p - 1}
        minus = arithmetic.scale(values, -1)
        assert (arithmetic.inverse_root(arithmetic.multiply(minus, minus)) == inverse).all()
        other = arithmetic.scale(squares, -1)  # -1 is no square, so these are none
        root = arithmetic.inverse_root(other)
        check = arithmetic.multiply(other, arithmetic.multiply(root, root))
        assert (check[values != 0] == arithmetic.p - 1).all()


class Fixed:
    """A stream that gives chosen words."""

    def __init__(self, *words: int) -> None:
        self._words, self._at = np.array(words, dtype=np.uint64), 0

    def words(self, shape: tuple[int, ...]) -> Words:
        self._at += shape[0]
        return self._words[self._at - shape[0] : self._at].copy()


def test_uniform_words_are_cut_and_those_that_are_p_drawn_again() -> None:
    for arithmetic in (COMPILED, TWIN):
        stream = Fixed(5, P, P + 8, (1 << 64) - 1, P - 1, *[3] * 12, P, 11, 12, 13)
        assert arithmetic.uniform(stream, 17).tolist() == [5, 12, 7, 11, P - 1, *[3] * 12]  # type: ignore[arg-type]
        assert same(arithmetic.uniform(Prg(b"u"), 1000), field.uniform(Prg(b"u"), (1000,)))
    for bits in (3, 5, 7):
        small = Mersenne(bits).uniform(Prg(b"u"), 20_000)
        counts = np.bincount(small.astype(np.intp))
        assert len(counts) == (1 << bits) - 1 and abs(counts / counts.mean() - 1).max() < 0.8


Bad = Callable[[], object]


@compiled_only
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda k: k.dot(draw(3, 4), draw(3, 4), None, draw(4), 3, 1, 5, 1, 1, 1, 0), "x must hold 15 words; got 12"),
        (lambda k: k.dot(draw(3, 4), draw(3, 3), None, draw(4), 3, 1, 4, 1, 1, 1, 0), "y must hold 12 words; got 9"),
        (
            lambda k: k.dot(draw(3, 4), draw(3, 4), draw(3), draw(4), 3, 1, 4, 1, 1, 1, 0),
            "add must hold 4 words; got 3",
        ),
        (lambda k: k.dot(draw(3, 4), draw(3, 4), None, draw(5), 3, 1, 4, 1, 1, 1, 0), "out must hold 4 words; got 5"),
        (lambda k: k.dot(draw(3, 4), draw(3, 4), None, draw(4), 3, 1, 4, 2, 1, 1, 0), "1 or 1 rows"),
        (lambda k: k.dot(draw(3, 4), draw(3, 4), None, draw(4), 3, 1, 4, 1, 1, P, 0), "scale and offset be below p"),
        (lambda k: k.dot(draw(3, 4), draw(3, 4), None, draw(4), 3, 1, 4, 1, 1, 1, P), "scale and offset be below p"),
        (lambda k: k.dot(draw(1), draw(1), None, draw(1), -1, 1, 1, 1, 1, 1, 0), "at least 0"),
        (lambda k: k.dot(draw(1), draw(1), None, draw(1), 1 << 40, 1 << 40, 0, 1, 1, 1, 0), "fit memory"),
        (lambda k: k.matrix(draw(6), draw(8), draw(8), 2, 3, 4), "x must hold 12 words; got 8"),
        (lambda k: k.matrix(draw(6), draw(12), draw(8), 2, 2, 4), "c must hold 4 words; got 6"),
        (lambda k: k.matrix(draw(6), draw(12), draw(9), 2, 3, 4), "out must hold 8 words; got 9"),
        (lambda k: k.total((), draw(4), 4), "rows must be 1 to 32; got 0"),
        (lambda k: k.total(tuple(draw(33, 4)), draw(4), 4), "rows must be 1 to 32; got 33"),
        (lambda k: k.total((draw(4), draw(3)), draw(4), 4), "a row must hold 4 words; got 3"),
        (lambda k: k.total((draw(4), None), draw(4), 4), "buffer|bytes-like"),
        (lambda k: k.extract((draw(4),), draw(4), 33, 4), "got 1 and 33"),
        (lambda k: k.extract((draw(4),), draw(4), 2, 4), "out must hold 8 words; got 4"),
        (lambda k: k.inverse_root(draw(4), draw(3)), "out must hold 4 words; got 3"),
        (lambda k: k.inverse_root(draw(4).astype(np.int64), draw(4)), "a must hold items of kind Q"),
        (lambda k: k.cut(draw(8)[::2]), "contiguous"),
        (lambda k: k.inner(draw(8), draw(7)), "as many words; got 8 and 7"),
        (lambda k: k.points(draw(8), draw(7), draw(27), 3, 1), "must hold 8 words, and out 27; got 8, 7, 27"),
        (lambda k: k.points(draw(8), draw(8), draw(26), 3, 1), "and out 27; got 8, 8, 26"),
        (lambda k: k.points(draw(8), draw(8), draw(27), 9, 1), "1 to 8 variables"),
        (lambda k: k.points(draw(8), draw(8), draw(27), 3, -1), "1 to 8 variables"),
        (lambda k: k.column_sums(draw(7), draw(3)), "whole rows of 3 words; got 7"),
        (lambda k: k.column_sums(draw(7), draw(0)), "whole rows of 0 words; got 7"),
        (lambda k: k.continued(draw(4), draw(33, 4), draw(8), 0, 33, 2), "at most 32 points"),
        (lambda k: k.continued(draw(4), draw(4), draw(8), 0, -1, 2), "got -1 points"),
        (lambda k: k.continued(draw(4), draw(7), draw(8), 0, 2, 2), "known for all 4 columns"),
        (lambda k: k.continued(draw(4), draw(1), draw(8), 0, 0, 2), "known for all 4 columns"),
        (lambda k: k.continued(draw(4), draw(4), draw(9), 0, 1, 2), "every row of out"),
        (lambda k: k.continued(draw(4), draw(4), draw(8), 1, 1, 2), "from column 1 on"),
        (lambda k: k.continued(draw(4), draw(4), draw(8), 5, 1, 2), "from column 5 on"),
        (lambda k: k.continued(draw(4), draw(4), draw(8), -1, 1, 2), "from column -1 on"),
        (lambda k: k.continued(draw(4), draw(4), draw(8), 0, 1, 0), "and 0 rows"),
    ],
)
def test_buffers_are_checked_before_they_are_touched(call: Callable[[object], object], says: str) -> None:
    with pytest.raises((TypeError, ValueError, BufferError), match=says):
        call(choice.compiled)


@compiled_only
def test_an_output_must_not_share_memory_with_an_input() -> None:
    words = draw(64)
    kernels = choice.compiled
    for call in (
        lambda: kernels.dot(words[:8], draw(8), None, words[4:12], 1, 1, 8, 1, 1, 1, 0),
        lambda: kernels.dot(draw(8), words[:8], None, words[4:12], 1, 1, 8, 1, 1, 1, 0),
        lambda: kernels.dot(draw(8), draw(8), words[:8], words[4:12], 1, 1, 8, 1, 1, 1, 0),
        lambda: kernels.matrix(draw(1), words[:8], words[4:12], 1, 1, 8),
        lambda: kernels.total((draw(8), words[:8]), words[7:15], 8),
        lambda: kernels.extract((draw(8), words[:8]), words[7:15], 1, 8),
        lambda: kernels.inverse_root(words[:8], words[:8]),
        lambda: kernels.points(words[:8], draw(8), words[7:34], 3, 1),
        lambda: kernels.points(draw(8), words[:8], words[7:34], 3, 1),
        lambda: kernels.column_sums(words[:8], words[7:15]),
        lambda: kernels.continued(words[:8], draw(8), words[7:15], 0, 1, 1),
        lambda: kernels.continued(draw(8), words[:8], words[7:15], 0, 1, 1),
    ):
        with pytest.raises(ValueError, match="must not share memory"):
            call()
