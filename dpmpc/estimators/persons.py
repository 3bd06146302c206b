"""Whose each record is, where a fit promises persons: the ids, and the first records of each person at each owner.

Which records are kept is what `dpmpc train` keeps of the same records (`dpmpc.records.persons`).
"""

from typing import Any

import numpy as np

from dpmpc.errors import sayable
from dpmpc.estimators.errors import EstimatorError
from dpmpc.estimators.frames import is_frame
from dpmpc.estimators.spending import warn
from dpmpc.intake.fields import texts_of
from dpmpc.intake.table import Ints
from dpmpc.lazy import dataclass
from dpmpc.privacy.checks import check_count
from dpmpc.records.loading import opened
from dpmpc.records.ownership import KeptOwners
from dpmpc.records.persons import kept, persons_of, said_of

UNNAMED = "person"  # the column that a plan names, where ids come as an array


@dataclass(frozen=True)
class PersonPlaces:
    """The column's name, how many places each person has at an owner, and (n,) the number of each kept record's."""

    name: str
    rows: int
    numbers: Ints


def apart(X: Any, name: str | None) -> tuple[Any, Any]:
    """X without the column of persons, and that column's ids; None where X has none."""
    if name is None or not is_frame(X):
        return X, None
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    others = [other for other in names if str(other) != name]
    if len(others) == len(names):
        return X, None
    own = next(other for other in names if str(other) == name)
    return (X.select(others) if hasattr(X, "select") else X[others]), X[own]


def ids_of(estimator: Any, column: Any, given: Any, n: int) -> Any:
    """(n,) the ids of persons as texts, None where there is none; None where the promise is not of persons. `column`:
    the frame's, `given`: those of `fit`. Errors: both or none are here, or not one for each record."""
    if column is not None and given is not None:
        raise EstimatorError(
            f"ids of persons come once; X has a column {sayable(estimator.person)!r} and fit was given person= too; "
            "leave one "
            "out",
            code="together",
        )
    ids = given if column is None else column
    if ids is None:
        asked = estimator.neighbours == "person" or estimator.person is not None
        if asked or estimator.person_rows != 1 or estimator.person_owners:
            raise EstimatorError(
                "a promise of persons needs to know whose each record is; there are no ids; give fit(..., person=ids), "
                "or person= the name of a frame's column",
                code="missing",
            )
        return None
    shape = np.shape(ids) if hasattr(ids, "__array__") else (len(ids),)
    if shape != (n,):
        raise EstimatorError(
            f"person has one id for each record, shape ({sayable(n)},); got shape {sayable(shape)}; mend it",
            code="shape",
        )
    return texts_of(ids)


def first_of(
    ids: Any, groups: Ints, name: str | None, places: int, most: int | None = None
) -> tuple[Ints, PersonPlaces]:
    """The rows that are kept, in their order: the first of each person at each owner; and whose they are. A warning
    says how many are not used. `most`: at how many owners a person is at most, where that is said. Errors:
    EstimatorRecordError for a record without id, a person at more."""
    check_count("<<person_rows>>", places)
    column = name or UNNAMED
    with opened({column: ids, "(owner)": groups, "(row)": np.arange(len(ids))}) as (table, _):
        first = kept(table, KeptOwners(column, places, "(owner)", most))
        there = np.concatenate([rows for (rows,) in first.blocks([f"CAST({first['(row)'].sql} AS INTEGER)"])])
        persons = PersonPlaces(column, places, persons_of(first))
    if text := said_of(first.beyond, places):
        warn(text)
    return there.astype(np.int64), persons
