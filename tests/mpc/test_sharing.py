"""The sharing engine over real processes: against the clear engine on the same bits, its cost, views and samples."""

import asyncio
import itertools
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from alarms import FALSE_ALARM, alarms
from inprocess import Network

from dpmpc.circuits.engine import Bundle, Engine
from dpmpc.circuits.sampler import Sampler, discrete_gaussian, discrete_laplace
from dpmpc.circuits.selection import less_than, look_up, mux, one_hot
from dpmpc.mpc import field
from dpmpc.mpc.backends.sharing import SHARING, SharingHolder
from dpmpc.mpc.engines.clear import ClearEngine, ClearMask, evaluate
from dpmpc.mpc.engines.counting import CountingEngine
from dpmpc.mpc.engines.layout import Layout
from dpmpc.mpc.engines.sharing import SharedMask, SharingEngine
from dpmpc.mpc.field import Words
from dpmpc.mpc.loopback import run_parties
from dpmpc.mpc.prg import Prg
from dpmpc.noise import goodness
from dpmpc.noise.draw import draw
from dpmpc.privacy import exact

CASES = [(1, 0), (3, 1), (4, 1), (5, 2)]
LANES = 300  # not a multiple of 64


def discrete(law: str, scale: float) -> Sampler:
    return {"gaussian": discrete_gaussian, "laplace": discrete_laplace}[law](scale)


# -- recording -------------------------------------------------------------------------------------------------------
class RecordingEngine(SharingEngine):
    """Keeps this party's components of all random bits and masks, and what it receives."""

    def __init__(self, session: Any, ident: int, lanes: int) -> None:
        super().__init__(session, ident, lanes)
        self.bits: list[Bundle] = []
        self.masks: list[dict[tuple[int, ...], Words]] = []
        self.received: list[tuple[int, bytes]] = []
        self._exchange, self.channel.exchange = self.channel.exchange, self._keep  # type: ignore[method-assign]

    def _keep(self, outgoing: Any, incoming: Sequence[int]) -> Awaitable[list[bytearray]]:
        pending = self._exchange(outgoing, incoming)

        async def kept() -> list[bytearray]:
            payloads = await pending
            self.received += [(party, bytes(p)) for party, p in zip(incoming, payloads, strict=True)]
            return payloads

        return kept()

    def random_bits(self, *wires: int) -> Bundle:
        bits = super().random_bits(*wires)
        self.bits.append(bits.copy())
        return bits

    def field_mask(self) -> SharedMask:
        mask = super().field_mask()
        self.masks.append(dict(mask._values))
        return mask


@dataclass
class Transcript:
    """What one party kept of a circuit, and what the circuit gave it."""

    result: Any
    bits: list[Bundle]
    masks: list[dict[tuple[int, ...], Words]]
    received: list[tuple[int, bytes]]
    cost: tuple[int, int, int, int]  # ANDs, rounds, bytes sent, messages sent

    def to_json(self) -> list[Any]:
        """As it goes between processes."""
        masks = [[[s, values] for s, values in mask.items()] for mask in self.masks]
        return [self.result, self.bits, masks, self.received, self.cost]

    @staticmethod
    def from_json(value: list[Any]) -> "Transcript":
        result, bits, masks, received, cost = value
        return Transcript(
            result,
            bits,
            [{tuple(s): values for s, values in mask} for mask in masks],
            [(party, payload) for party, payload in received],
            tuple(cost),
        )


def transcript(engine: RecordingEngine, result: Any) -> Transcript:
    channel = engine.channel
    cost = (engine.ands, channel.rounds, channel.bytes_sent, channel.messages_sent)
    return Transcript(result, engine.bits, engine.masks, engine.received, cost)


class ReplayEngine(ClearEngine):
    """A clear engine whose random bits and masks are those of a transcript."""

    def __init__(self, lanes: int, bits: list[Bundle], masks: list[list[Words]]) -> None:
        super().__init__(lanes, Prg(b""))
        self._bits, self._given = iter(bits), iter(masks)

    def random_bits(self, *wires: int) -> Bundle:
        return next(self._bits).reshape(*wires, *self.tail)

    def field_mask(self) -> ClearMask:
        values = next(self._given)
        return ClearMask(values or [np.zeros(64 * self.tail[0], dtype=np.uint64)], self.lanes)

    def exhausted(self) -> bool:
        return next(self._bits, None) is None and next(self._given, None) is None


def secret(layout: Layout, bundles: Sequence[Bundle]) -> Bundle:
    """The bits that the parties' bundles share; all holders of a component must agree on it."""
    total = None
    for s in layout.subsets:
        parts = [bundles[i][..., layout.mine(i).index(s), :] for i in s]
        assert all((part == parts[0]).all() for part in parts), "parties differ in a component"
        total = parts[0] if total is None else total ^ parts[0]
    assert total is not None
    return total


def replay(layout: Layout, records: list[Transcript], lanes: int) -> ReplayEngine:
    """The clear engine on the random bits that the parties had together."""
    bits = [secret(layout, calls) for calls in zip(*(r.bits for r in records), strict=True)]
    masks = []
    for calls in zip(*(r.masks for r in records), strict=True):
        held: dict[tuple[int, ...], Words] = {}
        for party, mask in enumerate(calls):
            for s, values in mask.items():
                assert party in s and (held.setdefault(s, values) == values).all()
        assert sorted(held) == sorted(s for s in layout.subsets if s != layout.opened_to)
        masks.append([held[s] for s in sorted(held)])
    return ReplayEngine(lanes, bits, masks)


# -- the same circuits -----------------------------------------------------------------------------------------------
async def every_gate(engine: Engine) -> Bundle:
    """All operations of an engine and the circuits made of them, with broadcasting and chains; (wires, *tail)."""
    x = engine.random_bits(4)
    y = engine.random_bits(2, 3)
    table = np.arange(16)[:, None] >> np.arange(3) & 1
    chosen = look_up(await one_hot(engine, x), (table ^ (np.arange(16)[:, None] % 3 == 0)).astype(bool))
    wide = await engine.and_(y[:, None], engine.not_(x[None, :3, None]))  # (2, 1, 3) and (1, 3, 1)
    less = await less_than(engine, x, engine.constant([1, 0, 1, 0]))
    mixed = await mux(engine, less, chosen, engine.constant([1, 1, 0]) ^ y[1])
    nothing = await engine.and_(x[:0], x[:0])
    return np.concatenate([x, chosen, wide.reshape(18, *engine.tail), less[None], mixed, engine.not_(mixed), nothing])


async def run_every_gate(session: Any) -> Transcript:
    engine = RecordingEngine(session, 1, LANES)
    return transcript(engine, await every_gate(engine))


SAMPLERS = {"gaussian": (700.0, 2), "laplace": (1000.0, 3)}


async def run_samplers(session: Any) -> list[Transcript]:
    records = []
    for law, (scale, ident) in SAMPLERS.items():
        engine = RecordingEngine(session, ident, LANES)
        records.append(transcript(engine, await discrete(law, scale).circuit(engine, None)))
    return records


async def run_all(session: Any) -> list[Transcript]:
    return [await run_every_gate(session), *await run_samplers(session)]


async def run_all_far(holder: SharingHolder) -> list[Any]:
    return [record.to_json() for record in await run_all(holder)]


def counted(lanes: int, n: int, t: int, name: str) -> CountingEngine:
    """What the counting engine says; what the backend says of a sampler is the same."""
    engine = CountingEngine(lanes, n, t)
    if name == "gates":
        evaluate(every_gate(engine))
        return engine
    sampler = discrete(name, SAMPLERS[name][0])
    evaluate(sampler.circuit(engine, None))
    counts = SHARING.count_noise(sampler, lanes, n, t)
    assert (counts.rounds, counts.bytes_sent) == (engine.rounds, tuple(engine.bytes_sent))
    assert counts.messages_sent == tuple(engine.messages_sent)
    assert counts.sample == {"ands": engine.ands, "random bits": engine.random_bits_drawn}
    return engine


def check(n: int, t: int, records: list[list[Transcript]]) -> None:
    """Records by party, of every gate and of both samplers: the same as in the clear, at the cost that was counted."""
    layout = Layout.of(n, t)
    for k, name in enumerate(["gates", *SAMPLERS]):
        parties = [r[k] for r in records]
        clear = replay(layout, parties, LANES)
        results = [p.result for p in parties]
        if name == "gates":
            assert (secret(layout, results) == evaluate(every_gate(clear))).all()
        else:
            sampler = discrete(name, SAMPLERS[name][0])
            expected = evaluate(sampler.circuit(clear, None))
            assert (abs(expected.astype(np.int64) - sampler.offset) <= sampler.largest).all()
            for holders in itertools.combinations(range(n), t + 1):
                assert (field.recombine([results[i] for i in holders], holders) == expected).all()
        assert clear.exhausted()
        engine = counted(LANES, n, t, name)
        measured = [p.cost for p in parties]
        predicted = [(engine.ands, engine.rounds, engine.bytes_sent[i], engine.messages_sent[i]) for i in range(n)]
        assert measured == predicted


@pytest.mark.parametrize(("n", "t"), CASES)
def test_sharing_equals_clear_and_costs_what_is_counted(n: int, t: int) -> None:
    results = run_parties(run_all_far, n, t)
    check(n, t, [[Transcript.from_json(value) for value in result] for result in results])


@pytest.mark.parametrize(("n", "t"), [(2, 0), (3, 0), (6, 2), (7, 3)])
def test_more_parties_in_one_process(n: int, t: int) -> None:
    check(n, t, Network(n, t).run(run_all))


# -- views of real runs ----------------------------------------------------------------------------------------------
VIEW_LANES = 1 << 12
VIEWS = {(3, 1): (1,), (5, 2): (0, 3)}  # coalitions with a member that sees the masked value


class Watched:
    """A session that fixes, over all lanes, the random bits and AND masks that the coalition knows.

    So what varies is what the coalition does not know, as in test_views. The masks of `leaker` that it lacks are zero.
    """

    def __init__(self, session: SharingHolder, missing: tuple[int, ...], leaker: int | None) -> None:
        self._session, self._missing, self._leaker = session, missing, leaker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stream(self, subset: tuple[int, ...], kind: str, *domain: int) -> Any:
        stream = self._session.stream(subset, kind, *domain)
        if subset != self._missing:
            return stream if kind == "mask" else _Fixed(stream)
        return _Zeros() if kind == "and" and domain[1] == self._leaker else stream


class _Fixed:
    def __init__(self, stream: Prg) -> None:
        self._stream = stream

    def words(self, shape: tuple[int, ...]) -> Words:
        bits = self._stream.words((*shape[:-1], 1)) & np.uint64(1)
        return np.broadcast_to(bits * np.uint64(0xFFFFFFFFFFFFFFFF), shape)


class _Zeros:
    def words(self, shape: tuple[int, ...]) -> Words:
        return np.zeros(shape, dtype=np.uint64)


async def run_views(session: SharingHolder, coalition: Sequence[int]) -> list[list[Any] | None]:
    """A Gaussian batch, and one by an engine that forgets one mask. Kept by the coalition and one other party."""
    missing = tuple(i for i in range(session.parties) if i not in coalition)
    sampler = discrete("gaussian", 700.0)
    layout = Layout.of(session.parties, session.threshold)
    leaker = next(j for j in missing if layout.target(j) != missing)
    records: list[list[Any] | None] = []
    for ident, who in enumerate([None, leaker]):
        engine = RecordingEngine(Watched(session, missing, who), 10 + ident, VIEW_LANES)
        record = transcript(engine, await sampler.circuit(engine, None))
        records.append(record.to_json() if session.party in (*coalition, missing[0]) else None)
    return records


def signs(words: Words) -> np.ndarray:
    """+-1 for each lane of bit planes (M, words)."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")
    return 1 - 2 * bits.astype(np.float32)


def largest_correlation(
    n: int, t: int, coalition: tuple[int, ...], records: list[Transcript | None]
) -> tuple[float, float, int]:
    """z of the worst bias of a received bit, z of its worst correlation with a component the coalition lacks, pairs."""
    layout = Layout.of(n, t)
    missing = tuple(i for i in range(n) if i not in coalition)
    other = records[missing[0]]
    assert other is not None
    place = layout.mine(missing[0]).index(missing)
    unknown = signs(np.concatenate([b.reshape(-1, *b.shape[-2:])[:, place] for b in other.bits]))
    received = []
    for party in coalition:
        record = records[party]
        assert record is not None
        received += [
            np.frombuffer(p, dtype="<u8").reshape(-1, VIEW_LANES // 64)
            for sender, p in record.received
            if sender not in coalition
        ]
    view = signs(np.concatenate(received))
    root = np.sqrt(VIEW_LANES)
    correlations = np.abs(view @ unknown.T) / root
    return float(np.abs(view.sum(axis=1)).max() / root), float(correlations.max()), correlations.size


@pytest.mark.parametrize(("n", "t"), VIEWS)
def test_what_a_coalition_receives_is_uniform_and_independent_of_the_noise(n: int, t: int) -> None:
    """Each received bit against each component that the coalition lacks of a random bit: given the rest, the noise.

    False alarms: z > 8.5 has probability 2e-17 a pair, with at most 10^7 pairs 2e-10.
    """
    coalition = VIEWS[n, t]
    found = run_parties(run_views, n, t, (coalition,))
    results = [[None if value is None else Transcript.from_json(value) for value in values] for values in found]
    bias, correlation, pairs = largest_correlation(n, t, coalition, [r[0] for r in results])
    assert 10**5 < pairs < 10**7
    assert bias < 8.5 and correlation < 8.5
    _, leak, _ = largest_correlation(n, t, coalition, [r[1] for r in results])
    assert leak > 15  # one mask of one party is missing


@pytest.mark.parametrize(("n", "t"), VIEWS)
def test_shares_are_uniform(n: int, t: int) -> None:
    """Every party's shares of the noise are uniform in F_p: 16 bins, p-value > 1e-9."""
    from scipy.stats import chi2

    results = Network(n, t).run(run_shares)
    for shares in results:
        counts = np.bincount((shares >> np.uint64(57)).astype(int), minlength=16)
        assert chi2.sf(((counts - VIEW_LANES / 16) ** 2 / (VIEW_LANES / 16)).sum(), 15) > FALSE_ALARM
    assert not any((one == two).any() for one, two in itertools.combinations(results, 2))  # 2^-61 each


async def run_shares(session: Any) -> Words:
    return await session.noise(discrete("gaussian", 700.0), 5, VIEW_LANES)  # type: ignore[no-any-return]


# -- samples ---------------------------------------------------------------------------------------------------------
SIGMA = 700.0
MANY = 1 << 20


class Forgetful:
    """A holder whose streams do not depend on the batch: the PRG's blocks repeat."""

    noise = SharingHolder.noise  # with the streams below

    def __init__(self, session: SharingHolder) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stream(self, subset: tuple[int, ...], kind: str, ident: int, *rest: Any) -> Any:
        return self._session.stream(subset, kind, 0, *rest)


async def run_samples(holder: SharingHolder) -> list[np.ndarray] | None:
    sampler = discrete("gaussian", SIGMA)
    good = await draw(holder, sampler, MANY, first_channel=100)
    bad = await draw(Forgetful(holder), sampler, 1 << 16, first_channel=200, batch=1 << 14)  # type: ignore[arg-type]
    laplace = await draw(holder, discrete("laplace", SIGMA), 1 << 18, first_channel=300)
    opened = [await holder.open(x, k) for k, x in enumerate([good, bad, laplace])]
    return opened if holder.party == 0 else None


def test_opened_samples_follow_the_law_and_repeated_blocks_are_seen() -> None:
    law, first = exact.discrete_gaussian(SIGMA), run_parties(run_samples, 3)[0]
    assert first is not None
    good, bad, laplace = first
    assert len(good) == MANY and not alarms(good, law)
    assert not alarms(laplace, exact.discrete_laplace(SIGMA))
    assert {"autocorrelation", "repeats"} <= alarms(bad, law).keys()
    for wrong in (0.99 * SIGMA, 1.01 * SIGMA):
        assert {"chi-square", "mean and variance"} <= alarms(good, exact.discrete_gaussian(wrong)).keys()


async def run_few(holder: SharingHolder) -> np.ndarray:
    return await holder.open(await draw(holder, discrete("gaussian", SIGMA), 1 << 14), 0)


def test_runs_are_independent() -> None:
    one, two = run_parties(run_few, 3)[0], run_parties(run_few, 3)[2]
    law = exact.discrete_gaussian(SIGMA)
    assert goodness.cross_independence(one, two, law).p_value > FALSE_ALARM
    assert goodness.independence(np.concatenate([one, two]), law).p_value > FALSE_ALARM
    assert goodness.cross_independence(one, np.roll(one, 5), law).p_value < FALSE_ALARM


def test_two_batches_at_once_are_those_of_two_batches_in_turn() -> None:
    """Batches in flight together use their own channels and streams: order and interleaving change nothing."""
    sampler = discrete("gaussian", SIGMA)

    async def together(session: Any) -> Words:
        return np.concatenate(await asyncio.gather(*(session.noise(sampler, 7 + k, 200) for k in range(3))))

    async def in_turn(session: Any) -> Words:
        return np.concatenate([await session.noise(sampler, 7 + k, 200) for k in (2, 0, 1)])

    one, two = Network(3, 1).run(together), Network(3, 1).run(in_turn)
    for a, b in zip(one, two, strict=True):
        assert (a.reshape(3, -1) == b.reshape(3, -1)[[1, 2, 0]]).all()
    values = field.recombine([one[0], one[1]], [0, 1]).reshape(3, -1)
    assert not (values[0] == values[1]).all()


@pytest.mark.parametrize(("n", "t"), [(3, 1), (4, 1), (5, 2)])
def test_no_stream_is_used_twice(n: int, t: int) -> None:
    """Over two batches of both samplers: each party opens each stream once, with the batch in its name."""
    opened: list[list[tuple[Any, ...]]] = [[] for _ in range(n)]

    async def body(session: Any) -> None:
        make = session.stream

        def stream(subset: tuple[int, ...], *domain: Any) -> Prg:
            opened[session.party].append((subset, *domain))
            return make(subset, *domain)  # type: ignore[no-any-return]

        session.stream = stream
        for ident, law in [(7, "gaussian"), (8, "gaussian"), (9, "laplace")]:
            await session.noise(discrete(law, 1000.0), ident, 64)

    Network(n, t).run(body)
    for names in opened:
        assert len(set(names)) == len(names)
        assert {(kind, ident) for _, kind, ident, *_ in names} == set(
            itertools.product(["random", "and", "mask"], [7, 8, 9])
        )
