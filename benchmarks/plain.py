"""The slow baseline: Box-Muller and Laplace noise as one writes them today with MPyC's own fixed-point arrays.

Everything is MPyC 0.11 as released: its secret-shared random bits, its products with probabilistic truncation, its
default statistical security of 2^-30 an opening. Parties are real processes. The uniform is normalised by its leading
one, the logarithm is a polynomial, the square root Newton's iteration, sine and cosine are polynomials.

    python -m dpmpc.benchmarks.plain [count]
"""

import math
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from dpmpc.mpc.loopback import run_parties
from dpmpc.mpc.session import Session

FRACTION_BITS = 32
_DEGREE = 8
_NEWTON = 20  # from 1/4 to 1/sqrt(L): half again as large each time, then quadratic
_LOG = (0.5, 1.0)
_QUADRANT = (0.0, math.pi / 2)


@dataclass(frozen=True)
class PlainCost:
    """What `count` samples cost, connection and start-up excluded."""

    law: str
    count: int
    seconds: float
    bytes_sent: int  # by the party that sends most
    variance: float  # of the opened samples, for scale 1

    @property
    def rate(self) -> float:
        """Samples a second."""
        return self.count / self.seconds


def polynomial(function: Any, interval: tuple[float, float], x: Any) -> Any:
    """Chebyshev's approximation of the function on the interval, at secret x, by Horner's rule."""
    fit = chebyshev.Chebyshev.interpolate(function, _DEGREE, domain=interval)
    coefficients = fit.convert(kind=np.polynomial.Polynomial).coef
    result = x * float(coefficients[-1]) + float(coefficients[-2])
    for c in coefficients[-3::-1]:
        result = result * x + float(c)
    return result


def minus_log_uniform(runtime: Any, number: Any, count: int) -> Any:
    """-ln U for `count` secret uniform U of FRACTION_BITS bits."""
    f = FRACTION_BITS
    bits = runtime.np_reshape(runtime.np_random_bits(number, f * count), (f, count))  # most significant first
    seen = bits  # becomes: bit i is the OR of bits 0 .. i
    step = 1
    while step < f:
        both = seen[step:] * seen[:-step]
        seen = runtime.np_concatenate((seen[:step], seen[step:] + seen[:-step] - both))
        step *= 2
    leading = runtime.np_concatenate((seen[:1], seen[1:] - seen[:-1]))
    uniform = runtime.np_matmul(2.0 ** -np.arange(1, f + 1), bits)
    up = runtime.np_matmul(2 ** np.arange(f), leading)
    places = runtime.np_matmul(np.arange(f), leading)
    return places * math.log(2) - polynomial(np.log, _LOG, uniform * up)


def square_root(x: Any) -> Any:
    """sqrt(x) for 0 < x < 48 by Newton's iteration for 1 / sqrt(x)."""
    y = x * 0.0 + 0.25
    for _ in range(_NEWTON):
        y = y * (1.5 - 0.5 * (x * y * y))
    return x * y


async def normals(runtime: Any, count: int) -> Any:
    """`count` secret standard normals by Box-Muller, as one MPyC array."""
    number = runtime.SecFxp(2 * FRACTION_BITS, FRACTION_BITS)
    pairs = -(-count // 2)
    radius = square_root(minus_log_uniform(runtime, number, pairs) * 2)
    bits = runtime.np_reshape(runtime.np_random_bits(number, FRACTION_BITS * pairs), (FRACTION_BITS, pairs))
    angle = runtime.np_matmul(2.0 ** -np.arange(1, FRACTION_BITS + 1) * math.pi / 2, bits)
    signs = runtime.np_random_bits(number, 2 * pairs) * 2 - 1
    cosine = polynomial(np.cos, _QUADRANT, angle) * signs[:pairs]
    sine = polynomial(np.sin, _QUADRANT, angle) * signs[pairs:]
    return runtime.np_concatenate((radius * cosine, radius * sine))[:count]


async def laplaces(runtime: Any, count: int) -> Any:
    """`count` secret Laplace numbers of scale 1, as one MPyC array."""
    number = runtime.SecFxp(2 * FRACTION_BITS, FRACTION_BITS)
    signs = runtime.np_random_bits(number, count) * 2 - 1
    return minus_log_uniform(runtime, number, count) * signs


BACKEND = "sharing"  # its sessions carry an MPyC runtime
LAWS = {"gaussian": normals, "laplace": laplaces}  # that MPyC users write; others have no baseline


async def _party(session: Session, law: str, count: int) -> tuple[float, int, float]:
    runtime = session.runtime
    runtime.options.sec_param = 30  # MPyC's default
    await runtime.output(runtime.SecInt(32)(1))  # all parties are here
    sent, begin = session.bytes_sent, time.perf_counter()
    values = await LAWS[law](runtime, count)
    await runtime.gather(values)
    seconds, sent = time.perf_counter() - begin, session.bytes_sent - sent
    opened = np.asarray(await runtime.output(values), dtype=np.float64)
    return seconds, sent, float((opened**2).mean())


def measure(law: str, count: int, parties: int = 3) -> PlainCost:
    """The cost of `count` samples of a law of `LAWS` among local parties."""
    results = run_parties(_party, parties, None, (law, count), backend=BACKEND)
    return PlainCost(law, count, max(r[0] for r in results), max(r[1] for r in results), results[0][2])


def main() -> None:
    """Print one line a law."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    for law in LAWS:
        cost = measure(law, count)
        print(
            f"{law:8} {count} samples: {cost.seconds:.2f} s, {cost.rate:.2f} a second, "
            f"{cost.bytes_sent / count:.0f} bytes a party and sample, mean square {cost.variance:.3f}"
        )


if __name__ == "__main__":
    from dpmpc.benchmarks import plain  # whose functions the parties can import

    plain.main()
