"""What a release sends: bytes, rounds, gates, from the backend's own counting and the sizes of the owners' frames.
Exact; the measured counts are held against it, and it predicts other networks.
"""

from dataclasses import dataclass
from typing import Any

from dpmpc.aggregation.plan.barrier import SAID
from dpmpc.aggregation.wire.frames import WINDOW, FramePiece, pieces_of, result_bytes
from dpmpc.benchmarks.cell import BenchCell, plan_of
from dpmpc.mpc.contract import backend
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.noise.draw import count_draw
from dpmpc.noise.pool import fills


@dataclass(frozen=True)
class ReleaseCounts:
    """One release. Bytes include frame headers; noise made ahead is not in them."""

    parties_bytes: tuple[int, ...]  # sent to other parties by each party, in the barrier and the opening
    results_bytes: int  # sent to the owners' process by each party: consents and the opened vector
    inputs_bytes: tuple[int, ...]  # sent to each party by all owners together
    rounds: int

    @property
    def owners_bytes(self) -> int:
        """Sent by all owners together, to all parties."""
        return sum(self.inputs_bytes)

    @property
    def received_bytes(self) -> int:
        """Received by a party, on average: a backend counts openings by who sends."""
        return -(-(sum(self.inputs_bytes) + sum(self.parties_bytes)) // len(self.inputs_bytes))

    @property
    def busiest_bytes(self) -> int:
        """Received by the party that owners send most: some get seeds alone. Of openings the average."""
        return max(self.inputs_bytes) - (-sum(self.parties_bytes) // len(self.inputs_bytes))


@dataclass(frozen=True)
class NoiseCounts:
    """The noise of one release, made together with that of others. Bytes: of the party that sends most."""

    gates: dict[str, int]  # by kind, a coordinate
    rounds: int  # of the whole batch
    bytes: float  # a release
    bytes_by_party: tuple[int, ...]  # of the whole batch


def release_counts(cell: BenchCell) -> ReleaseCounts:
    """The counts of one release with its noise made ahead, and one process for all owners."""
    pieces = pieces_of(0, cell.owners, cell.dimension)
    opening = sum(opening_counts(cell), start=backend.Counts())
    frames = [frame_bytes(cell, piece) for piece in pieces]
    consents = HEADER.size * max(0, len(pieces) - WINDOW)
    return ReleaseCounts(
        parties_bytes=_sent(opening, cell.parties),
        results_bytes=consents + HEADER.size + result_bytes(cell.dimension),
        inputs_bytes=tuple(sum(by_party) for by_party in zip(*frames, strict=True)),
        rounds=opening.rounds,
    )


def opening_counts(cell: BenchCell) -> tuple[backend.Counts, backend.Counts]:
    """Of the barrier, and of the opening."""
    barrier = cell.computed_by.count_barrier(SAID.size, cell.parties)
    return barrier, cell.computed_by.count_opening(cell.dimension, cell.parties, cell.threshold)


def frame_bytes(cell: BenchCell, piece: FramePiece) -> list[int]:
    """The sizes of the frames, one a party, in which a piece of owners' vectors travels."""
    owners, width = piece.end - piece.first, piece.stop - piece.begin
    payloads = cell.computed_by.payload_bytes(cell.parties, cell.threshold, owners, width)
    return [HEADER.size + size for size in payloads]


def owner_bytes(cell: BenchCell) -> int:
    """What one owner sends in a release as a process of its own: a frame to each party, of a long vector several."""
    return sum(sum(frame_bytes(cell, piece)) for piece in pieces_of(0, 1, cell.dimension))


def noise_counts(cell: BenchCell, vectors: int) -> NoiseCounts:
    """The counts of making `vectors` noise vectors ahead."""
    sampler = plan_of(cell, vectors).derived.sampler
    cost = sum(
        (
            count_draw(cell.computed_by, sampler, k * cell.dimension, cell.parties, cell.threshold)
            for k in fills(vectors, cell.dimension)
        ),
        start=backend.Counts(),
    )
    sent = _sent(cost, cell.parties)
    return NoiseCounts(cost.sample, cost.rounds, max(sent) / vectors, sent)


def _sent(cost: backend.Counts, parties: int) -> tuple[int, ...]:
    """Bytes by sending party, headers included."""
    return tuple(cost.bytes_with_headers(HEADER.size)) or (0,) * parties


@dataclass(frozen=True)
class NetworkLink:
    """A network: the round-trip time between any two processes, and what each party's connection carries in each
    direction.
    """

    rtt: float  # seconds
    bandwidth: float  # bytes a second

    @classmethod
    def of(cls, rtt_ms: float, megabits: float) -> "NetworkLink":
        return cls(rtt_ms / 1e3, megabits * 1e6 / 8)


NETWORKS = {"lan": NetworkLink.of(0.5, 1000.0), "wan": NetworkLink.of(40.0, 100.0)}


def network_seconds(cell: BenchCell, link: NetworkLink, online_noise: NoiseCounts | None = None) -> float:
    """What the network adds to a release: shares in, barrier, opening, result out, each half a round trip and its bytes
    at the busiest connection.

    Owners have connections of their own, so a party's inbound connection is the busiest: m vectors, then the opening.
    A long input needs a consent for every frame beyond the first `WINDOW`, which costs time only where a window is
    less than a round trip holds.
    """
    pieces = pieces_of(0, cell.owners, cell.dimension)
    counts = release_counts(cell)
    frame = max(frame_bytes(cell, pieces[0]))
    stall = max(0.0, link.rtt - WINDOW * frame / link.bandwidth) * (max(0, len(pieces) - WINDOW) / WINDOW)
    trips = 2 + counts.rounds  # halves of round trips
    seconds = trips * link.rtt / 2 + stall + (counts.busiest_bytes + counts.results_bytes) / link.bandwidth
    if online_noise is not None:
        seconds += online_noise.rounds * link.rtt / 2 + online_noise.bytes / link.bandwidth
    return seconds


def counts_record(cell: BenchCell, vectors: int) -> dict[str, Any]:
    """All of it under the names of the result file; with a pool, `vectors` noise vectors are made together. Bytes a
    party sends: of the one that sends most."""
    counts, noise = release_counts(cell), noise_counts(cell, vectors if cell.pool else 1)
    return {
        "bytes_party_to_parties": max(counts.parties_bytes),
        "bytes_party_to_owners": counts.results_bytes,
        "bytes_party_received": counts.received_bytes,
        "bytes_owners": counts.owners_bytes,
        "bytes_one_owner": owner_bytes(cell),
        "rounds": counts.rounds,
        **by_gate("noise", noise.gates, "coordinate"),
        "noise_rounds": noise.rounds,
        "noise_bytes_party": noise.bytes,
        "noise_bytes_by_party": list(noise.bytes_by_party),
    }


def by_gate(prefix: str, gates: dict[str, int], of: str) -> dict[str, int]:
    """The numbers of gates of each kind, named for the result file: noise_ands_a_coordinate, ands_a_sample."""
    before = prefix and prefix + "_"
    return {f"{before}{kind.replace(' ', '_')}_a_{of}": count for kind, count in gates.items()}
