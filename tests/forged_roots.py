"""Corrupt kings that tell different parties different roots, so that a bit is 0 whatever was drawn."""

from typing import Any

import numpy as np

from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.shamir.layout import ManyLayout
from dpmpc.mpc.shamir_checked.engine import ManyCheckedEngine


class Pool:
    """What corrupt kings know together, and what they tell of roots. `one`: one of them, of one bit."""

    def __init__(self, layout: ManyLayout, corrupt: tuple[int, ...], *, one: bool, sign: int = 0) -> None:
        """`sign`: what they guess of that of every r; 0: they toss a coin."""
        self.layout, self.corrupt, self.sign = layout, corrupt, sign
        self.kings, self.most = (corrupt[:1], 1) if one else (corrupt, 1 << 30)
        self.honest = [i for i in range(layout.parties) if i not in corrupt]
        self.r: dict[int, Words] = {}
        self.guessed: dict[
            int, dict[int, int]
        ] = {}  # by place: honest shares of the bit less 1/2, if all is as guessed
        self.random = np.random.default_rng(1)

    def lies(self, place: int, root: int) -> dict[int, int]:
        """What to tell each honest party, so that the bit at `place` is 0 whatever the sign of r: with r(j) = s y a_j +
        b_j at honest points, where b_j follows from what the corrupt know, sum L_j a_j w_j = 0 and sum L_j b_j w_j =
        -1/2."""
        p, honest = self.layout.prime, self.honest[: self.layout.threshold + 1]
        y = pow(2 * root, -1, p)
        nodes = (0, *(c + 1 for c in self.corrupt))
        lines = {}
        for j in honest:
            first, *rest = field.lagrange(nodes, j + 1, p)
            lines[j] = first, sum(f * int(self.r[c][place]) for f, c in zip(rest, self.corrupt, strict=True)) % p
        at_zero = dict(zip(honest, field.lagrange(tuple(j + 1 for j in honest), 0, p), strict=True))
        w = {j: int(self.random.integers(1, p)) for j in honest[2:]}
        a0, a1 = (at_zero[j] * lines[j][0] for j in honest[:2])
        b0, b1 = (at_zero[j] * lines[j][1] for j in honest[:2])
        a = -sum(at_zero[j] * lines[j][0] * w[j] for j in w)
        b = -pow(2, -1, p) - sum(at_zero[j] * lines[j][1] * w[j] for j in w)
        if not (a0 * b1 - a1 * b0) % p:
            return {}  # in a small field
        over = pow(a0 * b1 - a1 * b0, -1, p)
        w |= {honest[0]: (a * b1 - a1 * b) * over % p, honest[1]: (a0 * b - a * b0) * over % p}
        sign = self.sign or (1 if self.random.random() < 0.5 else -1)
        self.guessed[place] = {j: (sign * y * lines[j][0] + lines[j][1]) * w[j] % p for j in honest}
        return w

    def own(self, place: int, party: int) -> int:
        """A corrupt party's share of the bit at a place, if its guess of the sign is right."""
        held = self.guessed[place]
        p = self.layout.prime
        weights = field.lagrange(tuple(j + 1 for j in held), party + 1, p)
        return int((sum(f * v for f, v in zip(weights, held.values(), strict=True)) + pow(2, -1, p)) % p)


def forging(base: type, pool: Pool) -> type:
    """The engine, whose corrupt parties tell different roots to different parties."""

    class Forging(base):  # type: ignore[misc]
        def _squares(self, first: int, r: Words, zero: Words) -> Any:
            if self.party in pool.corrupt:
                pool.r[self.party] = r
            return super()._squares(first, r, zero)

        def _from_king(self, opened: Any) -> Any:
            outgoing, sizes = super()._from_king(opened)
            if self.party in pool.kings and opened is not None:
                start, end = self.layout.bounds(opened.r.size, self.party)
                for k in range(min(end - start, pool.most)):
                    for j, word in pool.lies(start + k, int(opened.roots[k])).items():
                        outgoing[j] = outgoing[j].copy() if outgoing[j] is opened.roots else outgoing[j]
                        outgoing[j][k] = word
            return outgoing, sizes

        def _note(self, bits: Words, told: Words) -> None:
            super()._note(bits, told)
            if self.party in pool.corrupt:
                for place in pool.guessed:
                    bits[place] = pool.own(place, self.party)

    return Forging


class NoRoots(ManyCheckedEngine):
    """Without agreement on roots."""

    def _combined(self, coin: Prg) -> Any:
        pieces, claim, _ = super()._combined(coin)
        return pieces, claim, 0
