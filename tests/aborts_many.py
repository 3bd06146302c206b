"""Whether what a check says tells of a secret bit: in a small field, where wrong batches pass now and then, how often
each cheat passes given the bit. No secrecy, no sockets.

python tests/aborts_many.py RUNS [CHEAT ...]
"""

import math
import sys
from collections.abc import Callable
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

    def between(self, *name: Any) -> Prg:
        return Prg(b"aborts", self._run, *name)

    def own(self) -> Prg:
        return Prg(b"own", self._run, self._party)


class Engine(ManyCheckedEngine):
    """Keeps its shares of r, and cheats where it is told to. `errors`: numbers of this run's choice."""

    corrupt: tuple[int, ...] = ()
    r: Words
    errors: Words

    def _squares(self, first: int, r: Words, zero: Words) -> Any:
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

    class Guessing(forging(NoRoots, Pool(ManyLayout(n, t, SMALL.p), tuple(range(1, t + 1)), one=True, sign=1)), Engine):  # type: ignore[misc]
        pass

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


def outcome(kind: type[Engine], n: int, t: int, run: int) -> tuple[int, bool] | None:
    """(the sign of the secret bit's r, whether the check held) of a run; None where r was 0."""
    network, layout = Ending(n, t), ManyLayout(n, t, SMALL.p)
    engines: dict[int, Engine] = {}
    errors = SMALL.uniform(Prg(b"errors", run), 64)

    async def party(session: Any) -> bool:
        session.cheat = lambda what, party=None: CheatError(what)
        streams: Any = Streams(session.party, run)
        engine = kind(session, session.channel(7), layout, streams, 1, SHARINGS, arithmetic=SMALL)
        engine.corrupt, engine.errors = tuple(range(t)), errors
        engines[session.party] = engine
        try:
            await _small(engine)
            await engine.check()
        except CheatError:
            network.end()
            return False
        return True

    results = network.run(party)
    honest = range(t, 2 * t + 1)
    weights = field.lagrange(tuple(i + 1 for i in honest), 0, SMALL.p)
    r = sum(w * int(engines[i].r[0]) for w, i in zip(weights, honest, strict=True)) % SMALL.p
    root = SMALL.inverse_root(np.array([r * r % SMALL.p], dtype=np.uint64))
    return (r * int(root[0]) % SMALL.p, all(results)) if r else None


def score(kind: type[Engine], n: int, t: int, runs: int, tell: Callable[[str], None] = lambda text: None) -> float:
    """How many standard deviations lie between the rates at which a cheat passes given either sign."""
    passed, seen = {1: 0, SMALL.p - 1: 0}, {1: 0, SMALL.p - 1: 0}
    run, part = 0, max(1, runs // 8)
    while (least := min(seen.values())) < runs:
        found = outcome(kind, n, t, run)
        run += 1
        if found is None:
            continue
        seen[found[0]] += 1
        passed[found[0]] += found[1]
        if min(seen.values()) > least and (least + 1) % part == 0:
            rates = " and ".join(f"{passed[s] / seen[s]:.4f}" for s in seen)
            tell(f"{kind.__name__:8} n = {n}: passed {rates} of {list(seen.values())}, z = {_apart(passed, seen):+.2f}")
    return _apart(passed, seen)


def _apart(passed: dict[int, int], seen: dict[int, int]) -> float:
    """Standard deviations between two rates of the same."""
    pooled = sum(passed.values()) / sum(seen.values())
    deviation = math.sqrt(pooled * (1 - pooled) * sum(1 / m for m in seen.values()))
    first, second = (passed[s] / seen[s] for s in seen)
    return (first - second) / deviation if deviation else 0.0


def main(runs: int, names: list[str]) -> None:
    """Prints the rates of every cheat, in eight parts of its runs."""
    for name in names or CHEATS:
        for n in (3, 5):
            score(CHEATS[name], n, (n - 1) // 2, runs, lambda text: print(text, flush=True))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
