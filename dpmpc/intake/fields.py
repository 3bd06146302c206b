"""Fields that are Python objects, each spelled as a text by itself: what stands in other fields changes nothing of it.

Columns of objects (dtype object of pandas and NumPy, lists, categories) have no type of their own. To find one in their
values would let one record decide how all others are read, so they are texts, as the fields of a CSV file are, and
numbers keep all their digits.
"""

import datetime
import decimal
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ABSENT = ("NoneType", "NAType", "NaTType")
_DAY = datetime.timedelta(days=1)
_NUMBERS = re.compile(r"(u?int|float|double|halffloat)\d*(\[pyarrow\])?")


def gone(value: Any) -> bool:
    """Whether a value is missing: None, NaN, and pandas' marks."""
    if type(value).__name__ in _ABSENT:
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating | decimal.Decimal) and bool(value != value)


def field(value: Any) -> str | None:
    """The text of one value; None where it is missing.

    A number has all its digits (of single precision those of the double that it is) and no more: 5.0 is 5; a length of
    time is a number of days, a date and a time are as ISO 8601 writes them (a moment with a zone in UTC, as columns of
    such are read), true and false small, bytes UTF-8. All else is what `str` makes of it.
    """
    if type(value) is str:
        return value if value.isascii() else _whole(value)
    if gone(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.timedelta64):  # which NumPy has among its integers
        return repr(float(value / np.timedelta64(1, "D")))
    if isinstance(value, int | np.integer):
        return _digits(int(value))
    if isinstance(value, float | np.floating):
        return repr(float(value)).removesuffix(".0")
    if isinstance(value, decimal.Decimal):
        return format(value, "f") if value.is_finite() and abs(value.adjusted()) < 400 else str(value)
    if isinstance(value, datetime.timedelta):
        return repr(value / _DAY)
    if isinstance(value, datetime.datetime):
        return _without_zone(value).isoformat(" ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.time):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, np.datetime64):
        return str(value).replace("T", " ")
    if type(value).__name__ == "Period":
        return field(value.to_timestamp())
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return _whole(str(value))


def texts_of(values: Iterable[Any]) -> NDArray[Any]:
    """(n,) the texts of values, as objects, None where one is missing. Cost: a look at each."""
    given = list(values)
    found = np.empty(len(given), dtype=object)
    found[:] = [field(value) for value in given]
    return found


def declared(values: Any) -> NDArray[Any]:
    """(n, ...) a column by what its type is declared to be: numbers, truth values, dates and lengths of time as NumPy
    has them, NaN or NaT where one is missing; all else, and what has no type (lists, objects, categories), as texts.

    values: an array, a list, or a column of pandas, Polars or Arrow. No value decides how another is read.
    """
    dtype = getattr(values, "dtype", getattr(values, "type", None))
    if dtype is None or not hasattr(values, "__array__"):
        return _as_texts(values if isinstance(values, str | bytes) else list(values))
    if isinstance(dtype, np.dtype):
        found = np.asarray(values)
        return _as_texts(found) if dtype.kind in "OUS" else found
    if getattr(dtype, "tz", None) is not None and hasattr(values, "dt") and hasattr(values.dt, "tz_convert"):
        return np.asarray(values.dt.tz_convert(None))
    word = str(dtype).lower()
    if word.startswith("decimal") or word in ("int128", "uint128"):
        given = values.to_list() if hasattr(values, "to_list") else values.to_pylist()
        return np.array([np.nan if gone(value) else float(value) for value in given], dtype=np.float64)
    if getattr(dtype, "kind", "") in ("i", "u", "f") and hasattr(values, "to_numpy"):  # of pandas, with marks
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    if _NUMBERS.fullmatch(word):
        return np.asarray(values, dtype=np.float64)
    if re.match(r"(date|timestamp|duration|timedelta|time64\[ns\]$)", word):
        found = np.asarray(values)
        return found if found.dtype.kind in "mM" else _as_texts(found)
    return _as_texts(np.asarray(values, dtype=object))


def _as_texts(values: Any) -> NDArray[Any]:
    """The texts of values of one dimension; others as they are, for whoever refuses their shape."""
    given = np.asarray(values, dtype=object) if isinstance(values, np.ndarray) else values
    if isinstance(given, np.ndarray) and given.ndim != 1:
        return given
    return texts_of(given)


def _without_zone(value: datetime.datetime) -> datetime.datetime:
    """A moment in UTC, without its zone; as it is written where UTC has no such year."""
    try:
        return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
    except (OverflowError, ValueError):
        return value.replace(tzinfo=None)


def _digits(value: int) -> str:
    """A whole number as it is written; of thousands of digits, which is no number of ours, in base sixteen."""
    return str(value) if value.bit_length() < 4096 else hex(value)


def _whole(text: str) -> str:
    """The text; of one that is none in Unicode, with `?` for the halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return str(text)
