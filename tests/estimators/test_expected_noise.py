"""What an estimator says of its noise before anything is spent."""

import warnings
from typing import Any

import numpy as np
import pytest

from dpmpc.estimators import PrivateLogisticRegression

FEW = {"bounds": (-4.0, 4.0), "classes": [0, 1]}
SURVEYED = {"classes": [0, 1]}


@pytest.mark.parametrize(
    ("records", "columns", "stated"), [(40, 3, FEW), (1000, 20, SURVEYED)], ids=["no survey", "a survey"]
)
def test_noise_that_swamps_the_signal_is_told_before_anything_is_spent(
    records: int, columns: int, stated: dict[str, Any]
) -> None:
    """Where warnings are errors, such a fit ends, and no other fit finds anything spent."""
    X = np.random.default_rng(1).normal(size=(records, columns))
    y, site = np.arange(records) % 2, np.arange(records) % 4 // 2
    model = PrivateLogisticRegression(epsilon=0.4, delta=1e-6, engine="clear", data_id="swamped", **stated)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="before anything is spent: noise will swamp the signal"):
            model.fit(X, y, owners=site)
    assert model.fit(X, y, owners=site).spent_.runs == 1
