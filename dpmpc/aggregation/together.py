"""What the parties of an attempt draw together: its token, which no other attempt has.

Every party sends 16 random bytes to every other; the token is a digest of them all. One honest party's bytes are enough
for a token that has never been: so ledgers of this attempt, parties' and owners', are told from those of every other
attempt at the same plan. It is public. A party that tells two others different bytes makes ledgers of one attempt look
like those of two, and counts too much.
"""

import hashlib
import secrets

from dpmpc.aggregation.frames import TOKEN_BYTES, exact
from dpmpc.mpc.backend import Holder
from dpmpc.mpc.channels import DRAWN


async def drawn(holder: Holder) -> bytes:
    """The token of the attempt that all parties are connected for. One exchange. Errors: PeerError when one leaves."""
    peers = {party: peer for peer, party in holder.connections().items()}
    parts = {holder.party: secrets.token_bytes(TOKEN_BYTES)}
    for peer in peers.values():
        peer.send(DRAWN, parts[holder.party])
    coming = {party: peer.receive(DRAWN) for party, peer in peers.items()}
    for party, each in coming.items():
        parts[party] = bytes(exact(peers[party], await each, TOKEN_BYTES))
    return token_of(parts)


def token_of(parts: dict[int, bytes]) -> bytes:
    """The token, of every party's bytes."""
    return hashlib.sha256(b"dpmpc attempt\0" + b"".join(parts[party] for party in sorted(parts))).digest()[:TOKEN_BYTES]
