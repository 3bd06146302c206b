"""How long the work of the many-party engine takes on this machine, measured on a few thousand sharings; no network."""

import functools
import time

import numpy as np

from dpmpc.mpc.numbers.domains import Domain
from dpmpc.mpc.numbers.mersenne import Mersenne
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.shamir.dealing import BatchDealer, Dealt
from dpmpc.mpc.shamir.layout import ManyLayout

_SHARINGS = 1 << 13


class _PacedStreams:
    """Streams that nobody else has, in place of a batch's."""

    def between(self, purpose: Domain, dealer: int, receiver: int) -> Prg:
        return Prg.from_os()

    def own(self) -> Prg:
        return Prg.from_os()


@functools.lru_cache(maxsize=8)
def sharing_seconds(parties: int, threshold: int) -> float:
    """Seconds of one core for what a party does with one random sharing: deal it, mask it, open it as a king, use it.

    Cost: a few milliseconds of measuring, once a process.
    """
    layout, arithmetic = ManyLayout.of(parties, threshold), Mersenne()
    streams: object = _PacedStreams()
    dealer = BatchDealer(layout, 0, streams, arithmetic)  # type: ignore[arg-type]
    columns = layout.columns(_SHARINGS)
    words = np.arange(1, columns + 1, dtype=np.uint64)
    best = float("inf")
    for _ in range(3):  # the first warms up
        begin = time.perf_counter()
        dealt: Dealt = dealer.deal(_SHARINGS)
        r = dealer.random_sharings(dealt, {j: words for j in range(parties) if j not in dealt.shares})
        z = dealer.zero_sharings(_SHARINGS)
        squares = arithmetic.dot(r[None], r[None], 1, z)
        own = squares[: _SHARINGS // parties]
        inverse = arithmetic.inverse_root(arithmetic.total([own] * parties))
        arithmetic.multiply(own, arithmetic.multiply(inverse, inverse))
        arithmetic.dot(r[None], r[None], offset=1)
        best = min(best, time.perf_counter() - begin)
    return best / _SHARINGS
