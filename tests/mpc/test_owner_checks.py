"""Parties check owners' shares and norms: cheating owners are named, honest ones always pass, a coalition sees nothing
of a vector, and messages are as many as counted."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from inprocess import Network
from owners import beyond, inspected, on_the_bound, shares_of, squares_of
from test_views import BITS, LANES, PLANES, Enumerated, Fixed, _lane_numbers

from dpmpc.circuits.in_range import all_program
from dpmpc.mpc.contract.owner_checks import FailedOwners, NormTest, OwnerTest
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import P
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import failing
from dpmpc.mpc.owner_checks import checks as owners
from dpmpc.mpc.owner_checks import sums as owner_sums_module
from dpmpc.mpc.owner_checks.checks import DealtCheck, PrssCheck
from dpmpc.mpc.owner_checks.counts import count_shares
from dpmpc.mpc.owner_checks.sums import OwnerSums, halves
from dpmpc.mpc.replicated import unmasking
from dpmpc.mpc.replicated.counts import CountingBatch
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.replicated.layout import SharingLayout
from dpmpc.mpc.replicated.owner_counts import count_owner_checks, count_programs
from dpmpc.mpc.replicated.owner_norms import NormCheck
from tests.refusals import refuses

SIZES = [(3, 1), (4, 1), (5, 2)]
BOUND = 123_457
D = 24


def dealt(session: Any, ident: int, test: OwnerTest) -> DealtCheck:
    return DealtCheck(session, session.threshold, ident, test)


def honest(owners_: int, d: int = D, square: int = BOUND) -> Any:
    """Vectors of integers whose squares add up to the bound exactly."""
    rows = [on_the_bound(d, square) for _ in range(owners_)]
    rng = np.random.default_rng(owners_)
    return np.array([rng.permutation(row) * rng.choice([-1, 1], d) for row in rows], dtype=np.int64)


@pytest.mark.parametrize(("n", "t"), SIZES)
def test_honest_owners_at_the_exact_bound_pass(n: int, t: int) -> None:
    """Whatever the coins: the largest sum of any coordinates is within the projections' bound, here attained."""
    flat = np.full((1, 16), 77, dtype=np.int64)  # all of one sign: |x|_1 = sqrt(d) |x|
    for vectors in (honest(70), flat, -flat, np.zeros((3, 5), dtype=np.int64)):
        squares = tuple(squares_of(v) for v in vectors)
        found, _ = inspected(shares_of(vectors, n, t), squares, NormCheck, t)
        assert found == [FailedOwners()] * n
        assert NormTest.of(squares, vectors.shape[1], 41).width <= 29
    assert (1 << NormTest.of((16 * 77**2,), 16, 41).width - 1) - 1 >= 16 * 77


@pytest.mark.parametrize(("n", "t"), SIZES)
def test_every_vector_beyond_the_bound_is_named(n: int, t: int) -> None:
    cheats = beyond(D, BOUND)
    vectors = honest(len(cheats) + 3)
    for j, vector in enumerate(cheats.values(), 1):
        vectors[j] = vector
    found, _ = inspected(shares_of(vectors, n, t), (BOUND,) * len(vectors), NormCheck, t)
    assert found == [FailedOwners((), tuple(range(1, 1 + len(cheats))))] * n


BLOCKS = ((5, 59_536), (17, 59_536), (D, 4_385))  # ends and bounds; together the bound of the whole


def blockwise() -> Any:
    """Two vectors at the bound of every block, then one a block that is beyond that alone, within the whole one's."""
    lengths = [5, 12, 7]
    rows = [np.concatenate([on_the_bound(d, b) for d, (_, b) in zip(lengths, BLOCKS, strict=True)])] * 5
    vectors = np.array(rows, dtype=np.int64)
    for j, (start, end) in enumerate(((0, 5), (5, 17), (17, D)), 2):
        vectors[j] = 0
        vectors[j, start:end] = on_the_bound(end - start, BLOCKS[j - 2][1] + 1)
    return vectors


@pytest.mark.parametrize(("n", "t"), SIZES)
def test_every_block_has_a_bound_of_its_own(n: int, t: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner that is within the bound of the whole and beyond that of one block is named, and without blocks is not.
    Coordinates are added up some at a time: in pieces that end within blocks, at their ends and beyond."""
    vectors = blockwise()
    m = len(vectors)
    blocks = tuple((end, (bound,) * m) for end, bound in BLOCKS)
    for width in (1 << 12, 5, 4):
        monkeypatch.setattr(owner_sums_module, "_WIDEST", width)
        found, _ = inspected(shares_of(vectors, n, t), (BOUND,) * m, NormCheck, t, blocks=blocks)
        assert found == [FailedOwners((), (2, 3, 4))] * n
    found, _ = inspected(shares_of(vectors, n, t), (BOUND,) * m, NormCheck, t)
    assert found == [FailedOwners()] * n


@pytest.mark.parametrize(("n", "t"), SIZES)
def test_a_vector_that_wraps_around_in_a_block_is_named_there_too(n: int, t: int) -> None:
    """Projections are of the whole vector, and enough for the blocks' sums of squares to be those of whole numbers."""
    cheats = beyond(D, BOUND)
    vectors = honest(len(cheats) + 1)
    for j, vector in enumerate(cheats.values(), 1):
        vectors[j] = vector
    m = len(vectors)
    blocks = ((9, (BOUND,) * m), (D, (BOUND,) * m))
    found, _ = inspected(shares_of(vectors, n, t), (2 * BOUND,) * m, NormCheck, t, blocks=blocks)
    assert set(found[0].too_long) >= {
        j for j, (name, v) in enumerate(cheats.items(), 1) if max(squares_of(v[:9]), squares_of(v[9:])) > BOUND
    }
    assert 0 not in found[0].too_long and found == [found[0]] * n


@pytest.mark.parametrize(("n", "t"), SIZES)
@pytest.mark.parametrize("make", [NormCheck, PrssCheck, dealt], ids=["norms", "shares", "dealt"])
def test_shares_of_no_one_vector_are_named(n: int, t: int, make: Any) -> None:
    """A wrong share to any one party, in any place, by any error; shares of a polynomial of a higher degree."""
    rng = np.random.default_rng(n)
    vectors = honest(2 * n + 2)
    shares = shares_of(vectors, n, t)
    for j in range(2 * n):
        k = int(rng.integers(D))
        error = np.uint64(1 if j % 2 else int(rng.integers(1, P)))
        shares[j // 2, j, k] = field.add(shares[j // 2, j, k : k + 1], error)[0]
    shares[:, 2 * n] = shares_of(vectors[2 * n :][:1], n, t + 1)[:, 0]
    squares = (BOUND,) * len(vectors) if make is NormCheck else None
    for sums in (1, 2):
        found, _ = inspected(shares, squares, make, t, sums=sums)
        assert found == [FailedOwners(tuple(range(2 * n + 1)), ())] * n


def test_errors_that_cancel_in_a_plain_sum_are_named() -> None:
    """Two owners whose errors add up to none, one owner whose errors in two coordinates do; the check is no plain
    sum."""
    shares = shares_of(honest(4), 3, 1)
    one, minus = np.uint64(1), np.uint64(P - 1)
    for j, k, error in ((0, 3, one), (1, 3, minus), (2, 5, one), (2, 9, minus)):
        shares[1, j, k] = field.add(shares[1, j, k : k + 1], error)[0]
    assert failing({i: field.total(field.total(shares[i])[:, None]) for i in range(3)}, 1) == ()
    found, _ = inspected(shares, None, PrssCheck, 1)
    assert found[0].inconsistent == (0, 1, 2)


def test_sums_of_halves_find_what_a_sum_with_signs_does_not() -> None:
    """Exactly, over all choices: no vector of the list whose squares wrap around lies within the bound in more than
    half of the choices. With signs, halves of 1 mod p always do: that is why a coordinate is in a sum or not."""
    d, test = 12, NormTest.of((BOUND,), 12, 41)
    half = 1 << test.width - 1
    choices = np.array(list(itertools.product((0, 1), repeat=d)), dtype=object)
    assert test.passes == 0.5
    for name, vector in beyond(d, BOUND).items():
        if squares_of(vector) < P - (1 << test.square_width):
            continue
        sums = choices @ np.array(vector, dtype=object) % P
        within = np.minimum(sums, P - sums) < half
        assert within.mean() <= test.passes, name
    signs = (2 * choices - 1) @ np.array([(P + 1) // 2] * d, dtype=object) % P
    assert (np.minimum(signs, P - signs) < half).all()


def test_the_number_of_projections_follows_from_the_bits_and_the_bound() -> None:
    near = NormTest.of((1 << 20,), 100, 47.6)
    assert (near.projections, near.passes, near.error) == (48, 0.5, 2.0**-48)
    wide = NormTest.of((1 << 53,), 4, 41)
    assert wide.width == 29 and 0.6 < wide.passes < 0.7 and wide.error <= 2.0**-41 < wide.error / wide.passes
    with refuses("range", 2, "grid_bits", setting="check_owners"):
        NormTest.of((1 << 57,), 4, 41)


def test_with_fewer_projections_a_cheat_passes_as_often_as_predicted() -> None:
    """One projection: halves of 1 mod p pass where an even number of them is in the sum, in half of the runs. 400 runs:
    a fair coin leaves 130 .. 270 with probability below 1e-11."""
    vector = np.array([beyond(D, BOUND)["halves"]] * 400, dtype=np.int64)
    test = NormTest.of((BOUND,) * 400, D, 1)
    assert test.projections == 1
    passed = 0
    for seed in range(400):
        chosen = halves(Prg(b"coin", seed), 1, D)[0]
        total = sum(int(c) * int(v) for c, v in zip(chosen, vector[0], strict=True)) % P
        passed += min(total, P - total) < 1 << test.width - 1
    assert 130 < passed < 270
    found, _ = inspected(shares_of(vector[:3], 3, 1), (BOUND,) * 3, NormCheck, 1, bits=1)
    assert len(found[0].too_long) in (0, 3)  # one coin for all owners


# -- messages --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("n", "t"), SIZES)
@pytest.mark.parametrize(("m", "sums"), [(1, 1), (5, 2), (70, 1)])
def test_messages_are_as_many_and_as_long_as_counted(n: int, t: int, m: int, sums: int) -> None:
    vectors = honest(m)
    whole, three = (BOUND,) * m, tuple((end, (BOUND,) * m) for end, _ in BLOCKS)
    for make, squares, blocks in (
        (NormCheck, whole, ()),
        (NormCheck, whole, three),
        (PrssCheck, None, ()),
        (dealt, None, ()),
    ):
        _, network = inspected(shares_of(vectors, n, t), squares, make, t, sums=sums, blocks=blocks)
        norms = None if squares is None else NormTest.of(squares, D, 41, blocks)
        test = OwnerTest(m, D, norms, sums)
        by_messages = (count_shares(test, n, t, dealt=True).counts(),)
        counts = by_messages if make is dealt else count_owner_checks(test, n, t)
        for i in range(n):
            sent = [payload for (a, _), payloads in network.sent.items() if a == i for payload in payloads]
            assert len(sent) == sum(each.messages_sent[i] for each in counts)
            assert sum(payload.nbytes for payload in sent) == sum(each.bytes_sent[i] for each in counts)


def test_what_it_costs_for_a_hundred_owners() -> None:
    """Whatever the dimension is: the coordinates are in local sums alone."""
    for d in (122, 100_000):
        norms = NormTest.of((10**6,) * 100, d, 48)
        compared, joined = count_programs(CountingBatch, norms, 100, 3, 1)
        assert norms.projections == 48 and joined.ands == 48 and 300 <= compared.ands <= 345
        counts = count_owner_checks(OwnerTest(100, d, norms), 3, 1)
        assert max(sum(c.bytes_sent[i] for c in counts) for i in range(3)) < 300_000


# -- coins -----------------------------------------------------------------------------------------------------------
def test_nobody_shows_its_part_of_a_coin_before_all_have_promised_theirs() -> None:
    """A party promises when it has all shares; so a part that is shown tells that all shares are fixed."""
    order: list[tuple[int, int]] = []

    class Watched(Network):
        def box(self, sender: int, receiver: int, label: int) -> Any:
            return super().box(sender, receiver, label)

    class Watching(PrssCheck):
        async def _all(self, said: bytes) -> dict[int, bytes]:
            order.append((self.mesh.party, self.channel.rounds))
            found = await super()._all(said)
            order.append((self.mesh.party, -self.channel.rounds))
            return found

    inspected(shares_of(honest(2), 3, 1), None, Watching, 1, network=Watched(3, 1))
    promised = [order.index((i, 0)) for i in range(3)]
    shown = [order.index((i, 1)) for i in range(3)]
    heard = [order.index((i, -1)) for i in range(3)]
    assert max(promised) < min(shown) and all(heard[i] < shown[i] for i in range(3))


def test_a_part_that_was_not_promised_is_refused() -> None:
    class Lying(PrssCheck):
        def _promise(self, party: int, part: bytes) -> bytes:
            mine = self.mesh.party == party == 1
            return bytes(32) if mine else super()._promise(party, part)

    with refuses("peer", 1):
        inspected(shares_of(honest(2), 3, 1), None, Lying, 1)


def test_coins_are_new_each_time() -> None:
    seen = set()

    class Noting(PrssCheck):
        async def coin(self) -> bytes:
            found = await super().coin()
            seen.add((self.mesh.party, found))
            return found

    for _ in range(3):
        inspected(shares_of(honest(2), 3, 1), None, Noting, 1)
    assert len(seen) == 9 and len({coin for _, coin in seen}) == 3


# -- views -----------------------------------------------------------------------------------------------------------
class Tiny:
    """F_7 in place of F_p: few enough elements to go through all randomness."""

    P = 7
    add = staticmethod(lambda a, b: (a + b) % np.uint64(7))
    sub = staticmethod(lambda a, b: (a + np.uint64(7) - b) % np.uint64(7))
    mul = staticmethod(lambda a, b: a * (np.uint64(b % 7) if isinstance(b, int) else b) % np.uint64(7))

    @staticmethod
    def uniform(stream: Any, shape: tuple[int, ...]) -> Any:
        return stream.words(shape)

    @staticmethod
    def lagrange(nodes: tuple[int, ...], x: int) -> tuple[int, ...]:
        return field.lagrange(nodes, x, 7)

    @staticmethod
    def subset_weight(subset: tuple[int, ...], parties: int, party: int) -> int:
        return field.lagrange((0, *(j + 1 for j in range(parties) if j not in subset)), party + 1, 7)[0]

    @classmethod
    def recombine(cls, shares: Any, holders: Any) -> Any:
        weights = cls.lagrange(tuple(i + 1 for i in holders), 0)
        return sum(s * np.uint64(w) for s, w in zip(shares, weights, strict=True)) % np.uint64(7)


class Digits:
    """A stream of which every word runs through F_7: lane k has digit `place` of k. Or one that everybody knows."""

    def __init__(self, places: dict[Any, int], domain: Any, lanes: int, known: bool) -> None:
        self._places, self._domain, self._lanes, self._known, self._at = places, domain, lanes, known, 0

    def words(self, shape: tuple[int, ...]) -> Any:
        self._at += 1
        if self._known:
            fixed = Prg(repr((self._domain, self._at)).encode()).words((1,))[0] % np.uint64(7)
            return np.full(shape, fixed)
        place = self._places.setdefault((self._domain, self._at), len(self._places))
        return (np.arange(self._lanes, dtype=np.uint64) // np.uint64(7**place) % np.uint64(7)).reshape(shape)


def polynomials(n: int, degree: int, coalition: tuple[int, ...], rng: Any) -> list[list[int]]:
    """Shares (n,) mod 7 of polynomials of this degree that agree at the coalition, with secrets 0 .. 6."""
    nodes = (0, *(i + 1 for i in coalition), *(j + 1 for j in range(n) if j not in coalition))[: degree + 1]
    known = [int(rng.integers(7)) for _ in coalition]
    result = []
    for secret in range(7):
        values = [secret, *known, *(int(rng.integers(7)) for _ in range(degree - len(coalition)))]
        result.append(
            [sum(w * v for w, v in zip(field.lagrange(nodes, i + 1, 7), values, strict=True)) % 7 for i in range(n)]
        )
    return result


def laws(n: int, t: int, coalition: tuple[int, ...], step: str, forget: str = "") -> set[Any]:
    """The laws of what the coalition receives, over all that it does not know, one for each secret."""
    rng = np.random.default_rng(sum(coalition))
    missing = tuple(i for i in range(n) if i not in coalition)
    unknown = t + 1 if step == "norms" else 1
    lanes = 7**unknown
    degree = 2 * t if step == "norms" else t
    found = []
    for shares in polynomials(n, degree, coalition, rng):
        places: dict[Any, int] = {}

        def stream(subset: Any, *domain: Any, places: dict[Any, int] = places) -> Any:
            known = subset != missing or domain[0] == forget
            return Digits(places, (subset, domain), lanes, known)

        network = Network(n, t, stream)

        async def body(session: Any, shares: list[int] = shares) -> None:
            norms = NormTest((1,) * lanes, 4, 2, 2, 0)
            check = NormCheck(session, 1, OwnerTest(lanes, 4, norms))
            mine = np.full((1, lanes), shares[session.party], dtype=np.uint64)
            if step == "norms":
                await check._unmasking().open(mine[0])
            else:
                await check.inconsistent(mine[0])

        network.run(body)
        assert len(places) == unknown or forget or not set(coalition) & set(SharingLayout.of(n, t).opened_to)
        seen = [
            payload for (a, b), each in sorted(network.sent.items()) if b in coalition and a not in coalition
            for payload in each
        ]  # fmt: skip
        columns = np.array(seen).reshape(-1, lanes).T if seen else np.zeros((lanes, 0))
        found.append(frozenset(Counter(column.tobytes() for column in columns).items()))
    return set(found)


@pytest.mark.parametrize(("n", "t"), SIZES)
@pytest.mark.parametrize("step", ["shares", "norms"])
def test_what_a_coalition_sees_has_one_law_for_all_secrets(
    n: int, t: int, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly, over F_7, for every coalition of t: all shares that it is shown before the last bits."""
    for module in (unmasking, owners):
        monkeypatch.setattr(module, "field", Tiny)
    told = 0
    for coalition in itertools.combinations(range(n), t):
        assert len(laws(n, t, coalition, step)) == 1, coalition
        forgotten = ("owner shares",) if step == "shares" else ("owner mask", "owner zero")
        told += sum(len(laws(n, t, coalition, step, forget)) > 1 for forget in forgotten)
    assert told >= len(list(itertools.combinations(range(n), t))) // 2, "a forgotten mask is seen"


@pytest.mark.parametrize(("n", "t"), [(3, 1), (4, 1)])
def test_the_last_opening_tells_one_bit_and_no_other(n: int, t: int) -> None:
    """Exactly, over all masks and all values of what a coalition lacks of three bits that are joined: what it sees has
    one law for all bits that give the same answer, and where it sees the answer, another one for another answer."""
    program = all_program(3)
    for coalition in itertools.combinations(range(n), t):
        missing = tuple(i for i in range(n) if i not in coalition)
        places: dict[Any, int] = {("secret", k): k for k in range(3)}

        def stream(
            subset: Any, *domain: Any, places: dict[Any, int] = places, missing: tuple[int, ...] = missing
        ) -> Any:
            return Fixed(Prg(bytes(subset), *domain)) if subset != missing else Enumerated(places, domain)

        network = Network(n, t, stream)

        async def body(session: Any, missing: tuple[int, ...] = missing) -> Any:
            batch = SharingBatch(session, 1, LANES)
            given = np.zeros((3, len(batch.mine), batch.words), dtype=np.uint64)
            for k, subset in enumerate(batch.mine):
                if subset == missing:
                    given[:, k] = PLANES[:3]
                else:  # what the coalition holds of the three bits: 0, 1, 0
                    given[1, k] = np.uint64(2**64 - 1 if subset == batch.layout.subsets[0] else 0)
            return await batch.reveal(await batch.run(program, (), given))

        opened = next(plain for plain in network.run(body) if plain is not None)
        assert len(places) <= BITS
        seen = [
            np.unpackbits(payload.reshape(-1, LANES // 64).view(np.uint8), axis=1)
            for (sender, receiver), payloads in sorted(network.sent.items())
            if receiver in coalition and sender not in coalition
            for payload in payloads
        ]
        answers = np.unpackbits(opened.view(np.uint8), axis=1)[0]
        index = _lane_numbers()
        view = np.packbits(np.concatenate(seen), axis=0)
        laws_: dict[tuple[int, int], Counter[bytes]] = {}
        for lane in np.flatnonzero(index < 1 << len(places)):
            key = int(index[lane]) % 8, int(answers[lane])
            laws_.setdefault(key, Counter())[view[:, lane].tobytes()] += 1
        assert len(laws_) == 8, "bits decide the answer"
        by_answer = [{frozenset(law.items()) for (_, a), law in laws_.items() if a == answer} for answer in (0, 1)]
        assert [len(laws) for laws in by_answer] == [1, 1]
        sees = set(coalition) & set(SharingLayout.of(n, t).opened_to)
        assert (by_answer[0] != by_answer[1]) == bool(sees)


def test_an_owner_without_a_consistent_vector_does_not_reach_the_squares() -> None:
    sums = OwnerSums(*(np.ones(shape, dtype=np.uint64) for shape in ((3,), (2, 3), (3,))))
    cleared = owners._cleared(sums, (1,))
    for array in (cleared.weighted, cleared.halves, cleared.squares):
        assert (array[..., 1] == 0).all() and (array[..., [0, 2]] == 1).all()
