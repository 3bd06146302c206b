"""What is asked of the columns of a table at a look, before anything is concluded: counts, ends, words, units."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmpc.intake.batched import asked_of
from dpmpc.intake.numbers import EXACT, numbers_of, streamed_of
from dpmpc.intake.reading import count_where, only_where
from dpmpc.intake.table import Table
from dpmpc.intake.text_facts import counts_of, facts_of_texts, listed_words, odd_texts, units_of

MOSTLY = 0.6  # of the fields that are there
TOP = 1000  # values of a column that are counted
_AT_ONCE = 16  # columns a query, so that its plan stays small
_FIELDS = 400_000  # of texts that one query asks about together, or of _AT_ONCE columns
Fact = dict[str, Any]


def facts_of(table: Table, names: Sequence[str]) -> dict[str, Fact]:
    """What one scan says of some columns, each in words of its kind; of texts, one scan each of its different ones."""
    facts = dict[str, Fact]()
    rest, texts = (list(filter(lambda name: (table[name].kind == "text") is text, names)) for text in (False, True))
    for name, held in numbers_of(table, streamed_of(table, rest)).items():
        facts[name] = {"present": held.present, "numbers": held.finite, "whole": held.whole, "distinct": held.distinct}
        facts[name] |= {"least": held.least, "greatest": held.greatest}
    asked_for = [name for name in rest if name not in facts]

    def asked(one: Table, name: str) -> list[str]:
        return [sql for _, sql in _asked(one, name, table.n)]

    for name, found in asked_of(table, asked_for, asked, table.n).items():
        facts[name] = dict(zip((key for key, _ in _asked(table, name, table.n)), found, strict=True))
    _add_finite(table, [name for name in asked_for if table[name].kind == "number"], facts)
    at_once = max(_AT_ONCE, _FIELDS // max(1, table.n))
    for begin in range(0, len(texts), at_once):
        facts |= facts_of_texts(table, texts[begin : begin + at_once])
    _add_texts(table, texts, facts)
    listed = [name for name in texts if facts[name]["distinct"] <= 20 * TOP]
    listed += [name for name in rest if table[name].kind == "number" and facts[name]["distinct"] <= TOP]
    for name, counts in counts_of(table, listed, Table.text, most=TOP + 1).items():
        facts[name]["counts"] = counts
    return facts


def _add_finite(table: Table, names: Sequence[str], facts: Mapping[str, Fact]) -> None:
    """With how many numbers are finite, which are whole and the ends of these. Of most columns the ends say that all
    are: NaN is the greatest. Cost: one scan of the others, if there are any."""
    odd = list[str]()
    for name in names:
        fact = facts[name]
        fact["numbers"] = fact["present"]
        if fact["present"] and not (math.isfinite(fact["least"]) and math.isfinite(fact["greatest"])):
            odd.append(name)

    def asked(one: Table, name: str) -> list[str]:
        value = one.number(name)
        finite, value = f"isfinite({value})", only_where(f"isfinite({value})", value)
        return [count_where(finite), count_where(f"{value} = floor({value})"), f"min({value})", f"max({value})"]

    for name, found in asked_of(table, odd, asked, table.n).items():
        facts[name] |= dict(zip(("numbers", "whole", "least", "greatest"), found, strict=True))


def _add_texts(table: Table, names: Sequence[str], facts: Mapping[str, Fact]) -> None:
    """With the words for what is missing, units and fields that are not read, of the columns that have some."""
    words = listed_words(table, [name for name in names if facts[name]["likely"]])
    for name in names:
        facts[name]["words"] = words.get(name, {})
    units = units_of(table, [name for name in names if facts[name]["units"]])
    for name in names:
        fact = facts[name]
        there, fact["unit counts"] = fact["present"] - sum(fact["words"].values()), units.get(name, {})
        fact["read"] = next((kind for kind in ("number", "date") if MOSTLY * there <= fact[f"{kind}s"] < there), "")
    for kind in ("number", "date"):
        some = [name for name in names if facts[name]["read"] == kind and facts[name]["present"]]
        for name, counts in odd_texts(table, some, kind).items():
            facts[name]["odd texts"] = tuple(counts)


def _asked(table: Table, name: str, rows: int) -> Iterator[tuple[str, str]]:
    """Aggregates of a column of numbers or dates, by name."""
    column = table[name]
    sql = column.sql
    yield "present", f"count({sql})"
    yield "distinct", f"count(DISTINCT {sql})" if rows <= EXACT else f"approx_count_distinct({sql})"
    if column.kind == "number":
        value = table.number(name)
        yield from (("least", f"min({value})"), ("greatest", f"max({value})"))
        yield "whole", count_where(f"{value} = floor({value})")
    elif column.kind == "date":
        days = table.days(name)
        yield from (("first", f"min({days})"), ("last", f"max({days})"), ("dates", f"count({days})"))
