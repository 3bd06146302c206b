"""Run under Valgrind by test_secrets: python poisoned.py LIBRARY EXTENSION. Every kernel on secrets that are poisoned
(poison.c); prints, for each, how many jumps or addresses depended on one, and whether its output does, which it must.

Bare Python, without NumPy: Valgrind is slow.
"""

import ctypes
import importlib.machinery
import importlib.util
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

library, extension = sys.argv[1:]
valgrind = ctypes.CDLL(library)
valgrind.found.restype = ctypes.c_uint
loader = importlib.machinery.ExtensionFileLoader("_kernels", extension)
spec = importlib.util.spec_from_loader("_kernels", loader)
assert spec is not None
kernels: Any = importlib.util.module_from_spec(spec)
loader.exec_module(kernels)

SLOTS, COMPONENTS, TILE, WORDS = 6, 2, 32, 43  # two tiles; whole vectors, one vector and single words in a row


def words(count: int) -> Any:
    return array("Q", [0x0123456789ABCDEF * (k + 1) % 2**64 for k in range(count)])


def below_p(count: int) -> Any:
    return array("Q", [value % (2**61 - 1) for value in words(count)])


def ints(*values: int) -> Any:
    return array("i", values)


def where(buffer: Any) -> tuple[int, int]:
    """(address, bytes)."""
    at, count = buffer.buffer_info()
    return at, count * buffer.itemsize


def body(made: bytes) -> tuple[int, int]:
    """(address, bytes) of what a bytes object holds."""
    return id(made) + bytes.__basicsize__ - 1, len(made)


def body_of(number: int) -> tuple[int, int]:
    """(address, bytes) of the digits of a Python number."""
    return id(number) + int.__basicsize__, sys.getsizeof(number) - int.__basicsize__


def check(
    name: str, secrets: Sequence[Any], output: Callable[[], tuple[int, int]] | Any, run: Callable[[], object]
) -> None:
    """Prints the name, the jumps and addresses that depended on a secret, and how many bytes of the output do."""
    for secret in secrets:
        at, size = where(secret)
        valgrind.poison(ctypes.c_void_p(at), ctypes.c_size_t(size))
    before = valgrind.found()
    run()
    after = valgrind.found()
    put = output() if callable(output) else where(output)
    tainted = valgrind.undefined_bytes(ctypes.c_void_p(put[0]), ctypes.c_size_t(put[1]))
    for at, size in (*map(where, secrets), put):
        valgrind.forgive(ctypes.c_void_p(at), ctypes.c_size_t(size))
    print(name, after - before, tainted, flush=True)


def check_layers(level: str, schedule: Any) -> None:
    """Loads, XORs, products and masks, from rows and from key streams; then what comes out."""
    state, rows, mask = words(2 * SLOTS * COMPONENTS * TILE), words(2 * WORDS), words(2 * WORDS)
    message, out = words(2 * WORDS), words(SLOTS * COMPONENTS * WORDS)
    shape = (SLOTS, COMPONENTS, TILE, WORDS)
    streams: tuple[Any, ...] = ((schedule, 5),) if schedule is not None else ()
    copy, kept = words(2 * WORDS), tuple(words(size) for size in (4 * WORDS, 4 * WORDS, 2 * WORDS))
    deposits = (
        (ints(2, 3), 0, (rows, *streams), False, None),
        (ints(2, 3), 1, (), False, None),
        (ints(4, 5), 1, (*streams, mask), True, copy),
    )
    gates = ints(2, 2, 3, 4, 5, 3, 2, 3, 4), ints(2, 4, 5, 3, 4, 5), ints(0, 2, 0, 1, 1, 1, 0)
    secrets = [state, rows, mask] + ([schedule] if schedule is not None else [])

    def run() -> None:
        own, others = ((0, mask),), tuple((k, stream) for k in range(2) for stream in streams)
        kernels.run_layer(state, shape, deposits, *gates, 1, own, others, message, (*kept, 0, True))

    check(f"layer {level}", secrets, message, run)
    check(f"gather {level}", [state], out, lambda: kernels.gather(state, shape, ints(*range(SLOTS)), out))


def check_fold(level: str) -> None:
    """The field of the check of ANDs: factors and weights are public coins, everything else is secret."""
    a, b, product, x, y, points = words(21), words(21), words(21), words(2 * 1024), words(2 * 1024), words(729)
    weights, factors, rows, none = words(16), words(64), words(64), memoryview(words(1))[:0]
    check(f"gf_multiply {level}", [a, b], product, lambda: kernels.gf_multiply(a, b, product))
    rights = ints(2, 0, 1, 1, 0)
    check(f"gf_sums_of_bits {level}", [x, y], points, lambda: kernels.gf_sums(x, y, rights, 6, weights, points))
    check(f"gf_sums {level}", [x, y], points, lambda: kernels.gf_sums(x, y, rights, 6, none, points))
    z, few = words(1024), words(27)
    check(f"gf_claim {level}", [z], rows, lambda: kernels.gf_claim(z, weights, rows))
    check(f"gf_fold_bits {level}", [x, y], few, lambda: kernels.gf_fold_bits(x, y, rights, factors, weights, 3, few))
    check(f"gf_fold {level}", [x], x, lambda: kernels.gf_fold(x, factors))
    coins, three = words(7), words(3)
    check(f"gf_weigh {level}", [a], three, lambda: kernels.gf_weigh(a, coins, three))


def check_numbers(level: str) -> None:
    """Arithmetic mod p: factors, constants and sizes are public."""
    x, y, more, out = below_p(3 * 43), below_p(3 * 43), below_p(43), words(43)
    shape = (3, 1, 43, 1, 1)
    check(f"dot {level}", [x, y, more], out, lambda: kernels.dot(x, y, more, out, *shape, 5, 7))
    c, wide = below_p(6), words(2 * 43)
    check(f"matrix {level}", [x], wide, lambda: kernels.matrix(c, x, wide, 2, 3, 43))
    rows = tuple(below_p(43) for _ in range(3))
    check(f"total {level}", rows, out, lambda: kernels.total(rows, out, 43))
    check(f"extract {level}", rows, wide, lambda: kernels.extract(rows, wide, 2, 43))
    check(f"column_sums {level}", [x], out, lambda: kernels.column_sums(x, out))
    check(f"continued {level}", [more, x], wide, lambda: kernels.continued(more, x, wide, 0, 3, 2))
    check(f"inverse_root {level}", [more], out, lambda: kernels.inverse_root(more, out))
    check(f"cut {level}", [x], x, lambda: kernels.cut(x))  # one jump: whether a word is p, once in 2^61
    at = words(27)
    u, v = below_p(8 * 43), below_p(8 * 43)
    check(f"points {level}", [u, v], at, lambda: kernels.points(u, v, at, 3, 43))
    made: list[int] = []
    check(f"inner {level}", [x, y], lambda: body_of(made[0]), lambda: made.append(kernels.inner(x, y)))


def check_transfers(level: str, schedule: Any) -> None:
    """Leaves' keys, corrections' masks and offsets are secret."""
    leaves, planes, sums, fixes, masks = (
        array("B", bytes(schedule) * 512),
        words(128 * 19),
        words(32 * 19),
        words(31 * 19),
        words(128),
    )
    none = memoryview(words(1))[:0]
    check(
        f"columns_chosen {level}", [leaves], planes, lambda: kernels.ot_columns(leaves, 4, 64, planes, sums, none, none)
    )
    check(
        f"columns_offered {level}",
        [leaves, masks],
        planes,
        lambda: kernels.ot_columns(leaves, 4, 64, planes, none, fixes, masks),
    )
    tweaks, offsets, strings = words(2 * (64 + 19)), words(4), words(2 * 2 * 64 * 19)
    check(
        f"hashes {level}",
        [planes, offsets],
        strings,
        lambda: kernels.ot_hashes(planes, schedule, tweaks, offsets, strings),
    )


def check_lifts(level: str) -> None:
    """Strings, choices and what is sent are secret; coefficients and numbers of planes are public."""
    first, second, choices, told = words(64 * 2 * 19), words(64 * 2 * 19), words(2 * 19), words(30 * 19)
    factors, sent, total = array("Q", [1 << 20, 5]), ints(26, 4), words(64 * 19)
    rows, bits = words(30 * 19), words(2 * 19)
    q0, q1 = (memoryview(each).cast("B").cast("Q", (64, 2, 19)) for each in (first, second))
    check(
        f"lifts_offered {level}",
        [first, second],
        rows,
        lambda: kernels.lifts_offered(q0, q1, factors, sent, total, rows, bits),
    )
    check(f"lifts_chosen {level}", [first], total, lambda: kernels.lifts_chosen(q0, factors, sent, total))
    check(
        f"lifts_finished {level}",
        [choices, told],
        total,
        lambda: kernels.lifts_finished(choices, told, factors, sent, total),
    )


def check_half_gates(level: str, schedule: Any) -> None:
    """Labels and Delta are secret, and what they decide: the lowest bits."""
    state, delta, tables, ends = words(6 * 160), words(2), words(2 * 2 * 160), words(160)
    base, other, bits, fixes, masks = words(200), words(200), words(100), words(160), words(160)
    script = ints(1, 1, 3, 2, 4, 5, 3, 1, 4, 2, 4, 5, 3, 4, 5)

    def run(random: tuple[Any, ...], given: Any) -> None:
        kernels.half_gates(
            state, (6, 160, 160), script, ints(2), schedule, (*random, 200, 8), masks, tables, ends, given
        )

    secrets = [base, other, bits, masks, delta]
    check(f"garble {level}", secrets, tables, lambda: run((base, other, bits, fixes), delta))
    check(f"evaluate {level}", [base, bits, masks], ends, lambda: run((base, None, bits, fixes), None))


def check_all(level: str) -> None:
    planes, numbers = words(61 * 19), words(64 * 19)
    check(f"transpose {level}", [planes], numbers, lambda: kernels.transpose(planes, numbers, 19))
    few, many = words(2 * 43), words(64 * 43)
    check(f"take_bits {level}", [many], few, lambda: kernels.transpose(many, few, 43))
    check(f"put_bits {level}", [few], many, lambda: kernels.transpose(few, many, 43))
    values, total = [words(600), words(600)], words(600)
    factors = array("Q", [3, 2**60 + 5])
    check(f"sum {level}", values, total, lambda: kernels.weighted_sum(tuple(values), factors, 7, total))
    key, texts, hashed = array("B", range(32)), array("B", bytes(300)), words(3)
    ends = array("Q", (7, 130, 300))
    check(f"hashes {level}", [key, texts], hashed, lambda: kernels.keyed_hashes(key, texts, ends, hashed))
    check_fold(level)
    check_numbers(level)
    check_lifts(level)
    if "aes" not in kernels.features():
        check_layers(level, None)
        return
    key, stream, made = array("B", range(16)), words(75), []
    check(f"schedule {level}", [key], lambda: body(made[0]), lambda: made.append(kernels.aes_schedule(key)))
    schedule = array("B", made[0])
    check(f"stream {level}", [schedule], stream, lambda: kernels.aes_words(schedule, 3, stream))
    check(
        f"added {level}", [schedule, values[0]], total, lambda: kernels.add_sources((values[0], (schedule, 3)), total)
    )
    check_layers(level, schedule)
    check_transfers(level, schedule)
    check_half_gates(level, schedule)


table, secret = words(8), words(1)
check("control-branch here", [secret], secret, lambda: valgrind.branch_on(ctypes.c_void_p(where(secret)[0])))
check(
    "control-address here",
    [secret],
    secret,
    lambda: valgrind.read_at(ctypes.c_void_p(where(secret)[0]), ctypes.c_void_p(where(table)[0])),
)
everything = tuple(kernels.features())
used_before: set[tuple[str, ...]] = set()
for left_out in (everything, ("aes", "pclmul"), ("avx2",), ("avx512",), ("vaes", "vpclmul"), ()):
    used = tuple(f for f in everything if f not in left_out)
    if used in used_before:
        continue
    used_before.add(used)
    kernels.restrict_to(used)
    check_all("+".join(used) or "portable")
