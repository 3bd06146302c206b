"""The many-party engine: Shamir sharing over F_p, p = 2^61 - 1, among the n parties of a session, 2t < n <= 32.

Semi-honest; t parties learn nothing. Values are shares of degree t, party i's at the point i + 1, so sums, constants
and public matrices are local.

*A sum of products* is a polynomial of degree 2t, whose value at 0 the lambda_i give from all n shares. Party i sends
lambda_i (x_i y_i - rho_i) + z_i to a king, rho a random sharing and z an additive sharing of zero; the king adds up to
e = x y - rho, which is uniform, and tells e to the n - t - 1 parties outside a set of t, whose share of e is 0. The
result is rho + e. *A random bit*: r is a random sharing, lambda_i r_i^2 + z_i goes to a king, who learns r^2 and tells
everybody 1 / (2 y) for the root y of r^2 that r^2 alone decides; the bit is r / (2 y) + 1/2, for r is y or -y with
equal chance. Vectors are cut into n slices with a king each. Where r = 0, all see it and draw again.

A king checks that r^2 is a square, which fails with probability 1/2 at each bit once any stream of any two parties is
out of step; masks of products are drawn from the same streams before the bits. Any failure ends the batch and its keys.
Source: Damgaard and Nielsen 2007, with dealings and zero sharings from seeds; Damgaard et al. 2006 for bits by roots.
"""

import itertools
import math
from collections.abc import Awaitable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.arithmetic import Pair, Public
from dpmpc.errors import PeerError
from dpmpc.lazy import dataclass
from dpmpc.mpc.numbers.mersenne import Mersenne, Words
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.shamir.dealing import BatchDealer, Dealt
from dpmpc.mpc.shamir.layout import ManyLayout
from dpmpc.mpc.shamir.pair_keys import BatchStreams

CHUNK = 1 << 18  # sharings that are dealt together: what they need fits a core's cache
_FIELD = Mersenne()


def _pieces(words: Words, sizes: Sequence[int]) -> list[Words]:
    """Consecutive pieces of these sizes."""
    ends = list(itertools.accumulate(sizes))
    return [words[end - size : end] for size, end in zip(sizes, ends, strict=True)]


_NONE = np.zeros(0, dtype=np.uint64)
_REFUSED = np.uint64(0xFFFFFFFFFFFFFFFF)  # no field element: a bit that is to be drawn again
_Part = tuple[dict[int, Words], dict[int, int]]  # (to send, words to come), by party


@dataclass
class _Drawn:
    """A chunk of bits under way."""

    first: int  # place of its first bit
    r: Words
    summands: Words  # lambda r^2 + z
    roots: Words = field(default_factory=lambda: _NONE)  # of this king's slice


class ManyEngine:
    """One batch of `lanes` evaluations; values have shape (*wires, lanes).

    All parties make the engine on the same channel and the same batch of their pair keys, and run the same circuit on
    it. `products` is how many the circuit will ask for (`CountingArithmetic.products` times lanes): their masks are
    dealt together with the random bits. What is missing is dealt when it is needed, at one more exchange.
    """

    def __init__(
        self,
        party: int,
        channel: Channel,
        layout: ManyLayout,
        streams: BatchStreams,
        lanes: int,
        products: int = 0,
        *,
        chunk: int = CHUNK,
        arithmetic: Mersenne = _FIELD,
    ) -> None:
        self.lanes = lanes
        self.tail: tuple[int, ...] = (lanes,)
        self.channel, self.layout = channel, layout
        self.party = party
        self._arithmetic, self._chunk = arithmetic, chunk
        self._dealer = BatchDealer(layout, party, streams, arithmetic)
        self._others = [j for j in range(layout.parties) if j != self.party]
        self._kings = layout.kings_of(self.party)
        self._planned = products
        self._rho = self._masks = np.zeros(0, dtype=np.uint64)  # of products to come

    # -- local ---------------------------------------------------------------------------------------------------------
    def constant(self, values: Any) -> Words:
        wires = self._arithmetic.constants(values)
        return np.broadcast_to(wires[..., None], (*wires.shape, self.lanes))

    def add(self, x: Words, y: Words) -> Words:
        return self._arithmetic.add(x, y)

    def subtract(self, x: Words, y: Words) -> Words:
        return self._arithmetic.subtract(x, y)

    def matrix(self, public: Public, x: Words) -> Words:
        return self._arithmetic.matrix(public, x)

    def join(self, parts: Sequence[Words]) -> Words:
        return np.concatenate(parts)

    # -- sums of products ----------------------------------------------------------------------------------------------
    async def dots(self, pairs: Sequence[Pair]) -> list[Words]:
        """Cost: two exchanges; a product sends (n - 1) / n + (n - t - 1) / n words, a mask (n - t - 1) / (n - t)."""
        shapes = [np.broadcast_shapes(x.shape[1:], y.shape[1:]) for x, y in pairs]
        sizes = [math.prod(shape) for shape in shapes]
        if not sum(sizes):
            return [np.zeros(shape, dtype=np.uint64) for shape in shapes]
        rho, masks = await self._take(sum(sizes))
        weight = self.layout.at_zero[self.party]
        summands = [
            self._arithmetic.dot(x, y, weight, mask).reshape(-1)
            for (x, y), mask in zip(pairs, _pieces(masks, sizes), strict=True)
        ]
        shares = await self._by_kings(np.concatenate(summands), rho)
        return [part.reshape(shape) for part, shape in zip(_pieces(shares, sizes), shapes, strict=True)]

    async def _take(self, count: int) -> tuple[Words, Words]:
        """Shares of `count` random rho, and this party's z - lambda rho; each is used once."""
        if (missing := count - self._rho.size) > 0:
            await self._pipeline(missing, 0)
        rho, self._rho = self._rho[:count], self._rho[count:]
        masks, self._masks = self._masks[:count], self._masks[count:]
        return rho, masks

    async def _by_kings(self, summands: Words, rho: Words) -> Words:
        """rho + e, where e is the sum of all parties' `summands`, opened by kings."""
        layout, count = self.layout, summands.size
        (received,) = await self._exchange([self._to_kings(summands)])
        e = self._sum(summands, received)
        (told,) = await self._exchange(
            [(dict.fromkeys(layout.told(self.party), e), {k: self._size(count, k) for k in self._kings})]
        )
        opened, weights = np.zeros(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64)
        for king, words in [(self.party, e), *told.items()]:
            part = slice(*layout.bounds(count, king))
            opened[part], weights[part] = words, layout.weight(king, self.party)
        return self._arithmetic.dot(opened[None], weights[None], 1, rho)

    # -- random bits ---------------------------------------------------------------------------------------------------
    async def random_bits(self, count: int) -> Words:
        """Cost: an exchange for each chunk of masks and bits, and two more; a bit sends (n - t - 1) / (n - t) +
        2 (n - 1) / n words."""
        planned, self._planned = self._planned, 0
        bits = await self._draw(planned, count * self.lanes)
        return bits.reshape(count, self.lanes)

    async def _draw(self, products: int, count: int) -> Words:
        """(count,) shares of random bits; masks of so many products are put aside first."""
        bits, again = await self._pipeline(products, count)
        while again.size:  # r was 0, as all parties see
            fresh, places = await self._pipeline(0, again.size)
            bits[again] = fresh
            again = again[places]
        return bits

    async def _pipeline(self, products: int, count: int) -> tuple[Words, NDArray[np.intp]]:
        """(bits, places where r was 0). One exchange carries the dealings of a chunk, the squares of the chunk before
        and the roots of the one before that."""
        total, bits = products + count, np.empty(count, dtype=np.uint64)
        dealings = -(-total // self._chunk)
        drawn: _Drawn | None = None  # r is known
        opened: _Drawn | None = None  # this king has the roots of its slice
        for k in range(dealings + 2 * (count > 0)):
            size = min(self._chunk, total - k * self._chunk)
            dealt = self._dealer.deal(size) if size > 0 else None
            parts = [self._dealt(dealt), self._to_kings(drawn.summands if drawn else _NONE), self._from_king(opened)]
            pending = self._exchange(parts)
            zero = self._dealer.zero_sharings(size) if dealt else _NONE  # while the network works
            sharings, summands, roots = await pending
            if opened:
                self._finish(bits, opened, roots)
            if drawn:
                drawn.roots = self._roots(self._sum(drawn.summands, summands))
            opened, drawn = drawn, None
            if dealt:
                r = self._dealer.random_sharings(dealt, sharings)
                masks = max(0, min(size, products - k * self._chunk))
                self._put_aside(r[:masks], zero[:masks])
                if masks < size:
                    drawn = self._squares(k * self._chunk + masks - products, r[masks:], zero[masks:])
        return bits, np.flatnonzero(bits == _REFUSED)

    def _dealt(self, dealt: Dealt | None) -> _Part:
        if dealt is None:
            return {}, {}
        columns = self.layout.columns(dealt.count)
        return dealt.outgoing, dict.fromkeys(self.layout.dealers_to(self.party), columns)

    def _from_king(self, opened: _Drawn | None) -> _Part:
        if opened is None:
            return {}, {}
        return dict.fromkeys(self._others, opened.roots), {k: self._size(opened.r.size, k) for k in self._others}

    def _put_aside(self, rho: Words, zero: Words) -> None:
        if not rho.size:
            return
        masks = self._arithmetic.add(zero, self._arithmetic.scale(rho, -self.layout.at_zero[self.party]))
        self._rho = np.concatenate([self._rho, rho])
        self._masks = np.concatenate([self._masks, masks])

    def _squares(self, first: int, r: Words, zero: Words) -> _Drawn:
        return _Drawn(first, r, self._arithmetic.dot(r[None], r[None], self.layout.at_zero[self.party], zero))

    def _roots(self, squares: Words) -> Words:
        """1 / (2 y) for each y^2, or 0 for 0; public to all parties.

        Errors: PeerError where there is no root: then the parties' streams are out of step.
        """
        inverse = self._arithmetic.inverse_root(squares)
        check = self._arithmetic.multiply(squares, self._arithmetic.multiply(inverse, inverse))
        if not np.array_equal(check, (squares != 0).astype(np.uint64)):
            raise PeerError(
                f"what party {self.party} opens for random bits must be squares; some are not; the parties' streams "
                "are out of step: start all again, in one version"
            )
        return self._arithmetic.rotate(inverse, -1)

    def _finish(self, bits: Words, opened: _Drawn, roots: dict[int, Words]) -> None:
        """Write the chunk's bits, r / (2 y) + 1/2."""
        told = np.empty(opened.r.size, dtype=np.uint64)
        for king, words in (roots | {self.party: opened.roots}).items():
            told[slice(*self.layout.bounds(told.size, king))] = words
        part, half = bits[opened.first : opened.first + told.size], (self._arithmetic.p + 1) // 2
        self._arithmetic.dot(opened.r[None], told[None], offset=half, out=part)
        self._note(part, told)

    def _note(self, bits: Words, told: Words) -> None:
        """Hears of each chunk of bits, and of what kings told of them."""
        if np.count_nonzero(told) < told.size:
            bits[told == 0] = _REFUSED

    # -- messages ------------------------------------------------------------------------------------------------------
    def _size(self, count: int, king: int) -> int:
        first, end = self.layout.bounds(count, king)
        return end - first

    def _to_kings(self, summands: Words) -> _Part:
        slices = {k: summands[slice(*self.layout.bounds(summands.size, k))] for k in self._others}
        return slices, dict.fromkeys(self._others, self._size(summands.size, self.party))

    def _sum(self, summands: Words, received: dict[int, Words]) -> Words:
        """This king's slice of the sum of all parties' summands."""
        mine = summands[slice(*self.layout.bounds(summands.size, self.party))]
        return self._arithmetic.total([mine, *received.values()])

    def _exchange(self, parts: Sequence[_Part]) -> Awaitable[list[dict[int, Words]]]:
        """Send every party its words of all parts in one message, now; to be awaited: the words that came, by part and
        party. Nothing is sent, and nothing awaited, where there are no words.

        Errors: PeerError for a message of another length, or words that are no field elements.
        """
        outgoing = {}
        for j in self._others:
            words = [part[j] for part, _ in parts if j in part and part[j].size]
            if words:
                outgoing[j] = words[0] if len(words) == 1 else np.concatenate(words)
        due = {j: [sizes.get(j, 0) for _, sizes in parts] for j in self._others}
        senders = [j for j, sizes in due.items() if sum(sizes)]
        pending = self.channel.exchange(outgoing, senders)

        async def received() -> list[dict[int, Words]]:
            result: list[dict[int, Words]] = [{} for _ in parts]
            payloads = dict(zip(senders, await pending, strict=True))
            for j, sizes in due.items():
                words = self._read(j, payloads[j], sum(sizes)) if j in payloads else _NONE
                for k, piece in enumerate(_pieces(words, sizes)):
                    if j in parts[k][1]:
                        result[k][j] = piece
            return result

        return received()

    def _read(self, party: int, payload: bytes | bytearray, size: int) -> Words:
        if len(payload) != 8 * size:
            raise PeerError(
                f"party {party} sent {len(payload)} bytes where {8 * size} were due; are all parties of one version?",
                code="message",
            )
        words = np.frombuffer(payload, dtype="<u8")
        if words.max(initial=0) >= self._arithmetic.p:
            raise PeerError(
                f"party {party} must send numbers below {self._arithmetic.p}; it sent others; see its log",
                code="message",
            )
        return words
