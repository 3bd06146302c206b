"""scikit-learn, which is not installed with dpmpc: estimators, its data sets and the ordinary pipeline need it."""

import importlib.util
from pathlib import Path

from dpmpc.errors import UsageError, sayable


def scikit_learn(what: str) -> Path:
    """The folder of scikit-learn, which is not imported. `what`: what needs it, with its verb. Errors: UsageError where
    it is not installed."""
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        raise UsageError(f"{sayable(what)} scikit-learn, which is not installed; pip install scikit-learn")
    return Path(found.origin).parent
