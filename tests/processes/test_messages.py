"""What processes of this machine say to each other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.processes.messages import dumps, loads


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.uint64).reshape(2, 3),
        np.arange(6)[::2],
        np.arange(6).reshape(2, 3).T,
        np.zeros((0, 3)),
        np.zeros((2, 0), dtype=np.int8),
        np.array(2.5),
        np.array([True, False]),
        np.arange(3, dtype=">i8"),
    ],
)
def test_arrays_survive(array: np.ndarray) -> None:
    back = loads(dumps({"x": [array]}))["x"][0]
    assert (back.dtype, back.shape) == (array.dtype, array.shape) and (back == array).all()
    assert back.flags.writeable


def test_values_survive_on_one_line() -> None:
    value: dict[str, Any] = {"a": [1, 2.5, None, True, "x\n"], "b": {"c": b"\x00\n\xff"}, "big": 1 << 70}
    assert loads(dumps(value)) == value and b"\n" not in dumps(value)
    assert loads(dumps({"p": Path("a/b"), "t": (1, 2), "n": np.int64(3)})) == {"p": "a/b", "t": [1, 2], "n": 3}


@pytest.mark.parametrize("value", [{1, 2}, object(), np.array([object()])])
def test_nothing_else_is_sent(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        dumps({"x": value})
