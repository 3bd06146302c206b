"""The executor of two servers with oblivious transfer: wires are XOR-shared bits, ANDs are products by transfers, sums
are lifted bits. Semi-honest, either server; transfers are checked, what is done with them is not.

A batch makes all its transfers at once, in both directions: three flows, of corrections and their check. Then a layer
of ANDs is one flow, the lifts are one and the step into F_p is one. Everything sent is masked by a string, or a choice,
of a transfer that is used for nothing else.
"""

import secrets
from collections.abc import Sequence

import numpy as np

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.lift import HeapProgram
from dpmpc.circuits.program import Layer, Program
from dpmpc.mpc.contract.executor import MaskBits, Words, execute, given_deposits, mask_deposits
from dpmpc.mpc.contract.lanes import from_planes, to_planes, words_for
from dpmpc.mpc.native.layers import Deposit, Slots
from dpmpc.mpc.native.planes import transpose
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.two_servers import flows
from dpmpc.mpc.two_servers import lifts as lifting
from dpmpc.mpc.two_servers.extension import ChosenBatch
from dpmpc.mpc.two_servers.flows import Wanted
from dpmpc.mpc.two_servers.lifts import (
    FIELD_CHOOSER,
    ChosenLifts,
    Lifts,
    OfferedLifts,
    lifts_of,
    products_of_heap,
    transfers_of,
)
from dpmpc.mpc.two_servers.pair import ServerPair
from dpmpc.mpc.two_servers.products import LayerProducts, ProductTransfers, products_of

OPENER = 1  # who sees the masked numbers of a conversion by adders; the other one knows the mask


class OtBatch:
    """One batch of `lanes` evaluations on one channel; it does one program."""

    masks = 1

    def __init__(self, pair: ServerPair, ident: int, lanes: int) -> None:
        self.pair, self.ident, self.lanes = pair, ident, lanes
        self.party, self.words = pair.party, words_for(lanes)
        self.channel = pair.channel(ident)

    # -- the two ways to shares in F_p ---------------------------------------------------------------------------------
    async def lift(self, heap: HeapProgram, less: int = 0) -> Words:
        """See `LiftEngine.lift`."""
        lifts, transfers, outputs = await self._sampled(heap)
        offered, chosen = transfers.offered_lifts, transfers.chosen_lifts
        assert offered is not None and chosen is not None
        await self.pair.work(lambda: transfers.take_choices(chosen))
        message = await self.pair.work(lambda: np.concatenate([offered.offer(outputs), chosen.tell(outputs)]))
        received = await self.send_rows(message, lifts.rows(self.pair.other))
        told = len(lifts.told(1 - self.party))
        split = len(received) - told

        def add_up() -> Words:
            total = offered.finish(outputs, received[split:])
            total = total + chosen.finish(
                outputs, message[len(message) - len(lifts.told(self.party)) :], received[:split]
            )
            if self.party == 0:  # before the number leaves mod 2^M: without the constant it may be negative
                total = total + np.uint64(heap.constant % (1 << lifts.bits))
            return total & np.uint64((1 << lifts.bits) - 1)

        share = await self.pair.work(add_up)
        return (await self._into_field(share, lifts.bits, -less, transfers))[: self.lanes]

    async def _sampled(self, heap: HeapProgram) -> tuple[Lifts, "BatchTransfers", Words]:
        """(lifts, their transfers, this party's shares (outputs, words) of the heap's bits)."""
        lifts = lifts_of(heap)
        transfers = await self._transfers(products_of_heap(heap), lifts)
        return lifts, transfers, (await execute(heap.program, _OtExecutor(self, transfers)))[:, 0]

    async def _into_field(self, share: Words, bits: int, constant: int, transfers: "BatchTransfers") -> Words:
        """Shares in F_p of the number, below 2^(bits - 1), whose shares mod 2^bits are given. Cost: one flow."""
        bit = lifting.wrap_bit(share, bits)
        if self.party == FIELD_CHOOSER:
            choice = from_planes(transfers.choices[-1:])
            told = choice ^ bit
            offered = await self.send_rows(to_planes(told, 1), FIELD_BITS)
            product = lifting.chosen_product(transfers.wide[0], choice, told, field.fold(from_planes(offered)))
            return lifting.field_share(share, product, bits, constant - (1 << bits))
        q0, q1 = transfers.wide
        told = from_planes(await self.send_rows(to_planes(lifting.offer_field(q0, q1, bit), FIELD_BITS), 1))
        return lifting.field_share(share, lifting.offered_product(q0, bit, told), bits, 0)

    async def to_field(self, program: Program, less: int = 0) -> Words:
        """See `ProgramEngine.to_field`: by adders, and an opening to party 1. For programs that are no heap."""
        masked = self.party != OPENER
        mask = field.uniform(Prg.from_os(), (64 * self.words,)) if masked else None
        bits = MaskBits(0, to_planes(mask, FIELD_BITS)) if mask is not None else None
        outputs = await self.run(program, [bits])
        if mask is not None:
            await self.send_rows(outputs, 0)
            share = field.neg(mask)
        else:
            share = field.fold(from_planes(outputs ^ await self.send_rows(outputs[:0], len(outputs))))
            share = field.sub(share, np.full(1, less % field.P, dtype=np.uint64))
        return share[: self.lanes]

    async def run(self, program: Program, masks: Sequence[MaskBits | None] = (), given: Words | None = None) -> Words:
        """This party's shares (outputs, words) of the program's outputs."""
        transfers = await self._transfers(products_of(program), None)
        return (await execute(program, _OtExecutor(self, transfers, masks, given)))[:, 0]

    # -- flows ---------------------------------------------------------------------------------------------------------
    async def _transfers(
        self, products: ProductTransfers, lifts: Lifts | None, chosen: ChosenBatch | None = None
    ) -> "BatchTransfers":
        """All transfers of the batch, checked; `chosen`: this party's, where they were begun. Cost: three flows, where
        there are any."""
        me, other = self.party, self.pair.other
        held = BatchTransfers(products, lifts, me, self.words)
        mine, theirs = (transfers_of(products, lifts, i) for i in (me, other))
        wide = [int(lifts is not None and i == FIELD_CHOOSER) for i in (me, other)]
        if mine or theirs:
            held.choices = await flows.transfers(
                self.pair,
                self.channel,
                Wanted(mine, self.words, held.take_chosen, wide[0]),
                Wanted(theirs, self.words, held.take_offered, wide[1]),
                chosen=chosen,
            )
        return held

    async def send_rows(self, rows: Words, due: int) -> Words:
        """Sends planes (count, words) and returns `due` planes of the other's; nothing is sent for no planes. Errors:
        PeerError for another length."""
        if not len(rows) and not due:
            return np.zeros((0, self.words), dtype=np.uint64)
        other = self.pair.other
        outgoing = {other: np.ascontiguousarray(rows).reshape(-1)} if len(rows) else {}
        received = await self.channel.words(outgoing, [other] if due else [], due * self.words)
        return received[0].reshape(due, self.words) if due else np.zeros((0, self.words), dtype=np.uint64)


class BatchTransfers:
    """What a party holds of a batch's transfers, taken apart as they are made: bit planes for products, numbers for
    lifts."""

    def __init__(self, products: ProductTransfers, lifts: Lifts | None, party: int, words: int) -> None:
        self.products, self.lifts, self.party, self.words = products, lifts, party, words
        self.choices = np.zeros((0, words), dtype=np.uint64)
        self.held = np.empty((products.elements, words), dtype=np.uint64)  # of the string chosen
        self.first = np.empty_like(self.held)  # of the first string offered
        self.both = np.empty_like(self.held)  # of the XOR of the two
        self.offered_lifts = OfferedLifts(lifts, 1 - party, words) if lifts is not None else None
        self.chosen_lifts = ChosenLifts(lifts, party, words) if lifts is not None else None
        self.wide: tuple[Words, ...] = ()
        self._starts = np.concatenate([[0], np.cumsum(products.widths)]).astype(int).tolist()

    def take_choices(self, chosen: ChosenLifts) -> None:
        """The choices of the lifts."""
        first = self.products.transfers
        chosen.choices[:] = self.choices[first : first + len(chosen.choices)]

    def take_chosen(self, slots: slice, low: Words, high: Words | None) -> None:
        """Strings (1, 64, count, W) of the transfers in which this party chooses."""
        self._take(slots, low[0], self.held)
        lifted = self._lifted(slots, low, self.party)
        if lifted is not None and self.chosen_lifts is not None:
            self.chosen_lifts.take(*lifted)
        if high is not None:
            self.wide = (_wide(low[0], high[0]),)

    def take_offered(self, slots: slice, low: Words, high: Words | None) -> None:
        """Strings (2, 64, count, W) of the transfers in which this party offers."""
        self._take(slots, low[0], self.first)
        rows = self._take(slots, low[1], self.both)
        self.both[rows] ^= self.first[rows]  # a few planes, where the strings have 64
        lifted = self._lifted(slots, low, 1 - self.party)
        if lifted is not None and self.offered_lifts is not None:
            self.offered_lifts.take(*lifted)
        if high is not None:
            self.wide = (_wide(low[0], high[0]), _wide(low[1], high[1]))

    def _take(self, slots: slice, low: Words, into: Words) -> slice:
        """Planes of the strings (64, count, W) of products, to these rows."""
        end = min(slots.stop, self.products.transfers)
        if slots.start >= end:
            return slice(0, 0)
        widths = self.products.widths[slots.start : end]
        block = np.ascontiguousarray(low[:, : end - slots.start]).reshape(64, -1)
        planes = transpose(block, max(widths)).reshape(-1, end - slots.start, self.words)
        for k, width in enumerate(widths):
            start = self._starts[slots.start + k]
            into[start : start + width] = planes[:width, k]
        return slice(self._starts[slots.start], self._starts[end])

    def _lifted(self, slots: slice, low: Words, chooser: int) -> tuple[int, Words] | None:
        """(number of the first lift, strings of lifts alone) among these slots."""
        if self.lifts is None:
            return None
        first = self.products.transfers
        start, end = max(slots.start, first), min(slots.stop, first + len(self.lifts.by_chooser[chooser]))
        if start >= end:
            return None
        return start - first, low[:, :, start - slots.start : end - slots.start]

    def random(self) -> Words:
        """This party's shares (bits, words) of the program's random bits."""
        births = self.products.births
        rows = np.empty((len(births), self.words), dtype=np.uint64)
        own = [k for k, birth in enumerate(births) if birth.kind == "own"]
        if own:
            raw = secrets.token_bytes(8 * len(own) * self.words)
            rows[own] = np.frombuffer(raw, dtype="<u8").reshape(len(own), self.words)
        for k, birth in enumerate(births):
            if birth.kind == "choice":
                rows[k] = self.choices[birth.number]
            elif birth.kind == "element":
                rows[k] = self.both[birth.number]
            elif birth.kind == "lift":
                lift, chooser = divmod(birth.number, 2)
                assert self.offered_lifts is not None
                at_me = chooser == self.party
                rows[k] = self.choices[self.products.transfers + lift] if at_me else self.offered_lifts.bits[lift]
            if birth.flipped and self.party == 0:
                rows[k] = ~rows[k]
        return rows


def _wide(low: Words, high: Words) -> Words:
    """The last slot's strings (64, count, W) in F_p, one a lane."""
    return lifting.reduce_wide(low[:, -1].reshape(-1), high[:, -1].reshape(-1))


class _OtExecutor:
    """Runs one program in a batch; a wire is one component."""

    components = 1

    def __init__(
        self,
        batch: OtBatch,
        transfers: BatchTransfers,
        masks: Sequence[MaskBits | None] = (),
        given: Words | None = None,
    ) -> None:
        self._batch, self._transfers, self._masks, self._given = batch, transfers, masks, given
        self.words = batch.words
        self.public = 0 if batch.party == 0 else None
        self._random, self._drawn = transfers.random(), 0
        self._layers = iter(transfers.products.layers)
        self._told = np.zeros((transfers.products.transfers, self.words), dtype=np.uint64)  # by the other

    def _inputs(self, layer: Layer) -> list[Deposit]:
        result = mask_deposits(layer, self._masks, 1)
        result += given_deposits(layer, None if self._given is None else self._given[:, None])
        if len(layer.random):
            rows = self._random[self._drawn : self._drawn + len(layer.random)]
            self._drawn += len(layer.random)
            result.append(Deposit(layer.random, 0, (rows,)))
        return result

    async def layer(self, slots: Slots, layer: Layer, results: list[Deposit]) -> list[Deposit]:
        batch, products = self._batch, next(self._layers)

        def local() -> tuple[Words, Words, Words]:
            slots.run(layer, results + self._inputs(layer))
            if not len(layer.ands):
                nothing = np.zeros((0, self.words), dtype=np.uint64)
                return nothing, nothing, nothing
            x, y = (slots.gather(numbers.astype(np.int32))[:, 0] for numbers in (products.choices, products.vectors))
            told = slots.gather(products.told_slots.astype(np.int32))[:, 0] ^ self._transfers.choices[products.told]
            sent = self._transfers.both[products.elements[products.sent]] ^ y[products.sent]
            return x, y, np.concatenate([told, sent])

        x, y, message = await batch.pair.work(local)
        if not len(layer.ands):
            return []
        received = await batch.send_rows(message, len(message))
        made = await batch.pair.work(lambda: self._products(products, x, y, received))
        return [Deposit(layer.results, 0, (made,))]

    def _products(self, products: LayerProducts, x: Words, y: Words, received: Words) -> Words:
        """This party's shares of the ANDs' results: x y of its own, and two products of private values."""
        held = self._transfers
        self._told[products.told] = received[: len(products.told)]
        offered = np.zeros_like(y)
        offered[products.sent] = received[len(products.told) :]
        made = x & y
        made ^= held.held[products.elements] ^ (held.choices[products.transfers] & offered)
        made ^= held.first[products.elements] ^ (self._told[products.transfers] & y)
        return made
