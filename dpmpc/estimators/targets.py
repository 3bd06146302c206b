"""Targets as an owner has them: quantities, whose texts are read by the spelling that was stated, and labels, whose
texts are compared as those of files are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.estimators.errors import EstimatorError, EstimatorRecordError
from dpmpc.estimators.frames import TARGET, Frame, column_of, gone
from dpmpc.intake.profile import look
from dpmpc.intake.spelling import Spelling, bare, composed, stating
from dpmpc.intake.table import Floats, some, value_sql
from dpmpc.records.derive import check_spelled
from dpmpc.records.draft import MOST_CLASSES
from dpmpc.records.loading import opened


def quantities(y: Any, name: Any, columns: Frame, spelling: Spelling) -> Floats:
    """(n,) the numbers that targets are or spell, NaN where one is missing and stated to count as a zero vector.

    `name`: of the targets, where they have one. `columns`: of the records, of which the same error says how they are
    spelled. Errors: targets of another kind; EstimatorRecordError for texts that are spelled otherwise than was stated,
    and for a target that is missing or no finite number.
    """
    values = column_of(y)
    if values.dtype.kind == "b":
        values = values.astype(np.float64)
    if values.dtype.kind == "O":
        values = _read(values, _called(name, columns), columns, spelling)
    elif values.dtype.kind != "f":
        raise EstimatorError(f"targets of a regression are numbers; these have {values.dtype}; convert them")
    wrong = ~np.isfinite(values)
    _check_there(wrong, "targets are finite numbers", "are none", spelling)
    found: Floats = np.where(wrong, np.nan, values)
    return found


def labels(y: Any, spelling: Spelling) -> tuple[Any, NDArray[np.bool_]]:
    """((n,) labels, (n,) which of them are there): texts without space around them and in Unicode's form C, as texts of
    files are compared, all else as it is. Errors: EstimatorRecordError for one that is missing and not stated to count
    as a zero vector."""
    values = np.asarray(y)
    if values.dtype.kind in "fM":
        absent = np.isnan(values) if values.dtype.kind == "f" else np.isnat(values)
    elif values.dtype.kind == "O":
        absent = np.array([gone(value) for value in values], dtype=bool)
    else:
        absent = np.zeros(len(values), dtype=bool)
    if values.dtype.kind in "OU" and all(isinstance(value, str) for value in values[~absent]):
        words = np.array(["" if away else composed(bare(v)) for v, away in zip(values, absent, strict=True)])
        absent |= np.array([spelling.is_missing(word) for word in words], dtype=bool)
        values = words if values.dtype.kind == "O" or (words != values).any() else values
    _check_there(absent, "labels are never missing", "are", spelling)
    if values.dtype.kind == "O" and absent.any():
        there = np.array(values[~absent].tolist())  # numbers and booleans without pandas' marks
        values = np.full(len(values), there[0] if len(there) else 0, dtype=there.dtype)
        values[~absent] = there
    return values, ~absent


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


def _read(values: Any, name: str, columns: Frame, spelling: Spelling) -> Floats:
    """Texts as numbers; NaN where one is missing, infinite where it is no number."""
    with opened({**columns, name: values}, spelling=spelling) as (table, _):
        if table[name].kind not in ("text", "number"):
            raise EstimatorError(f"targets of a regression are numbers; these are {table[name].type}; convert them")
        check_spelled(look(table, target=name)[0])
        return np.concatenate([each for (each,) in table.blocks([value_sql(table, name)])])
