"""Dates and times of day as they are written, and days of other calendars than ours."""

import re
from typing import Literal

from dpmpc.intake.month_names import ENGLISH, WEEKDAYS
from dpmpc.intake.scripts import ERAS, FIRST, small, turned, western

Calendar = Literal["", "buddhist", "persian", "minguo"]
# The years of each calendar that are read, as of the years 1800 to 2253 or so; what is meant by others is not known.
YEARS: dict[str, tuple[int, int]] = {"buddhist": (2343, 2796), "persian": (1178, 1632), "minguo": (1, 342)}
OURS = {"buddhist": -543, "minguo": 1911}  # what makes our years of theirs
PERSIAN_EPOCH = 1075195  # so that the year 1349 begins on 1970-03-21

_DAY = r"(\d{1,2})"
_NORDIC = r"(?i:klo|kl\.?)"  # before a time of day whose minutes may follow a point
_AT = r"(?:(?i:klo|kl\.?|um|at|a las|alle ore|alle|ore|às|as|à|om|ve|в|о) +)?"
_ZONE = r"(?:UTC|GMT) ?[+-]\d{1,2}(?::?\d{2})?|Z|UTC|MES?Z|[A-Z]{2,4}T|[+-]\d{2}(?::?\d{2})?"
_CLOCK_WORD = r" ?(?i:uhr|hod\.?|hrs?\.?|hs\.?|uur|h|น\.?)"  # after one
TIME = (
    rf"(?:(?:[T:] *| +|, *){_AT}(\d{{1,2}})(?:[:.]| ?h ?)(\d{{2}})(?:[:.](\d{{2}})(?:[.,]\d+)?)?"
    rf"(?: *([AaPp])\.? ?[Mm]\.?)?(?:{_CLOCK_WORD})?(?: ?(?:{_ZONE}))?)?"
)
YEAR_WORD = r"(?: ?(?:[rгрж]\.|года|року|roku))?"  # for "year", in which Slavic dates end
_YEAR = rf"(\d{{4}}|\d{{2}}){YEAR_WORD}"
_TH = r"(?:st|nd|rd|th|er|º|°)?"

WORD = r"([^\x00-@\[-\x60\{-\x7f]{2,12})"  # letters, and all that is not ASCII: `MONTHS` decides
_NAMED = rf"((?i:{'|'.join(sorted(ENGLISH, key=len, reverse=True))}))\.?"
# The parts of a date, by name: read in RE2 (DuckDB) as in Python. "dby", "bdy": the month is a word. "era": a year of a
# Japanese era. "tháng": as in Vietnam. "roc": years of the Republic of China.
DATE_PATTERNS = {
    "ymd": (rf"(\d{{4}})[-/.年년] ?{_DAY}[-/.月월] ?{_DAY}[日일.]?{TIME}", ("y", "m", "d", "h", "i", "s", "half")),
    "roc": (rf"(\d{{1,3}})[-/.年] ?{_DAY}[-/.月] ?{_DAY}[日.]?{TIME}", ("y", "m", "d", "h", "i", "s", "half")),
    "dby": (
        rf"{_DAY}{_TH}[-/. ]*(?:of |de )?{WORD}\.?[-/., ]*(?:de |del )?{_YEAR}{TIME}",
        ("d", "m", "y", "h", "i", "s", "half"),
    ),
    "bdy": (rf"{_NAMED}[-/. ]*{_DAY}{_TH}[-/., ]+{_YEAR}{TIME}", ("m", "d", "y", "h", "i", "s", "half")),
    "dmy": (rf"{_DAY}[-/.] ?{_DAY}[-/.] ?{_YEAR}{TIME}", ("d", "m", "y", "h", "i", "s", "half")),
    "mdy": (rf"{_DAY}[-/.] ?{_DAY}[-/.] ?{_YEAR}{TIME}", ("m", "d", "y", "h", "i", "s", "half")),
    "ybd": (rf"(\d{{4}})\.?[-/. ]+{WORD}\.?[-/. ]*{_DAY}\.?{TIME}", ("y", "m", "d", "h", "i", "s", "half")),
    "tháng": (rf"{_DAY} tháng {_DAY},? (?:năm )?{_YEAR}{TIME}", ("d", "m", "y", "h", "i", "s", "half")),
    "era": (
        rf"({'|'.join(ERAS)})(\d{{1,2}}|{FIRST})年{_DAY}月{_DAY}日?{TIME}",
        ("e", "y", "m", "d", "h", "i", "s", "half"),
    ),
}
CLOCK = r"(\d{1,2})(?::| ?h ?)(\d{2})(?::(\d{2})(?:[.,]\d+)?)?(?: *([AaPp])\.? ?[Mm]\.?)?"
# In a time of day with a word beside it, what makes it one as CLOCK has it: h:mm.
SAID_CLOCKS = (
    rf"^{_NORDIC} +(\d{{1,2}})[.:](\d{{2}})(:\d{{2}})?$",
    rf"^(\d{{1,2}})[.:](\d{{2}})(:\d{{2}})?{_CLOCK_WORD}$",
    r"^([01]\d|2[0-3])([0-5]\d)(:\d{2})? ?(?i:hrs?\.?|h|uhr)$",  # 1430hrs
)
BEFORE_DATE = rf"^(?i:{'|'.join(WEEKDAYS)})[.,]* +"


def bare_date(text: str) -> str:
    """A text as it is held against these patterns."""
    plain = text.strip() if text.isascii() else turned(western(text, ".").strip())
    return plain if plain[:1] <= ":" else re.sub(BEFORE_DATE, "", plain, count=1)


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


def time_of(hour: str | None, minute: str | None, second: str | None, half: str | None) -> float | None:
    """The part of a day that these parts of a time of day say; None if there is no such time."""
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    if half is not None:
        if not 1 <= h <= 12:
            return None
        h = h % 12 + (12 if half in "Pp" else 0)
    return None if h > 23 or m > 59 or s > 60 else (h * 3600 + m * 60 + s) / 86400


def clock_time(text: str) -> float | None:
    """The part of a day that a time of day alone spells (13:45, 1:45 pm); None if it spells none."""
    plain = turned(western(text, ".").strip())
    for said in SAID_CLOCKS:
        plain = re.sub(said, r"\1:\2\3", plain, flags=re.ASCII)
    found = re.fullmatch(CLOCK, plain, re.ASCII)
    return None if found is None else time_of(*found.groups())


def month_of(text: str, months: dict[str, int]) -> int:
    """A number, as it stands or of a word; 0 for no month. Errors: ValueError."""
    return int(text) if text.isascii() and text.isdigit() else months.get(small(text), 0)
