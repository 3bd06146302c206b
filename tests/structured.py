"""Parties that deviate with structure: all that they choose is well formed, and no two of it are independent.

A random change of a message is seen by a check. Instances that are equal, shifted, negated, permuted or repeated pass
every check that looks at one of them. Here a party does that to all that it chooses: to the bytes that it draws (roots,
keys, parts of coins, dealings, exponents, Delta), to the nodes of its trees at any level, and to its messages; within
one draw, across draws, batches, attempts and connections. Or it says what others say: to each party that party's own
message (a mirror), or what another one tells it. The others are unmodified, in one process.

Judges look on. No honest party may get one output of a hash or a stream for two instances; no string that an
offerer of transfers holds may come twice; of a garbler no two lanes may have one label, or show Delta. And where
parties are checked, what honest ones release must be right.

python tests/structured.py [COUNT [BACKEND ...]]: every structure in every backend, with COUNT samples a batch of two
servers.
"""

import asyncio
import contextlib
import hashlib
import itertools
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import cheating
import cheating_many
import numpy as np
from cheating import play
from owners import shares_of
from pairs import Two

from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.errors import DpmpcError
from dpmpc.mpc.checked.backend import CheckedHolder
from dpmpc.mpc.contract.decisions import Decides, Decision
from dpmpc.mpc.contract.owner_checks import OwnerTest
from dpmpc.mpc.native import choice
from dpmpc.mpc.native import ot as native
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers import field as numbers
from dpmpc.mpc.numbers.domains import Domain
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.owner_checks.checks import PrssCheck
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.replicated.backend import SharingHolder
from dpmpc.mpc.shamir import pair_keys
from dpmpc.mpc.shamir.backend import ShamirHolder
from dpmpc.mpc.shamir_checked.backend import ShamirCheckedHolder
from dpmpc.mpc.transport.channels import DECIDED
from dpmpc.mpc.two_servers import base, extension, half_gates, trees
from dpmpc.mpc.two_servers.backend import GarbledHolder, OtHolder
from dpmpc.processes.supervisor import run_here

Words = np.ndarray

PARTY: ContextVar[int | None] = ContextVar("party", default=None)  # whose code runs
KINDS = ("equal", "halves", "shifted", "negated", "permuted", "repeated", "zeros")
ECHOES = ("mirrored", "relayed")
BLOCK = 16


def structured(kind: str, fresh: bytes, before: bytes | None) -> bytes:
    """Bytes of this structure, of as many blocks as `fresh`; `before`: what was made of this length last."""
    blocks = [fresh[at : at + BLOCK] for at in range(0, len(fresh), BLOCK)]
    if kind == "equal":
        made = [blocks[0]] * len(blocks)
    elif kind == "halves":
        half = (len(blocks) + 1) // 2
        made = (blocks[:half] * 2)[: len(blocks)]
    elif kind == "shifted":
        first = int.from_bytes(blocks[0], "little")
        made = [((first + k) % (1 << 8 * BLOCK)).to_bytes(BLOCK, "little") for k in range(len(blocks))]
    elif kind == "negated":
        made = [
            blocks[0] if k % 2 == 0 else bytes(b ^ 0xFF for b in blocks[0].ljust(BLOCK, b"\0"))
            for k in range(len(blocks))
        ]
    elif kind == "permuted":
        old = before or fresh
        made = [old[at : at + BLOCK] for at in range(0, len(old), BLOCK)][::-1]
    elif kind == "repeated":
        made = blocks if before is None else [before]
    else:
        made = [bytes(BLOCK)] * len(blocks)
    return b"".join(made)[: len(fresh)].ljust(len(fresh), b"\0")


@dataclass
class Deviation:
    """What `party` does: `where` is "draws", "nodes LEVEL" (across a tree's nodes), "trees LEVEL" (across trees), or
    "messages SIZE", with SIZE bytes as a block; of `kind`. Or "echoes": in place of its message the receiver's own of
    the same exchange ("mirrored"), or what another party tells the receiver ("relayed"), of this attempt where it has
    been said, else of the one before. `echoed`: how many messages it has exchanged so."""

    party: int
    where: str
    kind: str
    last: dict[Any, bytes] = field(default_factory=dict)
    heard: dict[tuple[int, int, int], bytes] = field(default_factory=dict)  # (label, sender, receiver)
    echoed: int = 0

    # -- what it draws -------------------------------------------------------------------------------------------------
    def draw(self, fresh: bytes) -> bytes:
        """The first block of every draw is one and the same, where it is "equal"."""
        key = ("draw", len(fresh))
        if self.kind == "equal":
            fresh = (self.last.setdefault("block", hashlib.sha256(fresh).digest()[:BLOCK]) + fresh)[: len(fresh)]
        made = structured(self.kind, fresh, self.last.get(key))
        self.last[key] = made
        return made

    # -- its trees -----------------------------------------------------------------------------------------------------
    def nodes(self, nodes: Words, level: int) -> Words:
        """Its own trees' nodes (trees, count, 2) of a level."""
        what, _, at = self.where.partition(" ")
        if what not in ("nodes", "trees") or int(at) != level:
            return nodes
        turned = nodes if what == "nodes" else nodes.swapaxes(0, 1)
        rows = [self._row(row) for row in turned]
        made = np.stack(rows)
        return made if what == "nodes" else np.ascontiguousarray(made.swapaxes(0, 1))

    def _row(self, row: Words) -> Words:
        raw = np.ascontiguousarray(row).tobytes()
        key = ("row", len(raw))
        made = structured(self.kind, raw, self.last.get(key))
        self.last[key] = made
        return np.frombuffer(made, dtype=np.uint64).reshape(row.shape)

    # -- its messages --------------------------------------------------------------------------------------------------
    def hears(self, sender: int, receiver: int, label: int, raw: bytes) -> None:
        """What others say, before it says its own."""
        self.heard[label, sender, receiver] = raw

    def _echo(self, label: int, raw: bytes, receiver: int) -> bytes:
        if self.kind == "mirrored":
            found = [self.heard.get((label, receiver, self.party))]
        else:
            found = [each for (at, _, to), each in self.heard.items() if (at, to) == (label, receiver)]
        for each in found:
            if each is not None and len(each) == len(raw) and each != raw:
                self.echoed += 1
                return each
        return raw

    def message(self, label: int, raw: bytes, receiver: int) -> bytes:
        if self.where == "echoes":
            return self._echo(label, raw, receiver)
        if not self.where.startswith("messages") or not raw:
            return raw
        size = int(self.where.partition(" ")[2])
        key = label & 0xFFFFFFFF if label >= 0 else label, len(raw)
        before, self.last[key] = self.last.get(key), raw
        blocks = [raw[at : at + size] for at in range(0, len(raw), size)]
        if self.kind == "equal":
            blocks = [blocks[0]] * len(blocks)
        elif self.kind == "halves":
            blocks = (blocks[: (len(blocks) + 1) // 2] * 2)[: len(blocks)]
        elif self.kind == "shifted":
            blocks = blocks[1:] + blocks[:1]
        elif self.kind == "negated":
            blocks = [bytes(b ^ 0xFF for b in block) for block in blocks]
        elif self.kind == "permuted":
            blocks = blocks[::-1]
        elif self.kind == "repeated":
            blocks = [before if before is not None else raw]
        else:
            blocks = [bytes(len(raw))]
        return b"".join(blocks)[: len(raw)].ljust(len(raw), b"\0")


@dataclass
class Judge:
    """What honest parties' code has seen. `bad`: what must not be."""

    deviation: Deviation | None
    bad: Counter[str] = field(default_factory=Counter)
    seen: dict[int, dict[bytes, Any]] = field(default_factory=lambda: defaultdict(dict))
    strings: list[Words] = field(default_factory=list)
    instances: int = 0

    def honest(self) -> bool:
        party = PARTY.get()
        return party is not None and (self.deviation is None or party != self.deviation.party)

    def note(self, instance: Any, made: bytes, *, begins: bool = False) -> None:
        """An output of 16 bytes: two are equal once in 2^128. `begins`: a stream, which begins once."""
        if not self.honest():
            return
        self.instances += 1
        if begins and made in self.seen[PARTY.get() or 0]:
            self.bad[f"a stream that begins twice: {instance[0]}"] += 1
        before = self.seen[PARTY.get() or 0].setdefault(made, instance)
        if before != instance:
            self.bad[f"one output for two of: {instance[0]}"] += 1

    def end(self) -> None:
        """Of n strings of 64 bits two are equal with probability n^2 / 2^65."""
        if self.strings:
            every = np.concatenate(self.strings)
            self.bad["strings of transfers that come twice"] += len(every) - len(np.unique(every))
        self.bad = +self.bad

    def tables(self, tables: Words, labels: Words, delta: Words) -> None:
        """Of a piece that a garbler made: ciphertexts (ANDs, 2, lanes, 2), zero labels (bits, lanes, 2), and Delta."""
        if not self.honest():
            return
        for row in labels[..., 0]:
            both = np.concatenate([row, row ^ delta[0]])
            self.bad["lanes with one label"] += len(both) - len(np.unique(both))
        for first in tables[:, 0, :, 0]:
            self.bad["lanes that show Delta"] += int(np.isin(first ^ delta[0], first).sum())


@contextlib.contextmanager
def watched(deviation: Deviation | None) -> Iterator[Judge]:
    """Everything that runs inside is of the parties that `PARTY` says; the one that deviates does."""
    judge, party = Judge(deviation), None if deviation is None else deviation.party
    random, digest, each = _token_bytes, Domain.digest, Domain.each
    stream, hashes, garble = Domain.stream, native.hashes, half_gates.garble
    whole, children, growing = trees.whole, trees._children, ContextVar("growing", default=False)

    def token_bytes(size: int) -> bytes:
        fresh = random(size)
        deviates = deviation is not None and PARTY.get() == party and deviation.where == "draws" and size
        return deviation.draw(fresh) if deviates and deviation is not None else fresh

    def digested(self: Domain, *of: Any, value: Any = b"") -> bytes:
        made = digest(self, *of, value=value)
        judge.note((self.name, of, bytes(value)), made[:16])
        return made

    def of_rows(self: Domain, *of: Any, rows: Words) -> Words:
        made = each(self, *of, rows=rows)
        if judge.honest():
            for place in np.ndindex(made.shape[:2]):
                judge.note((self.name, of, place), made[place].tobytes()[:16])
        return made

    def streamed(self: Domain, key: bytes, *of: Any) -> Prg:
        judge.note((self.name, of), stream(self, key, *of).words((2,)).tobytes(), begins=True)
        return stream(self, key, *of)

    def hashed(planes: Words, schedule: bytes, tweaks: Words, offsets: Words, out: Words) -> None:
        hashes(planes, schedule, tweaks, offsets, out)
        if len(offsets) == 2 and judge.honest():
            judge.strings.append(out[:, 0].reshape(-1).copy())

    def garbled(program: Any, zero: Any, delta: Words, key: bytes, *rest: Any) -> Any:
        made = garble(program, zero, delta, key, *rest)
        drawn = zero.random
        first = drawn.strings[0][:, drawn.part] ^ half_gates.under(drawn.bits[:, drawn.part] & np.uint64(1), delta)
        judge.tables(made[0], first, delta)
        return made

    def grown_nodes(nodes: Words, level: int, context: bytes) -> Words:
        made = children(nodes, level, context)
        if deviation is not None and PARTY.get() == party and growing.get():
            made = deviation.nodes(made, level)
        return made

    def grown_whole(roots: Words, k: int, context: bytes) -> tuple[Words, Words]:
        token = growing.set(True)
        try:
            return whole(roots, k, context)
        finally:
            growing.reset(token)

    keys = dict[str, Any]()

    def one_key(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
        """A private key: the one that was made first, for whom draws are equal or repeated."""

        def made(*arguments: Any) -> Any:
            fresh = make(*arguments)
            repeats = deviation is not None and deviation.where == "draws" and deviation.kind in ("equal", "repeated")
            return keys.setdefault(name, fresh) if repeats and PARTY.get() == party else fresh

        return made

    ec_made, x_made = base.ec.generate_private_key, pair_keys.X25519PrivateKey.generate
    with contextlib.ExitStack() as patches:
        for target, name, value in (
            (Domain, "digest", digested),
            (Domain, "each", of_rows),
            (Domain, "stream", streamed),
            (native, "hashes", hashed),
            (half_gates, "garble", garbled),
            (trees, "_children", grown_nodes),
            (trees, "whole", grown_whole),
            (base.ec, "generate_private_key", one_key("ec", ec_made)),
            (pair_keys, "X25519PrivateKey", mock.Mock(generate=one_key("x", x_made))),
        ):
            patches.enter_context(mock.patch.object(target, name, value))
        patches.enter_context(mock.patch("secrets.token_bytes", token_bytes))
        yield judge
    judge.end()


import secrets as _secrets  # noqa: E402 - the system's, whatever is patched

_token_bytes = _secrets.token_bytes


# -- what is played ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Outcome:
    """What became of a deviation. `how`: "held" or "ended"; `bad`: what must not be; `instances`: outputs looked at."""

    how: str
    bad: dict[str, int]
    instances: int


def two_servers(deviation: Deviation | None, made_by: type[OtHolder], k: int, count: int = 64) -> Outcome:
    """Two connections, two batches of noise each."""
    sampler = discrete_gaussian(300.0 if count < 1000 else 2.0**20)

    async def as_party(party: int, call: Callable[[], Any]) -> Any:
        PARTY.set(party)
        return await call()

    async def connection() -> None:
        def spoil(label: int, raw: bytes) -> bytes:
            if deviation is None:
                return raw
            other = 1 - deviation.party
            for at, each in two.sent[other]:
                deviation.hears(other, deviation.party, at, each)
            return deviation.message(label, raw, other)

        two = Two(k, bytes(32), spoil, made_by, 1 if deviation is None else deviation.party)
        if deviation is not None and not deviation.where.startswith("messages"):
            two.holders[0].peers, two.holders[1].peers = two.holders[0].peers, two.holders[1].peers

        async def one(holder: OtHolder) -> None:
            await holder.transfers(holder.peers[holder.other], two.digest)
            for channel in (5, 6):
                await holder.noise(sampler, channel, count)

        tasks = [asyncio.ensure_future(as_party(h.party, lambda h=h: one(h))) for h in two.holders]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION, timeout=600)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for holder in two.holders:
                holder.abandon()

    async def both() -> str:
        how = "held"
        for _ in range(2):
            try:
                await connection()
            except DpmpcError:
                how = "ended"
        return how

    with watched(deviation) as judge:
        how = run_here(both)
    return Outcome(how, dict(judge.bad), judge.instances)


SAMPLES = 3
VOTED = Decision(2, 2, 40, 1000)
SHARED: dict[str, tuple[Any, tuple[tuple[int, int], ...]]] = {
    "sharing": (SharingHolder, ((3, 1), (5, 2))),
    "checked": (CheckedHolder, ((3, 1), (5, 2))),
    "shamir": (ShamirHolder, ((3, 1), (5, 2))),
    "shamir-checked": (ShamirCheckedHolder, ((3, 1), (5, 2))),
}


def shared(deviation: Deviation | None, backend: str, sizes: tuple[int, int]) -> Outcome:
    """Two attempts: two batches of noise each, a check of owners, an opening. Owners deal zeros."""
    made_by, sampler, attempt = SHARED[backend][0], discrete_gaussian(128.0), 0

    class Here(made_by):  # type: ignore[misc,valid-type]
        async def connect(self, *arguments: Any) -> None:
            PARTY.set(self.party)
            await super().connect(*arguments)

    def make(party: int, *arguments: Any) -> Any:
        token = PARTY.set(party)
        try:
            return Here(party, *arguments[:2], b"run/%d" % attempt)
        finally:
            PARTY.reset(token)

    async def body(holder: Any) -> Any:
        shares = [await holder.noise(sampler, channel, SAMPLES) for channel in (1 << 24, (1 << 24) + 1)]
        rows, test, channel = [np.zeros((2, 4), dtype=np.uint64)], OwnerTest(2, 4, None), 1 << 28
        if isinstance(holder, Session):  # whose own check has norms, too
            await PrssCheck(holder, channel, test).run(rows)
        else:
            await holder.inspect(rows, test, channel)
        if isinstance(holder, Decides):
            await holder.decide(*(np.zeros(each, dtype=np.uint64) for each in (4, 2)), VOTED, DECIDED)
        return await holder.open(numbers.add(*shares), 1000)

    def tamper(sender: int, receiver: int, label: int, payload: bytearray) -> bytearray:
        return payload if deviation is None else _spoiled(deviation, sender, receiver, label, payload)

    how = "held"
    with watched(deviation) as judge:
        for attempt in range(2):  # noqa: B007 - `make` takes it
            results, _wires = play(body, tamper, make=make, sizes=sizes)
            if any(isinstance(result, DpmpcError) for result in results):
                how = "ended"
    return Outcome(how, dict(judge.bad), judge.instances)


def _spoiled(deviation: Deviation, sender: int, receiver: int, label: int, payload: bytearray) -> bytearray:
    if sender != deviation.party:
        deviation.hears(sender, receiver, label, bytes(payload))
        return payload
    return bytearray(deviation.message(label, bytes(payload), receiver))


def released(deviation: Deviation, backend: str, sizes: tuple[int, int]) -> Outcome:
    """Messages of a checked party, with the judges of random cheats: what honest parties release must be right."""

    def tamper(sender: int, receiver: int, label: int, payload: bytearray) -> bytearray:
        return _spoiled(deviation, sender, receiver, label, payload)

    if backend == "shamir-checked":
        outcome = cheating_many.Run(*sizes, (deviation.party,)).play(tamper).outcome
    else:
        results, _ = play(cheating.release, tamper, seed=0, sizes=sizes)
        due, _ = _reference(sizes)
        others = [result for i, result in enumerate(results) if i != deviation.party]
        finished = [result for result in others if not isinstance(result, DpmpcError)]
        wrong = any(len(each) != len(due) or (each != due).any() for each in finished)
        outcome = "released" if wrong else "held" if len(finished) == len(others) else "ended"
    return Outcome(outcome, {"a wrong vector is released": 1} if outcome == "released" else {}, 0)


SUMS, ETA, RIGHT = [50, -50, 50, 3, -60, -41], [0, 0, 0], [1, -1, 0, 0, -1, -1]  # of cells of two votes, by the rule


def decided(deviation: Deviation, sizes: tuple[int, int]) -> Outcome:
    """Messages of a checked party while all decide of votes: what honest parties open must be the rule's."""
    total, eta = (shares_of(np.array([each], dtype=np.int64), *sizes) for each in (SUMS, ETA))
    decision = Decision(3, 2, 40, 1000)

    async def body(holder: Any) -> list[int]:
        share = await holder.decide(total[holder.party, 0], eta[holder.party, 0], decision, DECIDED)
        return list((await holder.open(share, 1000)).tolist())

    def tamper(sender: int, receiver: int, label: int, payload: bytearray) -> bytearray:
        return _spoiled(deviation, sender, receiver, label, payload)

    results, _ = play(body, tamper, seed=3, sizes=sizes)
    others = [result for i, result in enumerate(results) if i != deviation.party]
    finished = [result for result in others if not isinstance(result, DpmpcError)]
    bad = {"a wrong decision is opened": 1} if any(each != RIGHT for each in finished) else {}
    return Outcome("held" if len(finished) == len(others) else "ended", bad, 0)


_KNOWN: dict[tuple[int, int], Any] = {}


def _reference(sizes: tuple[int, int]) -> Any:
    if sizes not in _KNOWN:
        results, wires = play(cheating.release, seed=0, sizes=sizes)
        _KNOWN[sizes] = results[0], wires
    return _KNOWN[sizes]


# -- with the mend taken out -------------------------------------------------------------------------------------------
@contextlib.contextmanager
def without(*mends: str) -> Iterator[None]:
    """ "places": rows of a hash have no place (their tree, leaf, node); "transfers": no tweak; "lanes": no tweak, by
    the twin; "subsets": streams have no subset."""
    made, blocks = extension._Begun.tweaks, half_gates.stream

    class NoPlace:
        size = 8

        @staticmethod
        def pack(*_: int) -> bytes:
            return bytes(8)

    def untweaked(key: bytes, words: int) -> Words:
        return made(key, words) * np.uint64(0)

    with contextlib.ExitStack() as patches:
        change = patches.enter_context
        if "places" in mends:
            change(mock.patch.object(domains, "_PLACE", NoPlace))
        if "transfers" in mends:
            change(mock.patch.object(extension._Begun, "tweaks", staticmethod(untweaked)))
        if "lanes" in mends:
            change(mock.patch.object(choice, "compiled", None))
            lanes = lambda key, at, size: blocks(key, at, size) * np.uint64(at < 1 << 63)  # noqa: E731
            change(mock.patch.object(half_gates, "stream", lanes))
        if "subsets" in mends:
            plain = lambda self, subset, domain, *of: domain.stream(self._keys[subset], self.run_id, b"", *of)  # noqa: E731
            change(mock.patch.object(Session, "stream", plain))
        yield


# -- all of them -------------------------------------------------------------------------------------------------------
def of_two_servers(k: int) -> Iterator[Deviation]:
    """Every structure, at either server. Messages for k = 4 alone: they are the same for all."""
    levels = sorted({0, 1, k // 2, k - 1} & set(range(k)))
    wheres = ["draws", *(f"{what} {level}" for level in levels for what in ("nodes", "trees"))]
    wheres += [f"messages {size}" for size in (8, 16, 32, 64) if k == 4]
    for party, where, kind in itertools.product((0, 1), wheres, KINDS):
        yield Deviation(party, where, kind)
    yield from (Deviation(party, "echoes", "mirrored") for party in (0, 1))


def of_many(sizes: tuple[int, int]) -> Iterator[Deviation]:
    """Every structure, at every party."""
    wheres = ["draws", *(f"messages {size}" for size in (8, 16, 32, 64))]
    for party, where, kind in itertools.product(range(sizes[0]), wheres, KINDS):
        yield Deviation(party, where, kind)
    yield from (Deviation(party, "echoes", kind) for party, kind in itertools.product(range(sizes[0]), ECHOES))


def main(count: int, names: list[str]) -> None:
    """All, or those of backends whose names begin so, and what became of them."""
    begin, all_bad = time.process_time(), 0
    print("| backend | deviations | held | ended | instances compared | found |")
    print("| --- | --- | --- | --- | --- | --- |")
    runs: list[tuple[str, Iterator[Deviation], Callable[[Deviation], Outcome]]] = []
    for k, size in ((1, 64), (4, count), (8, 64)):
        runs.append(
            (f"ot, k = {k}, {size} samples", of_two_servers(k), lambda d, k=k, n=size: two_servers(d, OtHolder, k, n))
        )
    runs.append((f"garbled, {count} samples", of_two_servers(4), lambda d: two_servers(d, GarbledHolder, 4, count)))
    for name, (_, every) in SHARED.items():
        for sizes in every:
            runs.append((f"{name}, {sizes}", of_many(sizes), lambda d, n=name, s=sizes: shared(d, n, s)))
            if name.endswith("checked"):
                some = (d for d in of_many(sizes) if d.where != "draws")
                runs.append((f"{name}, {sizes}, releases", some, lambda d, n=name, s=sizes: released(d, n, s)))
            if name == "checked":
                some = (d for d in of_many(sizes) if d.where != "draws")
                runs.append((f"{name}, {sizes}, decisions", some, lambda d, s=sizes: decided(d, s)))
    for name, deviations, play_one in runs:
        if names and not name.startswith(tuple(names)):
            continue
        found, bad, instances = Counter[str](), Counter[str](), 0
        for deviation in deviations:
            outcome = play_one(deviation)
            found["held" if outcome.how.startswith(("held", "right")) else "ended"] += 1
            bad.update(outcome.bad)
            instances += outcome.instances
        all_bad += bad.total()
        row = [name, found.total(), found["held"], found["ended"], f"{instances:,}", dict(bad) or "nothing"]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    print(f"\n{all_bad} found; {time.process_time() - begin:.0f} s of processor")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 512, sys.argv[2:])
