"""What every backend must do: shares of vectors come in, add up, take noise and open, at the cost that was counted."""

from typing import Any

import numpy as np
import pytest

from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.errors import PeerError
from dpmpc.mpc import field
from dpmpc.mpc.backend import BACKENDS, Counts, Holder
from dpmpc.mpc.loopback import run_parties
from dpmpc.mpc.wire import HEADER

CASES = [(name, n) for name in BACKENDS.names() for n in (1, 2, 3, 5) if BACKENDS[name].threshold(n) >= 0]
OWNERS, DIMENSION = 3, 6
SAMPLER = discrete_gaussian(700.0)
NOISE_OF = 3 * DIMENSION


def vectors(largest: int) -> np.ndarray:
    """(OWNERS, DIMENSION): sums up to the largest numbers of both signs, reached by one owner or by several."""
    rows = np.zeros((OWNERS, DIMENSION), dtype=np.int64)
    rows[:, 0], rows[1, 1], rows[2, 2] = largest // OWNERS, largest, -largest
    rows[:, 3], rows[:2, 4] = [5, -7, 1], [largest, -largest]
    return rows


async def _party(holder: Holder, name: str, payloads: list[list[bytes]]) -> dict[str, Any]:
    """Collects two blocks of owners, adds, makes noise, opens the pieces; what it cost."""
    await holder.here(0)
    first, second = (blocks[holder.party] for blocks in payloads)
    total = holder.add(holder.collect(first, 2, DIMENSION), holder.collect(second, OWNERS - 2, DIMENSION))
    before = (holder.rounds, holder.bytes_sent, holder.frames_sent)
    noise = await holder.noise(SAMPLER, 1, NOISE_OF)
    made = (holder.rounds, holder.bytes_sent, holder.frames_sent)
    pieces = holder.cut(noise, DIMENSION)
    again = holder.cut(holder.join([total, *pieces, holder.zero(DIMENSION)]), DIMENSION)
    await holder.here(2)
    opening = (holder.rounds, holder.bytes_sent, holder.frames_sent)
    opened = [await holder.open(again[0], 3)]
    cost = (holder.rounds, holder.bytes_sent, holder.frames_sent)
    opened += [await holder.open(share, 4 + k) for k, share in enumerate(again[1:])]
    opened.append(await holder.open(holder.add(total, pieces[0]), 20))
    refused = []
    for payload, owners in ((first[:-1], 2), (first + b"x", 2), (first, 3), (b"", 2)):
        try:
            holder.collect(payload, owners, DIMENSION)
        except PeerError as error:
            refused.append(str(error))
    return {
        "opened": opened,
        "noise": np.subtract(made, before),
        "opening": np.subtract(cost, opening),
        "fingerprints": [holder.fingerprint(share) for share in (total, again[0], pieces[0], pieces[1])],
        "refused": refused,
        "connections": sorted(holder.connections().values()),
    }


def costs(counts: Counts, party: int) -> list[int]:
    """(rounds, bytes, frames) of one party."""
    return [counts.rounds, counts.bytes_with_headers(HEADER.size)[party], counts.messages_sent[party]]


@pytest.mark.parametrize(("name", "n"), CASES)
def test_a_backend_does_what_it_says_at_the_cost_it_counts(name: str, n: int) -> None:
    backend = BACKENDS[name]
    t = backend.threshold(n)
    rows = vectors(backend.largest)
    dealer = backend.dealer(n, t)
    payloads = [[bytes(payload) for payload in dealer.deal(block)] for block in (rows[:2], rows[2:])]
    for blocks, owners in zip(payloads, (2, OWNERS - 2), strict=True):
        assert tuple(map(len, blocks)) == backend.payload_bytes(n, t, owners, DIMENSION)
    assert t == 0 or [bytes(p) for p in dealer.deal(rows[:2])] != payloads[0]  # fresh randomness every time
    results = run_parties(_party, n, t, (name, payloads), backend=name)
    noise, opening = backend.count_noise(SAMPLER, NOISE_OF, n, t), backend.count_opening(DIMENSION, n, t)
    for party, result in enumerate(results):
        opened = result["opened"]
        assert all(value.dtype == np.int64 and value.shape == (DIMENSION,) for value in opened)
        assert all((value == same).all() for value, same in zip(opened, results[0]["opened"], strict=True))
        assert (opened[0] == rows.sum(axis=0)).all() and (opened[4] == 0).all()
        assert ((opened[5] - rows.sum(axis=0) - opened[1])[3:] == 0).all()  # the first three may leave the range
        assert all(abs(noise).max() <= SAMPLER.largest and noise.any() for noise in opened[1:4])
        assert result["noise"].tolist() == costs(noise, party)
        assert result["opening"].tolist() == costs(opening, party)
        same, again, one, two = result["fingerprints"]
        assert same == again and len({same, one, two}) == 3
        assert len(result["refused"]) == 4 and all("version" in text for text in result["refused"])
        assert result["connections"] == [j for j in range(n) if j != party]
    if t:  # the shares of different parties differ
        assert len({result["fingerprints"][0] for result in results}) == n


def test_shares_that_no_share_can_be_are_refused() -> None:
    backend = BACKENDS["sharing"]
    payload = np.zeros(4, dtype="<u8")
    collect = _collector().collect
    assert (collect(payload.tobytes(), 2, 2) == 0).all()
    for bad in (field.P, field.P + 1, (1 << 64) - 1):
        payload[3] = bad
        with pytest.raises(PeerError, match=r"^shares must be below p = 2\^61 - 1; larger ones came; [^;]+$"):
            collect(payload.tobytes(), 2, 2)
    assert backend.largest == (field.P - 1) // 2


def _collector() -> Any:
    import asyncio

    async def make() -> Holder:
        return BACKENDS["sharing"].holder(0, 1, 0, b"run")

    return asyncio.run(make())


@pytest.mark.parametrize(("n", "t"), [(3, 1), (5, 2)])
def test_noise_of_n_parties_has_the_distance_that_its_conversions_leave(n: int, t: int) -> None:
    """One field mask a subset but one: 2^-61 each, for every lane."""
    counts = BACKENDS["sharing"].count_noise(SAMPLER, 1000, n, t)
    masks = len(field.subsets(n, t)) - 1
    assert counts.distance == 1000 * 2.0 ** (-61 * masks)
