"""Dates with years of the Republic of China, and Vietnamese times of day: read alike by SQL and Python, and said."""

import datetime
from pathlib import Path
from typing import Any

import pytest

from dpmpc.intake.calendars import clock_time
from dpmpc.intake.spelling import Spelling
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from tests.intake.test_abroad import looked_at
from tests.intake.test_other_countries import N, explored, noted, table

pytestmark = pytest.mark.usefixtures("small_tables")
DAY = datetime.date(2024, 3, 5)
FIELDS = {
    "113/03/05": DAY, "113.3.5": DAY, "113-03-05": DAY, "113年3月5日": DAY, "113/03/05 12:00": DAY,
    "99/12/31": datetime.date(2010, 12, 31), "1/1/1": datetime.date(1912, 1, 1), "88/02/29": None,
    "113/13/05": None, "11/13/12": None, "2024/03/05": None, "0/01/01": None, "400/01/01": None, "113/02/30": None,
}  # fmt: skip


@pytest.mark.parametrize("more", [{}, {"dates": "mdy", "century": 1930}, {"dates": "dmy", "century": 1930}])
def test_years_of_the_republic_of_china_are_read(more: Any, tmp_path: Path) -> None:
    spelling, texts = Spelling(calendar="minguo", **more), list(FIELDS)
    path = table(tmp_path, v=lambda k: k, day=lambda k: texts[k % len(texts)])
    with opened(CsvFile(path), spelling=spelling) as (found, _):
        rows = [row[0] for row in found.rows(found.days("day"))]
    for k, row in enumerate(rows):
        text = texts[k % len(texts)]
        day = FIELDS[text]
        assert row == spelling.days(text), text
        days = None if day is None else (day - datetime.date(1970, 1, 1)).days
        assert (None if row is None else int(row // 1)) == days, text
        assert row is None or (row % 1 == 0.5) == text.endswith("12:00")


def test_they_are_said_where_nothing_was_stated(tmp_path: Path) -> None:
    path = table(tmp_path, v=lambda k: k, day=lambda k: f"{98 + k % 16}/{1 + k % 12:02}/{1 + k % 28:02}")
    (note,) = (each for each in looked_at(path).notes if "'day'" in each)
    assert "years of the Republic of China" in note and "calendar='minguo'" in note
    read = explored(CsvFile(path), calendar="minguo")
    assert read["day"].kind == "date" and read["day"].unread == 0
    assert not [each for each in read.notes if "'day'" in each]
    codes = table(tmp_path, v=lambda k: k, code=lambda k: f"{100 + k % 16}/{k % 40 + 20}/{40 + k % 28}")
    assert not noted(codes, "Republic of China")


def test_vietnamese_times_of_day_are_read(tmp_path: Path) -> None:
    for text, minutes in {"14 giờ 30": 870, "14giờ30": 870, "0 giờ 05 phút": 5, "25 giờ 30": None}.items():
        found = clock_time(text)
        assert (None if found is None else round(1440 * found)) == minutes, text
    look = looked_at(table(tmp_path, v=lambda k: k, at=lambda k: f"{k % 24} giờ {k % 60:02}"))
    assert look["at"].kind == "time" and look["at"].unread == 0 and look["at"].present == N
