"""All tests of a large sample against an exact law, at one stated rate of false alarms."""

import numpy as np
from numpy.typing import NDArray

from dpmpc.noise import goodness

FALSE_ALARM = 1e-9  # of each test


def alarms(samples: NDArray[np.int64], law: goodness.ExactLaw) -> dict[str, float]:
    """The tests that reject the samples, with their p-values."""
    outcomes = [
        goodness.chi_square(samples, law),
        goodness.residues(samples, law, 8),
        goodness.independence(samples, law),
        goodness.mean_and_variance(samples, law),
        goodness.repeats(samples, law),
    ]
    return {o.name: o.p_value for o in outcomes if o.p_value < FALSE_ALARM}
