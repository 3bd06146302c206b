"""Box-Muller on secret numbers: z = sqrt(-2 ln U) cos(theta), sqrt(-2 ln U) sin(theta). Error bound:
docs/box-muller.md.

U is carried floating-like, so |z| reaches 9.4. The radius is one piecewise polynomial whose coefficients the bit
engine looks up; there is no logarithm and no square root inside MPC. The angle is the sum of t + 1 uniform angles,
each drawn by another party: any t parties miss one, so to them the sum is uniform, and its cosine and sine are
products of complex numbers.
"""

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .approximation import Piecewise
from .fixed import PART_BITS, FixedEngine
from .uniform_function import uniform_function


def unit_vectors(prg: Any, lanes: int, fraction_bits: int) -> NDArray[np.int64]:
    """(cos, sin) of uniform angles in the clear, (2, lanes): what one party draws from its private stream. Rounded
    to 2^-fraction_bits."""
    angle = (prg.words((lanes,)) >> np.uint64(11)).astype(np.float64) * (2 * math.pi * 2.0**-53)
    rounded = np.rint(np.ldexp(np.stack([np.cos(angle), np.sin(angle)]), fraction_bits))
    return np.asarray(rounded, dtype=np.int64)


async def box_muller(fixed: FixedEngine, table: Piecewise, shift: int) -> NDArray[np.uint64]:
    """Shares in F_p of two independent normals a lane, (2, lanes): z times the table's factor times
    2^(2 fraction_bits - shift), rounded at random by less than C(n, t) / 2.

    Cost: `uniform_function`, then t + 2 rounds: the radius, and two products for each of the t + 1 angles.
    """
    bits = table.fraction_bits
    largest = table.width - 1 + bits  # unit vectors exceed 1 by less than the table's margin
    vectors = await fixed.deal(functools.partial(unit_vectors, lanes=fixed.lanes, fraction_bits=bits), 2)
    sums = await uniform_function(fixed, table)
    (radius,) = await fixed.dot(sums, PART_BITS, table.width - 1 + PART_BITS)
    (c, s), *rest = vectors
    products = [[(radius, c)], [(radius, s)]]
    for c, s in rest:
        x, y = await fixed.dot(products, bits, largest)
        products = [[(x, c), (-y, s)], [(x, s), (y, c)]]
    return await fixed.dot_to_field(products, shift, largest)
