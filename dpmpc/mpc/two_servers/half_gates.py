"""Garbling and evaluating a program on many lanes: half-gates with free XOR and point-and-permute. Touches no network.

A wire has the label L for 0 and L XOR Delta for 1; the lowest bit of Delta is 1, so the lowest bits of the zero label
and of the label that the evaluator holds are XOR shares of the wire's value. An AND takes two ciphertexts.
Source: Zahur, Rosulek, Evans 2015. H(x, i, l) = E(k_i, s(x) XOR T_l) XOR s(x), with s(low, high) = (high, low XOR high)
and E = AES (Guo et al. 2020: a key for each tweak). Halves of gates are numbered, and half i has the key k_i, block i
of the key stream of a key that is fresh for every 2^18 gates at most. All lanes of a half share its key; lane l has
the tweak T_l, block 2^62 + l of the stream. Nobody knew it when labels were fixed. Two gates that shared a key, or two
lanes of one label without tweaks, would show Delta.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.program import ONE, Ints, Layer, Program
from dpmpc.lazy import dataclass
from dpmpc.mpc.native import choice
from dpmpc.mpc.native.layers import SHORTEST, Slots
from dpmpc.mpc.native.ot import schedule_of, stream

Words = NDArray[np.uint64]

MOST_GATES = 1 << 18  # under one key
KEY_BYTES = 16
_LANES = 1 << 63  # the word of the key stream where the lanes' tweaks begin
_ROUND_KEYS = 176  # bytes: the compiled kernels' keys
_AT_ONCE = 16  # lanes: compiled kernels take multiples
_1 = np.uint64(1)


def lanes_at_a_time(program: Program) -> int:
    """Lanes that are garbled under one key: a multiple of 64."""
    return max(64, MOST_GATES // max(program.ands, 1) // 64 * 64)


def chance(program: Program, lanes: int) -> float:
    """How likely hashes of so many lanes meet by chance, at most: docs/two-servers.md has the bound."""
    together, hashed = min(lanes, lanes_at_a_time(program)), 2.0 * program.ands * lanes
    return 6.0 * together * hashed * 2.0**-128 + (hashed / max(together, 1)) ** 2 * 2.0**-129


class Hash:
    """H, with keys and tweaks that follow from one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __call__(self, x: Words, halves: Ints) -> Words:
        """Of labels (gates, lanes, 2), each gate's by the key of a half, each lane's by its tweak."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        moved = np.empty(x.shape, dtype="<u8")
        moved[..., 0] = x[..., 1]
        np.bitwise_xor(x[..., 0], x[..., 1], out=moved[..., 1])
        made, tweaks = np.empty_like(moved), stream(self._key, _LANES, 2 * x.shape[1]).reshape(-1, 2)
        for half, row, out in zip(halves.tolist(), moved ^ tweaks, made, strict=True):
            cipher: Any = Cipher(algorithms.AES(stream(self._key, 2 * half, 2).tobytes()), modes.ECB())
            out.reshape(-1)[:] = np.frombuffer(cipher.encryptor().update(row.tobytes()), dtype="<u8")
        made ^= moved
        return made


@dataclass(frozen=True)
class DrawnLabels:
    """Labels of random bits for the lanes `part`, from rows of all lanes. A garbler has both strings of each transfer,
    (bits, lanes, 2), its own random bits, a word a lane of which the lowest counts, and room for corrections, a row of
    labels of the part each; an evaluator the string of its choice, its choices, and the corrections."""

    strings: tuple[Words, ...]
    bits: Words
    fixes: Words
    part: slice

    def labels(self, delta: Words | None) -> Words:
        """Zero labels for a garbler, who has Delta, whose corrections are written; labels held for an evaluator."""
        first, bits = self.strings[0][:, self.part], self.bits[:, self.part] & _1
        if delta is None:
            return first ^ under(bits, self.fixes)
        self.fixes[...] = first ^ self.strings[1][:, self.part] ^ delta
        return first ^ under(bits, delta)

    @property
    def shape(self) -> tuple[int, int]:
        """(bits, lanes of the part)"""
        return len(self.bits), self.part.stop - self.part.start

    @property
    def rows(self) -> tuple[Any, ...]:
        """What kernels take."""
        lanes = self.bits.shape[1]
        return self.strings[0], (*self.strings, None)[1], self.bits, self.fixes, 2 * lanes, 2 * self.part.start


@dataclass(frozen=True)
class Inputs:
    """Labels (bits, lanes, 2): of random bits as they are drawn, and of the bits of each mask."""

    random: Words | DrawnLabels
    masks: Sequence[Words] = ()

    @property
    def lanes(self) -> int:
        """Evaluations side by side."""
        return int(self.random.shape[1])

    def labels(self, delta: Words | None) -> Words:
        """Of the random bits."""
        return self.random.labels(delta) if isinstance(self.random, DrawnLabels) else self.random

    @property
    def rows(self) -> tuple[Any, ...]:
        """What kernels take of the random bits."""
        if isinstance(self.random, DrawnLabels):
            return self.random.rows
        return np.ascontiguousarray(self.random), None, None, None, 2 * self.lanes, 0


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


def _halves(first: int, gates: int) -> Ints:
    """The numbers of the garbler's halves; those of the evaluator's are one more."""
    return 2 * np.arange(first, first + gates, dtype=np.int32)


class _Labels:
    """The slots of a program, and its walk through the layers."""

    def __init__(self, program: Program, inputs: Inputs, delta: Words | None) -> None:
        self.slots = np.zeros((program.slots, inputs.lanes, 2), dtype=np.uint64)
        if delta is not None:
            self.slots[ONE] = delta
        self._random, self._masks, self._drawn = inputs.labels(delta), inputs.masks, 0

    def enter(self, layer: Layer) -> tuple[Words, Words]:
        """Loads inputs, does XORs; the operands of the layer's ANDs."""
        slots = self.slots
        if len(layer.random):
            slots[layer.random] = self._random[self._drawn : self._drawn + len(layer.random)]
            self._drawn += len(layer.random)
        for mask, (into, bits) in layer.by_mask.items():
            slots[into] = self._masks[mask][bits]
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
            self._slots = Slots(program.slots, 1, 2 * lanes, SHORTEST)  # kernels take 16 lanes at once
        return self._slots


def garble(
    program: Program, zero: Inputs, delta: Words, key: bytes, tables: Words | None = None, room: Room | None = None
) -> tuple[Words, Words]:
    """(ciphertexts (ANDs, 2, lanes, 2), zero labels of the outputs), from zero labels of the inputs and Delta (2,). The
    ciphertexts are written to `tables` if that is given, contiguous; `room`: of pieces of this program."""
    lanes, done = zero.lanes, 0
    if tables is None:
        tables = np.empty((program.ands, 2, lanes, 2), dtype=np.uint64)
    if (ends := _compiled(program, zero, delta, key, tables, room or Room())) is not None:
        return tables, ends
    labels, hashed = _Labels(program, zero, delta), Hash(key)
    for layer in program.layers:
        a, b = labels.enter(layer)
        if not len(a):
            continue
        halves, pa, pb = _halves(done, len(a)), low(a), low(b)
        ha, hb = hashed(a, halves), hashed(b, halves | 1)
        first = ha ^ hashed(a ^ delta, halves) ^ under(pb, delta)
        second = hb ^ hashed(b ^ delta, halves | 1) ^ a
        tables[done : done + len(a), 0], tables[done : done + len(a), 1] = first, second
        labels.slots[layer.results] = ha ^ under(pa, first) ^ hb ^ under(pb, second ^ a)
        done += len(a)
    return tables, labels.slots[program.outputs]


def evaluate(program: Program, held: Inputs, tables: Words, key: bytes, room: Room | None = None) -> Words:
    """The labels of the outputs that the evaluator gets, from the inputs' and the ciphertexts."""
    if (ends := _compiled(program, held, None, key, np.ascontiguousarray(tables), room or Room())) is not None:
        return ends
    labels, hashed = _Labels(program, held, None), Hash(key)
    done = 0
    for layer in program.layers:
        a, b = labels.enter(layer)
        if not len(a):
            continue
        halves = _halves(done, len(a))
        first, second = tables[done : done + len(a), 0], tables[done : done + len(a), 1]
        made = hashed(a, halves) ^ hashed(b, halves | 1)
        labels.slots[layer.results] = made ^ under(low(a), first) ^ under(low(b), second ^ a)
        done += len(a)
    return labels.slots[program.outputs]


@functools.lru_cache(maxsize=8)
def _script(program: Program) -> Ints:
    """The layers as kernels take them: four counts each, then slots of random bits and of masks' bits, XORs, ANDs."""
    parts = [
        part
        for layer in program.layers
        for part in (
            np.array([len(layer.random), len(layer.masks), len(layer.xors), len(layer.ands)]),
            layer.random,
            layer.masks[:, 0],
            layer.xors,
            layer.ands.reshape(-1),
        )
    ]
    return np.concatenate(parts).astype(np.int32)


def _compiled(
    program: Program, inputs: Inputs, delta: Words | None, key: bytes, tables: Words, room: Room
) -> Words | None:
    """The same by the extension: the outputs' labels. None where no kernel can: without AES units, or for lanes that
    fill no registers."""
    schedule, lanes = schedule_of(np.frombuffer(key, dtype=np.uint8)[None]), inputs.lanes
    if len(schedule) != _ROUND_KEYS or not lanes or lanes % _AT_ONCE:
        return None
    slots = room.slots(program, lanes)
    masks = np.empty((sum(len(layer.masks) for layer in program.layers), lanes, 2), dtype=np.uint64)
    placed = (place for layer in program.layers for place in layer.masks[:, 1:].tolist())
    for row, (number, bit) in zip(masks, placed, strict=True):
        row[:] = inputs.masks[number][bit]
    shape = (program.slots, slots.state.shape[-1], 2 * lanes)
    ends = np.empty((len(program.outputs), lanes, 2), dtype=np.uint64)
    choice.compiled.half_gates(
        slots.state, shape, _script(program), program.outputs, schedule, inputs.rows, masks, tables, ends, delta
    )
    return ends
