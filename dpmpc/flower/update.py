"""A model's arrays as one vector, and back: what a client's training changed, what the mean of changes makes of a
model. Arrays of floating-point numbers alone; others (counters, say) stay as the server has them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpmpc.aggregation.plan.grid import Floats
from dpmpc.errors import UsageError

Arrays = Mapping[str, Any]  # of NumPy arrays, in the model's order


def numpy_arrays(record: Any) -> dict[str, Any]:
    """The arrays of a Flower ArrayRecord, by name."""
    return {name: array.numpy() for name, array in record.items()}


def is_floating(array: Any) -> bool:
    """Whether an array, of NumPy or Flower, holds floating-point numbers."""
    return np.issubdtype(np.dtype(array.dtype), np.floating)


def _floating(arrays: Arrays) -> dict[str, Any]:
    return {name: array for name, array in arrays.items() if is_floating(array)}


def dimension_of(arrays: Any) -> int:
    """How many numbers a model has: of an ArrayRecord, or of a mapping from names to NumPy arrays. What `prepare` asks
    for."""
    named = {name: array.numpy() if hasattr(array, "numpy") else array for name, array in arrays.items()}
    return int(sum(array.size for array in _floating(named).values()))


def change(before: Arrays, after: Arrays) -> Floats:
    """(d,) after - before, in double precision. Secret. Errors: UsageError where the two are not alike."""
    old, new = _floating(before), _floating(after)
    shapes = [{name: array.shape for name, array in arrays.items()} for arrays in (old, new)]
    if shapes[0] != shapes[1] or list(old) != list(new):
        raise UsageError(
            f"a client's reply must hold the model's arrays, {len(old)} of the same names, shapes and order; it holds "
            f"{len(new)} others; mend the ClientApp"
        )
    parts = [np.subtract(new[name], old[name], dtype=np.float64).ravel() for name in old]
    return np.concatenate(parts) if parts else np.empty(0)


def moved(arrays: Arrays, step: Floats) -> dict[str, Any]:
    """The model `arrays` moved by `step` (d,), in the precision that each array has."""
    result, at = dict(arrays), 0
    for name, array in _floating(arrays).items():
        part = step[at : at + array.size].reshape(array.shape)
        result[name] = np.add(array, part, dtype=np.float64).astype(array.dtype)
        at += array.size
    return result
