"""What the parties of an attempt draw together: its token, which no other attempt has.

Every party sends 16 random bytes to every other; the token is a digest of them all. One honest party's bytes are enough
for a token that has never been: so ledgers of this attempt, parties' and owners', are told from those of every other
attempt at the same plan. It is public. A party that tells two others different bytes makes ledgers of one attempt look
like those of two, and counts too much.
"""

import hashlib
import secrets

from dpmpc.aggregation.wire.frames import TOKEN_BYTES, exact
from dpmpc.mpc.contract.backend import Holder, Share
from dpmpc.mpc.transport.channels import DRAWN


async def drawn(holder: Holder[Share], kernels: bytes = b"") -> tuple[bytes, dict[int, bytes]]:
    """(the token of the attempt that all parties are connected for, what the others say of their kernels, by party).
    `kernels`: what this party says. One exchange. Errors: PeerError when one leaves."""
    peers = {party: peer for peer, party in holder.connections().items()}
    parts, said = {holder.party: secrets.token_bytes(TOKEN_BYTES)}, dict[int, bytes]()
    for peer in peers.values():
        peer.send(DRAWN, parts[holder.party] + kernels)
    coming = {party: peer.receive(DRAWN) for party, peer in peers.items()}
    for party, each in coming.items():
        payload = bytearray(await each)
        said[party] = bytes(payload[TOKEN_BYTES:])
        parts[party] = bytes(exact(peers[party], payload[:TOKEN_BYTES], TOKEN_BYTES))
    return token_of(parts), said


def token_of(parts: dict[int, bytes]) -> bytes:
    """The token, of every party's bytes."""
    return hashlib.sha256(b"dpmpc attempt\0" + b"".join(parts[party] for party in sorted(parts))).digest()[:TOKEN_BYTES]
