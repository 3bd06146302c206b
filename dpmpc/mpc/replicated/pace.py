"""What the replicated engine's work takes on this machine, from counts of gates and parts and a pace measured on a few
thousand words; no network."""

import functools
import math
import time
from collections.abc import Callable

import numpy as np

from dpmpc.circuits.program import Layer
from dpmpc.lazy import dataclass
from dpmpc.mpc.native.layers import ProductLayer, Slots, add_sources
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.replicated.layout import SharingLayout

MESSAGE_SECONDS = 20e-6  # of one message at its sender and its receiver together, over loopback; measured 15..30
_AT = (5, 2)  # (n, t) that the pace is taken at
_GATES, _WORDS = 128, 256
_PAIR = 35e-6  # seconds of a pair of parts: it is listed, and a program written that adds masks; measured 25..45
_XORS = 10  # parts' words in XORs for one AND's; counted 5.1 at n = 3, 10.3 at n = 9
_MASK_BITS = 61  # of each mask: that many ANDs add it
_PLANES = 64 + _MASK_BITS  # words of a mask for 64 lanes, as numbers and as planes


@dataclass(frozen=True)
class Pace:
    """Seconds of one core for a word: `product`, of two parts; `linear`, of a part in a XOR; `mask`, of a stream."""

    product: float
    linear: float
    mask: float


@dataclass(frozen=True)
class Gates:
    """One evaluation's: ANDs, and slots of wires that are held at once."""

    ands: int
    slots: int

    def grown(self, at: int, other: "Gates", other_at: int, masks: int) -> "Gates":
        """On the line through these, with `at` masks, and those with `other_at`, at `masks` masks."""
        share = (masks - at) / (other_at - at)
        return Gates(
            round(self.ands + share * (other.ands - self.ands)), round(self.slots + share * (other.slots - self.slots))
        )


def parts_held(parties: int, threshold: int) -> int:
    """The parts of one share."""
    return math.comb(parties - 1, threshold)


def seconds_of(gates: Gates, words: int, parties: int, threshold: int) -> float:
    """Seconds of one core for what a party does with `words` words of lanes."""
    pace, parts = replicated_pace(), parts_held(parties, threshold)
    products = math.comb(parties, threshold) ** 2 / parties
    streams = parts * (parties - threshold)
    each = products * pace.product + _XORS * parts * pace.linear + streams * pace.mask
    return gates.ands * words * each


def seconds_before(parties: int, threshold: int) -> float:
    """Seconds of one core for what a party does once."""
    return math.comb(parties, threshold) ** 2 * _PAIR


def bytes_of(gates: Gates, words: int, parties: int, threshold: int) -> int:
    """Of one batch of `words` words of lanes, at a party: wires, and masks."""
    return 8 * words * parts_held(parties, threshold) * (gates.slots + _PLANES)


def hopeless(parties: int, threshold: int) -> str:
    """What a single sample would take, at the least, where there are more parts than anybody can compute with."""
    parts, products = parts_held(parties, threshold), math.comb(parties, threshold) ** 2 // parties
    ands = _MASK_BITS * (math.comb(parties, threshold) - 1)  # only to add the masks
    seconds = ands * (products * round(replicated_pace().product * 1e15)) // 10**15
    return f"a sample would take {_about(seconds)} s of a core and {_about(8 * ands * parts)} bytes at each party"


def _about(number: int) -> str:
    digits = str(number)
    return digits if len(digits) < 4 else f"{digits[0]}.{digits[1]}e+{len(digits) - 1}"


@functools.lru_cache(maxsize=1)
def replicated_pace() -> Pace:
    """This machine's. Cost: a few milliseconds of measuring, once a process."""
    layout = SharingLayout.of(*_AT)
    parts, pairs = len(layout.mine(0)), layout.products(0)
    slots = Slots(4 * _GATES, parts, _WORDS)
    slots.state[...] = 1
    out, left, right = (np.arange(k * _GATES, (k + 1) * _GATES, dtype=np.int32) for k in (1, 2, 3))
    none = {"random": _ints(0), "masks": _ints(0, 3), "given": _ints(0, 2)}
    xors = Layer(**none, xors=np.stack([out, 0 * out + 2, left, right], 1).reshape(-1), ands=_ints(0, 3))
    ands = Layer(**none, xors=_ints(0), ands=np.stack([out, left, right], 1))
    message = np.empty((_GATES, _WORDS), dtype=np.uint64)
    products, stream = ProductLayer(pairs), Prg.from_os()
    linear = _best(lambda: slots.run(xors, ()))
    product = _best(lambda: slots.run(ands, (), products, message=message))
    mask = _best(lambda: add_sources((stream.reserve((_GATES, _WORDS)),), message))
    words = _GATES * _WORDS
    return Pace(product / words / sum(len(rights) for _, rights in pairs), linear / words / parts, mask / words)


def _best(body: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):  # the first warms up
        begin = time.perf_counter()
        body()
        best = min(best, time.perf_counter() - begin)
    return best


def _ints(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    return np.zeros(shape, dtype=np.int32)
