"""The fixed-point engine: against its clear twin on the same streams; its rounding, its cost, what its masks hide."""

import itertools
import math
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from direct import DirectEngine, evaluate
from enumeration import EveryBitString
from inprocess import Network, Subset, Words
from scipy.stats import chi2
from wide_integers import to_ints

from dpmpc.circuits.fixed import FixedEngine, floating_uniform, leading_zeros, masked
from dpmpc.circuits.fixed_sampler import FixedPointSampler
from dpmpc.circuits.program import Program, program_of
from dpmpc.mpc.clear.fixed import ClearFixed
from dpmpc.mpc.contract.lanes import from_planes, words_for
from dpmpc.mpc.numbers import field, wide
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import recombine
from dpmpc.mpc.parties.loopback import run_parties
from dpmpc.mpc.replicated.backend import SHARING, SharingHolder
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.replicated.fixed import SharedFixed, hiding, mask_bits, numbers, planes
from dpmpc.mpc.replicated.layout import SharingLayout
from dpmpc.mpc.transport.wire import HEADER

CASES = [(1, 0), (3, 1), (4, 1), (5, 2)]
LANES = 200
Circuit = Callable[[FixedEngine], Awaitable[Any]]


class SameBits:
    """The random bits that the parties of a `Network` have together: the XOR of the components."""

    def __init__(self, layout: SharingLayout) -> None:
        self._streams = [stream(s, "random", 1) for s in layout.subsets]

    def words(self, shape: tuple[int, ...]) -> Words:
        return np.bitwise_xor.reduce([prg.words(shape) for prg in self._streams])

    reserve = words


def stream(subset: Subset, *domain: Any) -> Prg:
    return Prg(bytes(subset), "test", *domain)


def private(party: int) -> Prg:
    return Prg(b"private", party)


def parties(n: int, t: int, circuit: Circuit, lanes: int = LANES) -> list[Any]:
    """What the circuit gives each party, and its batch."""

    async def body(session: Any) -> Any:
        batch = SharingBatch(session, 1, lanes)
        return await circuit(SharedFixed(batch, private(session.party))), batch

    return Network(n, t, stream).run(body)


def twin(n: int, t: int, circuit: Circuit, lanes: int = LANES) -> Any:
    """What the circuit gives the clear twin on the same streams."""
    bits: Any = SameBits(SharingLayout.of(n, t))
    own = [private(i) for i in range(t + 1)]
    return evaluate(circuit(ClearFixed(lanes, n, t, bits, lambda s, purpose: stream(s, purpose, 1), own)))  # type: ignore[arg-type]


def numbers_program(width: int, values: int, masks: int, few_rounds: bool = True) -> Program:
    """Random numbers, masked."""
    return program_of(lambda engine: masked(engine, engine.random_bits(width, values), few_rounds), masks)


def opened(n: int, t: int, shares: list[wide.Wide]) -> list[list[int]]:
    """The secrets of Shamir shares of degree t, from the first and from the last t + 1 parties."""
    results = []
    for holders in (range(t + 1), range(n - t - 1, n)):
        weights = wide.lagrange_at_zero(tuple(holders))
        total = sum(wide.canonical(shares[i]) * np.int64(w) for i, w in zip(holders, weights, strict=True))
        results.append(to_ints(np.asarray(total)).tolist())
    assert results[0] == results[1]
    return results[0]


@pytest.mark.parametrize("few_rounds", [False, True])
@pytest.mark.parametrize(("n", "t"), CASES)
@pytest.mark.parametrize("width", [1, 30, 60])
def test_bits_become_numbers(n: int, t: int, width: int, few_rounds: bool) -> None:
    program = numbers_program(width, 3, math.comb(n, t) - 1, few_rounds)

    async def circuit(fixed: FixedEngine) -> Any:
        return await fixed.numbers(program, 3, width)

    found = opened(n, t, [shares for shares, _ in parties(n, t, circuit)])
    assert found == twin(n, t, circuit).tolist()
    drawn = program.random_bits
    order = np.empty(drawn, dtype=int)
    order[program.drawn] = np.arange(drawn)
    bits = SameBits(SharingLayout.of(n, t)).words((drawn, words_for(LANES)))[order].reshape(width, 3, -1)
    assert found == [from_planes(bits[:, v])[:LANES].tolist() for v in range(3)]


def test_many_lanes_take_the_adder_with_the_fewest_gates() -> None:
    sampler = FixedPointSampler("laplace", 1000.0)
    few, many = (SHARING.count_noise(sampler, count, 3, 1) for count in (2999, 3000))
    assert few.sample["ands"] > 1.5 * many.sample["ands"] and many.rounds > 3 * few.rounds


@pytest.mark.parametrize(("n", "t"), CASES)
@pytest.mark.parametrize("shift", [8, 26, 30, 56])
def test_products_are_rounded_as_in_the_clear(n: int, t: int, shift: int) -> None:
    """Sums of products over 2^shift, negative ones too: equal to the twin, within C(n, t) / 2 of the exact value."""
    bits = 62
    program = numbers_program(30, 3, math.comb(n, t) - 1)

    async def circuit(fixed: FixedEngine) -> Any:
        x, y, z = await fixed.numbers(program, 3, 30) - fixed.constant(1 << 29)
        sums = [[(x, y), (z, fixed.constant(5))], [(-x, y)], [(z, z)]]
        return (
            np.stack([x, y, z]),
            await fixed.dot(sums, shift, bits),
            await fixed.dot_to_field([[(x, y)]], shift, bits),
        )

    results = [result for result, _ in parties(n, t, circuit)]
    (x, y, z), dots, in_field = (np.asarray(v, dtype=object) for v in twin(n, t, circuit))
    assert opened(n, t, [r[0] for r in results]) == [x.tolist(), y.tolist(), z.tolist()]
    assert opened(n, t, [r[1] for r in results]) == dots.tolist()
    shares = [r[2] for r in results]
    assert np.array_equal(recombine(shares[: t + 1], range(t + 1)), in_field.astype(np.uint64))
    exact = np.stack([x * y + 5 * z, -x * y, z * z])
    error = np.abs(dots * (1 << shift) - exact) / (1 << shift)
    assert error.max() <= math.comb(n, t) / 2
    assert error.max() > 0.2  # it is a rounding
    signed = (dots * (1 << shift) - exact) / (1 << shift)
    # centred: each error lies within the bound, so the mean of 600 leaves 6 bounds / sqrt(600) less than once in 10^8
    assert abs(float(signed.mean())) < 6 * math.comb(n, t) / 2 / math.sqrt(signed.size)


@pytest.mark.parametrize(("n", "t"), CASES)
def test_dealers_share_what_they_draw(n: int, t: int) -> None:
    def draw(prg: Any) -> Any:
        return prg.words((2, LANES)).astype(np.int64) >> np.int64(20)

    async def circuit(fixed: FixedEngine) -> Any:
        return await fixed.deal(draw, 2)

    results = [result for result, _ in parties(n, t, circuit)]
    assert len(results[0]) == t + 1
    for i in range(t + 1):
        assert opened(n, t, [r[i] for r in results]) == draw(private(i)).tolist()


@pytest.mark.parametrize(("n", "t"), CASES)
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_samplers_give_the_twins_noise_at_the_counted_cost(n: int, t: int, law: Any) -> None:
    sampler = FixedPointSampler(law, 54321.5)
    unused: Any = None

    async def circuit(fixed: FixedEngine) -> Any:
        return await sampler.circuit(unused, fixed)

    results = parties(n, t, circuit)
    shares = [values for values, _ in results]
    clear = twin(n, t, circuit)
    for holders in (range(t + 1), range(n - t - 1, n)):
        assert np.array_equal(recombine([shares[i] for i in holders], list(holders)), clear)
    assert 0.5 < np.abs(field.to_int64(clear)).mean() / sampler.scale < 1.5
    count = LANES * (2 if law == "gaussian" else 1)
    cost = SHARING.count_noise(sampler, count, n, t)
    for i, (_, batch) in enumerate(results):
        channel = batch.channel
        assert channel.rounds == cost.rounds
        assert (channel.bytes_sent, channel.messages_sent) == (cost.bytes_sent[i], cost.messages_sent[i])


@pytest.mark.parametrize("width", range(1, 8))
def test_leading_zeros_on_all_inputs(width: int) -> None:
    engine = EveryBitString(width)
    bits = engine.random_bits(width)
    hot = evaluate(leading_zeros(engine, bits))
    assert hot.shape[0] == width + 1
    text = ["".join(str(int(v) >> i & 1) for i in range(width)) for v in from_planes(bits)]
    assert [from_planes(hot)[l] for l in range(len(text))] == [1 << (s + "1").index("1") for s in text]


def test_floating_uniform_is_one_hot_with_the_law_of_its_parts() -> None:
    lanes = 64_000
    segment, place = evaluate(floating_uniform(DirectEngine(lanes, Prg(b"uniform"))))
    counts = np.array([int(np.bitwise_count(w).sum()) for w in segment])
    assert counts.sum() == lanes
    overlap = np.zeros_like(segment[0])
    for wire in segment:
        assert not (overlap & wire).any()
        overlap |= wire
    by_zeros = counts.reshape(64, 16)
    expected = lanes * 2.0 ** -(np.arange(64) + 1.0)[:, None] / 16
    first = slice(0, 6)  # every bin expects 60 or more
    statistic = ((by_zeros[first] - expected[first]) ** 2 / expected[first]).sum()
    assert chi2.sf(statistic, 6 * 16) > 1e-9
    values = from_planes(place)
    assert (values & np.uint64(1)).all() and int(values.max()) < 1 << 27
    top = np.bincount((values >> np.uint64(21)).astype(int), minlength=64)
    assert chi2.sf(((top - lanes / 64) ** 2 / (lanes / 64)).sum(), 63) > 1e-9


@pytest.mark.parametrize(("n", "t"), [(3, 1), (4, 1), (5, 2), (7, 3)])
@pytest.mark.parametrize("bits", [53, 66, 80])
def test_masks_fill_the_field_and_never_wrap(n: int, t: int, bits: int) -> None:
    masks = math.comb(n, t) - 1
    size = mask_bits(masks, bits)
    assert (masks << size) + (1 << bits + 1) <= wide.Q < (masks << size + 1) + (1 << bits + 1)
    assert hiding(masks, bits) == 2.0 ** (bits + 1 - size)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_all_openings_of_a_sample_hide(law: Any) -> None:
    for scale in (1.0, 1.99, 2.0**30):
        sampler = FixedPointSampler(law, scale)
        for n, t, bits in ((3, 1, 60), (5, 2, 58)):
            lane = SHARING.count_noise(sampler, sampler.samples_per_lane, n, t).distance
            assert 0 < lane < 2.0**-bits * sampler.samples_per_lane
            assert SHARING.count_noise(sampler, 1000 * sampler.samples_per_lane, n, t).distance == 1000 * lane


@pytest.mark.parametrize("width", [1, 63, 64, 65, 100, 128])
def test_planes_and_numbers_are_inverse(width: int) -> None:
    value = wide.draw(Prg(b"planes"), (3, 128), width)
    assert np.array_equal(numbers(planes(value, width)), value)
    low, _ = wide.to_words(value)
    assert np.array_equal(from_planes(planes(value, width)[:64, 1]), low[1])


# -- views -----------------------------------------------------------------------------------------------------------
class Constant:
    """A stream that repeats one lane's words: what it masks stays visible."""

    def __init__(self, subset: Subset, domain: tuple[Any, ...]) -> None:
        self._prg = stream(subset, *domain)

    def words(self, shape: tuple[int, ...]) -> Words:
        return np.full(shape, self._prg.words((1,))[0] | np.uint64(1 << 32 | 1))

    reserve = words


@pytest.mark.parametrize(("n", "t"), [(3, 1), (4, 1), (5, 2)])
@pytest.mark.parametrize("forgotten", ["", "fixed mask", "fixed zero", "fixed deal"])
def test_what_a_coalition_receives_is_uniform_whatever_the_numbers(n: int, t: int, forgotten: str) -> None:
    """All numbers and all streams of the coalition are the same in every lane; the streams of the one subset it misses
    are fresh. What it receives is then uniform in its low bits, and so are what the shares interpolate to and what
    remains of them without the mask. With one of those streams forgotten, one of these is not."""
    missed = tuple(range(n - t))
    lanes = 16_384

    def make(subset: Subset, *domain: Any) -> Any:
        return stream(subset, *domain) if subset == missed and domain[0] != forgotten else Constant(subset, domain)

    def draw(prg: Any) -> Any:
        return np.full((1, lanes), 12345)

    async def body(session: Any) -> None:
        fixed = SharedFixed(SharingBatch(session, 1, lanes))
        await fixed.deal(draw, 1)
        x = session.party + 1
        share = np.repeat(wide.constant(5 + sum(7 * x**k for k in range(1, t + 1))), lanes, axis=1)
        await fixed.dot([[(share, share)]], 20, 62)

    network = Network(n, t, make)
    network.run(body)
    received: dict[int, list[wide.Wide]] = {i: [] for i in missed}
    for (sender, receiver), messages in network.sent.items():
        if sender in missed and receiver == n - 1:
            received[sender] = [wide.unpack(message.tobytes(), (lanes,)) for message in messages]
    seen = [value for values in received.values() for value in values]
    everyone = SharingLayout.of(n, t).product_senders
    senders = [i for i in everyone if i in missed]
    last = {i: received[i][-1] for i in senders}
    weights = dict(zip(everyone, wide.lagrange_at_zero(everyone), strict=True))
    seen.append(np.asarray(sum(share * np.int64(weights[i]) for i, share in last.items())))  # c, up to a constant
    for i, j in itertools.pairwise(senders):
        ratio = [pow(wide.subset_weight(missed, n, k), -1, wide.Q) for k in (i, j)]
        seen.append(wide.times(last[i], ratio[0]) - wide.times(last[j], ratio[1]))  # free of the mask
    assert len(seen) > len(senders) + 1
    assert all(_looks_uniform(x) for x in seen) == (forgotten == "")


def _looks_uniform(x: wide.Wide) -> bool:
    """Whether the low 16 bits pass, byte by byte, a chi-square with a false-alarm rate of 1e-9."""
    low = wide.canonical(x)[0]
    lanes = len(low)
    for part in (low & 255, low >> 8 & 255):
        counts = np.bincount(part, minlength=256)
        if chi2.sf(float(((counts - lanes / 256) ** 2 / (lanes / 256)).sum()), 255) < 1e-9:
            return False
    return True


# -- real processes --------------------------------------------------------------------------------------------------
async def _draw(holder: SharingHolder, count: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for k, law in enumerate(("gaussian", "laplace")):
        sampler = FixedPointSampler(law, 4096.0)  # type: ignore[arg-type]
        sent = holder.bytes_sent
        shares = [await holder.noise(sampler, 70 + 2 * k + again, count) for again in (0, 1)]
        sent = holder.bytes_sent - sent
        values = await holder.open(holder.join(shares), k)
        result[law] = [values.reshape(2, count), sent]
    return result


@pytest.mark.slow
def test_real_parties_draw_and_agree() -> None:
    n, t, count = 3, 1, 1999  # odd
    results = run_parties(_draw, n, t, (count,))
    for law, sizes in (("gaussian", 1.0), ("laplace", 2.0)):
        (first, again), _ = results[0][law]
        cost = SHARING.count_noise(FixedPointSampler(law, 4096.0), count, n, t)  # type: ignore[arg-type]
        for party, result in enumerate(results):
            values, sent = result[law]
            assert np.array_equal(values, [first, again])
            assert sent == 2 * cost.bytes_with_headers(HEADER.size)[party]
        assert first.shape == (count,) and not np.array_equal(first, again)
        # Six standard errors of the mean square, kurtosis 3 and 6: false alarm below 1e-8.
        assert abs(np.mean((first / 4096.0) ** 2) / sizes - 1) < 6 * math.sqrt((2 if sizes == 1 else 5) / count)
