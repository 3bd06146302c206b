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


def ints(*values: int) -> Any:
    return array("i", values)


def where(buffer: Any) -> tuple[int, int]:
    """(address, bytes)."""
    at, count = buffer.buffer_info()
    return at, count * buffer.itemsize


def body(made: bytes) -> tuple[int, int]:
    """(address, bytes) of what a bytes object holds."""
    return id(made) + bytes.__basicsize__ - 1, len(made)


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
    deposits = ((ints(2, 3), 0, (rows, *streams)), (ints(2, 3), 1, ()), (ints(4, 5), 1, (*streams, mask)))
    gates = ints(2, 2, 3, 4, 5, 3, 2, 3, 4), ints(2, 3, 4, 3, 4, 5), ints(0, 2, 0, 1, 1, 1, 0)
    secrets = [state, rows, mask] + ([schedule] if schedule is not None else [])

    def run() -> None:
        kernels.run_layer(state, shape, deposits, *gates, (mask, *streams), message, None)

    check(f"layer {level}", secrets, message, run)
    check(f"gather {level}", [state], out, lambda: kernels.gather(state, shape, ints(*range(SLOTS)), out))


def check_all(level: str) -> None:
    planes, numbers = words(61 * 19), words(64 * 19)
    check(f"transpose {level}", [planes], numbers, lambda: kernels.transpose(planes, numbers, 19))
    values, total = [words(600), words(600)], words(600)
    factors = array("Q", [3, 2**60 + 5])
    check(f"sum {level}", values, total, lambda: kernels.weighted_sum(tuple(values), factors, 7, total))
    if "aes" not in kernels.features():
        check_layers(level, None)
        return
    key, stream, made = array("B", range(16)), words(75), []
    check(f"schedule {level}", [key], lambda: body(made[0]), lambda: made.append(kernels.aes_schedule(key)))
    schedule = array("B", made[0])
    check(f"stream {level}", [schedule], stream, lambda: kernels.aes_words(schedule, 3, stream))
    check_layers(level, schedule)


table, secret = words(8), words(1)
check("control-branch here", [secret], secret, lambda: valgrind.branch_on(ctypes.c_void_p(where(secret)[0])))
check(
    "control-address here",
    [secret],
    secret,
    lambda: valgrind.read_at(ctypes.c_void_p(where(secret)[0]), ctypes.c_void_p(where(table)[0])),
)
everything = tuple(kernels.features())
for used in ((), tuple(f for f in everything if f != "avx2"), everything):
    kernels.restrict_to(used)
    check_all("+".join(used) or "portable")
