"""Dates and times of day of a database's texts, read by Python: each different text once, by its one meaning.

DuckDB asks for a text each time that a record has it; dates and times repeat, so what each reads as is remembered, for
as long as the connection is open.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from dpmpc.intake.calendars import clock_time
from dpmpc.intake.spelling import Spelling

if TYPE_CHECKING:
    import duckdb

DAYS, CLOCK = "written_days", "written_time"  # functions of a connection
LONGEST = 80  # characters of a date or a time of day
_KNOWN = 1 << 18  # texts whose reading is remembered


def way_of(spelling: Spelling) -> str:
    """What a spelling says of dates, as a text."""
    return json.dumps([spelling.dates, spelling.century, spelling.calendar, spelling.months])


def add_dates(connection: "duckdb.DuckDBPyConnection") -> None:
    """Gives a connection DAYS, of a text and a way of spelling, and CLOCK, of a text: NULL where it spells none."""

    @lru_cache(64)
    def read_by(way: str) -> Callable[[str], float | None]:
        dates, century, calendar, months = json.loads(way)
        spelling = Spelling(dates=dates, century=century, calendar=calendar, months=tuple(months))
        return lru_cache(_KNOWN)(spelling.days)

    read_time = lru_cache(_KNOWN)(clock_time)

    def days(text: str | None, way: str) -> float | None:
        return None if text is None else read_by(way)(text)

    def time(text: str | None) -> float | None:
        return None if text is None else read_time(text)

    for name, function, given in ((DAYS, days, 2), (CLOCK, time, 1)):
        connection.create_function(name, function, ["VARCHAR"] * given, "DOUBLE", null_handling="special")  # type: ignore
