"""The grid: every number that enters MPC is a whole number of grid steps gamma = 2^-bits. Touches no network and no
file.

Normative rules, all in this module:

- An owner scales its vector by its public factor (1 with equal weights, n_j with weights n_j/n), and then rounds each
  coordinate to the nearest multiple of gamma, ties to even. Nothing is rounded or truncated after that.
- Sensitivity and noise live in grid steps of the opened integer sum; the aggregate is sum * gamma / divisor, with
  divisor m or n.
- An opened number must hold the sum and the noise, |sum| + |noise| <= what the backend's group holds, or the run is
  refused before it starts.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.privacy.unit import bits_for

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDEST = 2.0**30  # grid steps: what the samplers reach
_PIECE = 1 << 16  # numbers that are rounded at a time


@dataclass(frozen=True)
class Grid:
    """The multiples of gamma = 2^-bits; `bits` may be negative."""

    bits: int

    @property
    def step(self) -> float:
        """gamma."""
        return math.ldexp(1.0, -self.bits)

    def encode(self, values: Floats) -> Ints:
        """`values` in grid steps, rounded half to even. They must be finite and below 2^62 steps: ArithmeticError
        otherwise, our bug, before anything of them is shared."""
        flat = np.ascontiguousarray(values).reshape(-1)
        whole = np.empty(flat.size, dtype=np.int64)
        for start in range(0, flat.size, _PIECE):  # what is made on the way stays in a core's cache
            piece = slice(start, start + _PIECE)
            steps = np.ldexp(flat[piece], self.bits)
            np.rint(steps, out=steps)
            if not (np.abs(steps).max(initial=0.0) < 2.0**62):  # NaN is no number that is less
                raise ArithmeticError("a value must fit the grid")
            whole[piece] = steps
        return whole.reshape(values.shape)

    def decode(self, steps: Ints) -> Floats:
        """Grid steps as real numbers (exact up to 2^53 steps)."""
        return np.ldexp(steps.astype(np.float64), -self.bits)


def choose_grid(sensitivity: float, noise_ratio: float, dimension: int, norm: int = 2) -> Grid:
    """The coarsest grid on which rounding adds at most ROUNDING_SHARE to the sensitivity and the noise is NARROWEST
    steps wide.

    `sensitivity`: in the norm of the noise's law (1 or 2), of the sum of the owners' scaled vectors before rounding.
    `noise_ratio`: noise scale over that sensitivity.
    Errors: noise wider than WIDEST steps.
    """
    grid = Grid(bits_for(sensitivity, noise_ratio, dimension, norm))
    check_width(noise_ratio * sensitivity / grid.step)
    return grid


def check_width(scale_steps: float) -> None:
    """Errors: a noise scale, in grid steps, above WIDEST."""
    if scale_steps > WIDEST:
        raise UsageError(
            f"the noise scale may be at most 2^{math.log2(WIDEST):g} grid steps; it would be "
            f"2^{math.log2(scale_steps):.1f}; choose a larger epsilon, fewer iterations or a coarser grid "
            "(<<grid_bits>>)",
            code="range",
        )


def check_range(largest_sum: float, grid: Grid, owners: int, largest_noise: int, holds: int) -> None:
    """Errors: the sum of `owners` vectors, each coordinate at most `largest_sum` in total, and its noise could exceed
    the `holds` grid steps that an opened number holds."""
    largest = largest_sum / grid.step + owners / 2 + largest_noise
    if largest > holds:
        raise UsageError(
            f"a sum and its noise must stay below {holds:.3g} grid steps, which is what an opened number holds; they "
            f"could reach {largest:.3g}; choose a coarser grid (<<grid_bits>>), a smaller clip or <<radius>>, or "
            f"a larger "
            "<<lam>>",
            code="range",
        )
