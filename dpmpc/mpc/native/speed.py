"""Which kernels this process uses and how fast they are, to be compared with those of others: the slowest process of a
run is the speed of all."""

import functools
import struct
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version

import numpy as np

from dpmpc.circuits.program import Layer
from dpmpc.lazy import dataclass
from dpmpc.mpc.native import choice
from dpmpc.mpc.native.aes import KeyStream
from dpmpc.mpc.native.gf64 import GF64, WIDE
from dpmpc.mpc.native.layers import ProductLayer, Slots

_GATES, _WORDS, _VARIABLES = 64, 256, 4
_TIMES, _LONG = 5, 2e6  # so often at least, of which the first warms up, and for so many nanoseconds
_KINDS = ("products of bits", "key streams", "checks of products")
_PACES = struct.Struct("<3f")
_MOST_NAMES = 120  # bytes
_MOST_VERSION, _BETWEEN = 40, "\x1f"
MOST_SAID = _PACES.size + _MOST_NAMES
_FAR = 3.0  # times; less is what a busy machine shows
_WITHOUT = (  # measured: docs/native.md has the protocols
    f"no process has compiled kernels: with {choice.TWINS} noise takes 2 to 150 times as long, by the protocol, as "
    f"with kernels for AVX2 and AES; install dpmpc from its wheel or with a compiler; leave {choice.ENVIRONMENT} unset"
)


@dataclass(frozen=True)
class Kernels:
    """`names`: as `choice.describe`. `version`: of dpmpc. `pace`: by kind of work, nanoseconds of a core for a word of
    64 lanes. Public."""

    names: str
    pace: dict[str, float]
    version: str = ""

    def slower_than(self, other: "Kernels") -> float:
        """How many times as long as the other's these take, for the kind of work in which they differ most; below 1
        where they are faster in all."""
        return max(self.times(other))

    def times(self, other: "Kernels") -> list[float]:
        """The same of each kind of work."""
        return [mine / other.pace[kind] for kind, mine in self.pace.items()]

    def pack(self) -> bytes:
        """What another process is told."""
        said = f"{self.version[:_MOST_VERSION]}{_BETWEEN}{self.names}".encode()
        return _PACES.pack(*self.pace.values()) + said[:_MOST_NAMES]

    @staticmethod
    def unpack(payload: bytes | bytearray) -> "Kernels | None":
        """What `pack` packed; None for other bytes, which are no harm: nothing but a line in a log follows from it."""
        if not _PACES.size < len(payload) <= MOST_SAID:
            return None
        paces = _PACES.unpack(payload[: _PACES.size])
        said, between, names = bytes(payload[_PACES.size :]).decode(errors="replace").partition(_BETWEEN)
        if not between:
            return None
        if not all(0 < pace < float("inf") for pace in paces):
            return None
        return Kernels(_plain(names), dict(zip(_KINDS, paces, strict=True)), _plain(said)[:_MOST_VERSION])


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def versions(said: Mapping[str, Kernels | None]) -> dict[str, str]:
    """The version of dpmpc of each process, by name; "unknown" of one that did not say."""
    return {name: (kernels.version if kernels is not None else "") or "unknown" for name, kernels in said.items()}


def versions_line(found: Mapping[str, str]) -> str:
    """One line on the versions of all processes."""
    if len(set(found.values())) == 1:
        return f"versions: all {len(found)} processes run dpmpc {next(iter(found.values()))}"
    each = ", ".join(f"{name} runs dpmpc {said}" for name, said in found.items())
    return f"versions: {each}; the sources that derive are alike"


def compared(said: Mapping[str, Kernels | None]) -> str:
    """One line on processes, by name, whose kernels are others than the fastest one's or far slower, or on all of
    them where none has compiled ones; empty where there is nothing to say. The slowest party is the speed of all."""
    known = {name: kernels for name, kernels in said.items() if kernels is not None}
    if len(known) < 2:
        return ""
    first = min(known, key=lambda name: sum(known[name].pace.values()))
    best, found, others, slow = known[first], [], False, False
    for name, kernels in known.items():
        each = kernels.times(best)
        times = f"{min(each):.1f} to {max(each):.1f} times as long, by the kind of work"
        if kernels.names != best.names:
            found.append(f"{name} computes with {kernels.names}, and took {times}")
            others = True
        elif max(each) >= _FAR:
            found.append(f"{name} took {times}, with the same kernels")
            slow = True
    alike = _WITHOUT if {kernels.names for kernels in known.values()} == {choice.TWINS} else ""
    if not found:
        return alike and f"warning: {alike}"
    install = "; install dpmpc from its wheel or with a compiler where kernels are others" if others else ""
    why = "; with the same kernels its processor is slower, or was shared" if slow else ""
    return (
        f"warning: {'; '.join(found)}; {first} is the fastest, with {best.names}, in a test of some milliseconds; the "
        f"slowest party is the speed of all{install}{why}{alike and f'; {alike}'}"
    )


@functools.lru_cache(maxsize=1)
def kernels_in_use() -> Kernels:
    """This process's. Cost: some milliseconds of measuring, once."""
    slots, stream = Slots(3 * _GATES + 2, 2, _WORDS), KeyStream(bytes(16))
    slots.state[...] = 1
    out, left, right = (np.arange(k * _GATES + 2, (k + 1) * _GATES + 2, dtype=np.int32) for k in range(3))
    none = np.zeros((0, 3), dtype=np.int32)
    layer = Layer(none[:, 0], none, none[:, :2], none[:, 0], np.stack([out, left, right], axis=1))
    x, weights = stream.words((2, 8 * WIDE << _VARIABLES)), stream.words((8 * WIDE,))
    work: list[tuple[int, Callable[[], object]]] = [
        (_GATES * _WORDS, lambda: slots.run(layer, (), ProductLayer([(0, [0, 1]), (1, [0])]))),
        (_GATES * _WORDS, lambda: stream.words((_GATES, _WORDS))),
        (x[0].size, lambda: GF64.sums(x, x, _VARIABLES, weights)),
    ]
    paces = (1e9 * _best(job) / words for words, job in work)
    return Kernels(choice.describe(), dict(zip(_KINDS, paces, strict=True)), version("dpmpc"))


def _best(job: Callable[[], object]) -> float:
    """Seconds of a processor that the quickest of a few took: not how long it waited for one."""
    took = list[int]()
    while len(took) < _TIMES or sum(took) < _LONG:
        begin = time.process_time_ns()
        job()
        took.append(max(time.process_time_ns() - begin, 1))
    return min(took) / 1e9
