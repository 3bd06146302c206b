"""The sharing engine over real processes: against the clear engine on the same bits, its cost, views and samples."""

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from alarms import FALSE_ALARM, alarms
from comparison import less_than
from direct import DirectEngine, evaluate, less_masks
from independence import cross_independence
from inprocess import Network, Subset

from dpmpc.circuits.engine import Bundle, Engine
from dpmpc.circuits.program import Program, program_of
from dpmpc.circuits.sampler import (
    DiscreteSampler,
    Sampler,
    discrete_gaussian,
    discrete_laplace,
    noise_circuit,
    noise_program,
)
from dpmpc.circuits.selection import look_up, mux, one_hot
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.domains import Domain
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import recombine
from dpmpc.mpc.parties.loopback import run_parties
from dpmpc.mpc.replicated.backend import SHARING, SharingHolder
from dpmpc.mpc.replicated.counts import CountingBatch
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.replicated.layout import SharingLayout
from dpmpc.noise import goodness
from dpmpc.noise.draw import draw
from dpmpc.privacy import exact

CASES = [(1, 0), (3, 1), (4, 1), (5, 2)]
LANES = 300  # not a multiple of 64


def discrete(law: str, scale: float) -> Sampler:
    return {"gaussian": discrete_gaussian, "laplace": discrete_laplace}[law](scale)


# -- recording -------------------------------------------------------------------------------------------------------
class Recorded:
    """A session that keeps what its party draws for random bits and masks, and what it receives."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.drawn: dict[tuple[str, Subset], list[Words]] = {}
        self.received: list[tuple[int, bytes]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stream(self, subset: Subset, domain: Domain, *of: Any) -> Any:
        stream = self._session.stream(subset, domain, *of)
        if domain.name in ("random", "mask"):
            return Kept(stream, self.drawn.setdefault((domain.name, subset), []))
        return stream

    def channel(self, ident: int) -> Any:
        channel = self._session.channel(ident)
        exchange = channel.exchange

        def keep(outgoing: Any, incoming: Sequence[int]) -> Awaitable[list[bytearray]]:
            pending = exchange(outgoing, incoming)

            async def kept() -> list[bytearray]:
                payloads: list[bytearray] = await pending
                self.received += [(party, bytes(p)) for party, p in zip(incoming, payloads, strict=True)]
                return payloads

            return kept()

        channel.exchange = keep
        return channel


class Kept:
    """A stream whose words are kept."""

    def __init__(self, stream: Any, kept: list[Words]) -> None:
        self._stream, self._kept = stream, kept

    def words(self, shape: tuple[int, ...]) -> Words:
        words: Words = self._stream.words(shape)
        self._kept.append(words.copy())
        return words

    reserve = words


@dataclass
class Transcript:
    """What one party kept of a program, and what the program gave it."""

    result: Any
    drawn: dict[tuple[str, Subset], list[Words]]
    received: list[tuple[int, bytes]]
    cost: tuple[int, int, int]  # rounds, bytes sent, messages sent

    def to_json(self) -> list[Any]:
        """As it goes between processes."""
        drawn = [[kind, subset, words] for (kind, subset), words in self.drawn.items()]
        return [self.result, drawn, self.received, self.cost]

    @staticmethod
    def from_json(value: list[Any]) -> "Transcript":
        result, drawn, received, cost = value
        return Transcript(
            result,
            {(kind, tuple(subset)): words for kind, subset, words in drawn},
            [(party, payload) for party, payload in received],
            tuple(cost),
        )


def transcript(session: Recorded, batch: SharingBatch, result: Any) -> Transcript:
    channel = batch.channel
    cost = (channel.rounds, channel.bytes_sent, channel.messages_sent)
    return Transcript(result, session.drawn, session.received, cost)


class Replay(DirectEngine):
    """The circuit itself, on the random bits that the parties had together, and on others that should not matter."""

    def __init__(self, lanes: int, program: Program, layout: SharingLayout, records: list[Transcript]) -> None:
        parts = common(layout, records, "random")
        total = np.bitwise_xor.reduce([np.concatenate(parts[s]) for s in layout.subsets])
        masks = common(layout, records, "mask")
        assert sorted(masks) == ([s for s in layout.subsets if s != layout.opened_to] if program.masks else [])
        super().__init__(lanes, Prg(b"whatever"), [masks[s][0] & np.uint64(field.P) for s in sorted(masks)])
        self._given = dict(zip(program.drawn.tolist(), total, strict=True))

    def random_bits(self, *wires: int) -> Bundle:
        first = self.drawn
        bits = super().random_bits(*wires).reshape(-1, *self.tail)
        for k in range(len(bits)):
            bits[k] = self._given.get(first + k, bits[k])
        return bits.reshape(*wires, *self.tail)


def common(layout: SharingLayout, records: list[Transcript], kind: str) -> dict[Subset, list[Words]]:
    """What the members of each subset drew; they must agree."""
    found: dict[Subset, list[Words]] = {}
    for party, record in enumerate(records):
        for (what, subset), words in record.drawn.items():
            assert party in subset
            if what == kind:
                other = found.setdefault(subset, words)
                assert len(other) == len(words) and all((a == b).all() for a, b in zip(words, other, strict=True))
    return found


def secret(layout: SharingLayout, shares: Sequence[Words]) -> Words:
    """The bits (wires, words) that the parties' shares stand for; all holders of a component must agree on it."""
    total = None
    for s in layout.subsets:
        parts = [shares[i][:, layout.mine(i).index(s)] for i in s]
        assert all((part == parts[0]).all() for part in parts), "parties differ in a component"
        total = parts[0] if total is None else total ^ parts[0]
    assert total is not None
    return total


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


GATES = program_of(every_gate)


async def run_every_gate(session: Any) -> Transcript:
    recorded = Recorded(session)
    batch = SharingBatch(recorded, 1, LANES)  # type: ignore[arg-type]
    return transcript(recorded, batch, await batch.run(GATES))


SAMPLERS = {"gaussian": (700.0, 2), "laplace": (1000.0, 3)}


async def run_samplers(session: Any) -> list[Transcript]:
    records = []
    for law, (scale, ident) in SAMPLERS.items():
        recorded = Recorded(session)
        batch = SharingBatch(recorded, ident, LANES)  # type: ignore[arg-type]
        records.append(transcript(recorded, batch, await discrete(law, scale).circuit(batch, None)))
    return records


async def run_all(session: Any) -> list[Transcript]:
    return [await run_every_gate(session), *await run_samplers(session)]


async def run_all_far(holder: SharingHolder) -> list[Any]:
    return [record.to_json() for record in await run_all(holder)]


def counted(n: int, t: int, name: str) -> CountingBatch:
    """What counting on the program says; what the backend says of a sampler is the same."""
    batch = CountingBatch(LANES, n, t)
    if name == "gates":
        batch.add_program(GATES)
        return batch
    sampler = discrete(name, SAMPLERS[name][0])
    evaluate(sampler.circuit(batch, None))
    counts = SHARING.count_noise(sampler, LANES, n, t)
    assert (counts.rounds, counts.bytes_sent) == (batch.rounds, tuple(batch.bytes_sent))
    assert counts.messages_sent == tuple(batch.messages_sent)
    assert counts.sample == {"ands": batch.ands, "random bits": batch.random_bits}
    return batch


def check(n: int, t: int, records: list[list[Transcript]]) -> None:
    """Records by party, of every gate and of both samplers: what the circuit gives in the clear, at the cost
    that was counted."""
    layout = SharingLayout.of(n, t)
    for k, name in enumerate(["gates", *SAMPLERS]):
        parties = [r[k] for r in records]
        results = [p.result for p in parties]
        if name == "gates":
            clear = Replay(LANES, GATES, layout, parties)
            assert (secret(layout, results) == evaluate(every_gate(clear))).all()
        else:
            sampler = discrete(name, SAMPLERS[name][0])
            assert isinstance(sampler, DiscreteSampler)
            clear = Replay(LANES, noise_program(sampler.plan, len(layout.subsets) - 1), layout, parties)
            lifted = less_masks(evaluate(noise_circuit(clear, sampler.plan)), clear.masks)[:LANES]
            samples = lifted.astype(np.int64) - sampler.plan.offset
            assert (abs(samples) <= sampler.largest).all()
            expected = field.from_int64(samples)
            for holders in itertools.combinations(range(n), t + 1):
                assert (recombine([results[i] for i in holders], holders) == expected).all()
        cost = counted(n, t, name)
        for i, party in enumerate(parties):
            assert party.cost == (cost.rounds, cost.bytes_sent[i], cost.messages_sent[i])


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

    def stream(self, subset: tuple[int, ...], domain: Domain, *of: int) -> Any:
        stream, kind = self._session.stream(subset, domain, *of), domain.name
        if subset != self._missing:
            return stream if kind == "mask" else _Fixed(stream)
        return _Zeros() if kind == "and" and of[1] == self._leaker else stream


class _Fixed:
    def __init__(self, stream: Prg) -> None:
        self._stream = stream

    def words(self, shape: tuple[int, ...]) -> Words:
        bits = self._stream.words((*shape[:-1], 1)) & np.uint64(1)
        return bits * np.full(shape, 0xFFFFFFFFFFFFFFFF, dtype=np.uint64)

    reserve = words


class _Zeros:
    def words(self, shape: tuple[int, ...]) -> Words:
        return np.zeros(shape, dtype=np.uint64)

    reserve = words


async def run_views(session: SharingHolder, coalition: Sequence[int]) -> list[list[Any] | None]:
    """A Gaussian batch, and one by an engine that forgets one mask. Kept by the coalition and one other party."""
    missing = tuple(i for i in range(session.parties) if i not in coalition)
    sampler = discrete("gaussian", 700.0)
    layout = SharingLayout.of(session.parties, session.threshold)
    leaker = next(j for j in missing if layout.target(j) != missing)
    records: list[list[Any] | None] = []
    for ident, who in enumerate([None, leaker]):
        recorded = Recorded(Watched(session, missing, who))
        batch = SharingBatch(recorded, 10 + ident, VIEW_LANES)  # type: ignore[arg-type]
        record = transcript(recorded, batch, await sampler.circuit(batch, None))
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
    missing = tuple(i for i in range(n) if i not in coalition)
    other = records[missing[0]]
    assert other is not None
    unknown = signs(np.concatenate(other.drawn["random", missing]))
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

    noise = SharingHolder.draw  # with the streams below

    def __init__(self, session: SharingHolder) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stream(self, subset: tuple[int, ...], domain: Domain, ident: int, *rest: Any) -> Any:
        return self._session.stream(subset, domain, 0, *rest)


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
    assert cross_independence(one, two, law).p_value > FALSE_ALARM
    assert goodness.independence(np.concatenate([one, two]), law).p_value > FALSE_ALARM
    assert cross_independence(one, np.roll(one, 5), law).p_value < FALSE_ALARM


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
    values = recombine([one[0], one[1]], [0, 1]).reshape(3, -1)
    assert not (values[0] == values[1]).all()


@pytest.mark.parametrize(("n", "t", "lanes"), [(1, 0, 20_000), (3, 1, 20_000), (3, 1, 3000), (5, 2, 10_000)])
def test_threads_change_nothing(n: int, t: int, lanes: int) -> None:
    """Batches in flight on three threads a party give the shares and send the messages of batches in turn on none."""
    sampler = discrete("laplace", SIGMA)

    async def on_threads(session: Any) -> Words:
        session.use_threads(3)
        names = set()

        async def batch(ident: int) -> Words:
            names.add(await session.work(lambda: threading.current_thread().name))
            return await session.noise(sampler, ident, lanes)  # type: ignore[no-any-return]

        shares = np.concatenate(await asyncio.gather(*(batch(k) for k in range(4))))
        assert names and threading.current_thread().name not in names
        session._stop_workers()
        return shares

    async def on_none(session: Any) -> Words:
        assert await session.work(threading.current_thread) is threading.current_thread()
        return np.concatenate([await session.noise(sampler, k, lanes) for k in range(4)])

    one, two = Network(n, t), Network(n, t)
    for a, b in zip(one.run(on_threads), two.run(on_none), strict=True):
        assert (a == b).all()
    assert one.sent.keys() == two.sent.keys()
    for way in one.sent:
        assert sorted(m.tobytes() for m in one.sent[way]) == sorted(m.tobytes() for m in two.sent[way])


async def run_on_threads(holder: SharingHolder) -> list[Any]:
    share = await draw(holder, discrete("gaussian", SIGMA), 1 << 14, first_channel=100, batch=1 << 10)
    return [holder.threads, await holder.open(share, 0)]


def test_real_parties_on_threads_draw_the_law() -> None:
    (threads, samples), *others = run_parties(run_on_threads, 3, threads=3)
    assert threads == 3 and all((samples == other).all() for _, other in others)
    assert not alarms(samples, exact.discrete_gaussian(SIGMA))


def test_a_batch_runs_one_program() -> None:
    """A second one would draw the first one's words again."""

    async def twice(session: Any) -> None:
        batch = SharingBatch(session, 1, 64)
        await batch.run(GATES)
        with pytest.raises(AssertionError, match="channel 1 has run a program already"):
            await batch.run(GATES)

    Network(1, 0).run(twice)


@pytest.mark.parametrize(("n", "t"), [(3, 1), (4, 1), (5, 2)])
def test_no_stream_is_used_twice(n: int, t: int) -> None:
    """Over two batches of both samplers: each party opens each stream once, with the batch in its name."""
    opened: list[list[tuple[Any, ...]]] = [[] for _ in range(n)]

    async def body(session: Any) -> None:
        make = session.stream

        def stream(subset: tuple[int, ...], domain: Domain, *of: int) -> Prg:
            opened[session.party].append((subset, domain.name, *of))
            return make(subset, domain, *of)  # type: ignore[no-any-return]

        session.stream = stream
        for ident, law in [(7, "gaussian"), (8, "gaussian"), (9, "laplace")]:
            await session.noise(discrete(law, 1000.0), ident, 64)

    Network(n, t).run(body)
    for names in opened:
        assert len(set(names)) == len(names)
        assert {(kind, ident) for _, kind, ident, *_ in names} == set(
            itertools.product(["random", "and", "mask"], [7, 8, 9])
        )
