"""What a server that deviates still does, though transfers are checked: the attacks of docs/two-servers.md, on the
other server's unmodified code, and the figures there."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pairs import Two, read_before, together

from dpmpc.circuits.lift import HeapProgram
from dpmpc.circuits.sampler import discrete_gaussian, noise_heap
from dpmpc.errors import CheatError
from dpmpc.mpc.clear import executor as clear
from dpmpc.mpc.contract.lanes import from_planes, to_planes
from dpmpc.mpc.numbers import field
from dpmpc.mpc.two_servers import half_gates
from dpmpc.mpc.two_servers.backend import GarbledHolder, OtHolder
from dpmpc.mpc.two_servers.counts import CountingOt
from dpmpc.mpc.two_servers.lifts import OfferedLifts, lifts_of
from tests.refusals import refuses

CHOSEN = np.array([123456, -654321, 42])
SCALE, LANES, CHANNEL = 2.0**20, 4096, 5
SAMPLER = discrete_gaussian(SCALE)
HEAP = noise_heap(SAMPLER.plan)
LIFTS = lifts_of(HEAP)
PAGE = (Path(__file__).parents[2] / "docs" / "two-servers.md").read_text(encoding="utf-8")


def plain(heap: HeapProgram, random: np.ndarray) -> np.ndarray:
    """(outputs, lanes): the program's bits, from its random bits (bits, words)."""

    class Given:
        at = 0

        def words(self, shape: tuple[int, ...]) -> np.ndarray:
            self.at += shape[0]
            return random[self.at - shape[0] : self.at].reshape(shape)

        reserve = words

    outputs = clear.run(heap.program, random.shape[1], Given())  # type: ignore[arg-type]
    return np.array([from_planes(row[None]) for row in outputs]).astype(np.int64)


def left(noise: np.ndarray, known: list[np.ndarray]) -> float:
    """The standard deviation of the noise, in the scale, to who knows these columns: about their groups' means."""
    group = sum((column.astype(np.int64) << k for k, column in enumerate(known)), start=np.zeros(len(noise), np.int64))
    rest = noise.astype(float).copy()
    for each in np.unique(group):
        rest[group == each] -= rest[group == each].mean()
    return float(rest.std() / SCALE)


# -- openings ----------------------------------------------------------------------------------------------------------
def choose_what_is_opened() -> np.ndarray:
    """What the honest server opens, where the other has read the sum before it shows a share."""

    async def body(two: Two) -> np.ndarray:
        cheat, honest = two.holders
        value = np.array([5, -7, 2**30])
        mine = field.from_int64(np.array([1, 2, 3]))
        opening = asyncio.ensure_future(honest.open(field.sub(field.from_int64(value), mine), 9))
        theirs, show = await read_before(cheat, mine, 9)
        assert (field.to_int64(field.add(mine, theirs)) == value).all()  # what it reads
        show(field.sub(field.from_int64(CHOSEN), theirs))
        return await opening

    return together(body, connect=False)


def test_who_shows_its_share_of_an_opening_last_does_not_choose_what_the_other_opens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with refuses("cheat", 9, 1, 0):
        choose_what_is_opened()
    monkeypatch.setattr(OtHolder, "_promise", lambda self, *what: bytes(32))  # the control: nothing is promised
    assert (choose_what_is_opened() == CHOSEN).all()


def test_a_promise_is_for_one_party_channel_attempt_and_release() -> None:
    async def body(two: Two) -> None:
        one, share = two.holders[0], field.from_int64(np.array([1, 2]))
        what = [0, 9, b"said", bytes(32), share]
        others = [1, 10, b"else", bytes(31) + b"1", field.from_int64(np.array([1, 3]))]
        found = {one._promise(*what)}  # type: ignore[arg-type]
        found |= {one._promise(*what[:k], others[k], *what[k + 1 :]) for k in range(5)}  # type: ignore[arg-type]
        one.run_id = b"another attempt"
        assert len(found | {one._promise(*what)}) == 7  # type: ignore[arg-type]

    together(body, connect=False)


@pytest.mark.parametrize("same", [True, False])
def test_the_promise_is_the_barrier_of_an_attempt_and_a_release(same: bool) -> None:
    async def body(two: Two) -> list[Any]:
        share = [field.from_int64(np.array([k, -k])) for k in (3, 4)]
        first = asyncio.ensure_future(two.holders[0].stand(share[0], b"token, release 0", 9))
        await asyncio.sleep(0)
        assert not first.done()  # it waits for the other
        await asyncio.gather(first, two.holders[1].stand(share[1], b"token, release " + (b"0" if same else b"1"), 9))
        assert all(len(sent) == 1 and len(sent[0][1]) == 32 for sent in two.sent)
        openings = (h.open(share[h.party], 9) for h in two.holders)
        return list(await asyncio.gather(*openings, return_exceptions=True))

    found = together(body, connect=False)
    assert all((each == [7, -7]).all() if same else isinstance(each, CheatError) for each in found)


# -- lifts: bits of the other's are moved to where they can be read off the sum ----------------------------------------
READ = {(1 << 19): 25, (1 << 21): 24, HEAP.coefficients[1]: 26}  # coefficient of a bit -> the power of 2 that it moves


class Reader:
    """Server 0, which offers in the lifts that server 1 chooses in: it adds to what it sends, so that three of server
    1's choices move the sum by 2^26, 2^25 and 2^24. It reads them there, and takes the moves out of its own share
    before it sends that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        twin = CountingOt(LANES, 4)
        asyncio.run(_counted(twin))
        self.flow = (CHANNEL << 32) | (twin.rounds - 2)
        self.items = LIFTS.by_chooser[1]
        self.ends = np.cumsum([item.sent for item in self.items]).tolist()
        self.read = {k: READ[item.coefficient] for k, item in enumerate(self.items) if item.output is not None
                     and item.coefficient in READ}  # fmt: skip
        self.mine: dict[int, np.ndarray] = {}  # this server's parts of the bits
        self.told: dict[int, np.ndarray] = {}  # the other's choices, each XOR its part of the bit, where they are told
        offer = OfferedLifts.offer

        def kept(lifts: OfferedLifts, outputs: np.ndarray) -> np.ndarray:
            if lifts._items is self.items:
                for k in self.read:
                    item = self.items[k]
                    assert item.output is not None
                    planes = lifts.bits[k] if item.born else outputs[item.output]
                    self.mine[k] = from_planes(planes[None])
            return offer(lifts, outputs)

        monkeypatch.setattr(OfferedLifts, "offer", kept)

    def spoil(self, label: int, raw: bytes) -> bytes:
        if label != self.flow:
            return raw
        rows = np.frombuffer(raw, dtype=np.uint64).reshape(-1, LANES // 64).copy()
        for k, power in self.read.items():
            item = self.items[k]
            place = slice(self.ends[k] - item.sent, self.ends[k])
            # a choice of 1 adds -2 c error, where the lowest bit is sent, and -4 c error where it is not
            step = (item.coefficient & -item.coefficient).bit_length() + item.born
            moved = from_planes(rows[place]) + np.uint64(1 << (power - step))
            rows[place] = to_planes(moved, item.sent)
        return rows.tobytes()

    def choices(self, sums: np.ndarray) -> dict[int, np.ndarray]:
        """Server 1's choices, from sums that were moved, by the smallest move first; 0 was to be expected."""
        window, found = (sums + (1 << 23)) % (1 << 27) >> 24, {}
        for k, power in sorted(self.read.items(), key=lambda each: each[1]):
            found[k] = window >> (power - 24) & 1
            up = 1 if self.items[k].born else 2 * self.told[k] - 1  # a product is added where the choice told is 1
            window = window - (found[k] << (power - 24)) * up
        return found


async def _counted(twin: CountingOt) -> None:
    await twin.lift(HEAP)


def read_through_the_sum(
    monkeypatch: pytest.MonkeyPatch, taken_out: bool
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """(the noise that server 1 opens, the noise that it is, the bits of it that server 0 knows). `taken_out`: whether
    server 0 takes the moves out of what it shows."""
    reader = Reader(monkeypatch)

    async def body(two: Two) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        cheat, honest = two.holders
        noises = await asyncio.gather(*(h.noise(SAMPLER, CHANNEL, LANES) for h in two.holders))
        message = np.frombuffer(dict(two.sent[1])[reader.flow], dtype=np.uint64).reshape(-1, LANES // 64)
        told = LIFTS.told(1)
        rows = message[len(message) - len(told) :]  # server 1's choices, each XOR its part of the bit
        reader.told = {k: from_planes(row[None]).astype(np.int64) for k, row in zip(told, rows, strict=True)}
        opening = asyncio.ensure_future(honest.open(noises[1], 9))
        theirs, show = await read_before(cheat, noises[0], 9)
        seen = field.to_int64(field.add(noises[0], theirs))
        choices = reader.choices(seen)
        right = (seen + (1 << 23)) % (1 << 24) - (1 << 23)
        show(field.add(noises[0], field.from_int64(right - seen)) if taken_out else noises[0])
        known = []
        for k, u in choices.items():
            part = u if reader.items[k].born else u ^ reader.told[k]
            known.append(part ^ reader.mine[k].astype(np.int64))
        return await opening, right, known

    return together(body, spoil=reader.spoil, spoils=0)


def test_bits_of_the_noise_are_read_through_the_sum_and_all_see_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was moved stays in what server 1 opens, which is no sample any more. A standard deviation of 4,096 samples
    is within 8 % at seven of its own."""
    opened, noise, known = read_through_the_sum(monkeypatch, taken_out=False)
    assert (np.abs(opened) > SAMPLER.largest).mean() > 0.5
    assert 38 < opened.std() / SCALE < 44 and "some 40 times as wide" in PAGE
    assert np.abs(noise).max() <= SAMPLER.largest and abs(noise.std() / SCALE - 1) < 0.08
    found = left(noise, known)
    assert abs(found - 0.58) < 0.06 and "some 0.58 sigma of noise is left" in PAGE, found
    rng = np.random.default_rng(1)
    assert left(noise, [rng.permutation(column) for column in known]) > 0.92  # other bits say nothing


def test_moves_cannot_be_taken_out_of_a_share_that_was_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    with refuses("cheat", "the promise of the share"):
        read_through_the_sum(monkeypatch, taken_out=True)
    monkeypatch.setattr(OtHolder, "_promise", lambda self, *what: bytes(32))
    opened, noise, _ = read_through_the_sum(monkeypatch, taken_out=True)  # the control: unseen
    assert (opened == noise).all() and np.abs(opened).max() <= SAMPLER.largest


# -- garbled circuits --------------------------------------------------------------------------------------------------
def test_a_garbler_that_ignores_the_evaluators_bits_knows_all_but_the_loose_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It sends label corrections without Delta, so that every label stands for its own bit: the program's outputs are
    known to it. The evaluator's code sees nothing. Only what is lifted straight from transfers is left: to it, and,
    where it takes what it knows off its own share before it promises that, to all who see the sum."""
    seen: dict[str, Any] = {}
    garble = half_gates.garble

    def kept(program: Any, zero: Any, delta: np.ndarray, *more: Any) -> Any:
        seen["delta"], seen["bits"] = delta.copy(), zero.random.bits & np.uint64(1)
        return garble(program, zero, delta, *more)

    monkeypatch.setattr(half_gates, "garble", kept)
    lanes, done = 1024, []

    def spoil(label: int, raw: bytes) -> bytes:
        if label >> 32 != CHANNEL or len(raw) < 1 << 20:
            return raw
        done.append(label)
        words = np.frombuffer(raw, dtype=np.uint64).copy()
        fixes = words[2 : 2 + 2 * lanes * HEAP.program.random_bits].reshape(-1, 2)
        fixes ^= seen["delta"]
        return words.tobytes()

    async def body(two: Two) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shares = await asyncio.gather(*(h.noise(SAMPLER, CHANNEL, lanes) for h in two.holders))
        bits = np.concatenate([to_planes(row, 1) for row in seen["bits"]])
        known = np.array(HEAP.coefficients) @ plain(HEAP, bits)
        taken = field.sub(shares[0], field.from_int64(known.astype(np.int64)))
        opened = await asyncio.gather(*(h.open(s, 9) for h, s in zip(two.holders, (taken, shares[1]), strict=True)))
        assert (opened[0] == opened[1]).all()
        return field.to_int64(field.add(*shares)), known, opened[1]

    noise, known, opened = together(body, made_by=GarbledHolder, spoil=spoil, spoils=0)
    assert len(done) == 1  # all lanes were one piece
    loose = sum(4.0**w for w in HEAP.loose) ** 0.5 / 2 / SCALE
    assert abs(noise.std() / SCALE - 1) < 0.16  # seven standard errors
    for rest in (noise - known, opened):
        assert abs(rest.std() / SCALE / loose - 1) < 0.16
    assert f"{loose:.2f} sigma is left" in PAGE and f"{loose:.2f} sigma of noise in every release" in PAGE


# -- what is left whatever it does -------------------------------------------------------------------------------------
def test_loose_bits_that_the_honest_server_offers_are_out_of_reach() -> None:
    """Each goes into the sum as plus or minus its bit, whatever the chooser does, for its share is fixed before the
    chooser says anything; it is in no AND. What these bits alone come to, for either server as the cheat."""
    found = []
    for cheat in (0, 1):
        loose = [item for item in LIFTS.by_chooser[cheat] if item.output is None]
        assert all(item.born for item in loose)
        found.append(sum(float(item.coefficient) ** 2 for item in loose) ** 0.5 / 2 / SCALE)
    assert f"{min(found):.2f} sigma" in PAGE


def test_one_wrong_bit_of_an_and_changes_the_law() -> None:
    """Each AND's result flipped in all samples: the deviation that comes of it."""
    rng = np.random.default_rng(2)
    random = rng.integers(0, 2**64, (HEAP.program.random_bits, 32), dtype=np.uint64)
    weights, loose = np.array(HEAP.coefficients), sum(4.0**w for w in HEAP.loose) / 4
    found = []
    for flipped in range(HEAP.program.ands):
        values = weights @ _flipped(random, flipped)
        found.append(float((values.var() + loose) ** 0.5 / SCALE))
    assert 0.9 < min(found) < 1.1 and 8.5 < max(found) < 9.5
    assert "between 1 and 9 times" in PAGE


def _flipped(random: np.ndarray, number: int) -> np.ndarray:
    """(outputs, lanes), where the result of AND `number` is flipped."""
    program, words = HEAP.program, random.shape[1]
    slots = np.zeros((program.slots, words), dtype=np.uint64)
    slots[half_gates.ONE] = ~np.uint64(0)
    drawn = ands = 0
    for layer in program.layers:
        slots[layer.random] = random[drawn : drawn + len(layer.random)]
        drawn += len(layer.random)
        for out, operands in layer.xor_groups:
            slots[out] = np.bitwise_xor.reduce(slots[operands], axis=1)
        results = slots[layer.ands[:, 1]] & slots[layer.ands[:, 2]]
        if ands <= number < ands + len(results):
            results[number - ands] ^= ~np.uint64(0)
        slots[layer.results] = results
        ands += len(results)
    return np.array([from_planes(row[None]) for row in slots[program.outputs]]).astype(np.int64)
