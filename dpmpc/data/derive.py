"""A schema for a table: from public bounds where there are some, else from the records themselves ("data").

A schema read off the records is not covered by the privacy guarantee, and says so in `bounds`.
"""

import re
from collections.abc import Mapping as Given
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmpc.data.mapping import first_row
from dpmpc.data.schema import Categorical, Classes, Column, Labels, Missing, Numeric, Range, Schema, Target, Task
from dpmpc.data.spelling import canonical, is_number
from dpmpc.data.table import LONGEST_TEXT, Table, some, value_sql
from dpmpc.errors import UsageError

_MOST_CATEGORIES = 1000
_MOSTLY_NUMBERS = 0.9
MOST_CLASSES = 20  # a target of more whole numbers than that is a quantity
_DECIMAL_COMMA = re.compile(r"[+-]?[\d.]*\d,?\d*")
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d)([T ].*)?")
_WORDS = ("nan", "inf", "infinity")
PublicBounds = Given[str, list[float] | list[str]]


@dataclass(frozen=True)
class Asked:
    """What a user says of a table's columns."""

    target: str
    owners_column: str | None = None
    drop: Sequence[str] = ()
    task: Task | None = None
    positive: str | None = None
    intercept: bool = True
    missing: Missing = "fill"


def features_of(table: Table, asked: Asked) -> list[str]:
    """The columns that are features: all but the target, the owners' and those dropped. Errors: there are none."""
    for name in (asked.target, *([asked.owners_column] if asked.owners_column is not None else []), *asked.drop):
        table[name]
    if asked.target in asked.drop:
        raise UsageError(f"the target is what is predicted; --drop leaves '{asked.target}' out; drop other columns")
    if asked.owners_column == asked.target:
        raise UsageError(f"the target and the owners' column are two columns; both are '{asked.target}'; change one")
    features = [name for name in table.names if name not in {asked.target, asked.owners_column, *asked.drop}]
    if not features:
        raise UsageError(
            f"training needs features; {table.source} has no column besides target and owners; add columns"
        )
    for name in (*features, asked.target):
        if table[name].kind in ("date", "other"):
            raise UsageError(table.refusal(table[name]))
    return features


def schema_of_bounds(table: Table, asked: Asked, public: PublicBounds) -> Schema:
    """The schema of public bounds for the columns of this table, of which nothing else decides.

    Errors: a feature or the target has no bounds; a target's bounds do not suit the task.
    """
    features = features_of(table, asked)
    if absent := [name for name in (*features, asked.target) if name not in public]:
        raise UsageError(
            f"public bounds must cover every feature and the target; what was given lacks {some(absent, 8)}; add them,"
            " or leave such columns out with --drop"
        )
    # in the order of the bounds, which owners share; the order of a file's columns is each owner's own
    columns = tuple(_given(name, public[name]) for name in public if name in set(features))
    return Schema(columns, _given_target(asked, public[asked.target]), asked.intercept, asked.missing, "public")


def schema_of_records(table: Table, asked: Asked, features: list[str]) -> Schema:
    """A schema whose kinds, ranges, lists and classes are those of the table's records.

    A column is numeric if all its values are numbers, and else categorical. A target with two values is a label (+1 is
    `positive`, by default the greater number or the later text); one with some more texts has classes; one with more
    numbers is for ridge regression.
    Errors: columns that cannot be features, or a target that suits no task.
    """
    target = _target(table, asked)
    seen = survey(table, features)
    columns = tuple(_column(table, name, *seen[name]) for name in features)
    return Schema(columns, target, asked.intercept, asked.missing, "data")


def _given(name: str, entry: list[float] | list[str]) -> Column:
    if isinstance(entry[0], str):
        return Categorical(name, tuple(str(category) for category in entry))
    return Numeric(name, float(entry[0]), float(entry[1]))


def _given_target(asked: Asked, entry: list[float] | list[str]) -> Target:
    """Two texts are a label's classes, more are those of softmax regression. Two numbers are a range; but next to each
    other, as 0 and 1 are, or -1 and 1, a label's classes unless the task is ridge."""
    name = asked.target
    if isinstance(entry[0], str) and (asked.task == "softmax" or (asked.task is None and len(entry) > 2)):
        return Classes(name, tuple(str(value) for value in entry))
    if not isinstance(entry[0], str):
        low, high = float(entry[0]), float(entry[1])
        if asked.task == "ridge" or (asked.task is None and (low, high) not in ((0, 1), (-1, 1), (1, 2))):
            return Range(name, low, high)
        if asked.task == "softmax":
            raise UsageError(f"bounds of classes are a list of texts; '{name}' has numbers; write them as texts")
    elif len(entry) != 2 or asked.task == "ridge":
        raise UsageError(
            f"bounds of a label are its two values, of a numeric target [low, high]; '{name}' has"
            f" {str(entry)[:60]} for {asked.task or 'logistic'}; correct the bounds"
        )
    return _label(name, [canonical(str(value)) for value in entry], asked.positive)


def _label(name: str, classes: list[str], positive: str | None) -> Labels:
    """The label of two classes, the second of which is +1 unless `positive` says otherwise."""
    if positive is not None:
        if canonical(positive) not in classes:
            raise UsageError(
                f"the positive class is one of {classes[0]} and {classes[1]}; got '{positive}'; correct it"
            )
        classes = sorted(classes, key=lambda value: value == canonical(positive))
    return Labels(name, (classes[1],), (classes[0],))


def labels_of(table: Table, asked: Asked) -> Labels:
    """The two classes of a target, each held by two records at least: with one record changed there are the same two,
    or this refuses. Errors: other targets, such as a quantity (--task ridge)."""
    name = asked.target
    if record := first_row(table, table.missing(name)):
        raise UsageError(f"the target is never missing; '{name}' is in record {record}; remove such records")
    text = table.text(name)
    found = table.rows(f"{text} AS t, count(*)", f"GROUP BY 1 ORDER BY 1 LIMIT {_MOST_CATEGORIES}")
    held: dict[str, int] = {}
    for row in found:
        spelled = canonical(str(row[0]))
        held[spelled] = held.get(spelled, 0) + int(row[1])
    if len(held) != 2 or min(held.values()) < 2:
        what = f"has {len(held)}{' or more' if len(found) == _MOST_CATEGORIES else ''}"
        raise UsageError(
            f"a label has two values, each in two records at least; target '{name}' {what if len(held) != 2 else 'not'}"
            f" ({some(sorted(held), 6)}); choose a binary target, --task ridge for a quantity, or"
            " --task softmax for classes"
        )
    names = sorted(held, key=float) if all(map(is_number, held)) else sorted(held, key=str.encode)
    return _label(name, names, asked.positive)


def texts_of(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the columns that hold texts: two values at least that are no numbers. With one record changed the answer
    is the same, or this refuses. Errors: a column with one such value, which looks like a mistake."""
    seen = survey(table, [name for name in names if table[name].kind == "text"])
    for name, (_, odd, _, _) in seen.items():
        if odd == 1:
            text = table.rows(table.text(name), f"WHERE isinf({value_sql(table, name)}) LIMIT 1")[0][0]
            raise UsageError(
                f"a column holds numbers or texts; '{name}' has one value that is no number, '{str(text)[:30]}';"
                " correct it, leave it empty if it is missing, or leave the column out with --drop"
            )
    return tuple(name for name, (_, odd, _, _) in seen.items() if odd)


Seen = tuple[int, int, float | None, float | None]  # values that are there, of them no numbers; least and greatest


def survey(table: Table, names: Sequence[str]) -> dict[str, Seen]:
    """What one pass says of each column."""
    if not names:
        return {}
    parts = []
    for name in names:
        value = table.number(name)
        text = table[name].kind == "text"
        parts += [f"count({value})", f"min({value})", f"max({value})"]
        parts += [f"count(*) FILTER (WHERE {value} IS NULL AND NOT {table.missing(name)})" if text else "0"]
    row, seen = table.one(*parts), {}
    for k, name in enumerate(names):
        count, low, high, odd = row[4 * k : 4 * k + 4]
        present = count + odd
        if count and not (np.isfinite(low) and np.isfinite(high)):  # NaN is the greatest
            odd += table.one(f"count(*) FILTER (WHERE NOT isfinite({table.number(name)}))")[0]
        seen[name] = (present, odd, low, high)
    return seen


def _column(table: Table, name: str, present: int, odd: int, low: float | None, high: float | None) -> Column:
    where = f"column '{name}' of {table.source}"
    if not present:
        raise UsageError(f"a feature needs values; {where} is empty; leave it out with --drop")
    if not odd:
        assert low is not None and high is not None
        return Numeric(name, low, high)
    if table[name].kind == "number":
        raise UsageError(f"values are finite; {where} holds NaN or infinity; leave missing values empty")
    values = _distinct(table, name)
    shared = present - sum(count == 1 for count in values.values())
    distinct = sorted({canonical(text) for text in values}, key=str.encode)
    if wrong := [text for text in values if text.lower().lstrip("+-") in _WORDS]:
        raise UsageError(f"values are finite; {where} holds '{wrong[0]}'; leave missing values empty")
    if all(DATE.fullmatch(text) for text in values):
        raise UsageError(
            f"columns hold numbers or texts; {where} holds dates ('{distinct[0][:30]}'); make them numbers, such as"
            " days since a fixed day, or leave them out with --drop"
        )
    if all(_DECIMAL_COMMA.fullmatch(text) for text in values):
        comma = next((text for text in values if "," in text), next(iter(values)))
        raise UsageError(f"numbers have a decimal point; {where} has '{comma}'; save the file with points")
    if all(text.endswith("%") and is_number(text[:-1].strip()) for text in values):
        raise UsageError(f"numbers have no unit; {where} has '{distinct[0][:30]}'; write 0.05 or 5 for 5%")
    numbers = sum(count for text, count in values.items() if is_number(text))
    if numbers >= _MOSTLY_NUMBERS * present and len([text for text in distinct if is_number(text)]) > MOST_CLASSES:
        word = next(text for text in distinct if not is_number(text))
        raise UsageError(
            f"a column holds numbers or texts; {where} has {numbers} numbers and {present - numbers} other values, as"
            f" '{word[:30]}'; correct them, leave missing values empty, or leave the column out with --drop"
        )
    if len(distinct) > _MOST_CATEGORIES:
        raise UsageError(
            f"a categorical column has at most {_MOST_CATEGORIES} values; '{name}' has {len(distinct)}; leave it"
            " out with --drop"
        )
    if len(distinct) > 2 and 2 * shared < present:
        raise UsageError(
            f"a category is shared by several records; in {where} {present - shared} of {present} values are there"
            " once, and would be published as features; leave it out with --drop"
        )
    return Categorical(name, tuple(distinct))


def _distinct(table: Table, name: str) -> dict[str, int]:
    """The texts of a column that are there, and how often. Errors: texts too long to be categories."""
    text = table.text(name)
    longest, kinds = table.one(f"max(strlen({text}))", f"approx_count_distinct({text})")
    if longest is not None and longest > LONGEST_TEXT:
        raise UsageError(
            f"a field has at most {LONGEST_TEXT} bytes; column '{name}' of {table.source} holds one of {longest}; drop"
            " that column"
        )
    if kinds > 100 * _MOST_CATEGORIES:  # an estimate, good to a few percent
        raise UsageError(
            f"a categorical column has at most {_MOST_CATEGORIES} values; '{name}' has about {kinds}; leave it"
            " out with --drop"
        )
    found = table.rows(f"{text} AS t, count(*)", f"WHERE NOT {table.missing(name)} GROUP BY 1 ORDER BY 1")
    return {str(row[0]): int(row[1]) for row in found}


def _target(table: Table, asked: Asked) -> Target:
    name, task = asked.target, asked.task
    if row := first_row(table, table.missing(name)):
        raise UsageError(f"the target is never missing; '{name}' is in record {row}; remove such records")
    _, odd, low, high = survey(table, [name])[name]
    if task is None:
        if odd:
            task = "softmax" if has_classes(table, asked) else "logistic"
        else:
            task = "logistic" if _classes(table, name, asked) else "ridge"
    if task == "ridge":
        if odd:
            text = table.rows(table.text(name), f"WHERE isinf({value_sql(table, name)}) LIMIT 1")[0][0]
            raise UsageError(
                f"ridge needs a target of finite numbers; '{name}' holds '{str(text)[:40]}'; choose another target"
            )
        assert low is not None and high is not None
        if low == high:
            raise UsageError(f"a target must vary; '{name}' is always {low:g}; choose another target")
        return Range(name, low, high)
    if task == "softmax":
        found = _values(table, name)
        if not 2 <= len(found) <= MOST_CLASSES or min(found.values()) < 2:
            raise UsageError(
                f"classes are 2 to {MOST_CLASSES} values that records share; target '{name}' has {len(found)}, and its "
                f"rarest is there {min(found.values())} times; correct it, or choose another target"
            )
        return Classes(name, tuple(found))
    return _label(name, _two(table, name), asked.positive)


def has_classes(table: Table, asked: Asked) -> bool:
    """Whether a target is for softmax regression: it is asked for, or texts are more than two that records share."""
    if asked.task is not None or asked.positive is not None:
        return asked.task == "softmax"
    if not survey(table, [asked.target])[asked.target][1]:
        return False
    seen = _values(table, asked.target)
    return 2 < len(seen) <= MOST_CLASSES and min(seen.values()) > 1


def _classes(table: Table, name: str, asked: Asked) -> bool:
    """Whether a target of numbers is a label: it has two values at most. Errors: it may be classes or a quantity."""
    value = f"({table.number(name)} + 0.0)"
    few = [row[0] for row in table.rows(f"DISTINCT {value} AS v", f"ORDER BY v LIMIT {MOST_CLASSES + 1}")]
    if 2 < len(few) <= MOST_CLASSES and np.all(np.mod(few, 1) == 0):
        raise UsageError(
            f"a target of few whole numbers may be classes or a quantity; '{name}' has {len(few)}"
            f" ({some([f'{v:g}' for v in few], 6)}); say --task ridge for a quantity, or --task softmax for classes"
        )
    return len(few) <= 2


def _two(table: Table, name: str) -> list[str]:
    """The two classes of a label: numbers in their order, else texts in theirs. Errors: there are more, or one."""
    names = list(_values(table, name))
    if len(names) != 2:
        raise UsageError(
            f"a label has two values; target '{name}' has {len(names)}"
            f"{' or more' if len(names) == _MOST_CATEGORIES else ''} ({some(names, 6)}); choose a binary target, or"
            " ridge for a numeric one"
        )
    return names


def _values(table: Table, name: str) -> dict[str, int]:
    """How often each value of a column is there, at most _MOST_CATEGORIES of them: numbers in their order, else texts
    in theirs."""
    found = table.rows(f"{table.text(name)} AS t, count(*)", f"GROUP BY 1 ORDER BY 1 LIMIT {_MOST_CATEGORIES}")
    counts: dict[str, int] = {}
    for value, count in found:
        counts[canonical(str(value))] = counts.get(canonical(str(value)), 0) + int(count)
    names = sorted(counts, key=str.encode)
    return {value: counts[value] for value in (sorted(names, key=float) if all(map(is_number, names)) else names)}
