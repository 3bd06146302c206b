"""Days of other calendars than ours."""

from typing import Literal

Calendar = Literal["", "buddhist", "persian", "minguo"]
# The years of each calendar that are read, as of the years 1800 to 2253 or so; what is meant by others is not known.
YEARS: dict[str, tuple[int, int]] = {"buddhist": (2343, 2796), "persian": (1178, 1632), "minguo": (1, 342)}
OURS = {"buddhist": -543, "minguo": 1911}  # what makes our years of theirs
PERSIAN_EPOCH = 1075195  # so that the year 1349 begins on 1970-03-21


def persian_days(year: int, month: int, day: int) -> int | None:
    """The days from 1970-01-01 to a date of the Persian calendar, by its cycle of 33 years; None if there is no such
    date."""
    if not (1 <= month <= 12 and 1 <= day <= (31 if month < 7 else 30)):
        return None
    before = 31 * (month - 1) if month < 7 else 30 * (month - 1) + 6
    if before + day > _new_year(year + 1) - _new_year(year):
        return None
    return _new_year(year) + before + day - 1


def _new_year(year: int) -> int:
    """The days from 1970-01-01 to the first day of a year of the Persian calendar."""
    since = year + 1595
    return 365 * since + since // 33 * 8 + (since % 33 + 3) // 4 - PERSIAN_EPOCH
