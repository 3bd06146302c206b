"""Shares in F_p become bits that are shared in F_2: the reverse of `circuits.convert`. Semi-honest, for the parties of
a session of replicated sharing with t >= 1.

The parties open y = x plus a mask of F_p for each (n-t)-subset but a last one, to the members of that last one alone.
All their bits are shared without a message, and a circuit takes the masks off (`circuits.in_range`). Shares may be of
degree 2t, as a sum of squares is; so all are opened as such, with a random sharing of zero of degree 2t added.

Guarantees: any t parties miss one subset: they do not see y, or lack a mask that is uniform in F_p. With it and the
sharing of zero, the shares of y that they see are uniform among those with their own. So the numbers are hidden
perfectly, given the streams, which are bound to the channel.
"""

import numpy as np

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.program import Program
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.executor import MaskBits
from dpmpc.mpc.contract.lanes import to_planes, words_for
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.residues import recombine
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.replicated.layout import SharingLayout, Subset


class Unmasking:
    """On a channel that belongs to somebody else's protocol; one opening."""

    def __init__(self, session: Session, channel: Channel) -> None:
        assert session.threshold >= 1
        self.session, self.channel = session, channel
        self.layout = SharingLayout.of(session.parties, session.threshold)

    def batch(self, ident: int, lanes: int) -> SharingBatch:
        """A batch whose program may be given shared bits."""
        return SharingBatch(self.session, ident, lanes)

    def broken(self, what: str, party: int) -> PeerError:
        """The error to raise where a party did not do what it must."""
        return PeerError(f"{what} must hold; that of party {party} does not; start all parties again")

    async def run(self, mine: Words, batch: SharingBatch, program: Program) -> Words:
        """Shares (outputs, components, W) of a program of `circuits.in_range`, a lane a number, of this party's shares
        `mine` of the numbers. Cost: the opening, and the program's."""
        y, masks = await self.open(mine.reshape(-1))
        given = np.zeros((FIELD_BITS, len(batch.mine), batch.words), dtype=np.uint64)
        if y is not None:
            given[:, batch.mine.index(self.layout.opened_to)] = planes(y)
        bits = [
            MaskBits(batch.mine.index(s), planes(masks[s])) if s in masks else None for s in self.layout.subsets[:-1]
        ]
        return await batch.run(program, bits, given)

    async def open(self, mine: Words) -> tuple[Words | None, dict[Subset, Words]]:
        """(the masked numbers, if this party may see them; the masks it knows). Cost: one round, 8 bytes a number from
        each of 2t + 1 parties to each that sees them."""
        n, t, me = self.session.parties, self.session.threshold, self.session.party
        senders, seers, ident = self.layout.product_senders, self.layout.opened_to, self.channel.ident
        masks: dict[Subset, Words] = {}
        flat = mine
        for s in self.session.mine:  # f_S(x) (r_S + x u_1 + ... + x^t u_t): a mask, and a sharing of zero of degree 2t
            blind = np.zeros(flat.size, dtype=np.uint64)
            if s != seers:
                masks[s] = blind = field.uniform(self.session.stream(s, domains.OWNER_MASK, ident), (flat.size,))
            zeros = self.session.stream(s, domains.OWNER_ZERO, ident)
            for power in range(1, t + 1):
                blind = field.add(blind, field.mul(field.uniform(zeros, (flat.size,)), (me + 1) ** power))
            flat = field.add(flat, field.mul(blind, field.subset_weight(s, n, me)))
        outgoing = {j: flat for j in seers if j != me} if me in senders else {}
        incoming = [j for j in senders if j != me] if me in seers else []
        received = await self.channel.words(outgoing, incoming, flat.size)
        if me not in seers:
            return None, masks
        self.check_words(dict(zip(incoming, received, strict=True)))
        rows = dict(zip(incoming, received, strict=True)) | ({me: flat} if me in senders else {})
        return recombine([rows[j] for j in senders], senders), masks

    def check_words(self, received: dict[int, Words]) -> None:
        """Errors: words that no share has."""
        for j, words in received.items():
            if words.max(initial=0) >= field.P:
                raise self.broken("that shares are below p = 2^61 - 1", j)


def planes(numbers: Words) -> Words:
    """(61, words): bits of numbers, a lane each; zeros beyond the last."""
    lanes = np.zeros(64 * words_for(numbers.size), dtype=np.uint64)
    lanes[: numbers.size] = numbers.reshape(-1)
    return to_planes(lanes, FIELD_BITS)
