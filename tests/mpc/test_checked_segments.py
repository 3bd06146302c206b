"""The check of a batch in segments: some layers at a time, whose claims are joined by fresh coins. What honest parties
release is what they would without; no cheat in any segment passes; and what happens where the coins are no coins."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cheating import BATCH, Cheat, judge, kinds, messages, play, release, tiny
from structured import Deviation, decided, released

from dpmpc.errors import DpmpcError
from dpmpc.mpc.checked import fold
from dpmpc.mpc.checked.backend import CHECKED, counted
from dpmpc.mpc.checked.counts import CountingChecked
from dpmpc.mpc.checked.fold import MOST_WORDS, BatchCheck, Fold, Stages, segments_of
from dpmpc.mpc.native.gf64 import GF64, Words
from dpmpc.mpc.parties.promised_coins import MOST
from tests.mpc.test_checked import NOISE_SAMPLER, watched
from tests.mpc.test_fold import Dice, Play

SIZES = [(3, 1), (5, 2)]
FEW = 100  # words of ANDs at a time: four segments of `tiny` among three parties


@pytest.fixture(autouse=True)
def in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "MOST_WORDS", FEW)


def whole(sizes: tuple[int, int]) -> Words:
    """What honest parties release whose check is in one piece."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold, "MOST_WORDS", MOST_WORDS)
        found: Words = play(release, seed=0, sizes=sizes)[0][0]
    return found


# -- honest -----------------------------------------------------------------------------------------------------------
def test_segments_are_whole_layers_in_order() -> None:
    assert segments_of([59, 88, 48, 26, 12, 7, 3, 2, 1, 6, 15, 20, 15, 4], 1) == (59, 88, 99, 60)
    assert segments_of([59, 88, 48, 26], 2) == (59, 88, 48, 26)  # a layer of more words than allowed stands alone
    assert segments_of([3], 1000) == (3,) and segments_of([30, 20, 50, 1], 1) == (100, 1)


@pytest.mark.parametrize("sizes", SIZES)
def test_parties_release_the_same_and_the_counting_twin_knows_every_message(sizes: tuple[int, int]) -> None:
    results, wires = play(release, seed=0, sizes=sizes)
    due = whole(sizes)
    assert all((result == due).all() for result in results) and len(set(due.tolist())) > 3
    twin, program = CountingChecked(64, *sizes), tiny(*sizes)
    asyncio.run(twin.to_field(program))
    (check,), many = twin.checks, sizes[0] > 3
    segments = len(segments_of(program.widths, 1))
    assert segments == len(check.segments) == (8 if many else 4) and check.rest is not None
    sums = segments + len(check.rest.variables)  # each segment has one stage of its own
    assert Counter(twin.kinds) == {
        "and": program.depth, "coin": sums + segments + 1, "sums": sums, "log": 1, "product": 1, "verdict": 1,
        "conversion": 1, "converted": 1, **({"promise": 1, "agreed": 1} if many else {}),
    }  # fmt: skip
    assert twin.kinds.count("coin") == check.coins and (check.coins > MOST) == many  # longer chains are promised
    assert {label for *_, label, _ in wires.sent} == set(kinds(*sizes))
    for i in range(sizes[0]):
        mine = [payload for sender, _, label, payload in wires.sent if sender == i and label >> 32 == BATCH]
        assert (len(mine), sum(map(len, mine))) == (twin.messages_sent[i], twin.bytes_sent[i])


def test_a_piece_of_a_coin_goes_out_after_what_it_weighs() -> None:
    """Of every coin in order, those that join the segments among them."""
    _, wires = play(release, seed=0)
    order = [(sender, receiver, label) for sender, receiver, label, _ in wires.sent]
    coins = [label for label, kind in kinds().items() if kind == "coin"]
    for sender in range(3):
        for coin in coins:
            told = order.index(((sender + 1) % 3, sender, coin))
            before = [at for at, (s, r, label) in enumerate(order) if (s, r) == (sender, (sender + 1) % 3)
                      and label >> 32 == BATCH and label < coin]  # fmt: skip
            assert max(before) < told and ((sender + 2) % 3, sender, coin) not in order


def test_segments_of_all_batches_take_one_segment_s_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three arrays of the largest segment and one of wires, for all segments of all batches."""
    words, sampler = 2048 // 64, NOISE_SAMPLER
    (program,) = counted(sampler, 2048).programs
    monkeypatch.setattr(fold, "MOST_WORDS", most := max(program.widths) * words + words)
    sizes = segments_of(program.widths, words)
    arrays, _, _ = watched(3)
    kept = sorted(array.size for array in arrays)
    assert len(sizes) > 4 and len(arrays) == 4  # each has room for half as much again at most, and a segment's padding
    assert kept[2] <= 1.5 * 2 * (most + 512) + 8 < 2 * program.ands * words < 3 * sum(kept[:3])


# -- every message, every role ----------------------------------------------------------------------------------------
def test_no_change_of_any_message_gets_a_wrong_vector_released() -> None:
    """Each message of a party once, by one of the three in turn, in one of five ways; of all segments, all kinds."""
    names, reference, seen = kinds(), whole((3, 1)), set()
    places = [messages(role, 0) for role in range(3)]
    for how, label in enumerate(names):
        role = how % 3
        receiver = next(receiver for receiver, at in places[role] if at == label)
        outcome = judge(Cheat(role, receiver, label, how), 0, reference)
        assert outcome == "stopped" or (outcome, names[label]) == ("right for one", "digest of the vector")
        seen.add(names[label])
    assert seen == set(names.values())


def test_nor_among_five() -> None:
    """A word of a message of one party to one other, of two or three of each kind."""
    reference, names = whole((5, 2)), kinds(5, 2)
    _, wires = play(release, seed=0, sizes=(5, 2))
    places = {label: receiver for sender, receiver, label, _ in wires.sent if sender == 2}
    for kind in set(names.values()):
        labels = [label for label in places if names[label] == kind]
        for label in {labels[0], labels[len(labels) // 2], labels[-1]}:
            results, _ = play(release, Cheat(2, places[label], label, 1), 0, sizes=(5, 2))
            finished = [each for i, each in enumerate(results) if i != 2 and not isinstance(each, DpmpcError)]
            assert all((each == reference).all() for each in finished), kind
            assert not finished or kind == "digest of the vector", kind


def test_no_structure_of_messages_has_a_wrong_vector_released() -> None:
    for party, kind in enumerate(("equal", "halves", "negated", "permuted", "repeated")):
        for size in (8, 32):
            found = released(Deviation(party % 3, f"messages {size}", kind), "checked", (3, 1))
            assert not found.bad and found.how != "released"


def test_nor_a_wrong_decision_of_votes_opened() -> None:
    """Programs that are given bits of what was dealt, in segments of one layer or few."""
    assert decided(Deviation(-1, "messages 8", "zeros"), (3, 1)).how == "held"  # nobody deviates
    for party, kind in enumerate(("equal", "halves", "negated")):
        found = decided(Deviation(party, "messages 8", kind), (3, 1))
        assert not found.bad and found.how == "ended", kind


# -- the arithmetic ----------------------------------------------------------------------------------------------------
class Parts:
    """Segments of so many words each through their own stages, at three parties. `wrong`: segment, place and bits of a
    result that is wrong; `errors`: makes what party 0 adds to the sums of a segment's stage, of how far the claims of
    segments so far are off."""

    def __init__(self, sizes: list[int], wrong: dict[int, tuple[int, int]] | None = None, errors: Any = None) -> None:
        self.plays, self.off = [], []
        check = BatchCheck.of(sizes)
        assert check.rest is not None
        self.rest: Stages = check.rest
        for number, (size, stages) in enumerate(zip(sizes, check.segments, strict=True)):
            one = Play(stages, size, 100 + number)
            if wrong and number in wrong:
                at, bits = wrong[number]
                one.z[1, at] ^= np.uint64(bits)
            one.begin()
            for stage in range(stages.own):
                one.stage(stage, errors(number, stage, stages, self.off) if errors else None)
            self.plays.append(one)
            self.off.append(self._off(one))

    def _off(self, one: Play) -> int:
        """Z - <X, Y> of what a segment leaves."""
        x, y = (np.bitwise_xor.reduce([getattr(p, of)[0] for p in one.parties]) for of in ("_x", "_y"))
        z = np.bitwise_xor.reduce([p._claim[:1] for p in one.parties])
        return int(z[0] ^ np.bitwise_xor.reduce(GF64.multiply(x, y)))

    def finish(self, coin: Any) -> bool:
        """Whether the check of all holds; `coin`: gives the gammas."""
        end = Play(self.rest, 0, 7)
        end.parties = [
            Fold.joined(self.rest, [one.parties[j] for one in self.plays], coin(),
                        np.stack([end.pair[j], end.pair[j - 1]], axis=1))
            for j in range(3)
        ]  # fmt: skip
        return end.finish()


def fresh() -> Any:
    """Gammas."""
    return Dice(GF64, 77)


class Ones:
    """Gammas that are none: the plain sum of all claims."""

    def words(self, shape: tuple[int, ...]) -> Words:
        return np.ones(shape, dtype=np.uint64)


@pytest.mark.parametrize("sizes", [[700, 3], [1, 1, 1], [20_000, 512, 18_000]])
def test_right_segments_pass_and_one_wrong_bit_in_any_does_not(sizes: list[int]) -> None:
    assert Parts(sizes).finish(fresh)
    for number, size in enumerate(sizes):
        parts = Parts(sizes, {number: (size - 1, 1 << 40)})
        assert [off != 0 for off in parts.off] == [k == number for k in range(len(sizes))]
        assert not parts.finish(fresh)
    assert not Parts(sizes, {0: (0, 1), len(sizes) - 1: (0, 1)}).finish(fresh)


def test_without_fresh_coins_one_segment_makes_up_for_another() -> None:
    """Why claims are not simply added up. The first segment has a wrong AND; who did it knows by then how far the claim
    is off, and adds that to all sums of a later stage of the second segment, whose ANDs are right: with weights of 1
    over an even number of corners nothing of it is seen there. The plain sum of claims is true every time; joined by
    coins it is false."""

    def makes_up(number: int, stage: int, stages: Stages, off: list[int]) -> Words | None:
        if (number, stage) != (1, stages.own - 1):
            return None
        return np.full(3 ** stages.variables[stage] - 1, off[0], dtype=np.uint64) * _constant(stages.variables[stage])

    for at in (0, 17, 19_999):
        parts = Parts([20_000, 20_000], {0: (at, 1 << 3)}, makes_up)
        assert parts.rest.own == 0 and parts.off[0] == parts.off[1] != 0
        assert parts.finish(Ones) and not parts.finish(fresh)


def _constant(v: int) -> Words:
    """1 at the points without infinity, but for the corner 0, which follows: a polynomial that is constant has no
    leading coefficients."""
    digits = np.array([[point // 3**k % 3 for k in range(v)] for point in range(1, 3**v)])
    return (digits < 2).all(axis=1).astype(np.uint64)


# -- what is said of it -----------------------------------------------------------------------------------------------
def test_a_batch_s_error_does_not_grow_with_its_segments() -> None:
    """2/q for the claim and 2/q a variable of one segment, 1/q for what joins them, then as ever; the bound that a plan
    states is that of this batch and of every shorter one."""
    q = 1 << 64
    two, ten = BatchCheck.of([600] * 2), BatchCheck.of([600] * 10)
    assert two.rest is not None and ten.rest is not None
    for check in (two, ten, BatchCheck.of([40_000, 600])):
        assert check.rest is not None
        own = max(sum(each.variables) for each in check.segments)
        *rest, last = check.rest.variables
        assert check.error == Fraction(3 + 2 * own + 2 * sum(rest), q) + Fraction(2 * last, q - 1)
    sampler = NOISE_SAMPLER
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold, "MOST_WORDS", MOST_WORDS)
        most = CHECKED.batch_samples(sampler, 10**8, 3, 1)
        largest = counted(sampler, most).error
        shorter = (counted(sampler, size) for size in range(64, most + 1, 64 * 29))
        assert all(check.error <= largest for batch in shorter for check in batch.checks)
        assert Fraction(1, 1 << 59) < largest < Fraction(1, 1 << 57)


@pytest.fixture(scope="module", autouse=True)
def _unpatched() -> Iterator[None]:
    yield
    assert fold.MOST_WORDS == MOST_WORDS
