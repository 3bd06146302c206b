"""The many-party engine: values and shares after every kind of step, redrawn zeros, streams out of step, cost, and real
processes."""

import itertools
from typing import Any

import numpy as np
import pytest
from fieldnoise import discrete
from manyparties import CASES, Parties, Words

from dpmpc.circuits import field_gaussian, field_laplace
from dpmpc.circuits.arithmetic import Arithmetic, Values, multiply
from dpmpc.circuits.deep import Deep
from dpmpc.circuits.field_sampler import FieldSampler
from dpmpc.circuits.gaussian import plan_gaussian
from dpmpc.circuits.laplace import LaplacePlan, plan_laplace
from dpmpc.circuits.trace import evaluate
from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.mersenne import Mersenne
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.parties.loopback import run_parties
from dpmpc.mpc.shamir.backend import BATCH, SHAMIR, ShamirHolder, batch_sizes
from dpmpc.mpc.shamir.counts import CountingArithmetic, count_circuit
from dpmpc.mpc.shamir.engine import ManyEngine
from dpmpc.mpc.shamir.layout import ManyLayout
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.noise.draw import draw
from dpmpc.privacy.law import LAWS
from tests.clear_arithmetic import ClearArithmetic
from tests.refusals import in_one_line, refuses

LANES = 37
SIZES = [*CASES, (8, 2), (16, 7), (32, 15)]


class Replay(ClearArithmetic):
    """A clear engine with the random bits of another."""

    def __init__(self, lanes: int, bits: list[Words]) -> None:
        super().__init__(lanes, Prg(b""))
        self._bits = iter(bits)

    async def random_bits(self, count: int) -> Words:
        bits = next(self._bits)
        assert len(bits) == count
        return bits


async def every_step(engine: Arithmetic) -> list[Values]:
    """Values after each kind of step."""
    bits = await engine.random_bits(6)
    constant = engine.constant([[3], [-7]])
    sums = engine.subtract(engine.add(bits[:2], bits[2:4]), constant[:, 0])
    mixed = engine.matrix(np.array([[1, -2, 3, 1 << 60, 0, 5], [-1, 0, (1 << 61) - 2, 7, 1, 1]]), bits)
    first = await multiply(engine, sums, mixed)
    wide, dots, none = await engine.dots(
        [
            (bits[None, :, None], engine.join([first, mixed])[None, None]),  # 6 x 4 products
            (bits[:2, None], mixed[:, None]),  # one sum of two products
            (bits[None, :0], bits[None, :0]),
        ]
    )
    last = await multiply(engine, dots, first[:1])
    return [bits, constant, sums, mixed, first, wide.reshape(24, *engine.tail), dots, none, last]


@pytest.mark.parametrize("products", [0, LANES * 30])
@pytest.mark.parametrize(("n", "t"), SIZES)
def test_every_step_gives_shares_of_degree_t_of_what_the_clear_engine_gets(n: int, t: int, products: int) -> None:
    parties = Parties(n, t, chunk=200)
    shares = parties.run(LANES, every_step, products)
    opened = [parties.secret([party[k] for party in shares]) for k in range(len(shares[0]))]
    expected = evaluate(every_step(Replay(LANES, [opened[0]])))
    assert set(np.unique(opened[0])) == {0, 1} and [v.shape for v in opened] == [v.shape for v in expected]
    assert all((v == w).all() for v, w in zip(opened, expected, strict=True))


@pytest.mark.parametrize(("n", "t"), SIZES)
def test_no_value_is_shared_by_a_lower_degree(n: int, t: int) -> None:
    """t shares with the point 0 do not lie on a polynomial of degree t - 1, as shares that t parties can open would."""
    parties = Parties(n, t)
    shares = parties.run(LANES, every_step)
    for k in (0, 4, 5, 6, 8):
        points = {i: shares[i][k] for i in range(t)}
        guessed = parties.at(-1, points)
        assert (guessed == parties.secret([party[k] for party in shares])).mean() < 0.05


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_samplers_give_what_the_clear_engine_gives_on_the_same_bits(law: str) -> None:
    plan: Any = plan_gaussian(700.0)[0] if law == "gaussian" else plan_laplace(300.0)[0]
    circuits: Any = field_gaussian.sample_gaussian if law == "gaussian" else field_laplace.sample_laplace
    deep, size, lanes = Deep(2, 3, 3), 3, 40
    kept: list[list[Words]] = [[] for _ in range(5)]

    async def body(engine: ManyEngine) -> Words:
        good = engine.random_bits

        async def keep(wanted: int) -> Words:
            kept[engine.party].append(await good(wanted))
            return kept[engine.party][-1]

        engine.random_bits = keep  # type: ignore[method-assign]
        return await circuits(engine, plan, deep, size)

    parties = Parties(5, 2)
    samples = parties.secret(parties.run(lanes, body))
    bits = [parties.secret(list(shares)) for shares in zip(*kept, strict=True)]
    assert (samples == evaluate(circuits(Replay(lanes, bits), plan, deep, size))).all()
    assert np.abs(field.to_int64(samples)).max() <= plan.largest


# -- r = 0 -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("n", "t", "bits"), [(3, 1, 3), (3, 1, 5), (5, 2, 5), (7, 3, 7)])
def test_where_r_is_zero_all_draw_again_and_nothing_else_is_out_of_step(n: int, t: int, bits: int) -> None:
    """In a small field one r in p is 0. Masks that were put aside, and products after the bits, are right."""
    arithmetic = Mersenne(bits)
    parties = Parties(n, t, arithmetic=arithmetic, chunk=301)
    lanes, wires = 211, 12

    async def body(engine: ManyEngine) -> tuple[Words, Words, int]:
        drawn = await engine.random_bits(wires)
        return drawn, await multiply(engine, drawn[:6], drawn[6:]), engine.channel.rounds

    results = parties.run(lanes, body, products=6 * lanes)
    drawn = parties.secret([r[0] for r in results])
    assert set(np.unique(drawn)) == {0, 1}
    assert (parties.secret([r[1] for r in results]) == drawn[:6] * drawn[6:]).all()
    assert abs(drawn.mean() - 0.5) < 6.2 * 0.5 / drawn.size**0.5
    dealings = -(-18 * lanes // 301)
    assert len({r[2] for r in results}) == 1 and results[0][2] >= dealings + 2 + 3 + 2  # at least one draw more


# -- streams out of step ---------------------------------------------------------------------------------------------
class Late:
    """A stream that one party is a word ahead in."""

    def __init__(self, stream: Prg, words: int) -> None:
        self._stream = stream
        stream.words((words,))

    def words(self, shape: tuple[int, ...]) -> Words:
        return self._stream.words(shape)


@pytest.mark.parametrize("purpose", ["share", "zero"])
@pytest.mark.parametrize(("n", "t"), [(3, 1), (5, 2)])
def test_a_stream_that_is_a_word_ahead_ends_the_batch(n: int, t: int, purpose: str) -> None:
    """64 bits are random field elements then, and half of these are no squares: missed once in 2^64."""
    for dealer, receiver in itertools.permutations(range(n), 2):
        if purpose == "share" and receiver not in ManyLayout.of(n, t).seeded(dealer):
            continue
        ends = iter(range(2))  # the two ends ask in some order; the second one is ahead

        def make(name: Any, wrong: Any = (purpose, dealer, receiver), ends: Any = ends) -> Any:
            stream = Prg(b"late", *name)
            return Late(stream, next(ends)) if name == wrong else stream

        parties = Parties(n, t, make=make)
        with refuses("peer", "random bits"):
            parties.run(64, lambda engine: engine.random_bits(n))


@pytest.mark.parametrize("wrong", ["short", "long", "range"])
def test_messages_of_another_length_or_out_of_range_are_refused(wrong: str) -> None:
    async def body(engine: ManyEngine) -> Words:
        good = engine.channel.exchange

        def spoiled(outgoing: dict[int, Words], incoming: list[int]) -> Any:
            if engine.party == 0 and engine.channel.rounds == 1:
                words = np.array(outgoing[1])
                words[3] = field.P
                outgoing |= {1: words if wrong == "range" else np.resize(words, len(words) + (wrong == "long") * 2 - 1)}
            return good(outgoing, incoming)

        engine.channel.exchange = spoiled
        return await engine.random_bits(20)

    with refuses("message", "party 0", kind=PeerError):
        Parties(3, 1).run(10, body)


@pytest.mark.parametrize(("n", "t"), [(1, 0), (2, 0), (2, 1), (3, 0), (5, 0), (4, 2), (6, 3), (33, 16), (64, 3)])
def test_too_few_or_too_many_parties_are_refused_in_one_line(n: int, t: int) -> None:
    with in_one_line() as error:
        ManyLayout.of(n, t)
    assert (error.value.code, error.value.setting) == ("range", "threshold" if 3 <= n <= 32 else "parties")


# -- cost ------------------------------------------------------------------------------------------------------------
TINY_LAPLACE = LaplacePlan(4.0, plan_laplace(30.0)[0].digits[:1], 4)


@pytest.mark.parametrize("chunk", [97, 1000, 1 << 18])
@pytest.mark.parametrize(("n", "t"), SIZES)
def test_counting_predicts_every_message(n: int, t: int, chunk: int) -> None:
    deep, size, lanes = Deep(6, 2, 5), 5, 3

    async def circuit(engine: Arithmetic) -> Values:
        return await field_laplace.sample_laplace(engine, TINY_LAPLACE, deep, size, fast=n > 5)

    expected = count_circuit(circuit, lanes, n, t, chunk=chunk)
    parties = Parties(n, t, chunk=chunk)
    shares = parties.run(lanes, circuit, expected.products * lanes)
    assert np.abs(field.to_int64(parties.secret(shares))).max() <= TINY_LAPLACE.largest
    channels = [engine.channel for engine in parties.engines]
    assert [c.bytes_sent for c in channels] == expected.bytes_sent
    assert [c.messages_sent for c in channels] == expected.messages_sent
    assert {c.rounds for c in channels} == {expected.exchanges}
    assert max(expected.bytes_sent) - min(expected.bytes_sent) <= 8 * 3 * expected.exchanges * n  # kings take turns


def test_masks_that_were_not_planned_are_dealt_when_they_are_needed() -> None:
    async def circuit(engine: Arithmetic) -> Values:
        bits = await engine.random_bits(4)
        return await multiply(engine, await multiply(engine, bits[:2], bits[2:]), bits[:2])

    parties = Parties(5, 2)
    shares = parties.run(9, circuit, products=20)
    bits = parties.secret(shares)
    assert set(np.unique(bits)) <= {0, 1}
    engine = CountingArithmetic(9, 5, 2)
    engine._planned = 20
    evaluate(circuit(engine))
    assert [e.channel.bytes_sent for e in parties.engines] == engine.bytes_sent
    assert parties.engines[0].channel.rounds == engine.exchanges == 3 + 2 + 1 + 2


PER_SAMPLE = [(3, 1, 3156), (5, 2, 3906), (7, 3, 4249), (9, 4, 4446), (16, 7, 4780), (32, 15, 4976)]


@pytest.mark.parametrize(("n", "t", "per_sample"), PER_SAMPLE)
def test_bytes_of_a_gaussian_sample(n: int, t: int, per_sample: int) -> None:
    """The table in docs/noise.md; headers are included."""
    cost = SHAMIR.count_noise(discrete("gaussian", 2.0**20), BATCH, n, t)
    assert max(cost.bytes_with_headers(HEADER.size)) / BATCH == pytest.approx(per_sample, abs=1)
    assert cost.rounds == 45 and cost.sample == {"products": 39, "random bits": 182}


def test_a_draw_is_cut_into_batches_whose_counts_add_up() -> None:
    sampler = discrete("laplace", 300.0)
    for samples in (1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 5):
        sizes = batch_sizes(samples)
        assert sum(sizes) == samples and max(sizes) <= BATCH and max(sizes) - min(sizes) <= 1
    assert batch_sizes(0) == []
    two = SHAMIR.count_noise(sampler, 2 * BATCH, 5, 2)
    one = SHAMIR.count_noise(sampler, BATCH, 5, 2)
    assert two == one + one
    assert two.distance == 2 * BATCH * FieldSampler(sampler).group > float(Deep().joint(2 * BATCH, 3))
    assert SHAMIR.count_noise(sampler, 0, 5, 2).rounds == 0


def test_what_the_backend_cannot_do_is_said_in_one_line() -> None:
    fixed = LAWS["gaussian"].sampler("box-muller", 700.0)
    with refuses("choice", setting="sampler"):
        SHAMIR.count_noise(fixed, 10, 5, 2)
    for n, t in ((2, 1), (4, 2), (33, 16), (3, 0)):
        with pytest.raises(UsageError):
            SHAMIR.check(n, t)
    assert [SHAMIR.threshold(n) for n in (3, 4, 9, 16, 32)] == [1, 1, 4, 7, 15]


# -- real processes --------------------------------------------------------------------------------------------------
async def draw_and_open(holder: ShamirHolder, law: str, scale: float, samples: int) -> list[Any]:
    """Samples, and what making them cost this party."""
    sampler = discrete(law, scale)
    await holder.here(0)
    sent, rounds, frames = holder.bytes_sent, holder.rounds, holder.frames_sent
    share = await draw(holder, sampler, samples, batch=600)
    cost = holder.bytes_sent - sent, holder.rounds - rounds, holder.frames_sent - frames
    sent, frames = holder.bytes_sent, holder.frames_sent
    opened = await holder.open(share, 1)
    return [opened, *cost, holder.bytes_sent - sent, holder.frames_sent - frames]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "law", "scale"), [(3, "gaussian", 700.0), (5, "laplace", 300.0)])
def test_real_parties_make_samples_at_the_predicted_cost(n: int, law: str, scale: float) -> None:
    samples, t = 1200, (n - 1) // 2
    results = run_parties(draw_and_open, n, None, (law, scale, samples), backend="shamir")
    sampler = discrete(law, scale)
    cost = SHAMIR.count_noise(sampler, 600, n, t)
    cost += cost
    opening = SHAMIR.count_opening(samples, n, t)
    for i, (values, sent, rounds, frames, *opened) in enumerate(results):
        assert (values == results[0][0]).all() and len(values) == samples
        assert (sent, rounds, frames) == (cost.bytes_with_headers(HEADER.size)[i], cost.rounds, cost.messages_sent[i])
        assert opened == [opening.bytes_with_headers(HEADER.size)[i], opening.messages_sent[i]]
    deviation = scale if law == "gaussian" else scale * 2**0.5
    assert abs(results[0][0].std() / deviation - 1) < 0.3 and np.abs(results[0][0]).max() <= sampler.largest
