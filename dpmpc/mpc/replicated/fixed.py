"""The fixed-point engine: products of secret integers in F_q, q = 2^130 - 5, truncated in the round that multiplies
them.

Numbers are Shamir shares of degree t in F_q (`dpmpc.mpc.numbers.wide`). A sum of local products is a share of degree
2t; the
parties add a sharing of zero of degree 2t and one of a mask, and open the sum c to the members of one (n-t)-subset;
c >> shift minus the masks >> shift is the result. Each other subset holds one mask r_S, an integer of M bits that
its members know from PRSS, so both r_S and r_S >> shift are shared without a message. Any t parties miss one subset:
either they do not see c, or the mask they do not know hides the sum up to 2^(bits + 1 - M).
Source: the truncation is Catrina and Saxena 2010 with PRSS (Cramer, Damgård, Ishai 2005) in place of random bits:
the k = C(n, t) - 1 masks carry into each other, so the result is off by less than (k + 1) / 2 units, where one mask
would give 1.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.fixed import CONVERSION_BITS, Draw, Sums
from dpmpc.circuits.program import Program
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.executor import MaskBits
from dpmpc.mpc.contract.lanes import Words, from_planes, to_planes
from dpmpc.mpc.numbers import domains, field, wide
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.wide import Wide
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.replicated.layout import Subset

_CHUNK = 4096  # lanes whose limbs fit the cache together


def mask_bits(masks: int, bits: int) -> int:
    """M: the most bits that `masks` masks can have if their sum with a signed number of `bits` bits is not to wrap
    in F_q."""
    return ((wide.Q - (1 << (bits + 1))) // max(masks, 1)).bit_length() - 1


def hiding(masks: int, bits: int) -> float:
    """The statistical distance, at most, between the views of any two sums below 2^bits in absolute value."""
    return 2.0 ** (bits + 1 - mask_bits(masks, bits)) if masks else 0.0


def offset(masks: int, shift: int, bits: int) -> int:
    """What is added before opening: makes the sum nonnegative and centres the error of the rounding."""
    return (1 << bits) - ((masks - 1) << shift) // 2


class SharedFixed:
    """The arithmetic of one batch of programs and products, on its session, channel and lanes. Tail (5, lanes).

    `private` is this party's own stream for `deal`; it must be secret and fresh.
    """

    def __init__(self, batch: SharingBatch, private: Prg | None = None) -> None:
        self.batch = batch
        self.lanes = batch.lanes
        self.products = 0  # opened sums a lane
        session, layout, ident = batch.session, batch.layout, batch.channel.ident
        me, n, t = session.party, session.parties, session.threshold
        self._private = private or Prg.from_os()
        self.subsets, self.dealers = len(layout.subsets), t + 1
        self._masks = self.subsets - 1
        self._weights = {s: wide.subset_weight(s, n, me) for s in batch.mine}
        self._field_weights = {s: field.subset_weight(s, n, me) for s in batch.mine}
        masked = [s for s in batch.mine if s != layout.opened_to]
        self._mask_streams = {s: session.stream(s, domains.FIXED_MASK, ident) for s in masked}
        self._bit_streams = {s: session.stream(s, domains.FIXED_BITS, ident) for s in masked}
        self._zero_streams = {s: session.stream(s, domains.FIXED_ZERO, ident) for s in batch.mine}
        self._deal_streams = {
            (s, i): session.stream(s, domains.FIXED_DEAL, ident, i) for s in batch.mine for i in s if i <= t
        }
        self._senders = layout.product_senders
        self._sees = me in layout.opened_to

    def constant(self, value: int) -> Wide:
        return wide.constant(value)

    async def numbers(self, program: Program, values: int, width: int) -> Wide:
        """See `FixedEngine.numbers`. The masks are PRSS integers, one for each subset but `layout.opened_to`; bits
        shared over F_2, values over F_q. Cost: the program and one round."""
        batch = self.batch
        known: dict[Subset, Wide] = {}
        bits: list[MaskBits | None] = []
        for s in batch.layout.subsets:
            if s in self._bit_streams:
                drawn = wide.draw(self._bit_streams[s], (values, 64 * batch.words), width + CONVERSION_BITS)
                known[s] = drawn[..., : self.lanes]
                rows = planes(drawn, width + CONVERSION_BITS).reshape(-1, batch.words)
                bits.append(MaskBits(batch.mine.index(s), rows))
            elif s != batch.layout.opened_to:
                bits.append(None)
        opened = await batch.reveal(await batch.run(program, bits))
        share = np.zeros((values, wide.LIMBS, self.lanes), dtype=np.int64)
        if opened is not None:
            integers = numbers(opened.reshape(-1, values, batch.words))
            share += self._weighted(integers[..., : self.lanes], batch.layout.opened_to)
        for s, value in known.items():
            share -= self._weighted(value, s)
        return wide.carry(share)

    async def deal(self, draw: Draw, rows: int) -> list[Wide]:
        """See `FixedEngine.deal`. Dealer i publishes its values, less field elements that the subsets of i know, to
        one subset that i is in."""
        layout, me, dealers = self.batch.layout, self.batch.party, range(self.batch.session.threshold + 1)
        shape = (rows, self.lanes)
        zero = np.zeros((rows, wide.LIMBS, self.lanes), dtype=np.int64)
        hidden = wide.from_int64(draw(self._private)) if me in dealers else zero
        shares = []
        for i in dealers:
            share = zero
            for s in self.batch.mine:
                if i in s and s != layout.target(i):
                    value = wide.draw(self._deal_streams[s, i], shape)
                    share = share + self._weighted(value, s)
                    if i == me:
                        hidden = hidden - value
            shares.append(share)
        hidden = wide.canonical(hidden)
        outgoing = dict.fromkeys(layout.receivers(me), wide.pack(hidden)) if me in dealers else {}
        known = await self._exchange(outgoing, [i for i in dealers if i != me and me in layout.target(i)], shape)
        if me in dealers:
            known[me] = hidden
        for i, value in known.items():
            shares[i] = wide.carry(shares[i] + self._weighted(value, layout.target(i)))
        return shares

    async def dot(self, sums: Sums, shift: int, bits: int) -> Wide:
        """See `FixedEngine.dot`. Cost: 17 bytes an opened sum, from 2t + 1 parties to n - t."""
        opened, masks = await self._open(sums, shift, bits)
        out = np.zeros((len(sums), wide.LIMBS, self.lanes), dtype=np.int64)
        for row in range(len(sums)):
            for part in self._parts():
                for s, mask in masks.items():
                    out[row, :, part] -= self._weighted(wide.shift_right(mask[row, :, part], shift), s)
                if opened is not None:
                    top = wide.shift_right(opened[row, :, part], shift) - wide.constant(1 << bits - shift)
                    out[row, :, part] += self._weighted(top, self.batch.layout.opened_to)
                out[row, :, part] = wide.carry(out[row, :, part])
        return out

    async def dot_to_field(self, sums: Sums, shift: int, bits: int) -> Words:
        """See `FixedEngine.dot_to_field`. Cost: as `dot`."""
        opened, masks = await self._open(sums, shift, bits)
        share = np.zeros((len(sums), self.lanes), dtype=np.uint64)
        if opened is not None:
            top = field.sub(
                wide.mod_p(wide.shift_right(opened, shift)), np.full((), (1 << bits - shift) % field.P, dtype=np.uint64)
            )
            share = field.mul(top, self._field_weights[self.batch.layout.opened_to])
        for s, mask in masks.items():
            share = field.sub(share, field.mul(wide.mod_p(wide.shift_right(mask, shift)), self._field_weights[s]))
        return share

    def _parts(self) -> list[slice]:
        return [slice(at, min(at + _CHUNK, self.lanes)) for at in range(0, self.lanes, _CHUNK)]

    def _weighted(self, value: Wide, subset: Subset) -> Wide:
        """This party's share of a value (..., 5, lanes) that exactly the members of `subset` know."""
        return wide.times(value, self._weights[subset])

    async def _open(self, sums: Sums, shift: int, bits: int) -> tuple[Wide | None, dict[Subset, Wide]]:
        """(c, masks), canonical (len(sums), 5, lanes): the sums plus all masks, if this party may see them; the
        masks it knows."""
        self.products += len(sums)
        session, me = self.batch.session, self.batch.party
        shape = (len(sums), self.lanes)
        size = mask_bits(self._masks, bits)
        masks = {s: wide.draw(stream, shape, size) for s, stream in self._mask_streams.items()}
        mine = np.empty((len(sums), wide.LIMBS, self.lanes), dtype=np.int64)
        if me in self._senders:
            blinds = []  # f_S(x) (r_S + x u_1 + ... + x^t u_t): the mask plus a sharing of zero of degree 2t
            for s, stream in self._zero_streams.items():
                blind = masks.get(s, np.zeros_like(mine))
                for power in range(1, session.threshold + 1):
                    blind = blind + wide.draw(stream, shape) * np.int64((me + 1) ** power)
                blinds.append((blind, wide.constant(self._weights[s])))
            added = wide.constant(offset(self._masks, shift, bits))
            for row, pairs in enumerate(sums):
                for part in self._parts():
                    terms = [(_part(x, part), _part(y, part)) for x, y in pairs]
                    terms += [(wide.carry(blind[row, :, part]), weight) for blind, weight in blinds]
                    mine[row, :, part] = wide.canonical(wide.dot(terms) + added)
        payload = wide.pack(mine) if me in self._senders else None
        outgoing = {j: payload for j in self.batch.layout.opened_to if j != me} if payload is not None else {}
        received = await self._exchange(outgoing, [j for j in self._senders if j != me] if self._sees else [], shape)
        if not self._sees:
            return None, masks
        weights = dict(zip(self._senders, wide.lagrange_at_zero(self._senders), strict=True))
        total = mine * np.int64(weights[me]) if me in weights else np.zeros_like(mine)
        for j, share in received.items():
            total += share * np.int64(weights[j])
        return wide.canonical(total), masks

    async def _exchange(self, outgoing: dict[int, Any], incoming: list[int], shape: tuple[int, ...]) -> dict[int, Wide]:
        """The elements (*shape[:-1], 5, shape[-1]) that the parties `incoming` sent. Errors: PeerError for another
        length."""
        size = wide.PACKED_BYTES * shape[0] * shape[1]
        received = await self.batch.channel.exchange(outgoing, incoming)
        for party, payload in zip(incoming, received, strict=True):
            if len(payload) != size:
                raise PeerError(
                    f"party {party} sent {len(payload)} bytes where {size} were due; are all parties of one version?"
                )
        elements = {party: wide.unpack(payload, shape) for party, payload in zip(incoming, received, strict=True)}
        for (party, found), payload in zip(elements.items(), received, strict=True):
            if not wide.is_packed(payload) or not wide.is_canonical(found):
                raise PeerError(
                    f"elements must be below q = 2^130 - 5; party {party} sent larger ones; are all parties of one "
                    "version?"
                )
        return elements


def _part(x: Wide, part: slice) -> Wide:
    return x if x.shape[-1] == 1 else x[:, part]


def planes(value: Wide, width: int) -> NDArray[np.uint64]:
    """Bit planes (width, values, words) of canonical integers (values, 5, 64 words) below 2^128, in the lane order
    of `engines.lanes`."""
    values, _, lanes = value.shape
    blocks = []
    for word in wide.to_words(value):
        by_bit = word.reshape(values, 64, -1).swapaxes(0, 1).reshape(-1)
        blocks.append(to_planes(by_bit, 64).reshape(64, values, lanes // 64))
    return np.concatenate(blocks)[:width]


def numbers(bits: NDArray[np.uint64]) -> Wide:
    """The inverse of `planes`: integers (values, 5, 64 words) from planes (width <= 128, values, words)."""
    _, values, words = bits.shape
    halves = []
    for part in (bits[:64], bits[64:]):
        block = from_planes(part.reshape(len(part), values * words)).reshape(64, values, words)
        halves.append(block.swapaxes(0, 1).reshape(-1))
    return wide.from_words(halves[0], halves[1], 0, (values, 64 * words))
