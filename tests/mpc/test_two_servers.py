"""Two servers: circuits on shared bits against plain ones on all inputs, samples against the heap they are, views."""

import asyncio
import itertools
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparison import less_than
from direct import DirectEngine, evaluate
from pairs import Two, read_before, together

from dpmpc.circuits import adders, selection
from dpmpc.circuits.alias import AliasTable
from dpmpc.circuits.gaussian import GaussianPlan
from dpmpc.circuits.heap import Heap
from dpmpc.circuits.lift import heap_program
from dpmpc.circuits.program import program_of
from dpmpc.circuits.sampler import (
    DiscreteSampler,
    discrete_gaussian,
    discrete_laplace,
    lanes_for,
    noise_heap,
    noise_program,
)
from dpmpc.circuits.trace import Tracer
from dpmpc.errors import PeerError
from dpmpc.mpc.clear import executor as clear
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.default_backend import default_backend
from dpmpc.mpc.contract.lanes import from_planes, to_planes, words_for
from dpmpc.mpc.contract.levels import transfers_k
from dpmpc.mpc.native import choice as kernels
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import P
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.two_servers import lifts as lifting
from dpmpc.mpc.two_servers.backend import GARBLED, OT, check_sampler
from dpmpc.mpc.two_servers.consistency import ANSWER_BYTES, CHALLENGE_BYTES
from dpmpc.mpc.two_servers.counts import CountingOt
from dpmpc.mpc.two_servers.executor import OtBatch
from dpmpc.mpc.two_servers.flows import FLOWS
from dpmpc.mpc.two_servers.garbled import NO_PRODUCTS
from dpmpc.mpc.two_servers.half_gates import lanes_at_a_time
from dpmpc.mpc.two_servers.lifts import (
    ChosenLifts,
    Lift,
    Lifts,
    OfferedLifts,
    lifts_of,
    products_of_heap,
    transfers_of,
)
from dpmpc.mpc.two_servers.products import products_of
from dpmpc.noise.goodness import chi_square
from dpmpc.privacy.law import LAWS
from tests.refusals import Rule, breaks, refuses

CIRCUITS: dict[str, tuple[int, Callable[[Any, Any], Awaitable[Any]]]] = {
    "one_hot": (5, lambda e, x: selection.one_hot(e, x)),
    "mux": (7, lambda e, x: selection.mux(e, x[0], x[1:4], x[4:7])),
    "less_than": (8, lambda e, x: less_than(e, x[:4], x[4:])),
    "add": (10, lambda e, x: adders.add(e, x[:5], x[5:])),
    "add_end_around": (10, lambda e, x: adders.add_end_around(e, x[:5], x[5:])),
    "add_ripple": (8, lambda e, x: adders.add_ripple(e, x[:4], x[4:])),
}


@pytest.mark.parametrize("name", CIRCUITS)
def test_circuits_on_shares_are_the_circuits_on_all_inputs(name: str) -> None:
    """Lane l has the bits of l as inputs, shared at random."""
    bits, circuit = CIRCUITS[name]
    lanes = max(64, 1 << bits)
    inputs = to_planes(np.arange(lanes, dtype=np.uint64), bits)
    program = program_of(lambda tracer: circuit(tracer, tracer.given(bits)))
    plain = evaluate(circuit(DirectEngine(lanes, Prg(b"")), inputs)).reshape(-1, words_for(lanes))

    async def body(two: Two) -> None:
        first = Prg.from_os().words(inputs.shape)
        shares = (first, inputs ^ first)
        batches = [OtBatch(holder, 5, lanes) for holder in two.holders]
        outputs = await asyncio.gather(
            *(batch.run(program, given=share) for batch, share in zip(batches, shares, strict=True))
        )
        assert (outputs[0] ^ outputs[1] == plain).all()

    together(body)


TINY = [
    GaussianPlan(1.5, 1, (2,), AliasTable((5, 2, 0, 1), 2)),
    GaussianPlan(2.5, 2, (2, 3), AliasTable((6, 3, 5, 2), 3)),
]


@pytest.mark.parametrize(
    "plan",
    [*TINY, discrete_gaussian(300.0).plan, discrete_gaussian(2.0**20).plan, discrete_laplace(5000.0).plan],
    ids=["tiny", "tiny too", "300", "2^20", "Laplace"],
)
def test_a_sample_is_the_heap_of_the_bits_that_were_drawn(plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lane by lane: the parties' random bits put together, the circuit on plain bits, the heap's value."""
    heap, lanes = noise_heap(plan), 200
    seen: list[tuple[int, int, np.ndarray]] = []  # chooser, lift, the offerer's part of a bit born there
    take = OfferedLifts.take

    def spy(self: OfferedLifts, first: int, low: np.ndarray) -> None:
        for k in range(low.shape[2]):
            bit = (low[0][:, k] ^ low[1][:, k]).reshape(-1) & np.uint64(1)
            seen.append((id(self), first + k, bit))
        take(self, first, low)

    monkeypatch.setattr(OfferedLifts, "take", spy)
    made: dict[int, Any] = {}
    transfers = OtBatch._transfers

    async def kept(self: OtBatch, *arguments: Any) -> Any:
        made[self.party] = await transfers(self, *arguments)
        return made[self.party]

    monkeypatch.setattr(OtBatch, "_transfers", kept)

    async def body(two: Two) -> list[np.ndarray]:
        return list(await asyncio.gather(*(OtBatch(h, 5, lanes).lift(heap) for h in two.holders)))

    shares = together(body)
    lifts, words = lifts_of(heap), words_for(lanes)
    random = made[0].random() ^ made[1].random()
    outputs = clear.run(heap.program, words, _Given(random))  # type: ignore[arg-type]
    value = np.full(64 * words, heap.constant, dtype=object)
    for coefficient, row in zip(heap.coefficients, outputs, strict=True):
        value += coefficient * from_planes(row[None]).astype(object)
    for chooser in (0, 1):
        offerer = id(made[1 - chooser].offered_lifts)
        offset = made[chooser].products.transfers
        for k, lift in enumerate(lifts.by_chooser[chooser]):
            if lift.output is None:
                theirs = next(bit for who, number, bit in seen if who == offerer and number == k)
                mine = from_planes(made[chooser].choices[offset + k][None])
                value += lift.coefficient * (theirs ^ mine).astype(object)
    found = field.add(*shares).astype(object)
    assert (found == value[:lanes] % P).all()
    assert value.min() >= 0 and value.max() <= heap.largest < 1 << (lifts.bits - 1)
    assert len({bytes(row) for row in random}) == len(random)


class _Given:
    """A stream of words that were drawn before."""

    def __init__(self, rows: np.ndarray) -> None:
        self._rows, self._at = rows, 0

    def words(self, shape: tuple[int, ...]) -> np.ndarray:
        self._at += shape[0]
        return self._rows[self._at - shape[0] : self._at].reshape(shape)

    reserve = words


def test_every_random_bit_is_born_once_and_no_string_is_used_twice() -> None:
    for sampler in (discrete_gaussian(2.0**20), discrete_laplace(2.0**20)):
        heap = noise_heap(sampler.plan)
        products, lifts = products_of_heap(heap), lifts_of(heap)
        kinds = Counter(birth.kind for birth in products.births)
        places = [(b.kind, b.number) for b in products.births if b.kind != "own"]
        assert len(set(places)) == len(places) and kinds["own"] == 0
        elements = np.concatenate([layer.elements for layer in products.layers])
        assert sorted(elements.tolist()) == list(range(products.elements)) and products.elements == heap.program.ands
        told = np.concatenate([layer.told for layer in products.layers]).tolist()
        fresh = [b.number for b in products.births if b.kind == "choice"]
        assert sorted(told + fresh) == list(range(products.transfers))
        assert len(heap.loose) + len(heap.coefficients) == sum(map(len, lifts.by_chooser))
        assert abs(lifts.transfers(0) - lifts.transfers(1)) <= 1


def test_a_gaussian_sample_takes_318_transfers_and_14_flows() -> None:
    counts = OT.count_noise(discrete_gaussian(2.0**20), 128, 2, 1)
    assert counts.sample["transfers"] == 318 and counts.rounds == 14
    assert sum(counts.bytes_sent) / 128 <= 1700
    assert products_of(noise_program(discrete_gaussian(2.0**20).plan, 1)).transfers > 300  # adders cost more
    laplace = OT.count_noise(discrete_laplace(2.0**20), 128, 2, 1)
    assert laplace.sample["transfers"] == 935 and laplace.rounds == 15


@pytest.mark.parametrize(
    ("law", "count", "shift", "compiled"),
    [("gaussian", 1 << 16, 0.08, True), ("laplace", 1 << 14, 0.16, True), ("gaussian", 1 << 11, 0.5, False)],
)
def test_samples_follow_the_law(
    law: str, count: int, shift: float, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chi-square, false alarm 1e-9; the same samples moved by a part of the scale are refused. With kernels and
    without."""
    if not compiled:
        monkeypatch.setattr(kernels, "compiled", None)
    sampler = LAWS[law].sampler("discrete", 2.0**16)

    async def body(two: Two) -> np.ndarray:
        shares = await asyncio.gather(*(h.noise(sampler, 5, count) for h in two.holders))
        return field.to_int64(field.add(*shares))

    values, exact = together(body), LAWS[law].exact(sampler.scale, True)
    assert chi_square(values, exact).p_value > 1e-9
    assert chi_square(values + int(shift * 2**16), exact).p_value < 1e-9
    assert np.abs(values).max() <= sampler.largest


def test_lifts_and_adders_draw_from_one_law() -> None:
    """Two samples of 2^13, one by lifts and one by adders, in 32 bins: chi-square of homogeneity, false alarm 1e-9
    (the statistic exceeds 112 for 31 degrees of freedom with less); shifted by half a scale they are told apart."""
    sampler, count = discrete_gaussian(500.0), 1 << 13

    async def body(two: Two) -> list[np.ndarray]:
        found = []
        for channel, convert in ((5, lambda b: sampler.circuit(b)), (6, _by_adders(sampler))):
            batches = [OtBatch(h, channel, count) for h in two.holders]
            shares = list(await asyncio.gather(*(convert(batch) for batch in batches)))
            found.append(field.to_int64(field.add(*shares)))
        return found

    lifted, added = together(body)
    assert _homogeneity(lifted, added, 500.0) < 112
    assert _homogeneity(lifted, added + 250, 500.0) > 112


def _by_adders(sampler: DiscreteSampler) -> Callable[[OtBatch], Awaitable[np.ndarray]]:
    return lambda batch: batch.to_field(noise_program(sampler.plan, batch.masks), sampler.plan.offset)


def _homogeneity(a: np.ndarray, b: np.ndarray, scale: float) -> float:
    edges = np.concatenate([[-np.inf], np.linspace(-2, 2, 31) * scale + 0.5, [np.inf]])
    counts = np.array([np.histogram(x, bins=edges)[0] for x in (a, b)], dtype=float)
    expected = counts.sum(axis=0) / 2
    return float((((counts - expected) ** 2) / np.maximum(expected, 1)).sum())


# -- views -------------------------------------------------------------------------------------------------------------
class _Strings:
    """The transfers of one direction as given: choices (slots, lanes) and strings (2, slots, lanes)."""

    def __init__(self, choices: np.ndarray, strings: np.ndarray) -> None:
        self._choices, self._strings, self._words = choices, strings, choices.shape[-1] // 64

    def _block(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(len(values), 64, self._words).swapaxes(0, 1).copy()

    correction, challenge = np.zeros(0, dtype=np.uint64), b""  # there is nothing to check

    def begin(self, number: int, *_: Any) -> "_Strings":
        return self

    @property
    def choices(self) -> np.ndarray:
        return np.concatenate([to_planes(row, 1) for row in self._choices])

    def answer(self, challenge: bytes, take: Any, wide: int = 0) -> bytes:
        held = np.where(self._choices == 1, self._strings[1], self._strings[0])
        take(slice(0, len(held)), self._block(held)[None], None)
        return b""

    def make(self, take: Any, wide: int = 0) -> None:
        strings = np.stack([self._block(half) for half in self._strings])
        take(slice(0, strings.shape[2]), strings, None)

    def holds(self, answer: bytes) -> bool:
        return True

    def erase(self) -> None:
        pass


SECRETS, STEPS = 4, 5  # secret bits of the other party; bits of its transfers that the view does not determine


async def _steps(engine: Any, x: np.ndarray) -> np.ndarray:
    """A product with a vector, and a product of its result: two kinds of layers."""
    both = await engine.and_(x[0], x[1:3])
    return np.asarray(await engine.and_(both[0] ^ x[2], x[3][None]))


def product_views_differ(coalition: int, forgotten: bool, seed: int) -> bool:
    """Whether what a server receives in products has another law for some secret of the other server.

    All that it knows is fixed; the other's choices and the strings that it did not choose take all values.
    """
    program = program_of(lambda tracer: _steps(tracer, tracer.given(4)))
    products = products_of(program)
    widths = products.widths
    unknown = SECRETS + len(widths) + sum(widths)
    lanes = 1 << unknown
    rng, other = np.random.default_rng(seed), 1 - coalition
    bits = [(np.arange(lanes, dtype=np.uint64) >> np.uint64(i)) & np.uint64(1) for i in range(unknown)]
    digits = iter(bits[SECRETS:])

    def fixed(most: int) -> np.ndarray:
        return np.full(lanes, rng.integers(0, most), dtype=np.uint64)

    directions: list[Any] = [None, None]  # by who chooses
    mine = [fixed(2) for _ in widths]  # the coalition's choices
    held = [fixed(1 << w) for w in widths]
    hidden = [sum((next(digits) << np.uint64(i) for i in range(w)), start=np.zeros(lanes, np.uint64)) for w in widths]
    if forgotten:
        hidden = [np.zeros(lanes, dtype=np.uint64) for _ in widths]
    pairs = [(np.where(u == 0, q, h), np.where(u == 0, h, q)) for u, q, h in zip(mine, held, hidden, strict=True)]
    directions[coalition] = _Strings(np.array(mine), np.array(pairs).swapaxes(0, 1))
    offered = [(fixed(1 << w), fixed(1 << w)) for w in widths]
    directions[other] = _Strings(np.array([next(digits) for _ in widths]), np.array(offered).swapaxes(0, 1))
    shares: list[Any] = [None, None]
    shares[coalition] = np.concatenate([to_planes(fixed(2), 1) for _ in range(4)])
    shares[other] = np.concatenate([to_planes(row, 1) for row in bits[:SECRETS]])

    async def body(two: Two) -> list[tuple[int, bytes]]:
        for holder in two.holders:
            holder.chooser, holder.offerer = directions[holder.party], directions[1 - holder.party]
        await asyncio.gather(*(OtBatch(h, 5, lanes).run(program, given=shares[h.party]) for h in two.holders))
        return two.sent[other][FLOWS:]

    planes = [np.frombuffer(raw, dtype=np.uint64).reshape(-1, lanes // 64) for _, raw in together(body, connect=False)]
    rows = [from_planes(row[None]) for block in planes for row in block]
    assert len(rows) == len(widths) + sum(widths)
    view = sum((row << np.uint64(i) for i, row in enumerate(rows)), start=np.zeros(lanes, dtype=np.uint64))
    secret = sum((row << np.uint64(i) for i, row in enumerate(bits[:SECRETS])), start=np.zeros(lanes, np.uint64))
    laws = [Counter(view[secret == s].tolist()) for s in range(1 << SECRETS)]
    return any(law != laws[0] for law in laws)


@pytest.mark.parametrize("coalition", [0, 1])
def test_views_of_products_have_one_law(coalition: int) -> None:
    assert not any(product_views_differ(coalition, False, seed) for seed in range(3))
    assert all(product_views_differ(coalition, True, seed) for seed in range(3))  # strings that were forgotten


WIDTH = 3


def _lifts(born: bool) -> Lifts:
    """One lift, party 0 choosing."""
    lift = Lift(1, None if born else 0, born, WIDTH)
    return Lifts(WIDTH + 1, ((lift,), ()), {})


def test_views_of_lifts_have_one_law() -> None:
    """For each string and choice of the chooser: what the offerer sends, over all strings that the chooser lacks, has
    one law for both values of the offerer's bit. The chooser sends a bit under its uniform choice, or nothing."""
    for born, held, choice in itertools.product((True, False), range(1 << WIDTH), (0, 1)):
        hidden = np.arange(64, dtype=np.uint64) % (1 << WIDTH)
        strings = [np.full(64, held, dtype=np.uint64), hidden]
        low = np.array(strings[::-1] if choice else strings).reshape(2, 64, 1, 1)
        laws = []
        for bit in (0, 1):
            end = OfferedLifts(_lifts(born), 0, 1)
            end.take(0, low)
            outputs = to_planes(np.full(64, bit, dtype=np.uint64), 1)
            sent = from_planes(end.offer(outputs))
            drawn = (low[0] ^ low[1]).reshape(-1) & np.uint64(1)
            laws.append(Counter(sent[drawn == bit].tolist() if born else sent.tolist()))
        assert laws[0] == laws[1] and len(laws[0]) == 1 << (WIDTH - born)
        wrong = Counter(((low[0] - low[1]).reshape(-1) & np.uint64(1)).tolist())  # the lowest bit, had it been sent
        assert not born or len(wrong) == 2
    chosen = ChosenLifts(_lifts(False), 0, 1)
    for bit in (0, 1):
        told = []
        for choice in (0, 1):
            chosen.choices[:] = to_planes(np.full(64, choice, dtype=np.uint64), 1)
            told.append(int(chosen.tell(to_planes(np.full(64, bit, dtype=np.uint64), 1))[0, 0]) & 1)
        assert sorted(told) == [0, 1]
    assert ChosenLifts(_lifts(True), 0, 1).tell(np.zeros((0, 1), dtype=np.uint64)).shape == (0, 1)


def test_lifted_bits_are_right_for_all_strings_and_choices() -> None:
    """Shares mod 2^(WIDTH + 1) of s XOR r, for every bit, choice and pair of strings."""
    each = np.arange(64, dtype=np.uint64)
    for s, r, u in itertools.product((0, 1), repeat=3):
        low = np.array([each % 8, each // 8]).reshape(2, 64, 1, 1)
        offered, chosen = OfferedLifts(_lifts(False), 0, 1), ChosenLifts(_lifts(False), 0, 1)
        chosen.choices[:] = to_planes(np.full(64, u, dtype=np.uint64), 1)
        offered.take(0, low)
        chosen.take(0, low[u : u + 1])
        mine, theirs = (to_planes(np.full(64, bit, dtype=np.uint64), 1) for bit in (r, s))
        sent, told = offered.offer(theirs), chosen.tell(mine)
        total = offered.finish(theirs, told) + chosen.finish(mine, told, sent)
        assert (total % np.uint64(16) == s ^ r).all()


def test_the_step_into_the_field_is_right_and_hides() -> None:
    """For all shares mod 2^M of all values below 2^(M-1), random strings and both choices; what is offered moves with
    the string that the chooser lacks as it does for the other bit."""
    bits = 5
    x, share = (v.reshape(-1) for v in np.meshgrid(np.arange(1 << (bits - 1)), np.arange(1 << bits)))
    shares = share.astype(np.uint64), ((x - share) % (1 << bits)).astype(np.uint64)
    q = field.uniform(Prg.from_os(), (2, len(x)))
    a, b = (lifting.wrap_bit(value, bits) for value in shares)
    for choice in (0, 1):
        u = np.full(len(x), choice, dtype=np.uint64)
        sent = lifting.offer_field(q[0], q[1], b)
        mine = lifting.chosen_product(q[choice], u, u ^ a, sent)
        theirs = lifting.offered_product(q[0], b, u ^ a)
        total = field.add(
            lifting.field_share(shares[0], mine, bits, -(1 << bits)), lifting.field_share(shares[1], theirs, bits, 0)
        )
        assert (total == x).all()
    one = np.ones_like(b)
    moved = field.add(lifting.offer_field(q[0], q[1], one), field.neg(lifting.offer_field(q[0], q[1], 0 * one)))
    assert (moved == 1).all()  # a shift of a uniform number: the same law


def test_wide_strings_are_reduced_mod_p() -> None:
    low, high = np.random.default_rng(1).integers(0, 2**64, (2, 1000), dtype=np.uint64)
    low[:3], high[:3] = 2**64 - 1, (0, 2**64 - 1, 1)
    expected = (low.astype(object) + (high.astype(object) << 64)) % P
    assert (lifting.reduce_wide(low, high).astype(object) == expected).all()
    assert (1 << 128) % P == 64  # so the distance from uniform is below 64 2^-128 = 2^-122


@pytest.mark.parametrize("count", [100, 10_000])
def test_what_delta_has_is_strings_mod_p_and_hashes_that_meet_by_chance(count: int) -> None:
    """By the bound of docs/two-servers.md, worked out from the program's counts."""
    sampler = discrete_gaussian(2.0**20)
    program, lanes = noise_heap(sampler.plan).program, 64 * -(-count // 64)
    most = 64 * max(448, lanes // 64)
    for backend in (OT, GARBLED):
        counts = backend.count_noise(sampler, count, 2, 1)
        due = count * 2 * 2.0**-122
        if backend is OT:
            heap = noise_heap(sampler.plan)
            transfers = sum(transfers_of(products_of_heap(heap), lifts_of(heap), i) for i in (0, 1))
        else:
            lifts = lifts_of(noise_heap(sampler.plan), births=False)
            transfers = program.random_bits + sum(transfers_of(NO_PRODUCTS, lifts, i) for i in (0, 1))
            together, hashed = min(lanes, lanes_at_a_time(program)), 2 * program.ands * lanes
            due += 6 * together * hashed / 2**128 + (hashed / together) ** 2 / 2**129
        due += 4 * lanes * transfers * most / 2**128
        assert abs(counts.distance / due - 1) < 1e-9


# -- the setting -------------------------------------------------------------------------------------------------------
def test_two_parties_compute_by_transfers_unless_told_otherwise() -> None:
    usual = partial(default_backend, "gaussian", "discrete")
    assert usual(2, None) == usual(2, 1) == "ot"
    assert usual(2, 0) == usual(3, None) == usual(1, None) == usual(5, 2) == "sharing"
    for name in ("ot", "ot-k1", "ot-k2", "ot-k8", "garbled"):
        backend = BACKENDS[name]
        assert backend.threshold(2) == 1 and backend.threshold(3) < 0
        with refuses("range", 3, "parties=2", "backend=sharing", setting="backend"):
            backend.check(3, 1)
        with refuses("together", 1, "backend=sharing", "threshold=0", setting="backend"):
            backend.check(2, 0)


def test_fixed_point_samplers_are_refused() -> None:
    with refuses("choice", "sampler=box-muller", setting="sampler"):
        check_sampler(LAWS["gaussian"].sampler("box-muller", 2.0**20))


def test_shares_that_no_share_can_be_are_refused() -> None:
    async def body(two: Two) -> None:
        holder = two.holders[0]
        payload = np.zeros(4, dtype="<u8")
        assert (holder.collect(payload.tobytes(), 2, 2) == 0).all()
        payload[3] = P
        with refuses("message", 2, 61, 1, kind=PeerError):
            holder.collect(payload.tobytes(), 2, 2)
        with refuses("message", 2, 32, 24, kind=PeerError):
            holder.collect(payload.tobytes()[:24], 2, 2)

    together(body, connect=False)


@pytest.mark.parametrize(
    ("spoiled", "says"),
    [
        (lambda raw: raw[:-8], breaks("message", 56, 64, kind=PeerError)),
        (lambda raw: b"\xff" * len(raw), breaks("cheat", "channel 9", "party 1")),
    ],
)
def test_openings_of_another_length_or_share_are_refused(spoiled: Any, says: Rule) -> None:
    async def body(two: Two) -> None:
        one, other = two.holders
        opened = asyncio.ensure_future(other.open(other.zero(4), 9))
        with refuses(says):
            await one.open(one.zero(4), 9)
        assert (await opened == 0).all()

    together(body, connect=False, spoil=lambda label, raw: raw if label == 9 << 32 else spoiled(raw))


def test_a_promised_share_that_is_no_share_is_refused() -> None:
    async def body(two: Two) -> None:
        one, other = two.holders
        opening = asyncio.ensure_future(one.open(one.zero(4), 9))
        bad = np.full(4, (1 << 64) - 1, dtype=np.uint64)
        _, show = await read_before(other, bad, 9)
        show(bad)
        with refuses("message", 2, kind=PeerError):
            await opening

    together(body, connect=False)


def test_flows_of_another_length_are_refused() -> None:
    """The corrections, a layer, the step into the field."""
    sampler = discrete_gaussian(300.0)
    flows = OT.count_noise(sampler, 64, 2, 1).rounds

    def spoil_one(number: int) -> Callable[[int, bytes], bytes]:
        return lambda label, raw: raw[:-8] if label == 5 << 32 | number else raw

    async def body(two: Two) -> None:
        tasks = [asyncio.ensure_future(h.noise(sampler, 5, 64)) for h in two.holders]
        with refuses("message", kind=PeerError):
            await tasks[0]
        tasks[1].cancel()

    for number in (0, 1, 2, 4, flows - 1):
        together(body, spoil=spoil_one(number))


def test_a_heap_that_is_too_wide_is_refused() -> None:
    async def circuit(tracer: Tracer) -> Heap:
        heap = Heap()
        heap.put(60, tracer.random_bits(1)[0])
        return heap

    with pytest.raises(ValueError, match="below 2"):
        lifts_of(heap_program(circuit))
    assert lanes_for(discrete_gaussian(300.0), 7) == 7


def test_the_figures_of_the_page_are_those_that_are_counted() -> None:
    page = (Path(__file__).parents[2] / "docs" / "two-servers.md").read_text(encoding="utf-8")
    gaussian, laplace = discrete_gaussian(2.0**20), discrete_laplace(2.0**20)
    lanes = 1 << 16
    for name in ("ot", "ot-k1", "ot-k2", "ot-k8"):
        sent = sum(BACKENDS[name].count_noise(gaussian, lanes, 2, 1).bytes_sent)
        k = transfers_k(name) or 0
        check = 2 * (8 * (128 // k - 1) + CHALLENGE_BYTES + ANSWER_BYTES)  # of a batch
        assert (sent - check) % lanes == 0 and k
        assert re.search(rf"^\| `{name}` \| {k} \| {sent // lanes:,} \|", page, re.MULTILINE)
        assert k != 4 or f"{check} bytes more, both ways, at k = 4" in page
    for name, sampler in (("Gaussian", gaussian), ("Laplace", laplace)):
        counts = OT.count_noise(sampler, lanes, 2, 1)
        row = f"| {name} | {counts.sample['ands']} | {counts.sample['transfers']} | {counts.rounds} |"
        assert row in page
    adders = CountingOt(lanes, 4)
    evaluate(adders.to_field(noise_program(gaussian.plan, adders.masks)))
    assert f"| Gaussian by adders, for comparison | {adders.ands} | {sum(adders.transfers)} | {adders.rounds} |" in page
    for name, sampler in (("Gaussian", gaussian), ("Laplace", laplace)):
        many, few = (BACKENDS["garbled"].count_noise(sampler, count, 2, 1) for count in (10_000, 122))
        sent = [round(each / 10_000) for each in many.bytes_sent]
        assert f"| {name} | {many.sample['ands']} | {sent[0]:,} | {sent[1]:,} | {few.rounds} |" in page
