"""The many-party engine among parties of which t may do anything. Security with abort.

It sends what `shamir.engine` sends, keeps bits, roots, operands and results, and has one check of all of them before
anything that depends on them is used (`check`):

- *products and bits*: with public weights, all claims z = sum x y, and b = b b for every bit, are one claim about an
  inner product, which `product_fold` checks;
- *roots*: what kings told of a bit's root is the same at all, by a universal hash. b b = b does not see it: kings that
  tell each party another root choose the bit;
- *degrees*, where n > 2t + 1: the claim, masked, is shown by all; all shares are on one polynomial of degree t. With
  n = 2t + 1 the t + 1 honest shares always are.

The coins are promised with the first dealings (`coins`). A root of 0 makes a bit of 1/2, which fails: nothing is drawn
again.
Source: docs/active.md, which has the argument and the attacks.
"""

import math
from collections.abc import Awaitable, Sequence
from typing import Any

import numpy as np

from dpmpc.circuits.arithmetic import Pair
from dpmpc.errors import PeerError
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.mersenne import Mersenne, Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.product_fold import Pieces, ProductFold, holds
from dpmpc.mpc.parties.checked_mesh import CheckedMesh
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.parties.promised_coins import PromisedCoins, digest_of, words_of
from dpmpc.mpc.shamir.engine import ManyEngine
from dpmpc.mpc.shamir.layout import ManyLayout
from dpmpc.mpc.shamir.pair_keys import BatchStreams

SPARE = 3  # random sharings besides those of products: the last stage's pair, and the mask of the claim
DIGEST = 32  # bytes
OPENED = 3  # words: X, Y and Z


class ManyCheckedEngine(ManyEngine):
    """As `ManyEngine`; what a circuit makes on it may be used after `check`. `number`: of the batch on its channel.
    `products`: with the check's own, see `CountingCheckedArithmetic`."""

    def __init__(
        self,
        session: CheckedMesh,
        channel: Channel,
        layout: ManyLayout,
        streams: BatchStreams,
        lanes: int,
        products: int = 0,
        *,
        number: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(session.party, channel, layout, streams, lanes, products, **settings)
        self.session, self._number = session, number
        self._coins = PromisedCoins(session, channel, number, self._others)
        self._promised = False
        self._bits: list[tuple[Words, Words]] = []  # with their roots
        self._products: list[tuple[Words, Words, Words]] = []  # x, y, z

    # -- what is kept --------------------------------------------------------------------------------------------------
    async def dots(self, pairs: Sequence[Pair]) -> list[Words]:
        results = await super().dots(pairs)
        self._products += [(x, y, z) for (x, y), z in zip(pairs, results, strict=True) if z.size]
        return results

    def _note(self, bits: Words, told: Words) -> None:
        self._bits.append((bits, told))

    # -- messages ------------------------------------------------------------------------------------------------------
    def _exchange(self, parts: Sequence[Any]) -> Awaitable[list[dict[int, Words]]]:
        """As `ManyEngine._exchange`; the first one carries the promises of coins."""
        if self._promised:
            return super()._exchange(parts)
        self._promised = True
        promise, bits = words_of(self._coins.promise, self._arithmetic.bits), self._arithmetic.bits
        mine = dict.fromkeys(self._others, promise), dict.fromkeys(self._others, promise.size)
        pending = super()._exchange([*parts, mine])

        async def received() -> list[dict[int, Words]]:
            *result, promises = await pending
            self._coins.promised({j: digest_of(words, bits) for j, words in promises.items()})
            return result

        return received()

    def _read(self, party: int, payload: bytes | bytearray, size: int) -> Words:
        try:
            return super()._read(party, payload, size)
        except PeerError:
            raise self._cheat("the length and the words of a message", party) from None

    def _roots(self, squares: Words) -> Words:
        try:
            return super()._roots(squares)
        except PeerError:
            raise self._cheat("that squares are opened for random bits") from None

    def _cheat(self, what: str, party: int | None = None) -> PeerError:
        return self.session.cheat(f"{what} of batch {self.channel.ident}.{self._number}", party)

    # -- the check -----------------------------------------------------------------------------------------------------
    async def check(self) -> tuple[int, str]:
        """(elements that were checked, digest of what was opened), when all parties have said that it held. Errors:
        CheatError when it did not; from then on all is over."""
        work, place = self.session.work, (self.session.run_id, self.channel.ident, self._number)
        pair, _ = await self._take(SPARE)  # dealt before the coin: a mask could take away what the coin weighs
        seed, _ = await self._coins.show()  # every message of every product and bit has come
        pieces, claim, roots = await work(lambda: self._combined(domains.MANY_WEIGHTS.stream(seed, *place)))
        first, weight = Pieces(pieces, self._arithmetic), self.layout.at_zero[self.party]
        fold = ProductFold(first, claim, weight, pair[:2], self._arithmetic)
        masked = (claim + int(pair[2])) % self._arithmetic.p
        degrees = b""
        for stage in range(len(fold.stages.variables)):
            part = await work(fold.sums)
            rho, masks = await self._take(part.size)
            fold.take(await self._by_kings(self._arithmetic.add(part, masks), rho))
            if stage == 0 and self.layout.checks_degrees:
                seed, said = await self._coins.show(masked.to_bytes(8, "little"))
                degrees = self._one_polynomial(masked, said)
            else:
                seed, _ = await self._coins.show()
            coin = domains.MANY_STAGE.stream(seed, *place, stage)
            await work(lambda: fold.fold(coin))  # noqa: B023 - awaited before the next
        await self._all_say(self._coins.log(roots.to_bytes(8, "little"), degrees), "the coins and the roots of bits")
        opened = await self._open(fold.opening)
        if not holds(opened, self._arithmetic):
            raise self._cheat("the products and the bits")
        seen = self._coins.log(b"held", opened.tobytes())
        await self._all_say(seen, "the check's verdict")
        return first.elements, seen.hex()

    def _combined(self, coin: Prg) -> tuple[list[tuple[Words, Words]], int, int]:
        """(u and v, this party's share of the claim about them, the hash of all roots), by random weights; what was
        kept is given up."""
        arithmetic, pieces, claim, roots = self._arithmetic, [], 0, 0
        while self._bits:
            bits, told = self._bits.pop(0)
            weights = arithmetic.uniform(coin, bits.size)
            claim += arithmetic.inner(weights, bits)
            roots += arithmetic.inner(weights, told)
            pieces.append((arithmetic.multiply(weights, bits), bits))
        while self._products:
            x, y, z = self._products.pop(0)
            weights = arithmetic.uniform(coin, z.size).reshape(z.shape)
            claim += arithmetic.inner(weights, np.ascontiguousarray(z))
            pieces.append(weighted(arithmetic, x, y, weights))
        return pieces, claim % arithmetic.p, roots % arithmetic.p

    def _one_polynomial(self, mine: int, said: dict[int, bytes]) -> bytes:
        """What all parties show of the masked claim, whose shares must be of degree t."""
        words = {j: int.from_bytes(payload, "little") for j, payload in said.items()}
        rows = {self.party: [mine]} | {j: [word] for j, word in words.items()}
        self._at_zero(rows, "the degree of what parties hold")
        return b"".join(rows[j][0].to_bytes(8, "little") for j in sorted(rows))

    async def _open(self, shares: Words) -> Words:
        """The numbers from the shares of all, which must be of one polynomial of degree t. Cost: one round."""
        words = await self._words_of_all(shares)
        return np.array(self._at_zero(words, "the degree of what the check opens"), dtype=np.uint64)

    async def _words_of_all(self, shares: Words) -> dict[int, list[int]]:
        payloads = await self.channel.exchange(dict.fromkeys(self._others, shares), self._others)
        rows = {self.party: shares.tolist()}
        for j, payload in zip(self._others, payloads, strict=True):
            if len(payload) != shares.nbytes:
                raise self._cheat("the length of a message of the check", j)
            rows[j] = np.frombuffer(payload, dtype="<u8").tolist()
        return rows

    def _at_zero(self, rows: dict[int, list[int]], what: str) -> list[int]:
        """The numbers that all parties' shares are of; shares that are too large are of none."""
        p, points = self._arithmetic.p, tuple(range(1, self.layout.threshold + 2))

        def at(x: int) -> list[int]:
            factors = field.lagrange(points, x, p)
            return [sum(f * w for f, w in zip(factors, column, strict=True)) % p for column in columns]

        columns = [[rows[i - 1][k] for i in points] for k in range(len(rows[self.party]))]
        if any(at(j + 1) != row for j, row in rows.items()):
            raise self._cheat(what)
        return at(0)

    async def _all_say(self, digest: bytes, what: str) -> None:
        """Returns when all others have sent this digest. Cost: one round. Errors: CheatError for another one."""
        payloads = await self.channel.exchange(dict.fromkeys(self._others, digest), self._others)
        if any(bytes(said) != digest for said in payloads):
            raise self._cheat(what)  # of no party: a third may have told two different things


def weighted(arithmetic: Mersenne, x: Words, y: Words, weights: Words) -> tuple[Words, Words]:
    """u and v, flat, whose inner product is the sum of weights (...) times the sum over the first axis of x * y.

    Where one factor is the same along an axis of the results, the other is added up there first: sum_h w_h x y_h = x
    sum_h w_h y_h.
    """
    shape, axes = weights.shape, range(weights.ndim)
    x, y = (v.reshape(len(v), *([1] * (len(shape) + 1 - v.ndim)), *v.shape[1:]) for v in (x, y))
    if saved(x.shape[1:], shape) < saved(y.shape[1:], shape):
        x, y = y, x
    added = [k for k in axes if x.shape[1 + k] == 1]  # axes along which y is added up
    kept = [k for k in axes if k not in added]
    along = math.prod(shape[k] for k in added)
    factors = weights.transpose(*added, *kept).reshape(along, 1, *(shape[k] for k in kept))
    terms = y.transpose(*(1 + k for k in added), 0, *(1 + k for k in kept))
    u = arithmetic.dot(terms.reshape(along, len(y), *(y.shape[1 + k] for k in kept)), factors)
    return u.reshape(-1), np.ascontiguousarray(x).reshape(-1)


def saved(factor: Sequence[int], results: Sequence[int]) -> int:
    """How many results have one and the same factor of this shape."""
    return math.prod(results) // math.prod(factor)
