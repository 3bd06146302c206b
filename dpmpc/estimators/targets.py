"""Targets as an owner has them: quantities, whose texts are read by the spelling that was stated, and labels, whose
texts are compared as those of files are."""

import decimal
import numbers
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import sayable, some
from dpmpc.estimators.errors import EstimatorError, EstimatorRecordError
from dpmpc.estimators.frames import TARGET, Frame, column_of
from dpmpc.intake.fields import field, gone, texts_of
from dpmpc.intake.profile import look
from dpmpc.intake.spelling import Spelling, bare, composed, stating
from dpmpc.intake.table import Floats, Ints, value_sql
from dpmpc.records.derive import check_spelled
from dpmpc.records.draft import MOST_CLASSES
from dpmpc.records.loading import opened


def quantities(y: Any, name: Any, columns: Frame, spelling: Spelling) -> Floats:
    """(n,) the numbers that targets are or spell, NaN where one is missing and stated to count as a zero vector.

    `name`: of the targets, where they have one. `columns`: of the records, of which the same error says how they are
    spelled. Errors: targets of another kind; EstimatorRecordError for texts that are spelled otherwise than was stated,
    and for a target that is missing or no finite number.
    """
    values = y if isinstance(y, np.ndarray) and y.dtype.kind == "O" and y.ndim == 1 else column_of(y)
    if values.dtype.kind == "b":
        values = values.astype(np.float64)
    if values.dtype.kind == "O":
        values = _each_by_itself(values, _called(name, columns), columns, spelling)
    elif values.dtype.kind != "f":
        raise EstimatorError(
            f"targets of a regression are numbers; these have {values.dtype}; convert them", code="type"
        )
    wrong = ~np.isfinite(values)
    _check_there(wrong, "targets are finite numbers", "are none", spelling)
    found: Floats = np.where(wrong, np.nan, values)
    return found


def labels(y: Any, spelling: Spelling) -> tuple[Any, NDArray[np.bool_]]:
    """((n,) labels, (n,) which of them are there): texts without space around them and in Unicode's form C, as texts of
    files are compared, all else as it is; of objects each by itself. Errors: EstimatorRecordError for one that is
    missing and not stated to count as a zero vector."""
    values = np.asarray(y) if hasattr(y, "__array__") else _objects(y)
    if values.dtype.kind in "fM":
        absent = np.isnan(values) if values.dtype.kind == "f" else np.isnat(values)
    elif values.dtype.kind in "OU":
        words = [composed(bare(v)) if isinstance(v, str) else _plain(v) for v in values]
        absent = np.array([v is None or (isinstance(v, str) and spelling.is_missing(v)) for v in words], dtype=bool)
        told = ["" if away else word for word, away in zip(words, absent, strict=True)]
        values = np.array(told) if values.dtype.kind == "U" else _objects(told)
    else:
        absent = np.zeros(len(values), dtype=bool)
    _check_there(absent, "labels are never missing", "are", spelling)
    return values, ~absent


def classes_in(values: Any) -> tuple[Any, list[int]]:
    """(the different labels, in order; how many records have each). Errors: EstimatorRecordError where texts and
    numbers stand beside each other, which have no order."""
    if values.dtype.kind != "O":
        seen, counts = np.unique(values, return_counts=True)
        return seen, [int(count) for count in counts]
    held = Counter(values.tolist())
    if len({isinstance(value, str) for value in held}) > 1:
        raise EstimatorRecordError(
            "labels are texts alone or numbers alone where their classes are read off them; y has both; state "
            "classes=, or write all labels alike",
            "an owner's labels are texts and numbers",
        )
    order = sorted(held)
    return np.array(order), [held[value] for value in order]


def codes_of(values: Any, classes: Sequence[Any]) -> tuple[Ints, Any]:
    """((n,) the place of each label among the classes, -1 for one that is none; the first such label, or None). Every
    label is compared by itself: 1, 1.0 and True are one, 1 and "1" are two."""
    places = {value: k for k, value in enumerate(classes)}
    if values.dtype.kind == "O":
        found = np.array([places.get(value, -1) for value in values], dtype=np.int64)
    else:
        different, which = np.unique(values, return_inverse=True)
        found = np.array([places.get(value, -1) for value in different.tolist()], dtype=np.int64)[which]
    unknown = np.flatnonzero(found < 0)
    return found, values[unknown[:1]].tolist()[0] if len(unknown) else None


def numbered(values: Any, classes: Any) -> bool:
    """Whether labels are numbers of classes that are texts, 0 to K - 1: `cross_val_predict(method="predict_proba")` and
    `VotingClassifier` number the labels by themselves, and expect these numbers in `classes_` and predictions."""
    texts = all(isinstance(each, str) for each in classes.tolist())
    whole = values.dtype.kind in "iu" and len(values) > 0
    return texts and whole and bool(values.min() >= 0) and bool(values.max() < len(classes))


def _objects(values: Iterable[Any]) -> Any:
    """(n,) the values as they are, none read by the others."""
    given = list(values)
    found = np.empty(len(given), dtype=object)
    found[:] = given
    return found


def _plain(value: Any) -> Any:
    """A label that is no text, as Python has it; None where it is missing; a text of what cannot be compared."""
    if gone(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, int | float | bool) else field(value)


def check_read_off(classes: Any) -> None:
    """Errors: classes as they are read off labels are too many, or differ in case or spaces only."""
    if len(classes) > MOST_CLASSES:
        raise EstimatorRecordError(
            f"classes that are read off the labels are at most {MOST_CLASSES}; there are {len(classes)}; fit "
            "PrivateRidge to a quantity, or state classes=",
            "classes that are read off labels are too many",
        )
    alike: dict[str, list[str]] = {}
    for value in (value for value in classes.tolist() if isinstance(value, str)):
        alike.setdefault(" ".join(value.casefold().split()), []).append(value)
    if double := [names for names in alike.values() if len(names) > 1]:
        raise EstimatorRecordError(
            f"classes are told apart by more than case and spaces; y has {some([repr(name) for name in double[0]], 4)};"
            " spell each class in one way",
            "classes of an owner's labels differ in case or spaces only",
        )


def _check_there(wrong: NDArray[np.bool_], rule: str, are: str, spelling: Spelling) -> None:
    """Errors: some targets are wrong, and not stated to count as zero vectors."""
    if wrong.any() and spelling.misfits != "zero":
        raise EstimatorRecordError(
            f"{rule}; {int(wrong.sum())} of {len(wrong)} {are}, the first in record {int(np.argmax(wrong)) + 1}; "
            f"correct or remove such records, or let them count as zero vectors: {stating(misfits='zero')}",
            f"{rule}; some owner's {are}",
        )


def _called(name: Any, columns: Frame) -> str:
    """What an error calls the targets."""
    return str(name) if name is not None and str(name) and str(name) not in columns else TARGET


def _each_by_itself(values: Any, name: str, columns: Frame, spelling: Spelling) -> Floats:
    """Numbers as they are, texts as they are read; NaN where one is missing, infinite where it is no number."""
    number = np.array([isinstance(v, numbers.Real | decimal.Decimal | np.bool_) and not gone(v) for v in values])
    found = np.full(len(values), np.nan)
    found[number] = [float(value) for value in values[number]]
    if not number.all():
        found[~number] = _read(texts_of(values), name, columns, spelling)[~number]
    return found


def _read(values: Any, name: str, columns: Frame, spelling: Spelling) -> Floats:
    """Texts as numbers; NaN where one is missing, infinite where it is no number."""
    with opened({**columns, name: values}, spelling=spelling) as (table, _):
        if table[name].kind not in ("text", "number"):
            raise EstimatorError(
                f"targets of a regression are numbers; these are {sayable(table[name].type)}; convert them",
                code="type",
            )
        check_spelled(look(table, target=name)[0])
        return np.concatenate([each for (each,) in table.blocks([value_sql(table, name)])])
