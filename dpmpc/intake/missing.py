"""Values that stand for none, as their owner stated: of all columns (`k.a.`, 999), or of one (`age=999`).

A number that stands for none is one in whatever way it is spelled and in columns of numbers too: 999, 999.0, 9.99e2.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpmpc.intake.reading import literal
from dpmpc.intake.scripts import both_small
from dpmpc.intake.spelling import MISSING, Spelling, bare, composed, ended, is_number
from dpmpc.intake.table import Column, Table, quoted

_TIMES = r"\s*(\d+)\s*[xX×]\s*(\d+[^\d/]*)"  # 120x80, as in Brazil


def without_codes(table: Table) -> Table:
    """The table, with NULL wherever a field stands for none by a number or by a word of its column alone."""
    if not table.spelling.missing:
        return table
    stated = list(_stated(table.spelling, table.names))
    return replace(table, columns=tuple(_without(table, column, stated) for column in table.columns))


def keeping(table: Table, lists: Mapping[str, Iterable[str]]) -> Table:
    """The table, in whose columns the words that are listed for them are values: NA too (Namibia, Napoli), and 85% or
    1,5 that the owner's spelling reads as numbers."""
    table = as_listed(table, lists)
    kept = [f"{name}={word}" for name, words in lists.items() for word in words if word.lower() in MISSING[1:]]
    return replace(table, spelling=replace(table.spelling, kept=(*table.spelling.kept, *kept))) if kept else table


def as_listed(table: Table, lists: Mapping[str, Iterable[str]]) -> Table:
    """The table, whose texts stay texts in columns for which words are listed that its spelling reads as numbers, or
    codes that zeros tell apart. Held as numbers they would be lost, and whether all fields are numbers is for no record
    to decide."""

    def reads(name: str, words: Iterable[str]) -> bool:
        spelling = table.spelling.of(name)
        words = tuple(words)
        return bool(ended(words)) or any(not is_number(word) and spelling.number(word) is not None for word in words)

    found = {composed(name) for name, words in lists.items() if reads(name, words)}
    if not found:
        return table
    columns = (replace(c, texts=True) if composed(c.name) in found else c for c in table.columns)
    return replace(table, columns=tuple(columns))


def as_stated(table: Table) -> Table:
    """The table as its owner stated that its columns are: with NULL where a field stands for none, two columns of a
    column of pairs, dates in place of numbers of eight digits, and texts in columns of words and of times of day."""
    apart = without_codes(_in_halves(table))
    columns = tuple(_as_words(apart, _as_dates(apart, column)) for column in apart.columns)
    return _named(replace(apart, columns=columns))


def _in_halves(table: Table) -> Table:
    """The table with two columns in place of each of pairs. A field with digits and without just one slash, or one x
    (120x80) between digits, stays as it is in both, with a slash: it is read as no number, and counted."""
    stated = table.spelling.pairs
    if not any(composed(column.name) in stated for column in table.columns):
        return table
    columns = list[Column]()
    for column in table.columns:
        if composed(column.name) not in stated or column.kind != "text":
            columns.append(column)
            continue
        text = f"replace(CAST({column.sql} AS VARCHAR), '／', '/')"
        for k in (1, 2):
            half = f"split_part({text}, '/', {k})"
            times = f"regexp_extract({text}, {literal(_TIMES)}, {k}, 's')"
            odd = f"CASE WHEN regexp_matches({text}, '\\pN') THEN concat({text}, '/') ELSE {text} END"
            sql = (
                f"(CASE WHEN regexp_full_match({text}, '[^/]*/[^/]*', 's') THEN {half} "
                f"WHEN regexp_full_match({text}, {literal(_TIMES)}, 's') THEN {times} ELSE {odd} END)"
            )
            columns.append(replace(column, name=f"{column.name} ({k})", sql=sql, type="VARCHAR"))
    return replace(table, columns=tuple(columns))


def _as_dates(table: Table, column: Column) -> Column:
    """A column of dates that are written as one number, as texts with signs between their parts."""
    if composed(column.name) not in table.spelling.yyyymmdd or column.kind not in ("number", "text"):
        return column
    text = f"regexp_replace(CAST({column.sql} AS VARCHAR), '\\.0+$', '')"
    for digits, written in (("", ""), ("(\\d\\d)(\\d\\d)", " \\4:\\5"), ("(\\d\\d)(\\d\\d)(\\d\\d)", " \\4:\\5:\\6")):
        pattern = f"^\\s*(\\d{{4}})(\\d\\d)(\\d\\d){digits}\\s*$"
        text = f"regexp_replace({text}, '{pattern}', '\\1-\\2-\\3{written}')"
    return replace(column, sql=text, type="VARCHAR")


def _named(table: Table) -> Table:
    """The table in which each column is a name, as what is asked of different values needs it."""
    if table.parsed or all(column.sql == quoted(column.name) or "(" not in column.sql for column in table.columns):
        return table
    named = [f"{column.sql} AS {quoted(column.name)}" for column in table.columns]
    along = [table.along] if table.along else []
    columns = tuple(replace(column, sql=quoted(column.name)) for column in table.columns)
    return replace(table, columns=columns, relation=f"(SELECT {', '.join(named + along)} FROM {table.relation})")


def _as_words(table: Table, column: Column) -> Column:
    if column.type.upper() in ("TIME", "TIME_NS"):
        return replace(column, sql=f"CAST({column.sql} AS VARCHAR)", type="VARCHAR")
    if not table.worded(column.name) or column.kind not in ("number", "date"):
        return column
    text = f"regexp_replace(CAST({column.sql} AS VARCHAR), '^(-?\\d+)\\.0+$', '\\1')"
    return replace(column, sql=text, type="VARCHAR")


def frame_without_codes(frame: Mapping[str, Any], spelling: Spelling) -> dict[str, Any]:
    """The same of columns of a frame that are floats (n,): NaN. Columns of texts stay, as they are read by a table."""
    stated, found = list(_stated(spelling, tuple(frame))), dict(frame)
    for name, values in frame.items():
        codes = _numbers(stated, name, spelling)
        if codes and isinstance(values, np.ndarray) and values.dtype.kind == "f":
            found[name] = np.where(np.isin(values, codes), np.nan, values)
    return found


def _stated(spelling: Spelling, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each column that has a word of its own, "" for all of them, with the word."""
    spelled = {composed(name): name for name in names}
    for word in spelling.missing:
        cuts = ((word[:k].strip(), bare(word[k + 1 :])) for k, sign in enumerate(word) if sign == "=")
        yield next(((spelled[of], rest) for of, rest in cuts if rest and of in spelled), ("", word))


def _numbers(stated: list[tuple[str, str]], name: str, spelling: Spelling) -> list[float]:
    own = spelling.of(name)
    read = (own.number(word) for of, word in stated if of in ("", name))
    return sorted({value for value in read if value is not None})


def _without(table: Table, column: Column, stated: list[tuple[str, str]]) -> Column:
    if column.kind not in ("text", "number", "date") or column.type == "BOOLEAN":
        return column
    tests = list[str]()
    if column.kind == "date":
        days = {table.spelling.days(word) for of, word in stated if of == column.name} - {None}
        listed = ", ".join(f"{value!r}::DOUBLE" for value in sorted(filter(None, days)))
        tests += [f"{table.days(column.name)} IN ({listed})"] if listed else []
    else:
        codes = ", ".join(f"{value!r}::DOUBLE" for value in _numbers(stated, column.name, table.spelling))
        tests += [f"{table.number(column.name)} IN ({codes})"] if codes else []
    words = ", ".join(literal(each) for of, word in stated if of == column.name for each in both_small(word))
    if words and column.kind == "text":
        tests.append(f"lower({table.text(column.name)}) IN ({words})")
    return replace(column, sql=f"(CASE WHEN {' OR '.join(tests)} THEN NULL ELSE {column.sql} END)") if tests else column
