"""The executor of two servers with garbled circuits: server 0 garbles, server 1 evaluates. Semi-honest, either server;
transfers are checked, what is garbled is not.

A random bit costs no gate: the evaluator's part is its choice in a transfer of labels, the garbler's is folded into the
zero label. Outputs are XOR shares; they become numbers as those of `ot` do: by lifts, or, for programs with adders, by
an opening of the masked number to the evaluator.
"""

import secrets
from collections.abc import Sequence

import numpy as np

from dpmpc.circuits.lift import HeapProgram
from dpmpc.circuits.program import Program
from dpmpc.mpc.contract.executor import MaskBits, Words
from dpmpc.mpc.contract.lanes import from_planes, to_planes
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.two_servers import half_gates
from dpmpc.mpc.two_servers.executor import BatchTransfers, OtBatch
from dpmpc.mpc.two_servers.flows import Wanted, begun, transfers
from dpmpc.mpc.two_servers.half_gates import KEY_BYTES, DrawnLabels, Inputs, Room, lanes_at_a_time
from dpmpc.mpc.two_servers.lifts import Lifts, lifts_of, transfers_of
from dpmpc.mpc.two_servers.products import ProductTransfers

GARBLER, EVALUATOR = 0, 1
LABELS = 1  # the part of a batch's transfers that labels are taken from
NO_PRODUCTS = ProductTransfers((), (), ())
_1 = np.uint64(1)


def pieces(program: Program, lanes: int) -> list[slice]:
    """The lanes that are garbled under one key each."""
    step = lanes_at_a_time(program)
    return [slice(at, min(lanes, at + step)) for at in range(0, lanes, step)]


def piece_words(program: Program, lanes: int) -> int:
    """The words that the garbler sends for so many lanes: a key, labels, ciphertexts."""
    masks = sum(len(layer.masks) for layer in program.layers)
    return KEY_BYTES // 8 + 2 * lanes * (program.random_bits + masks + 2 * program.ands)


class GarbledBatch(OtBatch):
    """One batch; it does one program."""

    async def _sampled(self, heap: HeapProgram) -> tuple[Lifts, BatchTransfers, Words]:
        lifts, chosen = lifts_of(heap, births=False), None
        if self.party == GARBLER:
            outputs = await self._garble(heap.program, [])
        else:
            labels = await self._labels(heap.program)
            if mine := transfers_of(NO_PRODUCTS, lifts, EVALUATOR):  # while the other server garbles the first piece
                chosen = await begun(self.pair, self.channel, mine, self.words)
            outputs = await self._evaluate(heap.program, *labels)
        return lifts, await self._transfers(NO_PRODUCTS, lifts, chosen), outputs

    async def run(self, program: Program, masks: Sequence[MaskBits | None] = (), given: Words | None = None) -> Words:
        """This party's shares (outputs, words) of the program's outputs. Cost: three flows of transfers, and one from
        the garbler for each piece."""
        assert given is None, "a garbled program takes no given bits"
        if self.party == GARBLER:
            return await self._garble(program, [m for m in masks if m is not None])
        return await self._evaluate(program, *await self._labels(program))

    async def _garble(self, program: Program, masks: Sequence[MaskBits]) -> Words:
        pair, lanes, count = self.pair, 64 * self.words, program.random_bits
        strings, prg = np.empty((2, count, lanes, 2), dtype=np.uint64), Prg.from_os()
        own = prg.words((count, lanes))  # while the other server makes its correction

        def take(slots: slice, low: Words, high: Words | None) -> None:
            _put(strings[:, slots], low, high)

        if count:
            await transfers(pair, self.channel, None, Wanted(count, self.words, take, wide=count), LABELS)
        delta = np.frombuffer(secrets.token_bytes(16), dtype="<u8").astype(np.uint64)
        delta[0] |= _1
        room, outputs = Room(), np.empty((len(program.outputs), lanes), dtype=np.uint64)
        for part in pieces(program, lanes):

            def garble(part: slice = part) -> Words:
                key, width = secrets.token_bytes(KEY_BYTES), part.stop - part.start
                message = np.empty(piece_words(program, width), dtype=np.uint64)
                message[: KEY_BYTES // 8] = np.frombuffer(key, dtype="<u8")
                rest = message[KEY_BYTES // 8 :].reshape(-1, width, 2)  # fixes, labels of masks' bits, ciphertexts
                fixes, used, tables = np.split(rest, [count, len(rest) - 2 * program.ands])
                zero = DrawnLabels((strings[0], strings[1]), own, fixes, part)
                bits = [np.array([from_planes(row[None])[part] for row in mask.planes]) for mask in masks]
                blank = [prg.words((*values.shape, 2)) for values in bits]
                places = [pair for layer in program.layers for pair in layer.masks[:, 1:].tolist()]
                for label, (number, place) in zip(used, places, strict=True):
                    label[:] = blank[number][place] ^ half_gates.under(bits[number][place], delta)
                into = tables.reshape(program.ands, 2, width, 2)
                _, ends = half_gates.garble(program, Inputs(zero, blank), delta, key, into, room)
                outputs[:, part] = half_gates.low(ends)
                return message

            message = await pair.work(garble)
            await self.channel.flushed(EVALUATOR)  # no more than a piece waits to be sent
            await self.channel.words({EVALUATOR: message}, [], 0)
            if pair.threads == 1:  # else it goes out while the next one is garbled
                await self.channel.flushed(EVALUATOR)
        return _planes_of(outputs)

    async def _labels(self, program: Program) -> tuple[Words, Words]:
        """Strings (1, bits, lanes, 2) of the evaluator's choices for random bits, and those, (bits, lanes)."""
        lanes, count = 64 * self.words, program.random_bits
        held = np.empty((1, count, lanes, 2), dtype=np.uint64)
        choices = np.empty((count, lanes), dtype=np.uint64)

        def take(slots: slice, low: Words, high: Words | None) -> None:
            _put(held[:, slots], low, high)

        if count:
            wanted = Wanted(count, self.words, take, wide=count)
            planes = await transfers(self.pair, self.channel, wanted, None, LABELS)
            for row, plane in zip(choices, planes, strict=True):
                row[:] = from_planes(plane[None])
        return held, choices

    async def _evaluate(self, program: Program, held: Words, choices: Words) -> Words:
        pair, lanes, count = self.pair, 64 * self.words, program.random_bits
        room, outputs = Room(), np.empty((len(program.outputs), lanes), dtype=np.uint64)
        for part in pieces(program, lanes):
            width = part.stop - part.start
            (message,) = await self.channel.words({}, [GARBLER], piece_words(program, width))

            def evaluate(part: slice = part, width: int = width, message: Words = message) -> None:
                key, rest = message[:2].tobytes(), message[2:].reshape(-1, width, 2)
                labels = DrawnLabels((held[0],), choices, rest[:count], part)
                places = [pair for layer in program.layers for pair in layer.masks[:, 1:].tolist()]
                masks = [np.zeros((program.mask_bits, width, 2), dtype=np.uint64) for _ in range(program.masks)]
                for label, (number, place) in zip(rest[count:], places, strict=False):
                    masks[number][place] = label
                tables = rest[count + len(places) :].reshape(program.ands, 2, width, 2)
                ends = half_gates.evaluate(program, Inputs(labels, masks), tables, key, room)
                outputs[:, part] = half_gates.low(ends)

            await pair.work(evaluate)
        return _planes_of(outputs)


def _put(into: Words, low: Words, high: Words | None) -> None:
    """Strings (strings, 64, slots, W), low and high halves, as labels (strings, slots, lanes, 2)."""
    assert high is not None, "labels take strings of 128 bits"
    for half, values in enumerate((low, high)):
        into.reshape(*into.shape[:2], *values.shape[1::2], 2)[..., half] = values.swapaxes(1, 2)


def _planes_of(bits: Words) -> Words:
    """Planes (count, words) of bits (count, lanes), one a word."""
    rows = [to_planes(row, 1) for row in bits]
    return np.concatenate(rows) if rows else np.zeros((0, bits.shape[1] // 64), dtype=np.uint64)
