"""Each kernel in plain C against its NumPy twin: processor time of all threads, by turns.

    python benchmarks/studies/kernels.py [--repetitions 9] [--features avx2,aes,...] [--json FILE]

A processor whose units no kernel knows takes plain C, which must not be slower than the twin. --features takes some
units of this processor instead of none. Without AES units key streams are the cipher library's in both, and so is most
of columns and hashes. Ends with 1 if a kernel takes more than a fifth longer than its twin.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.benchmarks.machine import machine
from dpmpc.circuits.program import Layer
from dpmpc.mpc.native import aes, choice, layers, lifts, ot, planes
from dpmpc.mpc.native.gf64 import GF64
from dpmpc.mpc.native.hashes import keyed_hashes
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.mersenne import Mersenne
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import weighted_sum

Words = NDArray[np.uint64]
Job = Callable[[], object]
SIZES = (8, 512)  # words of a row: some hundred lanes, and 32,768
_LEAST = 2e-3  # seconds that a measurement takes at least
SLOWER = 1.2
Found = dict[int, dict[str, tuple[float, float]]]  # by words of a row and kernel: seconds in C, and of the twin


def _draw(*shape: int) -> Words:
    return np.random.default_rng(list(shape)).integers(0, 1 << 64, shape, dtype=np.uint64)


def _elements(*shape: int) -> Words:
    return _draw(*shape) % np.uint64(field.P)


def _of_layers(words: int) -> Iterator[tuple[str, Job]]:
    """Called while the kernels, or the twins, are chosen: what is made here is theirs."""
    count = 64
    slots = layers.Slots(3 * count + 2, 2, words)
    slots.state[...] = 1
    out, left, right = (np.arange(k * count + 2, (k + 1) * count + 2, dtype=np.int32) for k in range(3))
    none = np.zeros((0, 3), dtype=np.int32)
    layer = Layer(none[:, 0], none, none[:, :2], none[:, 0], np.stack([out, left, right], axis=1))
    products, message = layers.ProductLayer([(0, [0, 1]), (1, [0])]), np.empty((count, words), dtype=np.uint64)
    own, other = aes.KeyStream(bytes(16)), aes.KeyStream(bytes(range(16)))

    def masked() -> None:
        shape = (count, words)
        masks = layers.Masks([(1, own.reserve(shape))], [(0, other.reserve(shape))])
        slots.run(layer, (), products, masks, message)

    rows, into = [_draw(count, words) for _ in range(3)], np.empty((count, words), dtype=np.uint64)
    yield "ANDs", lambda: slots.run(layer, (), products)
    yield "ANDs with masks", masked
    yield "slots out", lambda: slots.gather(out)
    yield "sum of rows", lambda: layers.add_sources(rows, into)
    yield "key stream", lambda: own.words((count, words))


def _of_transfers(words: int) -> Iterator[tuple[str, Job]]:
    k, keys = 4, _draw(32 << 4, 2).view(np.uint8)
    schedules, key = ot.schedule_of(keys), ot.schedule_of(keys[:1])
    rows, sums = np.empty((128, words), dtype=np.uint64), np.empty((32, words), dtype=np.uint64)
    strings = np.empty((2, 1, 64, words), dtype=np.uint64)
    block, tweaks = _draw(64, words), _draw(64 + words, 2)
    yield "columns", lambda: ot.columns(schedules, k, 0, rows, sums)
    yield "hashes", lambda: ot.hashes(rows, key, tweaks, np.zeros((2, 2), dtype=np.uint64), strings)
    yield "transposition", lambda: planes.transpose(block, 64)
    c, sent = np.array([1 << 20, 3, (1 << 64) - 5, 1], dtype=np.uint64), np.array([26, 20, 7, 40], dtype=np.int32)
    q, total, bits = _draw(2, 64, 4, words), _draw(64 * words), np.empty((4, words), dtype=np.uint64)
    told, choices = np.empty((93, words), dtype=np.uint64), _draw(4, words)
    yield "lifts offered", lambda: lifts.offered(q[0], q[1], c, sent, total, told, bits)
    yield "lifts chosen", lambda: lifts.chosen(q[0], c, sent, total)
    yield "lifts finished", lambda: lifts.finished(choices, told, c, sent, total)


def _of_checks(words: int) -> Iterator[tuple[str, Job]]:
    size = 64 * words
    x, y, few, factors, weights, out = _draw(2, size), _draw(2, size), _draw(8), _draw(64), _draw(words), _draw(64)
    yield "sums, bits", lambda: GF64.sums(x, y, 6, weights)
    yield "sums", lambda: GF64.sums(x, y, 3)
    yield "fold", lambda: GF64.fold(x[0].copy(), few)
    yield "fold, bits", lambda: GF64.fold_bits(x.copy(), y.copy(), factors, weights, 3)
    yield "claim", lambda: GF64.claim(x[0], weights, 64)
    yield "weigh", lambda: GF64.weigh(x[0].reshape(64, words), weights, out)
    yield "products", lambda: GF64.multiply(x[0], y[0])


def _of_field(words: int) -> Iterator[tuple[str, Job]]:
    compiled = Mersenne(compiled=choice.compiled is not None)
    x, y = _elements(8, words), _elements(8, words)
    public = np.arange(-24, 24, dtype=np.int64).reshape(6, 8)
    rows, parts = list(x), [np.ascontiguousarray(part) for part in (x, y)]
    yield "sums of products", lambda: compiled.dot(x, y)
    yield "public matrix", lambda: compiled.matrix(public, x)
    yield "sum", lambda: compiled.total(rows)
    yield "sums by powers of two", lambda: compiled.extract(rows, 8)
    yield "inverse roots", lambda: compiled.inverse_root(x[0])
    yield "inner product", lambda: compiled.inner(x[0], y[0])
    yield "values at points", lambda: compiled.points(*parts)
    stream = Prg(bytes(16))
    yield "uniform elements", lambda: compiled.uniform(stream, words)
    shares, signed = np.empty((2, words), dtype=np.uint64), x[0].view(np.int64)
    yield "sum over owners", lambda: field.total(x)
    yield "shares beside a seed's", lambda: field.continue_into(shares, 0, signed, x[1:2])
    yield "weighted sum", lambda: weighted_sum(rows, list(range(3, 11)), 5)


def _of_records(words: int) -> Iterator[tuple[str, Job]]:
    yield "keyed hashes", lambda: keyed_hashes(bytes(32), range(64 * words))


FAMILIES: dict[str, Callable[[int], Iterator[tuple[str, Job]]]] = {
    "layers of gates": _of_layers,
    "transfers": _of_transfers,
    "checks": _of_checks,
    "F_p": _of_field,
    "records": _of_records,
}


def jobs(words: int) -> Iterator[tuple[str, Job]]:
    """Every kernel's work on rows of so many words, by what is chosen now."""
    for family in FAMILIES.values():
        yield from family(words)


def _seconds(job: Job, times: int) -> float:
    begin = time.process_time()
    for _ in range(times):
        job()
    return (time.process_time() - begin) / times


def compare(words: int, repetitions: int) -> dict[str, tuple[float, float]]:
    """(seconds in C, of the twin) by kernel: medians, by turns. What is made for the twins is made without kernels."""
    kernels = choice.compiled
    both: list[list[tuple[str, Job]]] = []
    found: dict[str, tuple[list[float], list[float]]] = {}
    for of in (kernels, None):
        choice.compiled = of  # type: ignore[assignment]
        both.append(list(jobs(words)))
    for (name, ours), (_, twin) in zip(*both, strict=True):
        found[name] = ([], [])
        times = [1, 1]
        for turn in range(repetitions + 1):
            for k in (0, 1) if turn % 2 else (1, 0):
                of, job = (kernels, ours) if not k else (None, twin)
                choice.compiled = of  # type: ignore[assignment]
                taken = _seconds(job, times[k])
                if turn:
                    found[name][k].append(taken)
                times[k] = max(times[k], int(_LEAST / max(taken, 1e-9)))
    choice.compiled = kernels
    return {name: (statistics.median(ours), statistics.median(twin)) for name, (ours, twin) in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--features", default="")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if choice.compiled is None:
        print("nothing is compiled here", file=sys.stderr)
        return 1
    choice.compiled.restrict_to(tuple(name for name in arguments.features.split(",") if name))
    before: dict[str, Any] = machine()
    found: Found = {}
    print(choice.describe())
    print("| kernel | words a row | in C | NumPy twin | twin over C |\n| --- | --- | --- | --- | --- |")
    slower = []
    for words in SIZES:
        found[words] = compare(words, arguments.repetitions)
        for name, (ours, twin) in found[words].items():
            print(f"| {name} | {words} | {1e6 * ours:,.1f} µs | {1e6 * twin:,.1f} µs | {twin / ours:.2f} |", flush=True)
            slower += [name] * (ours > SLOWER * twin)
    print("slower than the twin: " + (", ".join(slower) or "none"))
    if arguments.json:
        families = {family: [name for name, _ in of(SIZES[0])] for family, of in FAMILIES.items()}
        result = {"machine": before, "repetitions": arguments.repetitions, "families": families, "seconds": found}
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
