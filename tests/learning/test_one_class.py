"""Predictions that are one class for all are said to be."""

import numpy as np
import pytest

from dpmpc.learning.predict import Predictions


@pytest.mark.parametrize(
    ("said", "alone"),
    [(["no", "no", "no"], "no"), (["no", "yes", "no"], None), (["no"], None), ([1.5, 1.5], None)],
)
def test_one_class_for_all_is_found(said: list[object], alone: str | None) -> None:
    values = np.array(said, dtype=object if isinstance(said[0], str) else np.float64)
    assert Predictions({"y": values}, None).alone == alone
