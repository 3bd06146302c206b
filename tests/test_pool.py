"""The pool: each noise vector is used once, in order, from streams of its own; filling ahead changes nothing."""

import asyncio

import numpy as np
import pytest
from alarms import FALSE_ALARM

from dpmpc.mpc import field
from dpmpc.mpc.loopback import run_parties
from dpmpc.mpc.session import Session
from dpmpc.noise import goodness
from dpmpc.noise.pool import FIRST_CHANNEL, Pool, batches, draw
from dpmpc.noise.samplers import make_sampler

SIGMA = 700.0
SAMPLER = make_sampler("discrete", "gaussian", SIGMA)


async def _vectors(session: Session) -> list[np.ndarray]:
    """Six vectors of a pool that holds two at a time, then six of one that is filled ahead; opened."""
    opened, channel = [], session.channel(1)
    small = Pool(session, SAMPLER, 6, 50, ahead=100, batch=64)
    large = Pool(session, SAMPLER, 6, 50, first_channel=FIRST_CHANNEL + 1000)
    await large.fill()
    assert large.generated == 6 and small.generated == 0
    for pool in (small, large):
        for k in range(6):
            vector = await pool.take(k)
            assert vector.shape == (50,)
            opened.append(field.to_int64(await session.open(vector, channel)))
        assert pool.taken == pool.generated == 6
    assert session._channels == {1, *range(FIRST_CHANNEL, FIRST_CHANNEL + 6), FIRST_CHANNEL + 1000}
    return opened


def test_vectors_are_all_different_and_agree_between_parties() -> None:
    results = run_parties(_vectors, 3)
    for other in results[1:]:
        assert all((a == b).all() for a, b in zip(results[0], other, strict=True))
    for i, one in enumerate(results[0]):
        assert one.std() > SIGMA / 3 and abs(one).max() <= SAMPLER.largest
        for two in results[0][:i]:
            assert (one == two).sum() < 10  # two independent samples are equal with probability 4e-4


async def alone() -> Session:
    """A session of one party: shares are the values."""
    return Session(0, 1, 0, b"run")


def test_a_vector_is_given_out_once_and_in_order() -> None:
    async def main() -> None:
        pool = Pool(await alone(), SAMPLER, 3, 10)
        with pytest.raises(AssertionError, match="vector 1 asked for, 0 is next"):
            await pool.take(1)
        await pool.take(0)
        with pytest.raises(AssertionError, match="vector 0 asked for, 1 is next"):
            await pool.take(0)
        await pool.take(1)
        await pool.take(2)
        with pytest.raises(AssertionError, match="3"):
            await pool.take(3)

    asyncio.run(main())


def test_a_channel_of_noise_is_used_once_a_run() -> None:
    async def main() -> None:
        session = await alone()
        await Pool(session, SAMPLER, 2, 10).fill()
        with pytest.raises(AssertionError, match="used already"):
            try:
                await Pool(session, SAMPLER, 2, 10).fill()
            except* AssertionError as group:
                raise group.exceptions[0] from None

    asyncio.run(main())


def test_the_pool_holds_no_more_than_it_may() -> None:
    async def main() -> None:
        pool = Pool(await alone(), SAMPLER, 100, 10, ahead=45)
        await pool.fill()
        assert pool.generated == 4
        await pool.fill()
        assert pool.generated == 4
        await pool.take(0)
        await pool.fill()
        assert pool.generated == 5
        wide = Pool(await alone(), SAMPLER, 3, 50, ahead=7)  # a vector is always held whole
        assert (await wide.take(0)).shape == (50,)

    asyncio.run(main())


@pytest.mark.parametrize(("count", "batch"), [(0, 8), (1, 8), (8, 8), (9, 8), (1000, 64), (130, 64)])
def test_batches_cover_every_sample(count: int, batch: int) -> None:
    async def main() -> np.ndarray:
        session = await alone()
        out = await draw(session, SAMPLER, count, batch=batch)
        assert len(session._channels) == batches(count, batch) == -(-count // batch)
        return field.to_int64(out)

    values = asyncio.run(main())
    assert len(values) == count and (abs(values) <= SAMPLER.largest).all()


def test_vectors_of_a_pool_are_independent() -> None:
    """All lags of the run's noise in a row, so also coordinate by coordinate between any two vectors."""

    async def main(repeat: bool) -> np.ndarray:
        pool = Pool(await alone(), SAMPLER, 200, 122, batch=1 << 12)
        vectors = [await pool.take(k) for k in range(200)]
        if repeat:  # the second half uses a sixteenth of the first half's numbers again
            for k in range(100, 200):
                vectors[k][::16] = vectors[k - 100][::16]
        return field.to_int64(np.concatenate(vectors))

    law = goodness.discrete_gaussian(SIGMA)
    assert goodness.independence(asyncio.run(main(False)), law).p_value > FALSE_ALARM
    assert goodness.independence(asyncio.run(main(True)), law).p_value < FALSE_ALARM
