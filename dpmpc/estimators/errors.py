"""What estimators raise: dpmpc's own errors, which are ValueErrors too, as scikit-learn's users expect."""

import contextlib
from collections.abc import Iterator
from typing import Any

from dpmpc.errors import RecordError, UsageError, owner_text, python_spelling


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
        kept: dict[str, Any] = {"code": error.code, "setting": error.setting}
        said = error.spelt(spelling)
        if isinstance(error, RecordError):
            raise EstimatorRecordError(owner_text(error, spelling), said, **kept) from error
        raise EstimatorError(said, **kept) from error


def spelling(name: str, value: str | None) -> str:
    """A setting as who fits an estimator writes it."""
    if name == "drop":
        return "X.drop(columns=...)" if value is None else f"X.drop(columns={value})"
    return python_spelling(name, value)
