"""Elements of the wide field from Python's integers and back: the oracle of its arithmetic."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.numbers import wide


def from_ints(values: Any) -> wide.Wide:
    """Integers of any size and sign, an array-like (..., lanes), as elements."""
    objects = np.asarray(values, dtype=object) % wide.Q
    limbs = [objects >> wide.RADIX * k & (1 << wide.RADIX) - 1 for k in range(wide.LIMBS)]
    return np.stack([limb.astype(np.int64) for limb in limbs], axis=-2)


def to_ints(x: wide.Wide) -> NDArray[np.object_]:
    """The integers of least absolute value, as Python objects. For the oracle and for tests."""
    y = wide.canonical(x).astype(object)
    values = sum(y[..., k, :] << wide.RADIX * k for k in range(wide.LIMBS))
    return np.asarray(np.where(values > wide.Q // 2, values - wide.Q, values), dtype=object)
