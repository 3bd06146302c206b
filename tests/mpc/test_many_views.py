"""What t parties of the many-party engine see is independent of what they must not learn.

*Worlds.* The engine treats the columns of its dealings alike, and column g gives the places g, G + g, 2 G + g, ... of
a vector. A test lets each column be a world of its own: known streams give the same word in all of them, unknown ones
what the world says. With G = n W columns, the W worlds of block j = 0 .. n - 1 have the same kings for the same rows,
so one run tests n assignments of kings. A world's view is all that the coalition receives at its places.

*Over the real field* everything but squares is affine in the unknown words u: a view is A u + b(secrets). It has one
law whatever the secrets are exactly if b(s) - b(s') lies in the image of A. *In a tiny field* the worlds run through
all unknown words, and laws are compared as they are. Both tests are shown to see leaks.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from manyparties import Name, Parties, Words, coalitions, rank, solve
from scipy.stats import chi2

from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.mersenne import Mersenne
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.shamir.engine import ManyEngine

REAL = [(3, 1), (4, 1), (5, 2), (6, 2), (7, 3), (8, 3), (9, 4)]
Spoil = Callable[[Name], bool]  # whether a stream gives zeros


def no_spoil(name: Name) -> bool:
    """All streams as they are."""
    return False


class Worlds:
    """Streams for a run: `unknown` words by (stream, draw), an array over worlds each; everything else is known."""

    def __init__(self, n: int, coalition: Sequence[int], arithmetic: Mersenne, spoil: Spoil = no_spoil) -> None:
        self.n, self.coalition, self.arithmetic, self.spoil = n, set(coalition), arithmetic, spoil
        self.unknown: dict[Name, Words] = {}  # words in each world
        self.names: list[Name] = []  # of unknown streams, as they were asked for
        self.worlds = 1
        self._drawn: dict[tuple[Name, int], int] = {}

    def is_unknown(self, name: Name) -> bool:
        """Whether no member of the coalition holds the stream."""
        return not self.coalition & set(name[1:])

    def stream(self, name: Name) -> "WorldStream":
        if self.is_unknown(name) and name not in self.names:
            self.names.append(name)
        return WorldStream(self, name)


class WorldStream:
    """One party's end of a stream; the first draw gives the worlds' words, later ones are like any other."""

    def __init__(self, worlds: Worlds, name: Name) -> None:
        self._worlds, self._name, self._draws = worlds, name, 0
        self._prg = Prg(b"world", *name)

    def words(self, shape: tuple[int, ...]) -> Words:
        (count,) = shape
        self._draws += 1
        if self._worlds.spoil(self._name):
            return np.zeros(count, dtype=np.uint64)
        if self._draws > 1 or count != self._worlds.n * self._worlds.worlds:
            return self._worlds.arithmetic.uniform(self._prg, count)  # redrawn bits
        base = self._worlds.arithmetic.uniform(self._prg, 1)
        if self._name in self._worlds.unknown:
            return np.tile(self._worlds.unknown[self._name], self._worlds.n)
        return np.repeat(base, count)

    def base(self) -> int:
        """The word of a stream that is not given."""
        return int(self._worlds.arithmetic.uniform(Prg(b"world", *self._name), 1)[0])


def king_of(row: int, block: int, rows: int, n: int) -> int:
    """Who opens row `row` in the worlds of a block."""
    return (row * n + block) // rows


def views(parties: Parties, worlds: Worlds, kinds: Sequence[str]) -> list[list[Words]]:
    """For each block, what the coalition receives in its worlds: a list of arrays (worlds,).

    `kinds` names the exchanges in order: "deal", then "squares" or "products" to kings, then "roots" or "told".
    """
    layout, w = parties.layout, worlds.worlds
    n, rows = layout.parties, layout.extracted
    count, result = rows * n * w, [list[Words]() for _ in range(n)]
    inboxes = {pair: iter(sent) for pair, sent in parties.seen(sorted(worlds.coalition)).items()}
    for kind in kinds:
        for me, sender in itertools.product(sorted(worlds.coalition), range(n)):
            if sender in worlds.coalition:
                continue
            if kind == "deal":
                if me in layout.sent(sender):
                    words = next(inboxes[sender, me])
                    for block in range(n):
                        result[block].append(words[block * w : (block + 1) * w])
                continue
            if kind == "told" and me not in layout.told(sender):
                continue
            king = me if kind in ("squares", "products") else sender
            first, end = layout.bounds(count, king)
            words = next(inboxes[sender, me])
            assert len(words) == end - first
            for row, block in itertools.product(range(rows), range(n)):
                if king_of(row, block, rows, n) == king:
                    start = (row * n + block) * w - first
                    result[block].append(words[start : start + w])
    return result


def run(parties: Parties, worlds: Worlds, body: Callable[[ManyEngine], Any]) -> list[Any]:
    """All parties' results, one lane a place."""
    return parties.run(parties.layout.extracted * worlds.n * worlds.worlds, body)


def placed(values: Sequence[Words], n: int) -> Words:
    """A vector over all places from each row's words in every world."""
    return np.concatenate([np.tile(row, n) for row in values])


# -- products over the real field ------------------------------------------------------------------------------------
def product_views(
    n: int, t: int, coalition: tuple[int, ...], spoil: Spoil = no_spoil
) -> tuple[list[list[Words]], list[Words], int]:
    """(views by block, shares of the results, number of unknown words), in the worlds: the base, one for each unknown
    word more by 1, and some with other secrets, of which the first ones differ in one factor alone."""
    parties = Parties(n, t)
    worlds = Worlds(n, coalition, parties.arithmetic, spoil)
    parties._make = worlds.stream
    fixed_x, fixed_y = ({i: 5 + 3 * i + k for i in coalition} for k in range(2))
    rows = parties.layout.extracted
    others = [(r, factor) for r in range(rows) for factor in range(2)]
    names = _unknown_streams(n, t, coalition)
    worlds.worlds = 1 + len(names) + len(others) + 1
    for k, name in enumerate(names):
        word = np.full(worlds.worlds, WorldStream(worlds, name).base(), dtype=np.uint64)
        word[1 + k] = parties.arithmetic.add(word[1 + k : 2 + k], np.ones(1, dtype=np.uint64))[0]
        worlds.unknown[name] = word
    secrets = np.arange(1, 2 * rows + 1, dtype=np.uint64).reshape(2, rows, 1) * np.uint64(10**15) + np.zeros(
        worlds.worlds, dtype=np.uint64
    )
    for k, (r, factor) in enumerate(others):
        secrets[factor, r, 1 + len(names) + k] = 424242 + k
    secrets[:, :, -1] = np.arange(99, 99 + rows)
    shares = []
    for factor, fixed in enumerate((fixed_x, fixed_y)):
        value = placed(secrets[factor], n)
        held = {i: np.full(value.size, word, dtype=np.uint64) for i, word in fixed.items()}
        shares.append(parties.share(value, held, factor))

    async def body(engine: ManyEngine) -> Words:
        (product,) = await engine.dots([(shares[0][engine.party][None], shares[1][engine.party][None])])
        return product

    results = run(parties, worlds, body)
    assert sorted(worlds.names) == sorted(names)
    expected = placed([parties.arithmetic.multiply(x, y) for x, y in zip(secrets[0], secrets[1], strict=True)], n)
    if spoil is no_spoil:
        assert (parties.secret(results) == expected).all()
    return views(parties, worlds, ["deal", "products", "told"]), results, len(names)


def _unknown_streams(n: int, t: int, coalition: tuple[int, ...]) -> list[Name]:
    honest = [i for i in range(n) if i not in coalition]
    layout = Parties(n, t).layout
    own: list[Name] = [("own", i) for i in honest]
    seeded: list[Name] = [("share", i, j) for i in honest for j in layout.seeded(i) if j in honest]
    zero: list[Name] = [("zero", i, j) for i in honest for j in honest if i != j]
    return own + seeded + zero


def product_leaks(n: int, t: int, coalition: tuple[int, ...], spoil: Spoil = no_spoil) -> int:
    """In how many assignments of kings a change of secrets leaves the image of the unknown words."""
    blocks, _, unknown = product_views(n, t, coalition, spoil)
    leaks = 0
    for view in blocks:
        table = [[int(x) for x in row] for row in np.array(view).T] if view else []
        if not table:
            continue
        moved = [[(x - y) % field.P for x, y in zip(row, table[0], strict=True)] for row in table[1:]]
        leaks += rank(moved) > rank(moved[:unknown])
    return leaks


def some(sets: list[tuple[int, ...]], most: int = 12) -> list[tuple[int, ...]]:
    """At most so many of them: neighbours on the circle first, then spread ones."""
    if len(sets) <= most:
        return sets
    return [sets[0], *sets[:: len(sets) // (most - 1)]][:most]


@pytest.mark.parametrize(("n", "t"), REAL)
def test_products_leak_nothing_to_any_coalition_as_king_dealer_or_both(n: int, t: int) -> None:
    for coalition in some(coalitions(n, t)):
        assert product_leaks(n, t, coalition) == 0


@pytest.mark.parametrize(("n", "t"), REAL)
def test_products_without_a_mask_are_seen_to_leak(n: int, t: int) -> None:
    """Without sharings of zero a king sees summands; without random sharings it sees the product; with one honest
    dealer's dealings missing, one row of the extraction is known."""
    coalition = coalitions(n, t)[0]
    assert product_leaks(n, t, coalition, lambda name: name[0] == "zero") > 0
    assert product_leaks(n, t, coalition, lambda name: name[0] != "zero") > 0
    assert product_leaks(n, t, coalition, lambda name: name[0] != "zero" and name[1] == n - 1) > 0


def neighbours_only(n: int, name: Name) -> bool:
    """Zero sharings from seeds with the two neighbours on the circle alone: connectivity 2."""
    return name[0] == "zero" and (name[1] - name[2]) % n not in (1, n - 1)


def test_uniform_messages_to_a_king_prove_nothing() -> None:
    """With seeds between neighbours alone, n = 7: every message to a king passes a chi-square, and every coalition that
    cuts the circle of the others reads sums of a part of their summands."""
    n, t = 7, 3
    for coalition in coalitions(n, t):
        ends = sum(i in coalition and (i + 1) % n not in coalition for i in range(n))  # arcs of the others
        assert (product_leaks(n, t, coalition, lambda name: neighbours_only(n, name)) > 0) == (ends > 1)
    parties = Parties(n, t, make=lambda name: Zeros() if neighbours_only(n, name) else Prg(b"weak", *name))
    parties.run(7000, lambda engine: engine.random_bits(2))
    for (_, receiver), sent in parties.network.sent.items():
        if receiver in (0, 2):
            squares = sent[1 if len(sent) > 2 else 0] >> np.uint64(57)
            counts = np.bincount(squares.astype(np.intp), minlength=16)
            assert chi2.sf(((counts - counts.mean()) ** 2 / counts.mean()).sum(), 15) > 1e-9


class Zeros:
    """A stream that was forgotten."""

    def words(self, shape: tuple[int, ...]) -> Words:
        return np.zeros(shape, dtype=np.uint64)


# -- bits over the real field ----------------------------------------------------------------------------------------
def bit_leaks(n: int, t: int, coalition: tuple[int, ...], spoil: Spoil = no_spoil) -> int:
    """In how many assignments of kings the coalition can tell bits from their opposites.

    Two runs. The first moves each unknown word of random sharings by 1 and finds a move of them that turns every r into
    -r and changes nothing the coalition is dealt. The second makes this move: what kings are sent must then differ by
    something that unknown words of zero sharings make up, and all roots must be the same.
    """
    names = [name for name in _unknown_streams(n, t, coalition)]
    sharing, zeros = ([m for m in names if (m[0] == "zero") == wanted] for wanted in (False, True))
    blocks, r = _bit_run(n, t, coalition, spoil, [{m: 1} for m in sharing])
    p = field.P

    def moves(rows: Sequence[Words]) -> list[list[int]]:
        """By world, how each array differs from the base world's."""
        return [
            [int(row[k] - row[0]) % p if row[k] >= row[0] else p - int(row[0] - row[k]) for row in rows]
            for k in range(1, len(rows[0]))
        ]

    dealt = _dealt_to(n, t, coalition, blocks[0])
    columns = [a + b for a, b in zip(moves(dealt) if dealt else [[] for _ in sharing], moves(r), strict=True)]
    turn = solve(columns, [0] * len(dealt) + [-2 * int(row[0]) for row in r])
    if turn is None:
        return n
    move = {m: c for m, c in zip(sharing, turn, strict=True) if c}
    blocks, turned = _bit_run(n, t, coalition, spoil, [move, *({m: 1} for m in zeros)])
    assert all(int(row[0]) + int(row[1]) == p for row in turned)
    leaks = 0
    for view in blocks:
        by_world = moves(view) if view else [[0]]
        leaks += rank(by_world[1:]) < rank([*by_world[1:], by_world[0]])
    return leaks


def _dealt_to(n: int, t: int, coalition: tuple[int, ...], view: list[Words]) -> list[Words]:
    """The part of a view that was dealt: the first messages."""
    layout = Parties(n, t).layout
    count = sum(me in layout.sent(i) for me in coalition for i in range(n) if i not in coalition)
    return view[:count]


def _bit_run(
    n: int, t: int, coalition: tuple[int, ...], spoil: Spoil, moved: list[dict[Name, int]]
) -> tuple[list[list[Words]], list[Words]]:
    """(views by block, r of each row in block 0), in a base world and one for each move of unknown words."""
    parties = Parties(n, t)
    worlds = Worlds(n, coalition, parties.arithmetic, spoil)
    parties._make = worlds.stream
    worlds.worlds = 1 + len(moved)
    for name in _unknown_streams(n, t, coalition):
        base = WorldStream(worlds, name).base()
        words = [(base + move.get(name, 0)) % field.P for move in [{}, *moved]]
        worlds.unknown[name] = np.array(words, dtype=np.uint64)
    r: list[Words] = [None] * n  # type: ignore[list-item]

    async def body(engine: ManyEngine) -> Words:
        good = engine._squares

        def keep(first: int, shares: Words, zero: Words) -> Any:
            r[engine.party] = shares
            return good(first, shares, zero)

        engine._squares = keep  # type: ignore[method-assign]
        return await engine.random_bits(1)

    if spoil is no_spoil:
        bits = parties.secret(run(parties, worlds, body))
        assert set(np.unique(bits)) <= {0, 1}
    else:
        run(parties, worlds, body)
    secrets = parties.secret(r) if spoil is no_spoil else parties.at(-1, dict(enumerate(r[: t + 1])))
    rows, w = parties.layout.extracted, worlds.worlds
    blocks = views(parties, worlds, ["deal", "squares", "roots"])
    return blocks, [secrets[k * n * w : k * n * w + w] for k in range(rows)]


@pytest.mark.parametrize(("n", "t"), REAL)
def test_bits_leak_nothing_to_any_coalition_as_king_dealer_or_both(n: int, t: int) -> None:
    for coalition in some(coalitions(n, t)):
        assert bit_leaks(n, t, coalition) == 0


@pytest.mark.parametrize(("n", "t"), REAL)
def test_bits_without_a_mask_are_seen_to_leak(n: int, t: int) -> None:
    coalition = coalitions(n, t)[0]
    assert bit_leaks(n, t, coalition, lambda name: name[0] == "zero") > 0
    assert bit_leaks(n, t, coalition, lambda name: name[0] == "own" and name[1] == n - 1) > 0
    if n == 7:
        assert bit_leaks(n, t, (0, 2, 4), lambda name: neighbours_only(n, name)) > 0


@pytest.mark.slow
def test_sixteen_parties_leak_nothing_to_seven_of_them() -> None:
    """Neighbours, spread ones, and every other one; and without a mask they are seen to."""
    sets = coalitions(16, 7)
    for coalition in (sets[0], sets[len(sets) // 2], (0, 2, 4, 6, 8, 10, 12)):
        assert bit_leaks(16, 7, coalition) == 0
    assert product_leaks(16, 7, sets[len(sets) // 2]) == 0
    assert bit_leaks(16, 7, sets[0], lambda name: name[0] == "zero") > 0


# -- all of it, in a tiny field --------------------------------------------------------------------------------------
SEVEN = Mersenne(3)
DIGITS = 5  # unknown words of three parties: two own, one seeded, two of zero sharings


def enumerated(coalition: int, spoil: Spoil) -> tuple[Parties, Worlds]:
    """Three parties over F_7 and one world for every value of the unknown words."""
    parties = Parties(3, 1, arithmetic=SEVEN)
    worlds = Worlds(3, (coalition,), SEVEN, spoil)
    parties._make = worlds.stream
    names = _unknown_streams(3, 1, (coalition,))
    assert len(names) == DIGITS
    worlds.worlds = 7**DIGITS
    number = np.arange(worlds.worlds, dtype=np.uint64)
    for k, name in enumerate(names):
        worlds.unknown[name] = number // np.uint64(7**k) % np.uint64(7)
    return parties, worlds


def law(view: list[Words], held: Words | None = None) -> list[tuple[int, int]]:
    """How often each view occurs."""
    code = np.zeros(len(view[0]), dtype=np.uint64)
    for row in view:
        code = code * np.uint64(7) + row
    values, counts = np.unique(code if held is None else code[held], return_counts=True)
    return list(zip(values.tolist(), counts.tolist(), strict=True))


def tiny_product_laws(coalition: int, spoil: Spoil = no_spoil) -> Iterator[list[list[tuple[int, int]]]]:
    """For some secrets of two rows, x y and x x, the law of the view in each assignment of kings; what the coalition
    holds of the factors is the same throughout."""
    for x, y in [(0, 0), (0, 3), (1, 1), (3, 5), (6, 2), (6, 6), (2, 0)]:
        parties, worlds = enumerated(coalition, spoil)
        size = 3 * worlds.worlds
        held = {coalition: np.full(2 * size, 4, dtype=np.uint64)}
        left = parties.share(np.repeat(np.array([x, x], dtype=np.uint64), size), held, 0)
        right = parties.share(np.repeat(np.array([y, x], dtype=np.uint64), size), held, 1)

        async def body(engine: ManyEngine, left: list[Words] = left, right: list[Words] = right) -> Words:
            (product,) = await engine.dots([(left[engine.party][None], right[engine.party][None])])
            return product

        results = run(parties, worlds, body)
        if spoil is no_spoil:
            products = np.repeat(np.array([x * y % 7, x * x % 7], dtype=np.uint64), size)
            assert (parties.secret(results) == products).all()
        yield [law(view) for view in views(parties, worlds, ["deal", "products", "told"])]


@pytest.mark.slow
@pytest.mark.parametrize("coalition", range(3))
def test_in_a_field_of_seven_every_view_of_a_product_has_one_law(coalition: int) -> None:
    laws = list(tiny_product_laws(coalition))
    assert all(other == laws[0] for other in laws)
    assert any(len(block) > 1 for block in laws[0])


@pytest.mark.slow
@pytest.mark.parametrize("forgotten", ["zero", "own"])
def test_in_a_field_of_seven_a_forgotten_mask_of_a_product_is_seen(forgotten: str) -> None:
    for coalition in range(3):
        laws = list(tiny_product_laws(coalition, lambda name: name[0] == forgotten))
        assert any(other != laws[0] for other in laws)


def tiny_bit_laws(coalition: int, spoil: Spoil = no_spoil) -> dict[tuple[int, int], list[Any]]:
    """By the two rows' bits, the law of the view in each assignment of kings, where neither r is 0."""
    parties, worlds = enumerated(coalition, spoil)
    drawn: list[Words] = [None] * 3  # type: ignore[list-item]

    async def body(engine: ManyEngine) -> Words:
        good = engine._finish

        def keep(bits: Words, opened: Any, roots: Any) -> None:
            good(bits, opened, roots)
            if drawn[engine.party] is None:
                drawn[engine.party] = bits.copy()

        engine._finish = keep  # type: ignore[method-assign]
        return await engine.random_bits(1)

    run(parties, worlds, body)
    first = drawn[0].reshape(2, 3, -1)
    bits = parties.at(-1, {i: np.minimum(drawn[i], np.uint64(6)) for i in range(2)}).reshape(2, 3, -1)
    result: dict[tuple[int, int], list[Any]] = {pair: [] for pair in itertools.product(range(2), repeat=2)}
    for block, view in enumerate(views(parties, worlds, ["deal", "squares", "roots"])):
        good = (first[:, block] < 7).all(axis=0)
        for pair in result:
            held = good & (bits[0, block] == pair[0]) & (bits[1, block] == pair[1])
            assert held.sum() > 1000
            result[pair].append(law(view, held))
    return result


@pytest.mark.slow
@pytest.mark.parametrize("coalition", range(3))
def test_in_a_field_of_seven_every_view_of_two_bits_has_one_law(coalition: int) -> None:
    laws = list(tiny_bit_laws(coalition).values())
    assert all(other == laws[0] for other in laws)


@pytest.mark.slow
def test_in_a_field_of_seven_a_forgotten_mask_of_a_bit_is_seen() -> None:
    for coalition in range(3):
        laws = list(tiny_bit_laws(coalition, lambda name: name[0] == "zero").values())
        assert any(other != laws[0] for other in laws)
