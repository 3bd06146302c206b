"""Garbling and evaluating a program on many lanes: half-gates with free XOR and point-and-permute. Touches no network.

A wire has the label L for 0 and L XOR Delta for 1; the lowest bit of Delta is 1, so the lowest bits of the zero label
and of the label that the evaluator holds are XOR shares of the wire's value. An AND takes two ciphertexts.
Source: Zahur, Rosulek, Evans 2015. H(x, i) = pi(pi(x) XOR i) XOR pi(x) with pi = AES under a fresh key for every 2^18
gates at most (Guo et al. 2020); i is 2 (gate lanes + lane) + half, so that no tweak occurs twice under one key. A tweak
that did would show Delta.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.program import ONE, ZERO, Ints, Layer, Program
from dpmpc.mpc.native import choice
from dpmpc.mpc.native.layers import Deposit, Slots
from dpmpc.mpc.native.ot import schedule_of

Words = NDArray[np.uint64]

MOST_GATES = 1 << 18  # under one key
KEY_BYTES = 16
_ROUND_KEYS = 176  # bytes: the compiled kernels' keys
_AT_ONCE = 16  # lanes: compiled kernels take multiples
_1 = np.uint64(1)


def lanes_at_a_time(program: Program) -> int:
    """Lanes that are garbled under one key: a multiple of 64."""
    return max(64, MOST_GATES // max(program.ands, 1) // 64 * 64)


class Hash:
    """H under one key."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encryptor: Any = Cipher(algorithms.AES(key), modes.ECB()).encryptor()

    def _pi(self, x: Words) -> Words:
        out = np.empty(x.size + 2, dtype=np.uint64)  # the cipher asks for a block of slack
        self._encryptor.update_into(np.ascontiguousarray(x).reshape(-1).data.cast("B"), out.data.cast("B"))
        return out[: x.size].reshape(x.shape)

    def __call__(self, x: Words, tweaks: Words) -> Words:
        """Of labels (gates, lanes, 2) under tweaks (gates, lanes)."""
        once = self._pi(x)
        twice = once.copy()
        twice[..., 0] ^= tweaks
        twice = self._pi(twice)
        twice ^= once
        return twice


@dataclass(frozen=True)
class Inputs:
    """Labels (bits, lanes, 2): of random bits as they are drawn, and of the bits of each mask."""

    random: Words
    masks: Sequence[Words] = ()


def low(labels: Words) -> Words:
    """The lowest bits."""
    lowest: Words = labels[..., 0] & _1
    return lowest


def under(bits: Words, value: Words) -> Words:
    """`value`, one or one a bit, where the bit is 1, else 0."""
    chosen, masks = np.empty((*bits.shape, 2), dtype=np.uint64), np.uint64(0) - bits
    for half in range(2):  # NumPy is slow on rows of two
        np.bitwise_and(masks, value[..., half], out=chosen[..., half])
    return chosen


def _tweaks(first: int, gates: int, lanes: int) -> Words:
    """Of the garbler's halves; those of the evaluator's are one more."""
    numbers = np.arange(first * lanes, (first + gates) * lanes, dtype=np.uint64)
    return (numbers << _1).reshape(gates, lanes)


class _Labels:
    """The slots of a program, and its walk through the layers."""

    def __init__(self, program: Program, inputs: Inputs, one: Words) -> None:
        lanes = inputs.random.shape[1]
        self.slots = np.empty((program.slots, lanes, 2), dtype=np.uint64)
        self.slots[ZERO], self.slots[ONE] = 0, one
        self._inputs, self._drawn = inputs, 0

    def enter(self, layer: Layer) -> tuple[Words, Words]:
        """Loads inputs, does XORs; the operands of the layer's ANDs."""
        slots = self.slots
        if len(layer.random):
            slots[layer.random] = self._inputs.random[self._drawn : self._drawn + len(layer.random)]
            self._drawn += len(layer.random)
        for mask, (into, bits) in layer.by_mask.items():
            slots[into] = self._inputs.masks[mask][bits]
        for out, operands in layer.xor_groups:
            slots[out] = np.bitwise_xor.reduce(slots[operands], axis=1)
        return slots[layer.ands[:, 1]], slots[layer.ands[:, 2]]


class Room:
    """The slots of labels of one program, used again for every piece of as many lanes: pages that were touched once are
    quick. One piece at a time."""

    def __init__(self) -> None:
        self._slots: Slots | None = None

    def slots(self, program: Program, lanes: int) -> Slots:
        """Slots of 2 `lanes` words; what is in them is of no use."""
        if self._slots is None or (self._slots.words, self._slots.state.shape[1]) != (2 * lanes, program.slots):
            self._slots = Slots(program.slots, 1, 2 * lanes)
        return self._slots


def garble(
    program: Program, zero: Inputs, delta: Words, key: bytes, tables: Words | None = None, room: Room | None = None
) -> tuple[Words, Words]:
    """(ciphertexts (ANDs, 2, lanes, 2), zero labels of the outputs), from zero labels of the inputs and Delta (2,). The
    ciphertexts are written to `tables` if that is given, contiguous; `room`: of pieces of this program."""
    lanes, done = zero.random.shape[1], 0
    if tables is None:
        tables = np.empty((program.ands, 2, lanes, 2), dtype=np.uint64)
    if (walk := _Compiled.of(program, zero, delta, key, room)) is not None:
        walk.run(tables, delta)
        return tables, walk.outputs()
    labels, hashed = _Labels(program, zero, delta), Hash(key)
    for layer in program.layers:
        a, b = labels.enter(layer)
        if not len(a):
            continue
        tweaks, pa, pb = _tweaks(done, len(a), lanes), low(a), low(b)
        ha, hb = hashed(a, tweaks), hashed(b, tweaks | _1)
        first = ha ^ hashed(a ^ delta, tweaks) ^ under(pb, delta)
        second = hb ^ hashed(b ^ delta, tweaks | _1) ^ a
        tables[done : done + len(a), 0], tables[done : done + len(a), 1] = first, second
        labels.slots[layer.results] = ha ^ under(pa, first) ^ hb ^ under(pb, second ^ a)
        done += len(a)
    return tables, labels.slots[program.outputs]


def evaluate(program: Program, held: Inputs, tables: Words, key: bytes, room: Room | None = None) -> Words:
    """The labels of the outputs that the evaluator gets, from the inputs' and the ciphertexts."""
    none = np.zeros(2, dtype=np.uint64)
    if (walk := _Compiled.of(program, held, none, key, room)) is not None:
        walk.run(np.ascontiguousarray(tables), None)
        return walk.outputs()
    labels, hashed = _Labels(program, held, none), Hash(key)
    lanes, done = held.random.shape[1], 0
    for layer in program.layers:
        a, b = labels.enter(layer)
        if not len(a):
            continue
        tweaks = _tweaks(done, len(a), lanes)
        first, second = tables[done : done + len(a), 0], tables[done : done + len(a), 1]
        made = hashed(a, tweaks) ^ hashed(b, tweaks | _1)
        labels.slots[layer.results] = made ^ under(low(a), first) ^ under(low(b), second ^ a)
        done += len(a)
    return labels.slots[program.outputs]


class _Compiled:
    """The same walk by the extension: slots of labels, whose words are those of a row."""

    def __init__(self, program: Program, inputs: Inputs, one: Words, schedule: bytes, room: Room) -> None:
        self._program, self._inputs, self._schedule = program, inputs, schedule
        self._lanes = inputs.random.shape[1]
        self._slots = room.slots(program, self._lanes)
        self._slots.set_constants(None)
        labels = self._slots.state.reshape(len(self._slots.state), program.slots, -1, 2)
        labels[:, ONE] = one

    @staticmethod
    def of(program: Program, inputs: Inputs, one: Words, key: bytes, room: Room | None) -> "_Compiled | None":
        """None where no kernel can: without AES units, or for lanes that fill no registers."""
        schedule = schedule_of(np.frombuffer(key, dtype=np.uint8)[None])
        lanes = inputs.random.shape[1]
        fits = len(schedule) == _ROUND_KEYS and lanes and lanes % _AT_ONCE == 0
        return _Compiled(program, inputs, one, schedule, room or Room()) if fits else None

    def _enter(self, layer: Layer, drawn: int) -> None:
        deposits = []
        if len(layer.random):
            deposits.append(self._deposit(layer.random, self._inputs.random[drawn : drawn + len(layer.random)]))
        for mask, (into, bits) in layer.by_mask.items():
            deposits.append(self._deposit(into, self._inputs.masks[mask][bits]))
        self._slots.run(layer, deposits)

    def _deposit(self, into: Ints, labels: Words) -> Deposit:
        return Deposit(into, 0, (np.ascontiguousarray(labels).reshape(len(into), -1),))

    def run(self, tables: Words, delta: Words | None) -> None:
        """Writes the ciphertexts, or takes them where there is no Delta."""
        _, slots, _, tile = self._slots.state.shape
        shape, drawn, done = (slots, tile, 2 * self._lanes), 0, 0
        for layer in self._program.layers:
            self._enter(layer, drawn)
            drawn, count = drawn + len(layer.random), len(layer.ands)
            if count:
                here = tables[done : done + count]
                choice.compiled.half_gates(self._slots.state, shape, layer.ands, done, self._schedule, here, delta)
                done += count

    def outputs(self) -> Words:
        """Labels (outputs, lanes, 2)."""
        return self._slots.gather(self._program.outputs).reshape(-1, self._lanes, 2)
