"""What estimators raise: dpmpc's own errors, which are ValueErrors too, as scikit-learn's users expect."""

import contextlib
from collections.abc import Iterator

from dpmpc.errors import RecordError, UsageError


class EstimatorError(UsageError, ValueError):
    """A parameter or records that no fit can use."""


class EstimatorRecordError(EstimatorError, RecordError):
    """Records that no fit can use, in words that may quote them."""


@contextlib.contextmanager
def as_value_errors() -> Iterator[None]:
    """Turns a UsageError raised within into an EstimatorError of the same text."""
    try:
        yield
    except EstimatorError:
        raise
    except UsageError as error:
        if isinstance(error, RecordError):
            raise EstimatorRecordError(str(error), error.public) from error
        raise EstimatorError(str(error)) from error
