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

from dpmpc.circuits.program import ONE, ZERO, Layer, Program

Words = NDArray[np.uint64]

MOST_GATES = 1 << 18  # under one key
KEY_BYTES = 16
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
    """`value` where the bit is 1, else 0."""
    chosen: Words = (np.uint64(0) - bits)[..., None] & value
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


def garble(program: Program, zero: Inputs, delta: Words, key: bytes) -> tuple[Words, Words]:
    """(ciphertexts (ANDs, 2, lanes, 2), zero labels of the outputs), from zero labels of the inputs and Delta (2,)."""
    labels, hashed = _Labels(program, zero, delta), Hash(key)
    lanes = zero.random.shape[1]
    tables, done = np.empty((program.ands, 2, lanes, 2), dtype=np.uint64), 0
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


def evaluate(program: Program, held: Inputs, tables: Words, key: bytes) -> Words:
    """The labels of the outputs that the evaluator gets, from the inputs' and the ciphertexts."""
    labels, hashed = _Labels(program, held, np.zeros(2, dtype=np.uint64)), Hash(key)
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
