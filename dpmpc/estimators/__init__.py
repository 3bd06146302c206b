"""scikit-learn estimators whose models are private: owners' gradients or models added up, with noise, by parties."""

import importlib
from typing import TYPE_CHECKING, Any

from dpmpc.records.scikit import scikit_learn

if TYPE_CHECKING:
    from dpmpc.estimators.linear import PrivateLogisticRegression
    from dpmpc.estimators.regression import PrivateRegressor, PrivateRidge
    from dpmpc.estimators.spending import PrivacyWarning

__all__ = ["PrivacyWarning", "PrivateLogisticRegression", "PrivateRegressor", "PrivateRidge"]

_HOMES = {
    "PrivacyWarning": "spending",
    "PrivateLogisticRegression": "linear",
    "PrivateRegressor": "regression",
    "PrivateRidge": "regression",
}


def __getattr__(name: str) -> Any:
    """A name on its first use: whoever imports the package alone does not import scikit-learn. Errors: UsageError where
    it is not installed."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    scikit_learn("dpmpc.estimators needs")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
