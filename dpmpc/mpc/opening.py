"""Opening Shamir shares from whichever t + 1 parties are left: a release survives n - t - 1 lost ones.

Semi-honest: shares are taken as they come. While noise is made nobody may be lost; once it is there, sums need no more
than t + 1 shares.
"""

import asyncio

import numpy as np

from dpmpc.errors import PeerError
from dpmpc.mpc import field
from dpmpc.mpc.field import Words
from dpmpc.mpc.session import Channel, Session


async def open_from_any(session: Session, shares: Words, channel: Channel) -> Words:
    """The values whose Shamir shares of degree t in F_p the parties hold, from the first t other shares that arrive;
    every party that is left learns them.

    Cost: one round, a message of 8 bytes a value to each of n - 1 parties (`Session.open` sends t, and needs all).
    Errors: PeerError when fewer than t + 1 parties are left, with the names of those lost, or for a share of another
    length.
    """
    flat = np.ascontiguousarray(shares).reshape(-1)
    label = channel.ident << 32 | channel.rounds
    left = [j for j, peer in session.peers.items() if peer.lost is None]
    await channel.exchange(dict.fromkeys(left, flat), [])
    coming = {asyncio.ensure_future(session.peers[j].receive(label)): j for j in session.peers}
    holders, rows, lost = [session.party], [flat], list[int]()
    while len(holders) <= session.threshold:
        if not coming:
            raise PeerError(
                f"an opening needs the shares of {session.threshold + 1} parties; only {len(holders)} are left, for "
                f"{', '.join(f'party {j}' for j in sorted(lost))} left the run; see their logs"
            )
        done, _ = await asyncio.wait(coming, return_when=asyncio.FIRST_COMPLETED)
        for future in sorted(done, key=lambda f: coming[f]):
            party = coming.pop(future)
            if isinstance(future.exception(), PeerError):
                lost.append(party)
            elif len(holders) <= session.threshold:
                holders.append(party)
                rows.append(_read(party, future.result(), flat.size))
    for future in coming:
        future.cancel()  # they come too late, or never
    return field.recombine(rows, holders).reshape(shares.shape)


def _read(party: int, payload: bytearray, size: int) -> Words:
    if len(payload) != 8 * size:
        raise PeerError(
            f"party {party} sent {len(payload)} bytes where {8 * size} were due; are all parties of one version?"
        )
    return np.frombuffer(payload, dtype="<u8")
