"""What owners and parties say to each other: greetings, blocks of shares, results, costs. Sizes and layouts, no
connections."""

import struct
from collections.abc import Iterable
from dataclasses import astuple
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpmpc.aggregation.plan.asked import AGREED, Attempt, Presence
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.channels import MOST_RELEASES
from dpmpc.mpc.transport.link import Connection

HELLO = struct.Struct("<II32s")  # owners first .. end, digest of the plan
ANSWER = struct.Struct("<I32sB64s")  # party, digest of the plan, state of the run, parties that have left as bits
WAITING, RUNNING, OVER = range(3)  # states
HAVE = 1 << 31  # added to the first owner: these have everything that was opened, and need nothing
ASKING = (1 << 32) - 1  # in place of the first owner: party `end` asks how the run is
NOBODY = (1 << 32) - 1  # who asks, where it is no party
TELL = 1 << 31  # added to the party that asks: and for what was opened, where the run is over
BEGINNING = struct.Struct("<QQ")  # number and first release of an attempt; then a bit for each release opened before
READY = struct.Struct("<Q16s")  # bytes sent so far, token of the attempt; zeros when the run is over
TOKEN_BYTES = 16
NO_TOKEN = bytes(TOKEN_BYTES)
COUNT = struct.Struct("<Q")  # of releases
LATER = (1 << 64) - 1  # in its place: a release that is not known yet, and not the one that was named
COST = struct.Struct("<QQQQQddQ")  # see PartyCost
BLOCK_WORDS = 1 << 19  # numbers a frame at most: 4 MiB
WINDOW = 4  # frames to one party that may be under way without its consent


@dataclass(frozen=True)
class PartyCost:
    """What one party counted over a run: bytes to parties and to owners, rounds of the noise and of the openings,
    seconds."""

    bytes_to_parties: int
    bytes_to_owners: int
    bytes_received: int
    offline_rounds: int
    online_rounds: int
    offline_s: float
    online_s: float
    peak_memory: int  # bytes

    def pack(self) -> bytes:
        return COST.pack(*astuple(self))

    @staticmethod
    def unpack(payload: bytes | bytearray) -> "PartyCost":
        return PartyCost(*COST.unpack(payload))


def pack_beginning(attempt: Attempt, known: Iterable[int]) -> bytes:
    """An attempt, and the releases before it whose vectors follow."""
    bits = sum(1 << release for release in known)
    return BEGINNING.pack(attempt.number, attempt.first_release) + bits.to_bytes(
        -(-attempt.first_release // 8), "little"
    )


def unpack_beginning(payload: bytes | bytearray) -> tuple[Attempt, list[int]]:
    """What `pack_beginning` packed. Errors: PeerError for other bytes."""
    size = BEGINNING.size
    attempt = Attempt(*BEGINNING.unpack(payload[:size])) if len(payload) >= size else AGREED
    bits = int.from_bytes(payload[size:], "little")
    first = attempt.first_release
    if attempt == AGREED or first > MOST_RELEASES or len(payload) != size + -(-first // 8) or bits >> first:
        raise PeerError("an attempt begins with its number and its past; other bytes came; are all of one version?")
    return attempt, [release for release in range(first) if bits >> release & 1]


def rows_of_block(dimension: int) -> int:
    """How many owners' vectors travel in one frame: as many as 4 MiB hold, one at least."""
    return max(1, BLOCK_WORDS // dimension)


def blocks_of(first: int, end: int, dimension: int) -> list[tuple[int, int]]:
    """The blocks in which owners first .. end - 1 send."""
    size = rows_of_block(dimension)
    return [(start, min(start + size, end)) for start in range(first, end, size)]


class FramePiece(NamedTuple):
    """What travels in one frame: the coordinates begin .. stop - 1 of the owners first .. end - 1."""

    first: int
    end: int
    begin: int
    stop: int


def columns_of(dimension: int) -> list[tuple[int, int]]:
    """The coordinates in which a vector travels: all of them at once, unless they are more than a frame holds."""
    return [(begin, min(begin + BLOCK_WORDS, dimension)) for begin in range(0, dimension, BLOCK_WORDS)]


@lru_cache(maxsize=8)
def pieces_of(first: int, end: int, dimension: int) -> tuple[FramePiece, ...]:
    """The frames of owners first .. end - 1, in order: their blocks, each by its columns."""
    columns = columns_of(dimension)
    return tuple(FramePiece(*owners, *column) for owners in blocks_of(first, end, dimension) for column in columns)


def result_bytes(dimension: int) -> int:
    """The size of an opened release as a party sends it to owners: the vector, and the bytes it has sent so far."""
    return 8 * (dimension + 1)


def result_size(plan: Plan) -> int:
    """The same; where owners may be missing or fail, with a bit for each that is in it."""
    return result_bytes(plan.dimension) + (presence_bytes(plan) if plan.names_owners else 0)


def pack_result(plan: Plan, opened: Ints, bytes_sent: int, present: Presence | None) -> bytes:
    """An opened release as a party sends it to owners."""
    vector = np.ascontiguousarray(opened, dtype="<i8").data.cast("B")
    return b"".join(
        (vector, bytes_sent.to_bytes(8, "little"), b"" if present is None else pack_presence(plan, present))
    )


def unpack_result(plan: Plan, payload: bytes | bytearray) -> tuple[Ints, int, Presence | None]:
    """(opened vector, bytes sent, who is in it) of a payload of `result_size`."""
    words = np.frombuffer(payload, dtype="<i8", count=plan.dimension + 1)
    present = unpack_presence(plan, payload[8 * len(words) :]) if plan.names_owners else None
    return words[:-1], int(words[-1]), present


def presence_bytes(plan: Plan) -> int:
    """A bit an owner."""
    return -(-plan.owners // 8)


def tagged_presence_bytes(plan: Plan) -> int:
    """A bit and 8 bytes an owner: presence, and the name of each one's sharing, where shares come sealed."""
    return presence_bytes(plan) + 8 * plan.owners


def pack_presence(plan: Plan, present: Presence) -> bytes:
    """A bit an owner, the first owner's the lowest of the first byte."""
    return sum(1 << j for j in present).to_bytes(presence_bytes(plan), "little")


def unpack_presence(plan: Plan, payload: bytes | bytearray) -> Presence:
    """The owners whose bits are set. Errors: PeerError for a bit that no owner has."""
    bits = int.from_bytes(payload, "little")
    if len(payload) != presence_bytes(plan) or bits >> plan.owners:
        raise PeerError("presence is a bit an owner; other bytes came; are all processes of one version?")
    return tuple(j for j in range(plan.owners) if bits >> j & 1)


def exact(peer: Connection, payload: bytearray, size: int) -> bytearray:
    """The payload. Errors: PeerError where it has not `size` bytes."""
    if len(payload) != size:
        raise PeerError(
            f"{peer.name} sent {len(payload)} bytes where {size} were due; are all processes of one version?"
        )
    return payload
