"""Laplace noise as the logarithm of a uniform, on secret numbers: -ln U with a fair sign. Error bound:
docs/box-muller.md."""

import numpy as np
from numpy.typing import NDArray

from .approximation import Piecewise
from .fixed import PART_BITS, FixedEngine
from .uniform_function import uniform_function


async def log_laplace(fixed: FixedEngine, table: Piecewise, shift: int) -> NDArray[np.uint64]:
    """Shares in F_p of one Laplace number a lane, (1, lanes): x times the table's factor times
    2^(fraction_bits + PART_BITS - shift), rounded at random by less than C(n, t) / 2.

    Cost: `uniform_function` and one round.
    """
    sums = await uniform_function(fixed, table)
    return await fixed.dot_to_field(sums, shift, table.width - 1 + PART_BITS)
