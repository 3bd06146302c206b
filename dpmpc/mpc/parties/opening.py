"""Opening Shamir shares from whichever t + 1 parties are left: a release survives n - t - 1 lost ones.

Semi-honest: shares are taken as they come. While noise is made nobody may be lost; once it is there, sums need no more
than t + 1 shares.
"""

import numpy as np

from dpmpc.errors import PeerError
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.residues import recombine
from dpmpc.mpc.parties.mesh import Mesh
from dpmpc.mpc.transport.channels import exchange_label

_WORD = 8


async def open_from_any(mesh: Mesh, threshold: int, shares: Words, ident: int) -> Words:
    """The values whose Shamir shares of degree t in F_p the parties hold, from the shares of all that are left; each of
    them learns the values. `ident`: a channel, used once.

    Cost: one round, a message of 8 bytes a value to each other party (`Session.open_words` sends t, and needs all).
    Errors: PeerError when fewer than t + 1 parties are left, with the names of those lost, or for a share of another
    length, or words that no share has.
    """
    mesh.channel(ident)
    mesh.rounds += 1
    label = exchange_label(ident, 0)
    flat = np.ascontiguousarray(shares).reshape(-1)
    coming = {}
    lost: list[int] = []
    for j, peer in mesh.peers.items():
        try:
            peer.send(label, flat.data.cast("B"))
            coming[j] = peer.receive(label)
        except PeerError:
            lost.append(j)
    rows = {mesh.party: flat}
    for j, future in coming.items():
        try:
            payload = await future
        except PeerError:
            lost.append(j)
            continue
        if len(payload) != _WORD * flat.size:
            raise PeerError(
                f"party {j} sent {len(payload)} bytes where {_WORD * flat.size} were due; are all parties of one "
                "version?"
            )
        rows[j] = np.frombuffer(payload, dtype="<u8")
        if rows[j].max(initial=0) >= field.P:
            raise PeerError(
                f"shares must be below p = 2^61 - 1; party {j} sent larger ones; are all parties of one version?"
            )
    if len(rows) <= threshold:
        gone = ", ".join(f"party {j}" for j in sorted(lost))
        raise PeerError(
            f"an opening needs the shares of {threshold + 1} parties; only {len(rows)} are left, for {gone} left the "
            "run; see their logs"
        )
    holders = list(rows)[: threshold + 1]
    return recombine([rows[j] for j in holders], holders).reshape(shares.shape)
