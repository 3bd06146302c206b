"""Dates and times of day of a table are read by the one function that reads them in Python, each different text once;
shares are read alike in SQL and in Python."""

import random
from collections import Counter
from unittest import mock

import numpy as np
import pytest

from dpmpc.intake import dates
from dpmpc.intake.calendars import clock_time
from dpmpc.intake.reading import clock_sql
from dpmpc.intake.spelling import Spelling
from dpmpc.records.loading import opened

SPELLINGS = (
    Spelling(), Spelling(dates="dmy", century=1950), Spelling(dates="mdy"), Spelling(calendar="persian"),
    Spelling(calendar="minguo"), Spelling(calendar="buddhist", dates="dmy"), Spelling(months=("brachmond=6",)),
)  # fmt: skip


def texts() -> list[str]:
    """Dates in many ways, and texts that are nearly dates."""
    draw = random.Random(7)
    found = ["", "x", "3.5", "1,234,567", "PID-0001-22", "\u4ee4\u548c\u51435\u67081\u65e5", "\u00b2\u00b2 5 2020"]
    words = ["May", "maja", "brachmond", "Mai", "\u00b2\u00b2", "lip"]
    for _ in range(600):
        y, m, d = draw.choice([0, 24, 113, 1403, 1999, 2021, 2567]), draw.randint(0, 13), draw.randint(0, 32)
        h, i, s = draw.randint(0, 25), draw.randint(0, 61), draw.randint(0, 61)
        date = draw.choice([
            f"{y:04d}-{m:02d}-{d:02d}", f"{d}.{m}.{y}", f"{m}/{d}/{y}", f"{d} {draw.choice(words)} {y}",
            f"{draw.choice(words)} {d}, {y}", f"Mon, {d}. {draw.choice(words)} {y}", f"{y}/{m:02d}/{d:02d}",
        ])  # fmt: skip
        time = draw.choice(["", f" {h:02d}:{i:02d}", f"T{h:02d}:{i:02d}:{s:02d}", f" {h}:{i:02d} pm", " um 13.45 Uhr"])
        found.append(date + time + draw.choice(["", "", "", "Z", " "]))
    return found


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_table_reads_dates_as_python_does(spelling: Spelling) -> None:
    some = texts()
    with opened({"t": np.array(some, dtype=object)}, spelling=spelling) as (table, _):
        got = [row[0] for row in table.rows(table.days("t"))]
    assert got == [spelling.days(text) for text in some]
    assert sum(value is not None for value in got) >= 20


def test_times_of_day_are_read_as_python_reads_them() -> None:
    some = ["13:45", "1:45 pm", "klo 13.45", "13.45 Uhr", "1430hrs", "25:00", "x", "1.5", "\uc624\ud6c4 1:45", "7h05"]
    with opened({"t": np.array(some, dtype=object)}) as (table, _):
        got = [row[0] for row in table.rows(clock_sql(table.text("t")))]
    assert got == [clock_time(text) for text in some] and sum(value is not None for value in got) == 7


def test_each_different_text_is_read_once_and_numbers_and_iso_dates_never() -> None:
    asked = Counter[str]()
    plain = Spelling.days

    def days(self: Spelling, text: str) -> float | None:
        asked[text] += 1
        return plain(self, text)

    some = [f"{1 + k % 28}.{1 + k % 12}.2021" for k in range(3000)] + [f"{k}.5" for k in range(100)] + ["2021-05-06"]
    with mock.patch.object(Spelling, "days", days):
        connection = dates_of_a_new_one()
        connection.execute("CREATE TABLE t AS SELECT unnest($1) AS t", [some])
        from dpmpc.intake.reading import days_sql

        way = days_sql("t", Spelling(dates="dmy"))
        for _ in range(3):
            (count,) = connection.execute(f"SELECT count({way}) FROM t").fetchone() or (0,)
        connection.close()
    assert count == 3001 and set(asked.values()) == {1} and len(asked) == len(set(some[:3000]))


def dates_of_a_new_one():  # type: ignore[no-untyped-def]
    import duckdb

    connection = duckdb.connect()
    dates.add_dates(connection)
    return connection


def test_what_interrupts_python_interrupts_a_query() -> None:
    with mock.patch.object(Spelling, "days", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        one = {"t": np.array(["1 May 2021"], dtype=object)}
        with opened(one, spelling=Spelling(months=("brach=6",))) as (table, _):
            table.rows(table.days("t"))


@pytest.mark.parametrize("decimal", [".", ","])
def test_shares_are_read_alike_with_a_sign_and_without(decimal: str) -> None:
    some = [
        "85%",
        "85 %",
        "0.85",
        "0,85",
        "8.5\u00a0%",
        "%85",
        "85",
        "1.234,5%",
        "% %",
        "x%",
        "-5%",
        "\u0668\u0665\u066a",
    ]
    between = "," if decimal == "." else "."
    spelling = Spelling(decimal=decimal, thousands=between, percents=("t",), units=("kg",))  # type: ignore[arg-type]
    for each in (spelling, Spelling(percents=("t",))):
        with opened({"t": np.array(some, dtype=object), "u": np.array(some, dtype=object)}, spelling=each) as (
            table,
            _,
        ):
            assert [row[0] for row in table.rows(table.number("t"))] == [each.of("t").number(text) for text in some]
            assert [row[0] for row in table.rows(table.number("u"))] == [each.of("u").number(text) for text in some]
            assert table.rows(table.number("t"))[0][0] == 0.85 and table.rows(table.number("u"))[0][0] is None
