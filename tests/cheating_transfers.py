"""A chooser that cheats in the check of transfers, and a holder of trees that does: every message changed in every way.
The real ends; no sockets."""

import asyncio
import secrets
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from dpmpc.errors import CheatError
from dpmpc.mpc.two_servers import consistency, trees
from dpmpc.mpc.two_servers.consistency import Sums
from dpmpc.mpc.two_servers.extension import BITS, LEVELS, Chooser, ChosenBatch, Offerer
from dpmpc.mpc.two_servers.pair import ServerPair

Words = np.ndarray
SLOTS, WORDS = 3, 2
SIZE = SLOTS * WORDS


class Ends:
    """A chooser and an offerer of one direction, with fresh keys."""

    def __init__(self, k: int) -> None:
        count = BITS // k
        self.k, self.number, self.place = k, 0, (b"", 0, 0, 0)
        self.leaves = np.frombuffer(secrets.token_bytes(count * 16 << k), dtype=np.uint64).reshape(count, 1 << k, 2)
        self.delta = np.frombuffer(secrets.token_bytes(count), dtype=np.uint8).astype(np.uint64) % (1 << k)
        self.chooser = Chooser(self.leaves, k, b"session", 0)
        punctured = trees.relabelled(self.leaves, self.delta, k)
        punctured[:, 0] = 0
        self.offerer = Offerer(punctured, self.delta, k, b"session", 0)

    def begin(self) -> ChosenBatch:
        """The chooser's part of the next batch."""
        self.number += 1
        made = self.chooser.begin(self.number, SLOTS, WORDS)
        self.place = made._begun.place
        return made


class Strings:
    """Of a batch, (strings, slots, lanes)."""

    def __init__(self) -> None:
        self.all = np.zeros((0, SLOTS, 64 * WORDS), dtype=np.uint64)

    def __call__(self, slots: slice, low: Words, high: Words | None) -> None:
        self.all = low.swapaxes(1, 2).reshape(len(low), SLOTS, -1).copy()


@dataclass
class Trial:
    """What became of a batch. `right`: all strings that the chooser holds are those of its choices, and no other."""

    held: bool
    right: bool


def play(ends: Ends, change: Any) -> Trial:
    """A batch whose messages `change(kind, bytes)` alters; kinds: correction, challenge, answer."""
    chosen, mine, theirs = ends.begin(), Strings(), Strings()
    correction = change("correction", chosen.correction.tobytes())
    offered = ends.offerer.begin(ends.number, SLOTS, WORDS, correction)
    offered.make(theirs)
    held = offered.holds(change("answer", chosen.answer(change("challenge", offered.challenge), mine)))
    u = np.unpackbits(chosen.choices.view(np.uint8), bitorder="little").reshape(SLOTS, WORDS, 64)
    u = u.swapaxes(1, 2).reshape(SLOTS, -1).astype(bool)  # lane l is bit l // WORDS of word l % WORDS
    (q0, q1), q = theirs.all, mine.all[0]
    return Trial(held, bool((np.where(u, q1, q0) == q).all() and (np.where(u, q0, q1) != q).all()))


class Cheat:
    """One way to change one message; `old`: the messages of an earlier batch, to be sent again."""

    KINDS = ("correction", "challenge", "answer")

    def __init__(self, kind: str, way: int, rng: np.random.Generator, k: int, old: dict[str, bytes]) -> None:
        self.kind, self.way, self.rng, self.k, self.old = kind, way, rng, k, old

    def __call__(self, kind: str, raw: bytes) -> bytes:
        if kind != self.kind:
            return raw
        rng, changed = self.rng, bytearray(raw)
        if self.way == 0:  # a bit
            changed[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
        elif self.way == 1:  # some bits anywhere
            for _ in range(int(rng.integers(2, 9))):
                changed[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
        elif self.way == 2:  # all of it
            changed[:] = rng.bytes(len(raw))
        elif self.way == 3:
            changed[:] = self.old[kind]
        elif self.way == 4:  # two parts change places
            at, to = (8 * int(i) for i in rng.choice(len(raw) // 8, 2, replace=False))
            changed[at : at + 8], changed[to : to + 8] = raw[to : to + 8], raw[at : at + 8]
        elif kind == "correction":  # one word in all trees, as the first tree's would be
            words = np.frombuffer(raw, dtype=np.uint64).copy()
            words[:-1][: (BITS // self.k - 1) * SIZE].reshape(-1, SIZE)[:, 0] ^= np.uint64(rng.integers(1, 2**63))
            return words.tobytes()
        else:
            changed[rng.integers(len(raw))] ^= 0xFF
        return bytes(changed)


WAYS = 6


def judge(k: int, kind: str, way: int, rng: np.random.Generator) -> str:
    """What becomes of a cheat. "undetected" is the one that must not be: a check that holds over transfers of which
    some are not as they should be."""
    ends, old = Ends(k), dict[str, bytes]()

    def keep(kind: str, raw: bytes) -> bytes:
        old[kind] = raw
        return raw

    assert play(ends, keep) == Trial(True, True)
    trial = play(ends, Cheat(kind, way, rng, k, old))
    return "ended" if not trial.held else "of no effect" if trial.right else "undetected"


def guess(ends: Ends, tree: int, value: int, rng: np.random.Generator) -> bool:
    """Whether the check holds where the chooser corrects `tree`, one but the first, to another u, and answers as if
    Delta's bits there were `value`: the best that it can do."""
    wrong = np.zeros((1, SIZE + 1), dtype=np.uint64)
    wrong[0, int(rng.integers(SIZE))] = np.uint64(1) << np.uint64(rng.integers(64))
    chosen, answer = ends.begin(), consistency.answer
    rows = (BITS // ends.k - 1) * SIZE
    chosen.correction[:rows].reshape(-1, SIZE)[tree - 1] ^= wrong[0, :SIZE]
    offered = ends.offerer.begin(ends.number, SLOTS, WORDS, chosen.correction.tobytes())

    def guessed(sums: Words, place: consistency.Place) -> bytes:
        error = Sums(offered.challenge, place, 1)
        error.add(wrong[:, :SIZE].copy())
        for b in range(ends.k):
            sums[ends.k * tree + b] ^= error.total[0] * np.uint64(value >> b & 1)
        return answer(sums, place)

    offered.make(Strings())
    with mock.patch.object(consistency, "answer", guessed):
        return offered.holds(chosen.answer(offered.challenge, Strings()))


# -- trees -------------------------------------------------------------------------------------------------------------
async def grow(k: int, change: Any) -> str:
    """What becomes of trees whose sums and proof are changed: "ended", "of no effect" where the other server has the
    right leaves and lacks one a tree, or "undetected"."""
    context, own = b"context", trees.grown(BITS // k, k, b"context")
    delta = np.frombuffer(secrets.token_bytes(BITS // k), dtype=np.uint8).astype(np.uint64) % (1 << k)
    keys = np.frombuffer(secrets.token_bytes(own.sums.nbytes), dtype=np.uint64).reshape(-1, 2, 2)  # base transfers
    sides = (1 - (delta[:, None] >> np.arange(k - 1, -1, -1, dtype=np.uint64) & np.uint64(1))).reshape(-1)
    chosen = [keys[i, side].tobytes() for i, side in enumerate(sides.astype(int).tolist())]
    said = (own.sums ^ keys.reshape(own.sums.shape)).tobytes() + own.proof
    came = change(said) if change else said
    masked = np.frombuffer(came[: own.sums.nbytes], dtype=np.uint64).reshape(own.sums.shape)
    try:
        known = ServerPair(1, k, b"run")._known(masked, delta, chosen, context, came[own.sums.nbytes :])
    except CheatError:
        return "ended"
    return "of no effect" if _agrees(known, own.leaves, delta) else "undetected"


def _agrees(leaves: Words, owner: Words, delta: Words) -> bool:
    same = (leaves == owner).all(axis=2)
    return bool((same | (np.arange(same.shape[1]) == delta[:, None])).all())


def change_of_trees(way: int, rng: np.random.Generator) -> Any:
    """A change of the trees' message."""

    def change(raw: bytes) -> bytes:
        changed = bytearray(raw)
        if way == 0:
            changed[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
        elif way == 1:
            at = 16 * int(rng.integers(len(raw) // 16))
            changed[at : at + 16] = rng.bytes(16)
        else:
            at, to = (16 * int(i) for i in rng.choice(len(raw) // 16, 2, replace=False))
            changed[at : at + 16], changed[to : to + 16] = raw[to : to + 16], raw[at : at + 16]
        return bytes(changed)

    return change


def main(count: int) -> None:
    """Cheats at random, and what became of them."""
    rng, found = np.random.default_rng(), Counter[tuple[str, str]]()
    for trial in range(count):
        k = int(rng.choice(LEVELS))
        if trial % 5 == 0:
            outcome = asyncio.run(grow(k, change_of_trees(int(rng.integers(3)), rng)))
            found["trees", outcome] += 1
            continue
        kind = Cheat.KINDS[int(rng.integers(3))]
        found[kind, judge(k, kind, int(rng.integers(WAYS)), rng)] += 1
    for (kind, outcome), times in sorted(found.items()):
        print(f"{kind:12} {outcome:14} {times}")
    print(f"{count} cheats, {sum(n for (_, outcome), n in found.items() if outcome == 'undetected')} undetected")


if __name__ == "__main__":
    main(int(sys.argv[1]))
