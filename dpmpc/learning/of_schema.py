"""What a schema, or the draft of one, says of records that nobody here has seen. Public."""

import itertools
from collections.abc import Iterator

from dpmpc.errors import UsageError
from dpmpc.learning.source import Invented
from dpmpc.records.schema import NOTHING_STOOD_OUT, Categorical, Classes, Date, Labels, Numeric, Range, Schema, Surveyed

_TEXTS = ("made up", "so too")
_DATES = ("2001-02-03", "2011-12-13", "2024-05-06")


def described(schema: Schema | None) -> Schema:
    """The schema. Errors: UsageError where a plan that needs one has none."""
    if schema is None:
        raise UsageError(
            "owners map their records by the plan's schema; this plan has none; plan again with <<schema>>",
            code="plan",
        )
    return schema


def surveyed_away(draft: Schema | None, schema: Schema) -> tuple[tuple[str, str], ...]:
    """The columns that a survey asked about and of which nothing stood out, so that they are not in the schema, each
    with that reason; () where there was none."""
    if draft is None:
        return ()
    known = {column.name for column in schema.columns}
    names = (*(column.name for column in draft.columns), *draft.unknown)
    return tuple((name, NOTHING_STOOD_OUT) for name in names if name not in known)


def invented_of(schema: Schema) -> Iterator[tuple[str, Invented]]:
    """What made-up records of this schema hold: (column, what its values lie between, or are one of)."""
    for part in itertools.chain(schema.columns, (schema.target,)):
        match part:
            case Numeric() | Range():
                yield part.name, (part.low, part.high)
            case Date():
                yield part.name, list(_DATES)
            case Categorical():
                yield part.name, list(part.values)
            case Surveyed():
                yield part.name, (part.low, part.high) if part.number else list(_TEXTS)
            case Classes():
                yield part.name, list(part.names)
            case Labels():
                yield part.name, [*part.codes, *([] if part.negative is not None else ["another"])]
    yield from ((name, list(_TEXTS)) for name in schema.unknown)
