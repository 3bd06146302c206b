"""Bits born in a transfer, lifted to numbers: what the two ends make of their strings (`dpmpc.mpc.two_servers.lifts`).

Lane l of W words is row l // W, word l % W: of strings (64, lifts, W), and of a total, (64 W,). All numbers are mod
2^64. `sent`: the planes that the offerer sends of each lift, one after the other in rows (.., W).
"""

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice
from dpmpc.mpc.native.planes import transpose

Words = NDArray[np.uint64]
Ints = NDArray[np.int32]

_1 = np.uint64(1)


def offered(
    first: Words, second: Words, coefficients: Words, sent: Ints, total: Words, rows: Words, bits: Words
) -> None:
    """The offerer's end, whose strings are q0 and q1: bit = q0 XOR q1 of their lowest bits, to `bits` (lifts, W); the
    total takes (bit + 2 q0) c; the rows get (q0 - q1 + bit) / 2."""
    if choice.compiled is not None:
        choice.compiled.lifts_offered(first, second, coefficients, sent, total, rows, bits)
        return
    count, words = first.shape[1:]
    q0, q1 = (half.swapaxes(0, 1).reshape(count, -1) for half in (first, second))  # (lifts, lanes)
    bit = (q0 ^ q1) & _1
    total += ((bit + (q0 << _1)) * coefficients[:, None]).sum(axis=0, dtype=np.uint64)
    planes, done = planes_of((q0 - q1 + bit) >> _1, words), 0
    bits[:] = planes_of(bit, words)[:, 0]
    for each, size in zip(planes, sent.tolist(), strict=True):
        rows[done : done + size] = each[:size]
        done += size


def chosen(strings: Words, coefficients: Words, sent: Ints, total: Words) -> None:
    """The chooser's end, whose string is q: the total loses 2 q c."""
    if choice.compiled is not None:
        choice.compiled.lifts_chosen(strings, coefficients, sent, total)
        return
    q = strings.swapaxes(0, 1).reshape(strings.shape[1], -1)
    total -= ((q << _1) * coefficients[:, None]).sum(axis=0, dtype=np.uint64)


def finished(choices: Words, told: Words, coefficients: Words, sent: Ints, total: Words) -> None:
    """The chooser's end, told D / 2 in rows, with its choices u (lifts, W): the total takes (u - 2 u D) c."""
    if choice.compiled is not None:
        choice.compiled.lifts_finished(choices, told, coefficients, sent, total)
        return
    done, words = 0, choices.shape[1]
    for u_row, size, c in zip(choices, sent.tolist(), coefficients, strict=True):
        block = np.concatenate([u_row[None], told[done : done + size]])
        both = transpose(block, 64).reshape(64 * words)
        u = both & _1
        total += (u - ((np.uint64(0) - u) & ((both - u) << _1))) * c
        done += size


def planes_of(values: Words, words: int) -> Words:
    """(count, 64, W): the bit planes of numbers (count, lanes)."""
    count = len(values)
    block = values.reshape(count, 64, words).swapaxes(0, 1).reshape(64, -1)
    return transpose(block, 64).reshape(64, count, words).swapaxes(0, 1)
