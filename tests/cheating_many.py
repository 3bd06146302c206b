"""Cheats of t of n checked parties on shares of numbers: any messages that leave them are changed, alone and together.

Nobody can say beforehand what the parties will draw, for a dealer that deals other numbers has dealt other numbers. So
every run is judged by what its honest parties hold: their bits are 0 or 1, what they release is what the circuit makes
of these bits, in the clear, plus a constant that stands for owners' vectors, and it is the same at all.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cheating import Tamper, Wires, honest, play
from clear_arithmetic import ClearArithmetic

from dpmpc.circuits.arithmetic import Arithmetic, Values, multiply
from dpmpc.circuits.trace import evaluate
from dpmpc.errors import DpmpcError
from dpmpc.mpc.numbers import field as numbers
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.shamir_checked.backend import ShamirCheckedHolder
from dpmpc.mpc.shamir_checked.counts import count_checked_circuit
from dpmpc.mpc.shamir_checked.engine import ManyCheckedEngine
from dpmpc.mpc.transport.channels import CONFIRM, KEYS, exchange_label

BATCH, OPENED = 7, 8  # channels
LANES, OWNERS = 3, 12345
BITS = 8  # a lane
SIZES = [(5, 2), (7, 3), (4, 1), (6, 2), (8, 3), (3, 1)]


async def circuit(engine: Arithmetic, bits: Values) -> Values:
    """Three layers of products, some with a factor in common, and one sum of products."""
    first = await multiply(engine, bits[:4], bits[4:8])
    # one factor for seven results
    table = await multiply(engine, bits[None, :1], engine.join([first, bits[2:5]])[None])
    wide, last = await engine.dots([(table[0, :3], bits[1:4]), (first[None, :1], table[0, None, 3:7])])
    return engine.join([first, table[0], wide[None], last[:4]])


class Given(ClearArithmetic):
    """A clear engine for bits that are known."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes, Prg(b""))


async def drawn(engine: Any) -> Values:
    """The circuit on fresh bits."""
    return await circuit(engine, await engine.random_bits(BITS))


@dataclass
class Run:
    """What became of a run. `bits`: shares by party, also of those who ended with an error later."""

    parties: int
    threshold: int
    corrupt: Sequence[int] = ()
    chunk: int = 1 << 18
    results: list[Any] = field(default_factory=list)
    bits: dict[int, Words] = field(default_factory=dict)
    wires: Wires = field(default_factory=Wires)

    def play(self, tamper: Tamper = honest, engine: Any = ManyCheckedEngine) -> "Run":
        cost = count_checked_circuit(drawn, LANES, self.parties, self.threshold, chunk=self.chunk)

        async def body(holder: Any) -> Words:
            with holder._keys.batch(BATCH) as streams:
                made = engine(
                    holder, holder.channel(BATCH), holder.layout, streams, LANES, cost.sharings, chunk=self.chunk
                )
                self.bits[holder.party] = bits = await made.random_bits(BITS)
                values = await circuit(made, bits)
                await made.check()
            share = numbers.add(values.reshape(-1), np.full(1, OWNERS, dtype=np.uint64))
            opened: Words = await holder.open_words(share, holder.channel(OPENED))
            return opened

        sizes = self.parties, self.threshold
        self.results, self.wires = play(body, tamper, make=ShamirCheckedHolder, sizes=sizes)
        return self

    @property
    def honest(self) -> list[int]:
        """The others."""
        return [i for i in range(self.parties) if i not in self.corrupt]

    @property
    def truth(self) -> Words | None:
        """What honest parties' bits make, or None where these are no bits."""
        if any(i not in self.bits for i in self.honest):
            return None
        found = []
        for points in (self.honest[: self.threshold + 1], self.honest[-self.threshold - 1 :]):
            weights = numbers.lagrange(tuple(i + 1 for i in points), 0)
            held = [self.bits[i].reshape(-1) for i in points]
            found.append(sum(w * h.astype(object) for w, h in zip(weights, held, strict=True)) % numbers.P)
        bits = np.array(found[0], dtype=np.uint64).reshape(BITS, LANES)
        if (found[0] != found[1]).any() or bits.max() > 1:
            return None
        values: Words = evaluate(circuit(Given(LANES), bits)).reshape(-1)
        return numbers.add(values, np.full(1, OWNERS, dtype=np.uint64))

    @property
    def outcome(self) -> str:
        """ "released" is the one that must not be: an honest party has a vector that is not what honest parties' bits
        make. The honest may finish with a right one where a cheat came after it was fixed, or changed nothing."""
        finished = [self.results[i] for i in self.honest if not isinstance(self.results[i], DpmpcError)]
        truth = self.truth
        if finished and (truth is None or any((each != truth).any() for each in finished)):
            return "released"
        if not finished:
            return "stopped"
        return "right for all" if len(finished) == len(self.honest) else "right for some"


def kinds(parties: int, threshold: int) -> dict[int, str]:
    """Every label of a message of a run, and what it carries, as the counting twin has it."""
    twin = count_checked_circuit(drawn, LANES, parties, threshold)
    named = {KEYS: "key", CONFIRM: "key confirmed"}
    named |= {exchange_label(BATCH, k): kind for k, kind in enumerate(twin.kinds)}
    named |= {exchange_label(BATCH, k): "dealing" if k == 0 else "bits" for k in range(3)}
    return named | {exchange_label(OPENED, 0): "share", exchange_label(OPENED, 1): "digest of the vector"}


WAYS = ["bit", "word", "random", "zeros", "ones", "add", "cancel", "negate", "replay", "attempt", "swap", "length"]
Place = tuple[int, int, int]  # sender, receiver, label


@dataclass
class Change:
    """Changes of messages of the corrupt parties, each `(sender, receiver, label)`, all in one way and by the same
    numbers; `how` picks what is changed."""

    places: frozenset[Place]
    way: str
    how: int
    earlier: Mapping[Place, bytes] = field(default_factory=dict)  # what was sent there in another attempt
    for_itself: bool = False  # whether a cheat goes on with what it has sent, where it keeps it
    made: int = 0
    _seen: dict[Any, bytes] = field(default_factory=dict)

    def __call__(self, sender: int, receiver: int, label: int, payload: bytearray) -> bytearray:
        before = self._seen.get((sender, len(payload))), self._seen.get((sender, label))
        self._seen[sender, len(payload)] = self._seen[sender, label] = bytes(payload)
        if (sender, receiver, label) not in self.places:
            return payload
        self.made += 1
        random = np.random.default_rng(self.how)
        changed = bytearray(payload)
        words = len(payload) // 8
        at = 8 * int(random.integers(max(1, words)))
        p = numbers.P
        if self.way == "bit":
            changed[random.integers(len(payload))] ^= 1 << int(random.integers(8))
        elif self.way == "word":
            changed[at : at + 8] = int(random.integers(p)).to_bytes(8, "little")[: len(payload[at : at + 8])]
        elif self.way == "random":
            changed = bytearray(random.bytes(len(payload)))
        elif self.way == "zeros":
            changed = bytearray(len(payload))
        elif self.way == "ones":
            changed = bytearray(b"\xff" * len(payload))
        elif self.way == "replay" and before[0] is not None:  # what it sent before, of this length
            changed = bytearray(before[0])
        elif self.way == "attempt" and (sender, receiver, label) in self.earlier:
            changed = bytearray(self.earlier[sender, receiver, label])
        elif self.way == "swap" and before[1] is not None:  # what it sent to another party
            changed = bytearray(before[1])
        elif self.way == "length":
            changed = [changed[:-1], changed + b"\0", changed[:-8], changed + bytes(8), bytearray()][self.how % 5]
        elif len(payload) % 8 == 0:
            old = int.from_bytes(payload[at : at + 8], "little")
            error = int(random.integers(1, p))  # of every second one the opposite, where errors may cancel
            error *= -1 if self.way == "cancel" and self.made % 2 == 0 else 1
            new = -old if self.way == "negate" else old + error
            changed[at : at + 8] = (new % p).to_bytes(8, "little")
        return changed


def messages(parties: int, threshold: int, corrupt: Sequence[int]) -> dict[Place, bytes]:
    """(sender, receiver, label) of all that corrupt parties send to others in a run; and what they send."""
    run = Run(parties, threshold).play()
    assert run.outcome == "right for all"
    sent = {(s, r, label): payload for s, r, label, payload in run.wires.sent}
    return {place: payload for place, payload in sent.items() if place[0] in corrupt and place[1] not in corrupt}


def random_change(sent: Mapping[Place, bytes], random: np.random.Generator) -> Change:
    """One message, or some that go together: of one exchange or of two neighbouring ones, to all or some; what one
    sends another in neighbouring exchanges; one in each of two or three exchanges that follow; or any two or three.
    `sent`: in another attempt."""
    places = list(sent)
    first = places[int(random.integers(len(places)))]
    kind = int(random.integers(7))
    later = [p for p in places if first[2] < p[2] <= first[2] + 4] or places
    alike = {
        0: [first],
        1: [p for p in places if p[2] == first[2]],  # all messages of an exchange
        2: [p for p in places if p[2] == first[2] and p[0] == first[0]],  # of one sender
        3: [p for p in places if p[0] == first[0] and p[1] == first[1] and abs(p[2] - first[2]) <= 1],
        4: [first, *(places[int(k)] for k in random.integers(len(places), size=1 + random.integers(2)))],
        5: [first, *(later[int(k)] for k in random.integers(len(later), size=1 + random.integers(2)))],
        6: [p for p in places if 0 <= p[2] - first[2] <= 1],
    }[kind]
    some = [p for p in alike if p == first or kind not in (1, 6) or random.random() < 0.7]
    return Change(frozenset(some), WAYS[int(random.integers(len(WAYS)))], int(random.integers(1 << 30)), sent)


def some_coalition(parties: int, threshold: int, random: np.random.Generator) -> tuple[int, ...]:
    """One party, or t."""
    size = threshold if random.random() < 0.7 else 1
    return tuple(sorted(int(i) for i in random.choice(parties, size, replace=False)))


def main(count: int) -> None:
    """Random cheats by one party and by t, among several numbers of parties, and what became of them."""
    random = np.random.default_rng()
    found: Counter[tuple[str, str]] = Counter()
    unchanged = 0
    known: dict[Any, dict[Place, bytes]] = {}
    for k in range(count):
        n, t = SIZES[k % len(SIZES)]
        corrupt = some_coalition(n, t, random)
        if (n, t, corrupt) not in known:
            known[n, t, corrupt] = messages(n, t, corrupt)
        change = random_change(known[n, t, corrupt], random)
        try:
            outcome = Run(n, t, corrupt).play(change).outcome
        except TimeoutError:
            outcome = "left waiting"
        names = {kinds_of(n, t)[label] for *_, label in change.places}
        unchanged += not change.made
        found["+".join(sorted(names)) if len(names) < 2 else "several", outcome] += 1
        if (k + 1) % 1000 == 0 or k + 1 == count:
            tell(found, unchanged)


def tell(found: Counter[tuple[str, str]], unchanged: int) -> None:
    """Prints what became of cheats, by what was changed."""
    for (kind, outcome), times in sorted(found.items()):
        print(f"{kind:22} {outcome:14} {times}")
    released, left = (
        sum(times for (_, outcome), times in found.items() if outcome == bad) for bad in ("released", "left waiting")
    )
    nothing = f"{unchanged} came to nothing, for the run had ended"
    print(f"{found.total()} cheats ({nothing}), {released} released, {left} left honest parties waiting", flush=True)


_KINDS: dict[tuple[int, int], dict[int, str]] = {}


def kinds_of(parties: int, threshold: int) -> dict[int, str]:
    """As `kinds`, once."""
    if (parties, threshold) not in _KINDS:
        _KINDS[parties, threshold] = kinds(parties, threshold)
    return _KINDS[parties, threshold]


if __name__ == "__main__":
    main(int(sys.argv[1]))
