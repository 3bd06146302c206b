"""Whether what a check says tells of a secret bit: in a small field, where wrong batches pass now and then, each cheat
is tried on a bit and on its opposite, with all that the corrupt know, send and hear of coins the same. No secrecy, no
sockets.

A bit is r / (2 y) + 1/2 for the root y of r^2. Beside every run stands another one, whose honest parties' shares of the
first r are moved by a multiple of the polynomial that is 0 at the corrupt parties' points, so that r is -r. Honest
dealings make either as often. If the verdicts of no pair differ, a cheat passes as often given either bit.

python tests/aborts_many.py PAIRS [CHEAT ...]
"""

import sys
import unittest.mock
from typing import Any

import numpy as np
from forged_roots import NoRoots, Pool, forging
from inprocess import Network

from dpmpc.circuits.arithmetic import multiply
from dpmpc.circuits.trace import evaluate
from dpmpc.errors import CheatError
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.mersenne import Mersenne, Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.shamir.layout import ManyLayout
from dpmpc.mpc.shamir_checked.counts import CountingCheckedArithmetic
from dpmpc.mpc.shamir_checked.engine import ManyCheckedEngine

SMALL = Mersenne(7)
BITS = 2  # of a run; the first one is the secret


class Ending(Network):
    """A network on which whoever waits is told that a party has left."""

    ended = False

    def box(self, sender: int, receiver: int, label: int) -> Any:
        if self.ended:
            raise CheatError("a party has left")
        return super().box(sender, receiver, label)

    def end(self) -> None:
        """A party has left."""
        self.ended = True
        for box in self._boxes.values():
            if not box.done():
                box.set_exception(CheatError("a party has left"))
                box.exception()


class Streams:
    """A batch's streams, of keys that change from run to run."""

    def __init__(self, party: int, run: int) -> None:
        self._party, self._run = party, run

    def between(self, purpose: Any, *of: Any) -> Prg:
        return Prg(b"aborts", self._run, purpose.name, *of)

    def own(self) -> Prg:
        return Prg(b"own", self._run, self._party)


class Engine(ManyCheckedEngine):
    """Keeps its shares of r, and cheats where it is told to. `errors`: numbers of this run's choice. `moved`: what the
    first r is moved by."""

    first = 0  # of the corrupt ones
    corrupt: tuple[int, ...] = ()
    moved = 0
    r: Words
    errors: Words

    def _squares(self, first: int, r: Words, zero: Words) -> Any:
        p, nodes = self._arithmetic.p, (0, *(i + 1 for i in self.corrupt))
        r[0] = (int(r[0]) + self.moved * field.lagrange(nodes, self.party + 1, p)[0]) % p  # by 0 for the corrupt
        self.r = r.copy()
        return super()._squares(first, r, zero)

    @property
    def cheats(self) -> bool:
        """Whether this party is the first of the corrupt ones."""
        return self.party == min(self.corrupt, default=-1)


class Square(Engine):
    """An error of what the first bit's king adds up: another root, or none."""

    def _squares(self, first: int, r: Words, zero: Words) -> Any:
        drawn = super()._squares(first, r, zero)
        if self.cheats:
            drawn.summands[0] = (int(drawn.summands[0]) + int(self.errors[0])) % self._arithmetic.p
        return drawn


class Root(Engine):
    """Another root of the first bit, for all."""

    def _note(self, bits: Words, told: Words) -> None:
        factor = int(self.errors[0]) + 1
        half = pow(2, -1, self._arithmetic.p)
        told[0] = int(told[0]) * factor % self._arithmetic.p
        bits[0] = ((int(bits[0]) - half) * factor + half) % self._arithmetic.p
        super()._note(bits, told)


class Product(Engine):
    """An error of the first product."""

    async def _by_kings(self, summands: Words, rho: Words) -> Words:
        if self.cheats and not self._products:
            summands = self._arithmetic.add(summands, self.errors[: summands.size])
        return await super()._by_kings(summands, rho)


class Points(Product):
    """An error of the first product, and of every stage's sums."""

    async def _by_kings(self, summands: Words, rho: Words) -> Words:
        if self.cheats and self._products is not None:
            summands = self._arithmetic.add(summands, self.errors[: summands.size])
        return await ManyCheckedEngine._by_kings(self, summands, rho)


def guessing(n: int, t: int) -> type[Engine]:
    """Without agreement on roots: a cheat that chooses the bit, and guesses that r is its square's own root. It passes
    if that is so."""

    class Guessing(
        forging(NoRoots, Pool(ManyLayout(n, t, SMALL.p), tuple(range(n // 2, n // 2 + t)), one=True, sign=1)), Engine
    ):  # type: ignore[misc]
        first = n // 2  # the first bit's king

    return Guessing


CHEATS: dict[str, type[Engine]] = {"square": Square, "root": Root, "product": Product, "points": Points}


async def _small(engine: Any) -> Any:
    bits = await engine.random_bits(BITS)
    return await multiply(engine, bits[:1], bits[1:])


def _sharings() -> int:
    cost = CountingCheckedArithmetic(1)
    evaluate(_small(cost))
    return cost.sharings


SHARINGS = _sharings()


def outcome(kind: type[Engine], n: int, t: int, run: int, moved: int = 0) -> tuple[int, bool]:
    """(the secret bit's r, whether the check held) of a run."""
    network, layout, corrupt = Ending(n, t), ManyLayout(n, t, SMALL.p), tuple(range(kind.first, kind.first + t))
    engines: dict[int, Engine] = {}
    errors = SMALL.uniform(Prg(b"errors", run), 64)

    async def party(session: Any) -> bool:
        session.cheat = lambda what, party=None: CheatError(what)
        streams: Any = Streams(session.party, run)
        engine = kind(session, session.channel(7), layout, streams, 1, SHARINGS, arithmetic=SMALL)
        engine.corrupt, engine.errors, engine.moved = corrupt, errors, moved
        engines[session.party] = engine
        try:
            await _small(engine)
            await engine.check()
        except CheatError:
            network.end()
            return False
        return True

    parts = np.random.default_rng(run).bytes
    with unittest.mock.patch("dpmpc.mpc.parties.promised_coins.secrets.token_bytes", parts):
        results = network.run(party)
    honest = [i for i in range(n) if i not in corrupt]
    weights = field.lagrange(tuple(i + 1 for i in honest), 0, SMALL.p)
    return sum(w * int(engines[i].r[0]) for w, i in zip(weights, honest, strict=True)) % SMALL.p, all(results)


def verdicts(kind: type[Engine], n: int, t: int, run: int) -> tuple[bool, bool] | None:
    """Whether the check held of a run, and of the run with the opposite bit; None where r was 0."""
    r, held = outcome(kind, n, t, run)
    if not r:
        return None
    opposite, also = outcome(kind, n, t, run, -2 * r)
    assert opposite == SMALL.p - r
    return held, also


def compared(kind: type[Engine], n: int, t: int, pairs: int) -> tuple[int, int]:
    """(in how many of so many pairs the first one's check held, in how many the two verdicts differ)."""
    held = differ = run = 0
    while pairs:
        found = verdicts(kind, n, t, run)
        run += 1
        if found is not None:
            held, differ, pairs = held + found[0], differ + (found[0] != found[1]), pairs - 1
    return held, differ


def main(pairs: int, names: list[str]) -> None:
    """Prints what became of every cheat."""
    for name in names or CHEATS:
        for n in (3, 5):
            held, differ = compared(CHEATS[name], n, (n - 1) // 2, pairs)
            print(f"{name:8} n = {n}: {pairs} runs given either bit, {held / pairs:.4f} passed", end="", flush=True)
            print(f"; the bit made a difference in {differ}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
