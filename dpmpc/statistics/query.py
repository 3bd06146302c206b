"""Lines and TOML tables to questions: checked against the columns, in the one spelling that is printed back.

`parse` makes a question of a line; `str` of it is its canonical form, which parses to the same question.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.intake.spelling import canonical, composed
from dpmpc.statistics.columns import OWNER, Columns
from dpmpc.statistics.kind import QUESTION_KINDS
from dpmpc.statistics.question import AskedQuestion, Setting
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.syntax import WrittenQuestion, read, text_of


def parse(text: str, columns: Columns, models: Sequence[str] = ()) -> AskedQuestion:
    """The question that a line asks. Errors: UsageError with a caret below what cannot be, and the nearest name."""
    w = read(text)
    reading = Reading(w, columns.or_owners(owners_in(w)), models)
    if w.what.text not in QUESTION_KINDS:
        names = QUESTION_KINDS.names()
        near = difflib.get_close_matches(w.what.text, names, 1, 0.5)
        way = f"did you mean '{near[0]}'?" if near else "choose one"
        reading.refuse(w.what, f"a question is one of {', '.join(names)}", way, "unknown")
    kind = QUESTION_KINDS[w.what.text]
    found, levels = kind.read(reading)
    by = reading.by(found)
    options: dict[str, Setting] = {}
    for option in w.options:
        name = option.name.text
        known = kind.option_of(reading, name)
        if known is None:
            way = f"it has {', '.join(kind.options)}" if kind.options else "it has none"
            reading.refuse(option.name, f"{w.what.text} must know its options", way, "unknown")
        options[name] = known.check(reading, option)
    if len(options) < len(w.options):
        reading.refuse(w.options[-1].name, "each option is given once", "leave one out")
    if len({"bins", "cuts"} & options.keys()) == 2 or len({"cells", "cuts"} & options.keys()) == 2:
        reading.refuse(w.options[-1].name, "cells come from bins, cuts or a scale", "leave the others out")
    query = AskedQuestion(w.what.text, found, levels, tuple(sorted(options.items())), by, reading.where(), w.weight)
    kind.check(reading, query)
    return query


def owners_in(written: WrittenQuestion) -> Iterator[str]:
    """The owners that a question names: in its condition, and as the one that others are held against."""
    for name, _, values in written.conditions:
        if composed(name.text) == OWNER:
            yield from (canonical(value.text) for value in values)
    yield from (canonical(each.value) for each in written.options
                if composed(each.name.text) == OWNER and isinstance(each.value, str))  # fmt: skip


def parse_all(
    asked: Sequence[str | Mapping[str, Any]], columns: Columns, models: Sequence[str] = ()
) -> tuple[AskedQuestion, ...]:
    """The questions of lines or TOML tables, each once; the weights of those that are asked twice add up. One question
    may stand alone."""
    found: dict[AskedQuestion, float] = {}
    for item in lines_of(asked):
        query = parse(item, columns, models)
        plain = query.weighing(1.0)
        found[plain] = found.get(plain, 0.0) + query.weight
    if not found:
        raise UsageError("statistics need a question; none was asked; ask for instance: count", code="missing")
    return tuple(query.weighing(weight) for query, weight in found.items())


def lines_of(asked: Sequence[str | Mapping[str, Any]]) -> list[str]:
    """Questions as lines. Errors: UsageError for what is no line and no table."""
    found = []
    for item in [asked] if isinstance(asked, str | Mapping) else asked:
        if not isinstance(item, str | Mapping):
            raise UsageError(
                f"a question is a line or a table; got {type(item).__name__}; write for instance count", code="type"
            )
        found.append(item if isinstance(item, str) else text_of(item))
    return found


def to_be_asked(columns: Columns, asked: Sequence[str | Mapping[str, Any]]) -> Columns:
    """The columns that these questions may name: as `Columns.or_owners`, with the owners that any of them names."""
    return columns.or_owners([name for line in lines_of(asked) for name in owners_in(read(line))])
