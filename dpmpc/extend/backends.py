"""What every backend must do: shares of vectors come in, add up, take noise and open, at the cost that was counted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.errors import PeerError, UsageError
from dpmpc.extend.failed import hold
from dpmpc.mpc.contract.backend import BACKENDS, Backend, Counts, Holder, Share
from dpmpc.mpc.parties.loopback import run_parties
from dpmpc.mpc.transport.wire import HEADER

OWNERS, DIMENSION = 3, 6
SAMPLER = discrete_gaussian(700.0)
NOISE_OF = 3 * DIMENSION
KEPT = np.arange(DIMENSION) % 2 == 0


def check_backend(name: str, parties: Sequence[int] = (1, 2, 3, 5)) -> int:
    """Among how many numbers of parties the backend called `name` was tried: for each that it can do, processes on
    this machine add up shares, make noise and open, and what they send is what the backend counts.

    Errors: ConformanceError; whatever the backend raises. Cost: some seconds and `n` processes a number of parties.
    """
    backend, tried = BACKENDS[name], 0
    for n in parties:
        t = backend.threshold(n)
        try:
            backend.check(n, t)
        except UsageError:
            continue
        if t >= 0:
            _check(name, backend, n, t)
            tried += 1
    hold(tried > 0, f"a backend can do one of these numbers of parties: {tuple(parties)}")
    return tried


def _check(name: str, backend: Backend, n: int, t: int) -> None:
    rows = _vectors(backend.largest)
    dealer = backend.dealer(n, t)
    payloads = [[bytes(payload) for payload in dealer.deal(block)] for block in (rows[:2], rows[2:])]
    for blocks, owners in zip(payloads, (2, OWNERS - 2), strict=True):
        sizes = backend.payload_bytes(n, t, owners, DIMENSION)
        hold(tuple(map(len, blocks)) == sizes, "a dealer's payloads have the sizes of payload_bytes")
    fresh = [bytes(p) for p in dealer.deal(rows[:2])]
    hold(t == 0 or fresh != payloads[0], "a dealer draws fresh randomness every time")
    results = run_parties(_party, n, t, (payloads,), backend=name)
    noise, opening = backend.count_noise(SAMPLER, NOISE_OF, n, t), backend.count_opening(DIMENSION, n, t)
    for party, result in enumerate(results):
        _check_opened(result["opened"], results[0]["opened"], rows)
        hold(result["noise"].tolist() == _costs(noise, party), "count_noise is what noise takes")
        hold(result["opening"].tolist() == _costs(opening, party), "count_opening is what an opening takes")
        same, again, one, two = result["fingerprints"]
        hold(same == again and len({same, one, two}) == 3, "a fingerprint is of the share")
        hold(result["refused"] == 4, "collect refuses payloads of other sizes by PeerError")
        hold(result["connections"] == [j for j in range(n) if j != party], "connections are with all other parties")
    shares = {result["fingerprints"][0] for result in results}
    hold(t == 0 or len(shares) == n, "the shares of different parties differ")


def _check_opened(opened: Sequence[NDArray[np.int64]], first: Sequence[Any], rows: NDArray[np.int64]) -> None:
    total = rows.sum(axis=0)
    hold(all(v.dtype == np.int64 and v.shape == (DIMENSION,) for v in opened), "an opened vector is int64, (d,)")
    hold(all((v == w).all() for v, w in zip(opened, first, strict=True)), "all parties open the same")
    hold(bool((opened[0] == total).all()), "the opened sum is the sum of the owners' vectors")
    hold(not opened[4].any(), "zero is the share of the zero vector")
    hold(bool((opened[6] == np.where(KEPT, total, 0)).all()), "a share is kept where it is to be, and of 0 elsewhere")
    with_noise = opened[5] - total - opened[1]  # the first three may leave the range
    hold(not with_noise[3:].any(), "a share plus a share opens to the sum")
    small = all(abs(v).max() <= SAMPLER.largest and v.any() for v in opened[1:4])
    hold(small, "noise is not zero, and within the sampler's largest value")


def _vectors(largest: int) -> NDArray[np.int64]:
    """(OWNERS, DIMENSION): sums up to the largest numbers of both signs, reached by one owner or by several."""
    rows = np.zeros((OWNERS, DIMENSION), dtype=np.int64)
    rows[:, 0], rows[1, 1], rows[2, 2] = largest // OWNERS, largest, -largest
    rows[:, 3], rows[:2, 4] = [5, -7, 1], [largest, -largest]
    return rows


def _costs(counts: Counts, party: int) -> list[int]:
    """(rounds, bytes, frames) of one party."""
    return [counts.rounds, counts.bytes_with_headers(HEADER.size)[party], counts.messages_sent[party]]


async def _party(holder: Holder[Share], payloads: list[list[bytes]]) -> dict[str, Any]:
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
    opened.append(await holder.open(holder.kept(total, KEPT), 21))
    refused = 0
    for payload, owners in ((first[:-1], 2), (first + b"x", 2), (first, 3), (b"", 2)):
        try:
            holder.collect(payload, owners, DIMENSION)
        except PeerError:
            refused += 1
    return {
        "opened": opened,
        "noise": np.subtract(made, before),
        "opening": np.subtract(cost, opening),
        "fingerprints": [holder.fingerprint(share) for share in (total, again[0], pieces[0], pieces[1])],
        "refused": refused,
        "connections": sorted(holder.connections().values()),
    }
