"""Questions that a generator writes about columns with hostile names, right and wrong ones: each is read and printed in
one form that asks the same, also from a plan, or is refused on three lines with a caret below what cannot be."""

import json
import random
from collections import Counter

from dpmpc.errors import UsageError
from dpmpc.statistics.columns import Category, Column, Columns, Quantity, category
from dpmpc.statistics.kind import QUESTION_KINDS
from dpmpc.statistics.query import parse
from dpmpc.statistics.tables import Tables
from dpmpc.statistics.where import word

_PIECES = [
    *"abzA019 _-.,;:=(){}[]\"'\\\n\t\r\x0b\x85\u2028\xa0\u200b\u0301éßıİ日本ª½²∞", "..", "by", "where", "and", "in",
    "or", "weight", "(missing)", "nan", "inf", "e5", "1_0", "0x1f", "+3",
]  # fmt: skip
_NUMBERS = (
    "0", "1", "20", "-0.5", "1e3", "1e-320", "1e400", "-0", "0.1", "0.30000000000000004", "12345678901234567890", ".5",
    "5.", "+3", "007", "nan",
)  # fmt: skip
_MODEL = "m"


def lines_hold(count: int, seed: int = 1) -> Counter[str]:
    """How many of so many lines were read, and refused. Errors: AssertionError for one that was read otherwise than it
    is printed; any other for one that broke the reader."""
    draw, found = random.Random(seed), Counter[str]()
    columns = _columns(draw)
    for k in range(count):
        if k % 20 == 0:
            columns = _columns(draw)
        line = _line(draw, columns)
        if draw.random() < 0.4:
            line = _broken(draw, line)
        found[_held(line, columns)] += 1
    return found


def _held(line: str, columns: Columns) -> str:
    try:
        query = parse(line, columns, (_MODEL,))
    except UsageError as error:
        _, shown, caret = str(error).split("\n")
        assert set(caret.strip()) == {"^"} and shown.startswith("  "), (line, str(error))
        return "refused"
    again = parse(str(query), columns, (_MODEL,))
    assert again == query and str(again) == str(query), (line, str(query))
    if query.what != "evaluate" and query.what != "table":  # tables may have more cells than a release
        tables = Tables.of(columns, [line])
        back = Tables.from_json(json.loads(json.dumps(tables.to_json())))
        assert back.queries == tables.queries and back.layout == tables.layout, line
    return "read"


def _columns(draw: random.Random) -> Columns:
    found: dict[str, Column] = {}
    while len(found) < 6:
        name = _text(draw)
        if len(found) % 2:
            levels = {_text(draw).strip() for _ in range(draw.randint(1, 4))}
            try:
                found[name] = category(name, sorted(levels - {""}))
            except UsageError:  # two are one spelling, or are what a cell is called
                continue
        else:
            low = draw.choice((0.0, -1.0, 18.0, 0.1))
            found[name] = Quantity(name, low, low + draw.choice((1.0, 5.0, 82.0, 1e6)))
    return Columns(tuple(found.values()))


def _text(draw: random.Random) -> str:
    return "".join(draw.choices(_PIECES, k=draw.randint(1, 6)))


def _line(draw: random.Random, columns: Columns) -> str:
    numbers = [word(c.name) for c in columns.columns if isinstance(c, Quantity)]
    groups = [c for c in columns.columns if isinstance(c, Category) and c.levels]
    what = draw.choice(QUESTION_KINDS.names())
    kind = QUESTION_KINDS[what]
    named = [word(c.name) for c in groups]
    pool = numbers if kind.numbers else named if kind.numbers is False else [*numbers, *named]
    parts = draw.sample(pool, min(len(pool), max(kind.least, draw.randint(0, min(kind.most, 3)))))
    if what == "km" and groups:
        parts = [draw.choice(numbers), word(draw.choice(groups).name)]
    if what in ("logit", "ordinal", "poisson") and groups:
        two = [word(c.name) for c in groups if len(c.levels) == 2 or (what == "ordinal" and len(c.levels) > 1)]
        first = draw.choice(numbers if what == "poisson" else two or named)
        rest = [part for part in pool if part != first]
        parts = [first, *draw.sample(rest, min(len(rest), draw.randint(1, 3)))]
    if what in ("cox", "hr") and groups:
        event = draw.choice(named)
        rest = [part for part in named if part != event] or named
        parts = [draw.choice(numbers), event, draw.choice(rest)]
    if what == "evaluate":
        parts = [_MODEL]
    if what == "quantiles":
        parts += draw.sample(("0.1", ".25", "0.5", "1e-5", "0.9", draw.choice(_NUMBERS)), draw.randint(0, 3))
    parts += [f"{name}={_value(draw, what, name, named)}" for name in kind.options if draw.random() < 0.3]
    line = what + (f"({', '.join(parts)})" if parts else "")
    if groups and draw.random() < 0.4:
        line += f" by {word(draw.choice(groups).name)}"
    asked = draw.sample(columns.columns, draw.randint(0, 2))
    conditions = [_condition(draw, column) for column in asked if isinstance(column, Quantity) or column in groups]
    line += f" where {' and '.join(conditions)}" if conditions else ""
    return line + (f" weight={draw.choice(('2', '0.5', '1', '1e-7', *_NUMBERS))}" if draw.random() < 0.2 else "")


def _value(draw: random.Random, what: str, name: str, groups: list[str]) -> str:
    match name:
        case "strata" if groups:
            return draw.choice(groups)
        case "cuts":
            return f"[{', '.join(draw.choices(_NUMBERS, k=draw.randint(1, 3)))}]"
        case "range":
            return draw.choice(("[0, 10]", "[-0.5, 1e3]", f"[{draw.choice(_NUMBERS)}, {draw.choice(_NUMBERS)}]"))
        case "strength":
            return draw.choice(("1.5", "2", "3", "10"))
        case "cells" if what == "hist":
            return draw.choice(("octaves", "log", "1"))
    return draw.choice(("16", "64", "17", "8", draw.choice(_NUMBERS)))


def _condition(draw: random.Random, column: Column) -> str:
    if isinstance(column, Quantity):
        low, high = draw.choice(_NUMBERS), draw.choice(_NUMBERS)
        return f"{word(column.name)} = {low}" if draw.random() < 0.3 else f"{word(column.name)} in {low}..{high}"
    chosen = [word(level) for level in draw.sample(column.levels, draw.randint(1, len(column.levels)))]
    return f"{word(column.name)} " + (f"= {chosen[0]}" if draw.random() < 0.5 else f"in {{{', '.join(chosen)}}}")


def _broken(draw: random.Random, line: str) -> str:
    for _ in range(draw.randint(1, 3)):
        at, to = sorted((draw.randint(0, len(line)), draw.randint(0, len(line))))
        line = draw.choice((
            line[:at] + line[at + 1 :], line[:at] + draw.choice(_PIECES) + line[at:], line[:at] + line[to:],
            line + line[at:],
        ))  # fmt: skip
    return line
