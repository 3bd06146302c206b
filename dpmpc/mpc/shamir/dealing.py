"""Random sharings and sharings of zero at one party: n dealings in, n - t sharings out that no coalition of t knows.

*Random sharings* have degree t. Each dealing of an honest dealer is uniform given t shares of it, and any n - t columns
of the Vandermonde matrix are invertible, so the n - t sharings are uniform given what t parties know of all dealings.
*Sharings of zero* are additive and need no message: dealer j and each other party draw a word from a stream of their
own, the party takes it and the dealer minus the sum of all. Given what t parties know, an honest dealer's words are
uniform among honest parties up to their sum; extraction makes n - t such sharings independent. (A circulant graph of
seeds, with t + 1 words a sharing and party, does the same; this takes 2 (n - 1) / (n - t).)

Streams are drawn from in the same order and by the same counts everywhere: a count follows from the lengths of the
messages of the same step, which every receiver checks.
"""


import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers.mersenne import Mersenne, Words
from dpmpc.mpc.shamir.layout import ManyLayout
from dpmpc.mpc.shamir.pair_keys import BatchStreams


class BatchDealer:
    """One party's part in the dealings of a batch."""

    def __init__(self, layout: ManyLayout, party: int, streams: BatchStreams, arithmetic: Mersenne) -> None:
        self._layout, self._party, self._arithmetic = layout, party, arithmetic
        self._own = streams.own()
        self._seeded = [streams.between(domains.SHARE, party, j) for j in layout.seeded(party)]
        self._taken = {
            j: streams.between(domains.SHARE, j, party) for j in range(layout.parties) if party in layout.seeded(j)
        }
        others = [j for j in range(layout.parties) if j != party]
        self._given = [streams.between(domains.ZERO, party, j) for j in others]
        self._zeros = {j: streams.between(domains.ZERO, j, party) for j in others}
        self._interpolation = np.array(layout.interpolation(party), dtype=np.int64)

    def deal(self, count: int) -> "Dealt":
        """This party's dealings for `count` random sharings: what to send, and what it keeps. Cost: one message of
        `columns(count)` words to each of n - t - 1 parties."""
        columns = self._layout.columns(count)
        own = self._arithmetic.uniform(self._own, columns)
        given = [own, *(self._arithmetic.uniform(stream, columns) for stream in self._seeded)]
        computed = self._arithmetic.matrix(self._interpolation, np.stack(given))
        shares = {j: self._arithmetic.uniform(stream, columns) for j, stream in self._taken.items()}
        return Dealt(
            count, dict(zip(self._layout.sent(self._party), computed, strict=True)), {self._party: own} | shares
        )

    def random_sharings(self, dealt: "Dealt", received: dict[int, Words]) -> Words:
        """(count,): shares of random field elements, from all dealings."""
        return self._extract(dealt.shares | received, dealt.count)

    def zero_sharings(self, count: int) -> Words:
        """(count,): summands of 0. Local."""
        columns = self._layout.columns(count)
        given = self._arithmetic.total([self._arithmetic.uniform(stream, columns) for stream in self._given])
        words = {j: self._arithmetic.uniform(stream, columns) for j, stream in self._zeros.items()}
        return self._extract(words | {self._party: self._arithmetic.scale(given, -1)}, count)

    def _extract(self, words: dict[int, Words], count: int) -> Words:
        """Rows of the extraction from the dealers' words, one after another, cut to `count`."""
        rows = [words[dealer] for dealer in range(self._layout.parties)]
        return self._arithmetic.extract(rows, self._layout.extracted).reshape(-1)[:count]


@dataclass(frozen=True)
class Dealt:
    """Dealings under way."""

    count: int
    outgoing: dict[int, Words]  # by receiver
    shares: dict[int, Words]  # by dealer: this party's, but for those that come by message
