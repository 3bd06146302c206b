"""An expression that a query asks for several times stands in it once, and gives what it gave."""

import numpy as np
import pytest

from dpmpc.intake.hashing import bucket_sql
from dpmpc.intake.once import once, worked_out
from dpmpc.intake.reading import number_sql
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.table import code_sql, value_sql
from dpmpc.records.loading import opened

TEXTS = ["12,5", " 1.200,25 ", "03.02.2021", "13:45", "na", "", None, "x", "true", "١٢", "inf", "9 €", "-\t3"]
LONG = "length(concat(" + ", ".join(f"'{k}'" for k in range(40)) + ", a))"


def test_what_stands_twice_is_named_and_what_stands_once_or_is_short_stays() -> None:
    outer = once(f"{once(LONG)} + {LONG[:-1]}, b)")
    select, relation = worked_out(f"{outer} * {outer}, {once('a')}, {once('b + ' + LONG)}", "t")
    assert select == f'"(once 1.0)" * "(once 1.0)", a, b + {LONG}'
    within = f'"(once 0.0)" + {LONG[:-1]}, b)'
    assert relation == f'(SELECT *, {within} AS "(once 1.0)" FROM (SELECT *, {LONG} AS "(once 0.0)" FROM t))'


@pytest.mark.slow
@pytest.mark.parametrize("spelling", [Spelling(decimal=",", thousands=".", dates="dmy", units=("€",)), Spelling()])
def test_a_query_reads_each_text_once_and_as_before(spelling: Spelling, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings of all kinds of two columns, beside each other in one query and each alone in one that names nothing."""
    values = np.array(TEXTS, dtype=object)
    with opened({"a": values, "b": values[::-1].copy()}, spelling=spelling) as (table, _):

        def asked(name: str) -> list[str]:
            kinds = [value_sql(table, name, read=read) for read in ("number", "date", "time", "either")]  # type: ignore[arg-type]
            return [*kinds, bucket_sql(table, name, 64), code_sql(table, name, {"x": 0, "true": 1, "12.5": 2})]

        expressions = [*asked("a"), *asked("b")]
        alone = [[row[0] for row in table.rows(each)] for each in expressions]
        made = worked_out(", ".join(expressions), table.relation)
        for name in ("a", "b"):
            text = table.text(name)
            assert ", ".join(expressions).count(text) > 20 and sum(part.count(text) for part in made) == 0
        assert len(", ".join(made)) < 0.35 * len(", ".join(expressions))
        (together,) = list(table.blocks(expressions))
        for got, expected in zip(together, alone, strict=True):
            assert np.array_equal(np.asarray(got, float), np.array(expected, float), equal_nan=True)


def test_a_text_that_looks_like_a_mark_stays_a_text() -> None:
    """Levels come with a plan, from whoever wrote it: one that ended an expression's mark would become SQL here."""
    levels = ["/*}once*/", "/*once{*/", "/*}once*/ OR 1 = 1 --", "y" * 120]
    with opened({"a": np.array([*levels, "z"], dtype=object)}) as (table, _):
        code = code_sql(table, "a", {level: k for k, level in enumerate(levels)})
        counted = f"sum(CASE WHEN {once(code)} = 2 THEN 1 ELSE 0 END)"
        asked = ", ".join([*(f"{counted} + {k}" for k in range(3)), f"max({once(code)})"])
        assert table.rows(asked) == [(1, 2, 3, 3)]


@pytest.mark.parametrize("other", ["p", "s", "text", "bare", "hour"])
def test_a_column_may_be_called_as_a_part_of_a_date_or_a_text_is(other: str) -> None:
    """What is read of a column does not depend on the names of others."""
    spelling = Spelling(decimal=",", units=("€",), negative="parentheses")

    def read(beside: str) -> list[list[object]]:
        columns = {beside: np.array(["4 €"] * len(TEXTS), dtype=object), "a": np.array(TEXTS, dtype=object)}
        with opened(columns, spelling=spelling) as (table, _):
            kinds = [value_sql(table, "a", read=read) for read in ("number", "date", "time", "either")]  # type: ignore[arg-type]
            return [[str(row[0]) for row in table.rows(each)] for each in kinds]

    assert read(other) == read("z")


def test_what_is_left_of_a_text_without_its_unit_is_worked_out_once() -> None:
    """It stood in a query 122 times, and was worked out more than once a row."""
    asked = number_sql("a", Spelling(decimal=",", thousands=".", units=("€",), negative="parentheses"), loose=True)
    assert asked.count("regexp_") < 60
