"""A synthetic table says which of its columns have one value alone: a rare one may have been lost in noise."""

import numpy as np

from dpmpc.tables.synth import alone


def test_columns_of_one_value_are_named_and_others_are_not() -> None:
    values = {
        "age": np.array([1.0, 2.0, 3.0]),
        "flag": np.array([0.0, 0.0, np.nan]),
        "word": np.array(["a", "a", None], dtype=object),
        "two": np.array(["a", "b", None], dtype=object),
        "none": np.array([np.nan, np.nan, np.nan]),
    }
    (line,) = alone(values)
    assert "flag, word, none" in line and "age" not in line and "two" not in line
    assert not alone({name: values[name] for name in ("age", "two")})
    assert not alone({"flag": np.array([0.0])})
