"""What a release sends, by formula: bytes, messages, rounds. Exact; the measured counts are held against it, and it
predicts other networks.
"""

from dataclasses import dataclass
from typing import Any

from dpmpc.aggregation.owner import WINDOW, blocks_of
from dpmpc.benchmarks.cell import Cell, plan_of
from dpmpc.mpc.wire import HEADER
from dpmpc.noise.samplers import make_sampler
from dpmpc.noise.sampling import predict

WORD = 8


@dataclass(frozen=True)
class Counts:
    """One release. Bytes include frame headers; noise made ahead is not in them."""

    parties_bytes: int  # sent to other parties by each party, in the opening
    results_bytes: int  # sent to the owners' process by each party: consents and the opened vector
    owners_bytes: int  # sent by all owners together, to all parties
    received_bytes: int  # by each party
    rounds: int


@dataclass(frozen=True)
class NoiseCounts:
    """The noise of one release, made together with that of others. Bytes: of the party that sends most."""

    ands: int  # a coordinate
    rounds: int  # of the whole batch
    bytes: float  # a release
    bytes_by_party: tuple[int, ...]  # of the whole batch


def release_counts(cell: Cell) -> Counts:
    """The counts of one release with its noise made ahead, and one process for all owners."""
    blocks = blocks_of(0, cell.owners, cell.dimension)
    vector = HEADER.size + WORD * cell.dimension
    inputs = sum(HEADER.size + WORD * (end - start) * cell.dimension for start, end in blocks)
    opening = cell.threshold * vector
    consents = HEADER.size * max(0, len(blocks) - WINDOW)
    return Counts(opening, consents + vector + WORD, cell.parties * inputs, inputs + opening, 1)


def owner_bytes(cell: Cell) -> int:
    """What one owner sends in a release as a process of its own: a frame to each party."""
    return cell.parties * (HEADER.size + WORD * cell.dimension)


def noise_counts(cell: Cell, vectors: int) -> NoiseCounts:
    """The counts of making `vectors` noise vectors together."""
    plan = plan_of(cell, vectors)
    sampler = make_sampler(cell.sampler, cell.law, plan.noise_asked)
    cost = predict(sampler, vectors * cell.dimension, cell.parties, cell.threshold)
    return NoiseCounts(cost["ands_per_sample"], cost["rounds"], max(cost["bytes"]) / vectors, tuple(cost["bytes"]))


@dataclass(frozen=True)
class Link:
    """A network: the round-trip time between any two processes, and what each party's connection carries in each
    direction.
    """

    rtt: float  # seconds
    bandwidth: float  # bytes a second

    @classmethod
    def of(cls, rtt_ms: float, megabits: float) -> "Link":
        return cls(rtt_ms / 1e3, megabits * 1e6 / 8)


NETWORKS = {"lan": Link.of(0.5, 1000.0), "wan": Link.of(40.0, 100.0)}


def network_seconds(cell: Cell, link: Link, online_noise: NoiseCounts | None = None) -> float:
    """What the network adds to a release: shares in, opening, result out, each half a round trip and its bytes at the
    busiest connection.

    Owners have connections of their own, so a party's inbound connection is the busiest: m vectors, then the opening.
    A long input needs a consent for every frame beyond the first `WINDOW`, which costs time only where a window is
    less than a round trip holds.
    """
    blocks = blocks_of(0, cell.owners, cell.dimension)
    counts = release_counts(cell)
    frame = HEADER.size + WORD * (blocks[0][1] - blocks[0][0]) * cell.dimension
    stall = max(0.0, link.rtt - WINDOW * frame / link.bandwidth) * (max(0, len(blocks) - WINDOW) / WINDOW)
    seconds = 1.5 * link.rtt + stall + (counts.received_bytes + counts.results_bytes) / link.bandwidth
    if online_noise is not None:
        seconds += online_noise.rounds * link.rtt / 2 + online_noise.bytes / link.bandwidth
    return seconds


def counts_record(cell: Cell, vectors: int) -> dict[str, Any]:
    """All of it under the names of the result file; with a pool, `vectors` noise vectors are made together."""
    counts, noise = release_counts(cell), noise_counts(cell, vectors if cell.pool else 1)
    return {
        "bytes_party_to_parties": counts.parties_bytes,
        "bytes_party_to_owners": counts.results_bytes,
        "bytes_party_received": counts.received_bytes,
        "bytes_owners": counts.owners_bytes,
        "bytes_one_owner": owner_bytes(cell),
        "rounds": counts.rounds,
        "noise_ands_a_coordinate": noise.ands,
        "noise_rounds": noise.rounds,
        "noise_bytes_party": noise.bytes,
        "noise_bytes_by_party": list(noise.bytes_by_party),
    }
