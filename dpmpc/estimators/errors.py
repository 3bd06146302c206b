"""What estimators raise: dpmpc's own errors, which are ValueErrors too, as scikit-learn's users expect."""

import contextlib
from collections.abc import Iterator

from dpmpc.errors import UsageError


class EstimatorError(UsageError, ValueError):
    """A parameter or records that no fit can use."""


@contextlib.contextmanager
def as_value_errors() -> Iterator[None]:
    """Turns a UsageError raised within into an EstimatorError of the same text."""
    try:
        yield
    except EstimatorError:
        raise
    except UsageError as error:
        raise EstimatorError(str(error)) from error
