"""scikit-learn estimators whose models are private: owners' gradients or models added up, with noise, by parties."""

from typing import TYPE_CHECKING

from dpmpc.errors import NotInstalledError
from dpmpc.lazy import exports
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

# Whoever imports the package alone does not import scikit-learn.
__getattr__, __dir__ = exports(
    __name__, _HOMES, lambda: scikit_learn("dpmpc.estimators needs"), NotInstalledError
)
