"""The grid step: the unit in which laws live, and how fine it is where nobody says.

A law on the integers need not be the same law at another scale, so whatever is asked of it, an accounting question as
well as a run, is asked in grid steps. Here is how long a step is: what a run chooses, and what an account that is given
no grid takes, so that both ask the same question.
"""

import math

ROUNDING_SHARE = 0.005  # of the sensitivity: what rounding may add to it
NARROWEST = 2.0**12  # grid steps: noise scales below this would let the grid show
FINE = 2.0**30  # grid steps of a sensitivity on a grid so fine that rounding does not matter


def bits_for(sensitivity: float, noise_ratio: float, dimension: int, norm: int) -> int:
    """f of the coarsest grid of step 2^-f on which rounding adds at most ROUNDING_SHARE to the sensitivity and noise is
    NARROWEST steps wide. Arguments: as `aggregation.plan.grid.choose_grid`."""
    fine = dimension ** (1 / norm) / (ROUNDING_SHARE * sensitivity)
    wide = NARROWEST / (noise_ratio * sensitivity)
    return math.ceil(math.log2(max(fine, wide)))
