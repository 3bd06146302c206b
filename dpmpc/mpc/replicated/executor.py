"""The sharing executor: replicated secret sharing over F_2 among the parties of a session, for any (n, t) with 2t < n.

Semi-honest, t parties learn nothing: every message of an AND is masked by a PRSS stream that no t parties without the
sender know all of. Random bits and masks come from PRSS without a message. Streams are bound to the session's keys,
the run id and the batch's channel, and each word is used once.
Source: Araki et al. 2016 for (3, 1); Cramer, Damgård, Ishai 2005 for PRSS and the general products.
"""

from collections.abc import Sequence

import numpy as np

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.program import Layer, Program
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.executor import MaskBits, Words, execute, given_deposits, mask_deposits
from dpmpc.mpc.contract.lanes import from_planes, to_planes, words_for
from dpmpc.mpc.native.layers import Deposit, KeptOperands, Masks, ProductLayer, Slots, Source, new_words
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.residues import weighted_sum
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.replicated.layout import SharingLayout, Subset


class SharingBatch:
    """One batch of `lanes` evaluations on one channel of the session; it runs one program.

    All parties make the batch with the same `ident` and run the same program on it. Kernels run where the session says;
    one batch is never on two threads at once.
    """

    def __init__(self, session: Session, ident: int, lanes: int) -> None:
        self.session, self.ident, self.lanes = session, ident, lanes
        self.channel = session.channel(ident)
        self.layout = SharingLayout.of(session.parties, session.threshold)
        self.party = session.party
        self.mine = self.layout.mine(self.party)
        self.words = words_for(lanes)
        self._used = False

    async def run(self, program: Program, masks: Sequence[MaskBits | None] = (), given: Words | None = None) -> Words:
        """Shares (outputs, components, words) of the program's outputs; `given` are shares of its given bits."""
        if self._used:  # holds under -O too: the streams are bound to the channel, and would begin again
            raise AssertionError(f"the batch on channel {self.ident} has run a program already")
        self._used = True
        return await execute(program, SharingExecutor(self, masks, given))

    async def reveal(self, shares: Words) -> Words | None:
        """The shared bits in the clear, (wires, words), at the members of `layout.opened_to`; None elsewhere. Cost:
        one round."""
        outgoing, incoming, sizes = {}, [], []
        for sender, receiver, parts in self.layout.opening_sends:
            if sender == self.party:
                held = [self.mine.index(s) for s in parts]
                outgoing[receiver] = np.ascontiguousarray(shares[:, held]).reshape(-1)
            if receiver == self.party:
                incoming.append(sender)
                sizes.append(len(shares) * len(parts) * self.words * 8)
        received = await self.channel.exchange(outgoing, incoming) if self.layout.parties > 1 else []
        if self.party not in self.layout.opened_to:
            return None
        plain: Words = np.bitwise_xor.reduce(shares, axis=1)
        for party, payload, size in zip(incoming, received, sizes, strict=True):
            if len(payload) != size:
                raise PeerError(
                    f"party {party} sent {len(payload)} bytes where {size} were due; are all parties of one version?"
                )
            if size:
                parts_words = np.frombuffer(payload, dtype="<u8").reshape(len(shares), -1, self.words)
                plain ^= np.bitwise_xor.reduce(parts_words, axis=1)
        return plain

    @property
    def masks(self) -> int:
        return len(self.layout.subsets) - 1

    async def to_field(self, program: Program, less: int = 0, given: Words | None = None) -> Words:
        """See `ProgramEngine.to_field`; `given`: shares of the program's given bits."""
        values = self._field_masks()
        bits = [MaskBits(self.mine.index(s), to_planes(v, FIELD_BITS)) if v is not None else None for s, v in values]
        opened = await self.reveal(await self.run(program, bits, given))
        return self._unmask(opened, values, less)[: self.lanes]

    def _field_masks(self) -> list[tuple[Subset, Words | None]]:
        """PRSS elements of F_p, one a lane, for each subset but `layout.opened_to`; None where this party is not in
        it."""
        masked = [s for s in self.layout.subsets if s != self.layout.opened_to]
        return [(s, self._field_mask(s) if s in self.mine else None) for s in masked]

    def _field_mask(self, subset: Subset) -> Words:
        return field.uniform(self.session.stream(subset, domains.MASK, self.ident), (64 * self.words,))

    def _unmask(self, opened: Words | None, masks: list[tuple[Subset, Words | None]], less: int) -> Words:
        """opened - sum of the masks - less, as this party's share: each term is known to all parties of a subset."""
        n, me = self.layout.parties, self.party
        terms = [(v, -field.subset_weight(s, n, me)) for s, v in masks if v is not None]
        if opened is not None:
            terms.append((from_planes(opened), field.subset_weight(self.layout.opened_to, n, me)))
        return weighted_sum([v for v, _ in terms], [w for _, w in terms], -less)


class SharingExecutor:
    """Runs one program in a batch. A wire is K = C(n-1, t) components, in the order of `layout.mine`."""

    def __init__(self, batch: SharingBatch, masks: Sequence[MaskBits | None], given: Words | None) -> None:
        layout, session, me, mine = batch.layout, batch.session, batch.party, batch.mine
        self.batch, self._masks, self._given = batch, masks, given
        self.components, self.words = len(mine), batch.words
        self.public = mine.index(layout.subsets[0]) if me in layout.subsets[0] else None
        self._receivers = layout.receivers(me)
        # Party j's part of a product lands in its target component, masked by the other components of j, which get the
        # masks.
        target = mine.index(layout.target(me))
        self._products = ProductLayer(layout.products(me), target)
        self._own = [(k, session.stream(s, domains.AND, batch.ident, me)) for k, s in enumerate(mine) if k != target]
        self._others = [
            (k, session.stream(s, domains.AND, batch.ident, j))
            for k, s in enumerate(mine)
            for j in s
            if j != me and s != layout.target(j)
        ]
        self._senders = [
            (j, mine.index(layout.target(j))) for j in range(session.parties) if j != me and me in layout.target(j)
        ]
        self._random = [session.stream(s, domains.RANDOM, batch.ident) for s in mine]

    def _inputs(self, layer: Layer) -> list[Deposit]:
        result = mask_deposits(layer, self._masks, self.components) + given_deposits(layer, self._given)
        if len(layer.random):
            shape = (len(layer.random), self.words)
            result += [Deposit(layer.random, k, (stream.reserve(shape),)) for k, stream in enumerate(self._random)]
        return result

    def kept(self, layer: Layer) -> KeptOperands | None:
        """Where the layer's ANDs leave their operands: nowhere, if nobody checks them."""
        return None

    async def layer(self, slots: Slots, layer: Layer, results: list[Deposit]) -> list[Deposit]:
        shape = (len(layer.ands), self.words)
        # a new one each time: the network may still read the last one
        message = new_words(shape) if self._receivers else None
        masks = Masks(
            [(k, stream.reserve(shape)) for k, stream in self._own],
            [(k, stream.reserve(shape)) for k, stream in self._others],
        )
        slots.run(layer, results + self._inputs(layer), self._products, masks, message, self.kept(layer))
        if not len(layer.ands) or message is None:
            return []
        outgoing = dict.fromkeys(self._receivers, message.reshape(-1))
        received = await self.batch.channel.words(outgoing, [j for j, _ in self._senders], message.size)
        parts: list[list[Source]] = [[] for _ in range(self.components)]
        for (_, k), words in zip(self._senders, received, strict=True):
            parts[k].append(words.reshape(shape))
        return self.deposits(layer, parts)

    def deposits(self, layer: Layer, parts: Sequence[Sequence[Source]]) -> list[Deposit]:
        """What other parties sent, by component, to the layer's results."""
        return [self.added(layer, k, tuple(sources)) for k, sources in enumerate(parts) if sources]

    def added(self, layer: Layer, component: int, sources: tuple[Source, ...]) -> Deposit:
        """What other parties sent, to what a component of the layer's results has."""
        return Deposit(layer.results, component, sources, added=True)
