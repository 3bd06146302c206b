"""Checked parties in one process, on a network that cheats for some of them: every message that leaves them can be
changed, dropped or answered early. The real holders, keys and checks; no sockets. Cheats of one of three parties; of t
of n parties, see cheating_many.py."""

import asyncio
import functools
import hashlib
import math
import secrets
import sys
import unittest.mock
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmpc.circuits.convert import to_field
from dpmpc.circuits.heap import Heap
from dpmpc.circuits.program import Layer, Program, program_of
from dpmpc.errors import DpmpcError, PeerError
from dpmpc.mpc.checked.backend import CheckedHolder
from dpmpc.mpc.checked.counts import CountingChecked
from dpmpc.mpc.checked.executor import CheckedBatch, CheckedExecutor
from dpmpc.mpc.mpyc.runtime import import_mpyc
from dpmpc.mpc.native.layers import Deposit, Slots
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.replicated.executor import SharingExecutor
from dpmpc.mpc.transport.channels import KEYS, KEYS_SAME, KEYS_SHOWN, exchange_label
from dpmpc.processes.supervisor import run_here

Tamper = Callable[[int, int, int, bytearray], bytearray | None]  # (sender, receiver, label, payload)


def honest(sender: int, receiver: int, label: int, payload: bytearray) -> bytearray:
    return payload


@dataclass(repr=False)  # the loop's signal handler makes texts of what it runs
class Wires:
    """All messages, in order, and what the cheat makes of them."""

    tamper: Tamper = honest
    sent: list[tuple[int, int, int, bytes]] = field(default_factory=list)  # as they arrive
    boxes: dict[tuple[int, int, int], "asyncio.Future[bytearray]"] = field(default_factory=dict)
    ended: bool = False

    def box(self, sender: int, receiver: int, label: int) -> "asyncio.Future[bytearray]":
        key = (sender, receiver, label)
        if key not in self.boxes:
            self.boxes[key] = asyncio.get_running_loop().create_future()
            if self.ended:
                self.boxes[key].set_exception(PeerError("a party has left"))
                self.boxes[key].exception()
        return self.boxes[key]

    def end(self) -> None:
        """A party has left: whoever waits for anything is told."""
        self.ended = True
        for box in self.boxes.values():
            if not box.done():
                box.set_exception(PeerError("a party has left"))
                box.exception()


class Wire:
    """The connection of `me` with `other`."""

    bytes_sent = bytes_received = frames_sent = 0

    def __init__(self, wires: Wires, me: int, other: int) -> None:
        self._wires, self._me, self._other = wires, me, other

    def send(self, label: int, payload: Any) -> None:
        found = self._wires.tamper(self._me, self._other, label, bytearray(payload))
        if getattr(self._wires.tamper, "in_place", False) and found != bytes(payload):
            payload[:] = found  # the cheat goes on with what it has sent
        if found is None or self._wires.ended:
            return
        self._wires.sent.append((self._me, self._other, label, bytes(found)))
        box = self._wires.box(self._me, self._other, label)
        assert not box.done(), "nothing is sent twice"
        box.set_result(found)

    def receive(self, label: int) -> "asyncio.Future[bytearray]":
        return self._wires.box(self._other, self._me, label)


class LinkHere:
    """Makes the connections of one party."""

    def __init__(self, wires: Wires, me: int, parties: int) -> None:
        self._wires, self._me, self._parties = wires, me, parties

    async def connect(self, *_: Any) -> dict[int, Wire]:
        return {j: Wire(self._wires, self._me, j) for j in range(self._parties) if j != self._me}

    def abandon(self) -> None:
        pass


Body = Callable[[Any], Awaitable[Any]]


def play(
    body: Body,
    tamper: Tamper = honest,
    seed: int | None = None,
    make: Any = CheckedHolder,
    sizes: tuple[int, int] = (3, 1),
) -> tuple[list[Any], Wires]:
    """What `body(holder)` returns at each party, or the error that it ended with; and the messages. With a seed,
    replicated keys follow from it. `sizes`: parties and threshold.

    The first error ends the run, as a connection that closes would; who had finished before has finished.
    """

    async def everybody() -> tuple[list[Any], Wires]:
        wires = Wires(tamper)
        holders = [make(i, *sizes, b"run") for i in range(sizes[0])]
        if seed is not None:
            for holder in holders:
                holder._keys = {s: hashlib.sha256(repr((seed, s)).encode()).digest()[:16] for s in holder.mine}

        async def one(holder: Any) -> Any:
            try:
                await holder.connect(LinkHere(wires, holder.party, sizes[0]))
                return await body(holder)
            except DpmpcError as error:
                wires.end()
                return error

        return list(await asyncio.wait_for(asyncio.gather(*map(one, holders)), 600)), wires

    import_mpyc()  # which draws keys when it is imported
    seeds = None if seed is None else np.random.default_rng(seed)
    random = unittest.mock.patch(
        "dpmpc.mpc.checked.session.secrets.token_bytes", seeds.bytes if seeds else secrets.token_bytes
    )
    with random, unittest.mock.patch.object(SharingExecutor, "layer", _going_on(tamper)):
        return run_here(everybody)


def _going_on(tamper: Tamper) -> Any:
    """The executors' `layer`. With `tamper.for_itself`, which then flips bits of messages whatever they are, the cheat
    goes on with what it has sent: it flips them in its own share, and in what a check finds of it."""
    as_honest = SharingExecutor.layer
    if not getattr(tamper, "for_itself", False):
        return as_honest

    async def layer(self: SharingExecutor, slots: Slots, layer: Layer, results: list[Deposit]) -> list[Deposit]:
        label, shape = exchange_label(self.batch.ident, self.batch.channel.rounds), (len(layer.ands), self.words)
        found = await as_honest(self, slots, layer, results)
        flips = tamper(self.batch.party, -1, label, bytearray(8 * shape[0] * shape[1]))
        if flips is None or not any(flips):
            return found
        rows, target = np.frombuffer(flips, dtype="<u8").reshape(shape), self._products.target
        if isinstance(self, CheckedExecutor):
            self._z[self._target, self._kept * self.words : (self._kept + shape[0]) * self.words] ^= rows.reshape(-1)
        return [*found, Deposit(layer.results, target, (rows,), added=True)]

    return layer


async def _circuit(engine: Any) -> Any:
    """Three rounds of ANDs, and a masked number to convert: a little noise."""
    x = engine.random_bits(4)
    first = await engine.and_(x[:3], x[1:])
    second = await engine.and_(first[:2], first[1:] ^ x[:2])
    heap = Heap()
    heap.put_number(np.concatenate([first, second, x[:1]]))
    return await to_field(engine, heap)


TINY: Program = program_of(_circuit, 2)  # for three parties, whose numbers have two masks
BATCH, OPENED = 7, 8  # channels


@functools.cache
def tiny(parties: int, threshold: int) -> Program:
    """The same for any parties."""
    return program_of(_circuit, math.comb(parties, threshold) - 1)


async def release(holder: Any) -> Words:
    """A batch of a tiny program, converted, and opened."""
    batch = CheckedBatch(holder, BATCH, 64)
    values: Words = await batch.to_field(tiny(holder.parties, holder.threshold))
    opened: Words = await holder.open(values, OPENED)
    return opened


def kinds(parties: int = 3, threshold: int = 1) -> dict[int, str]:
    """Every label of a message of `release`, and what it carries, as the counting twin and the keys have it."""
    twin = CountingChecked(64, parties, threshold)
    asyncio.run(twin.to_field(tiny(parties, threshold)))
    named = {KEYS: "key promised", KEYS_SHOWN: "key shown", KEYS_SAME: "key compared"}
    named |= {exchange_label(BATCH, k): kind for k, kind in enumerate(twin.kinds)}
    return named | {exchange_label(OPENED, 0): "share", exchange_label(OPENED, 1): "digest of the vector"}


@dataclass(frozen=True)
class Cheat:
    """One change of one message: of `sender` to `receiver` under `label`; `how` picks what is changed."""

    sender: int
    receiver: int
    label: int
    how: int

    def __call__(self, sender: int, receiver: int, label: int, payload: bytearray) -> bytearray:
        if (sender, receiver, label) != (self.sender, self.receiver, self.label):
            return payload
        random = np.random.default_rng(self.how)
        changed = bytearray(payload)
        way = self.how % 5
        if way == 0:  # one bit
            changed[random.integers(len(payload))] ^= 1 << int(random.integers(8))
        elif way == 1:  # a word
            at = 8 * int(random.integers(max(1, len(payload) // 8)))
            changed[at : at + 8] = random.bytes(len(payload[at : at + 8]))
        elif way == 2:
            changed = bytearray(random.bytes(len(payload)))
        elif way == 3:
            changed = bytearray(len(payload))
        else:
            changed = bytearray(b ^ 0xFF for b in payload)
        return changed


def judge(cheat: Cheat, seed: int, reference: Words) -> str:
    """What becomes of a cheat: "released" is the one that must not be. Honest parties may finish with the right vector
    where the cheat came after it was fixed; the others end with an error."""
    results, _ = play(release, cheat, seed)
    honest_ones = [result for i, result in enumerate(results) if i != cheat.sender]
    finished = [result for result in honest_ones if not isinstance(result, DpmpcError)]
    if any(len(result) != len(reference) or (result != reference).any() for result in finished):
        return "released"
    return "right for all" if len(finished) == 2 else "right for one" if finished else "stopped"


def messages(sender: int, seed: int) -> list[tuple[int, int]]:
    """(receiver, label) of all that a party sends in `release`."""
    _, wires = play(release, seed=seed)
    return [(receiver, label) for who, receiver, label, _ in wires.sent if who == sender]


def main(count: int) -> None:
    """Random cheats of random messages of all roles, and what became of them."""
    reference = play(release, seed=0)[0][0]
    random, names = np.random.default_rng(), kinds()
    places = {role: messages(role, 0) for role in range(3)}
    found: Counter[tuple[str, str]] = Counter()
    for k in range(count):
        role = int(random.integers(3))
        receiver, label = places[role][int(random.integers(len(places[role])))]
        found[names[label], judge(Cheat(role, receiver, label, k), 0, reference)] += 1
    for (kind, outcome), times in sorted(found.items()):
        print(f"{kind:22} {outcome:14} {times}")
    print(f"{count} cheats, {sum(n for (_, outcome), n in found.items() if outcome == 'released')} released")


if __name__ == "__main__":
    main(int(sys.argv[1]))
