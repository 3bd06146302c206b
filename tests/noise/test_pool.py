"""The pool: each noise vector is used once, in order, from streams of its own; filling ahead changes nothing."""

import asyncio

import numpy as np
import pytest
from alarms import FALSE_ALARM

from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.errors import UsageError
from dpmpc.mpc.checked.backend import CHECKED
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.numbers import field
from dpmpc.mpc.parties.loopback import run_parties
from dpmpc.mpc.replicated.backend import SHARING, SharingHolder
from dpmpc.mpc.transport.channels import NOISE
from dpmpc.noise import goodness
from dpmpc.noise.draw import BATCH, batch_sizes, batches_of, count_draw, draw, holders_batches
from dpmpc.noise.pool import Pool, fills
from dpmpc.privacy import exact
from dpmpc.privacy.law import LAWS

SIGMA = 700.0
SAMPLER = discrete_gaussian(SIGMA)
FIXED = LAWS["gaussian"].sampler("box-muller", SIGMA)


async def _vectors(holder: SharingHolder) -> list[np.ndarray]:
    """Six vectors of a pool that holds two at a time, then six of one that is filled ahead; opened."""
    opened = []
    small = Pool(holder, SAMPLER, 6, 50, capacity=100, batch=64)
    large = Pool(holder, SAMPLER, 6, 50, first_channel=NOISE + 1000)
    await large.fill()
    assert large.made == 6 and small.made == 0
    for pool in (small, large):
        for k in range(6):
            number, vector = await pool.take()
            assert number == k and vector.shape == (50,)
            opened.append(await holder.open(vector, len(opened)))
        assert pool.taken == pool.made == 6
    assert holder._channels == {*range(12), *range(NOISE, NOISE + 6), NOISE + 1000}
    return opened


@pytest.mark.slow
def test_vectors_are_all_different_and_agree_between_parties() -> None:
    results = run_parties(_vectors, 3)
    for other in results[1:]:
        assert all((a == b).all() for a, b in zip(results[0], other, strict=True))
    for i, one in enumerate(results[0]):
        assert one.std() > SIGMA / 3 and abs(one).max() <= SAMPLER.largest
        for two in results[0][:i]:
            assert (one == two).sum() < 10  # two independent samples are equal with probability 4e-4


async def alone() -> SharingHolder:
    """The holder of one party: shares are the values."""
    return SharingHolder(0, 1, 0, b"run")


def test_a_vector_is_given_out_once_and_in_order() -> None:
    async def main() -> None:
        pool = Pool(await alone(), SAMPLER, 3, 10)
        assert [(await pool.take())[0] for _ in range(3)] == [0, 1, 2]
        for _ in range(2):
            with pytest.raises(AssertionError, match="all 3 noise vectors are taken"):
                await pool.take()

    asyncio.run(main())


@pytest.mark.parametrize("fault", ["again", "swapped", "lost"])
def test_a_pool_at_fault_stops_before_a_vector_is_out_of_turn(fault: str) -> None:
    async def main() -> None:
        pool = Pool(await alone(), SAMPLER, 3, 10)
        await pool.fill()
        await pool.take()
        first, second = pool._waiting
        pool._waiting.clear()
        pool._waiting.extend({"again": [(0, first[1])], "swapped": [second, first], "lost": [second]}[fault])
        wrong = 0 if fault == "again" else 2
        with pytest.raises(AssertionError, match=f"noise vector {wrong} is next, but 1 were taken"):
            await pool.take()

    asyncio.run(main())


def test_a_channel_of_noise_is_used_once_a_run() -> None:
    async def main() -> None:
        holder = await alone()
        await Pool(holder, SAMPLER, 2, 10).fill()
        with pytest.raises(AssertionError, match="used already"):
            await Pool(holder, SAMPLER, 2, 10).fill()

    asyncio.run(main())


def test_the_pool_holds_no_more_than_it_may() -> None:
    async def main() -> None:
        pool = Pool(await alone(), SAMPLER, 100, 10, capacity=45)
        await pool.fill()
        assert pool.made == 4
        await pool.fill()
        assert pool.made == 4
        await pool.take()
        await pool.fill()
        assert pool.made == 5
        wide = Pool(await alone(), SAMPLER, 3, 50, capacity=7)  # a vector is always held whole
        assert (await wide.take())[1].shape == (50,)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("vectors", "dimension", "capacity"), [(7, 10, 25), (7, 10, 70), (7, 10, 69), (3, 50, 7), (1, 1, 1)]
)
def test_fillings_are_foreseen(vectors: int, dimension: int, capacity: int) -> None:
    async def main() -> list[int]:
        pool, made = Pool(await alone(), SAMPLER, vectors, dimension, capacity=capacity), [0]
        for _ in range(vectors):
            await pool.take()
            if pool.made != made[-1]:
                made.append(pool.made)
        return np.diff(made).tolist()  # type: ignore[no-any-return]

    assert asyncio.run(main()) == fills(vectors, dimension, capacity)


@pytest.mark.parametrize(("count", "batch"), [(0, 8), (1, 8), (8, 8), (9, 8), (1000, 64), (130, 64)])
def test_batches_cover_every_sample(count: int, batch: int) -> None:
    async def main() -> np.ndarray:
        holder = await alone()
        out = await draw(holder, SAMPLER, count, batch=batch)
        assert len(holder._channels) == len(batch_sizes(count, batch)) == -(-count // batch)
        return field.to_int64(out)

    values = asyncio.run(main())
    assert len(values) == count and (abs(values) <= SAMPLER.largest).all()
    sizes = batch_sizes(count, batch)
    assert sum(sizes) == count and all(0 < size <= batch for size in sizes)
    assert max(sizes[:-1], default=0) == min(sizes[:-1], default=0)


def test_what_is_worth_it_is_made_in_two_batches() -> None:
    assert batch_sizes(60_000, 1 << 20) == [30_000, 30_000]
    assert batch_sizes(BATCH, 1 << 20) == [BATCH]
    assert batch_sizes(12 * BATCH, 4 * BATCH) == 3 * [4 * BATCH]


@pytest.mark.parametrize("name", [name for name in BACKENDS.names() if name != "mpyc"])
def test_a_holder_and_its_backend_have_one_size_of_a_batch(name: str) -> None:
    """What is drawn follows from the holder, what is foreseen from the backend."""

    async def main() -> None:
        entry, among = BACKENDS[name], []
        for n in range(1, 8):
            if (t := entry.threshold(n)) < 0 or (t == 0 and n > 2):
                continue
            try:
                entry.check(n, t)
            except UsageError:
                continue
            for sampler in (SAMPLER, FIXED):
                holder = entry.holder(0, n, t, bytes(16))
                for count in (1, BATCH + 1, 10**6, 10**8):
                    assert holders_batches(holder, sampler, count) == batches_of(entry, sampler, count, n, t)
            among.append(n)
        assert among

    asyncio.run(main())


def test_few_parts_take_larger_batches() -> None:
    """Three parties' shares have two parts, five parties' six; fixed-point circuits hold more for each sample; wires
    are written to fresh memory first, which pays in a long draw. With checks a batch is one size, however long the draw
    is: what it keeps is written again and again."""
    much = 10**8
    assert BATCH < max(batches_of(SHARING, SAMPLER, 10**6, 3, 1)) <= 10**5
    assert max(batches_of(SHARING, SAMPLER, much, 3, 1)) > 3 * BATCH
    assert max(batches_of(SHARING, SAMPLER, much, 5, 2)) <= BATCH >= max(batches_of(SHARING, FIXED, much, 3, 1))
    most = CHECKED.batch_samples(SAMPLER, much, 3, 1)
    for count in (10**5, 3 * 10**5, 10**6, much):
        assert BATCH / 2 < max(batches_of(CHECKED, SAMPLER, count, 3, 1)) <= most < 3 << 16
    assert max(batches_of(CHECKED, SAMPLER, much, 5, 2)) <= 2 * BATCH


def test_a_draw_costs_its_batches() -> None:
    """A few more samples than a batch takes are two batches of half as many."""
    half, whole = SHARING.count_noise(SAMPLER, 30_000, 3, 1), count_draw(SHARING, SAMPLER, 60_000, 3, 1)
    assert batch_sizes(60_000) == [30_000, 30_000]
    assert (whole.rounds, whole.sample) == (2 * half.rounds, half.sample)
    assert whole.bytes_sent == tuple(2 * size for size in half.bytes_sent)
    assert whole.messages_sent == tuple(2 * size for size in half.messages_sent)
    assert whole.distance == 2 * half.distance > 0


def test_vectors_of_a_pool_are_independent() -> None:
    """All lags of the run's noise in a row, so also coordinate by coordinate between any two vectors."""

    async def main(repeat: bool) -> np.ndarray:
        pool = Pool(await alone(), SAMPLER, 200, 122, batch=1 << 12)
        vectors = [(await pool.take())[1] for _ in range(200)]
        if repeat:  # the second half uses an eighth of the first half's numbers again: 14 standard deviations
            for k in range(100, 200):
                vectors[k][::8] = vectors[k - 100][::8]
        return field.to_int64(np.concatenate(vectors))

    law = exact.discrete_gaussian(SIGMA)
    assert goodness.independence(asyncio.run(main(False)), law).p_value > FALSE_ALARM
    assert goodness.independence(asyncio.run(main(True)), law).p_value < FALSE_ALARM
