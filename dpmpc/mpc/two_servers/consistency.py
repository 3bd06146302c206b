"""The check of a chooser's corrections: all trees of a batch must be corrected to one and the same u.

The offerer draws a challenge when the corrections have come. It gives weights in GF(2^64), one for every word of 64
transfers; R(x) is the sum of a plane's words times their weights, plus the plane's word of an extra slot. The chooser
answers with R(u) and a hash of the 128 words R(v); the offerer, who has w = v XOR u Delta, works out from R(w), R(u)
and Delta what R(v) has to be, and compares. The extra slot's choices are used for nothing else, so R(u) is uniform.

Guarantees: computational. Where the answer is right, all trees but some set S have one u, up to `error`; the chooser
has guessed Delta's bits of each tree in S, k at a time, and a wrong guess ends the run: L bits are learned with
probability 2^-L (docs/two-servers.md has the proof).
Source: Roy 2022, figure 7, with a repetition code; a hash of the second part of the answer in place of it.
"""

import hmac
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native.gf64 import GF64
from dpmpc.mpc.numbers import domains

Words = NDArray[np.uint64]
Place = tuple[bytes, int, int, int]  # of a part of a batch: session, direction, batch, part

CHALLENGE_BYTES = 16
ANSWER_BYTES = 8 + 32
EXTRA_WORDS = 1  # of a plane: the extra slot's


def error(trees: int) -> Fraction:
    """How likely two trees of different u are taken for equal, of all pairs, at most."""
    return Fraction(trees * (trees - 1) // 2, 1 << 64)


class Sums:
    """R of so many planes, which come piece by piece. `challenge`: what gives the weights, public by then."""

    def __init__(self, challenge: bytes, place: Place, planes: int) -> None:
        self._prg = domains.TRANSFERS.stream(challenge, *place)
        self.total = np.zeros(planes, dtype=np.uint64)

    def add(self, *planes: Words) -> None:
        """The next words (planes, words), in one or more parts that are stacked."""
        weights, at = self._prg.words(planes[0].shape[1:]), 0
        for part in planes:
            GF64.weigh(part, weights, self.total[at : at + len(part)])
            at += len(part)

    def end(self, *planes: Words) -> None:
        """The extra slot's word of each plane, (planes, 1)."""
        self.total ^= np.concatenate(planes)[:, 0]


def answer(sums: Words, place: Place) -> bytes:
    """What the chooser says, from R of its 128 planes v, then of u. Public: R(u) is masked, and the offerer knows the
    rest."""
    return sums[-1:].tobytes() + _digest(sums[:-1], place)


def holds(said: bytes, sums: Words, masks: Words, place: Place) -> bool:
    """Whether the answer is right, from R of the offerer's planes w, and its Delta as masks, a word a plane. No branch
    depends on either before the verdict."""
    choice = np.frombuffer(said[:8], dtype="<u8")
    return hmac.compare_digest(said[8:], _digest(sums ^ (masks & choice), place))


def _digest(values: Words, place: Place) -> bytes:
    return domains.ANSWER.digest(*place, value=values.astype("<u8").tobytes())
