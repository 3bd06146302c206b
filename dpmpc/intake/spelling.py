"""How a value is spelled: what counts as missing, what as a number or a date, and which spellings are the same value.

What a field reads as depends on that field and on what was stated before anything was read (`Spelling`), never on other
fields. Texts only, so that a process that reads no records can check a schema without a database engine;
`intake.reading` says the same of numbers in SQL, and tests hold the two against each other.
"""

import codecs
import datetime
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, Literal, get_args

from dpmpc.errors import UsageError, sayable
from dpmpc.intake.calendars import (
    DATE_PATTERNS,
    OURS,
    WORD,
    YEARS,
    Calendar,
    bare_date,
    month_of,
    persian_days,
    time_of,
)
from dpmpc.intake.month_names import ENGLISH
from dpmpc.intake.scripts import BLANKS, ERAS, FIRST, MARKS, MONTHS_OF, both_small, small, western
from dpmpc.lazy import dataclass

MISSING = ("", "?", "na", "n/a", "null")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

Decimal = Literal[".", ","]
Thousands = Literal["", ",", ".", " ", "'"]
Order = Literal["", "dmy", "mdy"]
Negative = Literal["", "trailing", "parentheses", "triangle"]
Misfits = Literal["", "ask", "zero"]
# What a person types as a space or an apostrophe is one of several characters.
GAPS = {"": "", ",": ",", ".": ".", " ": " \u00a0\u202f\u2009", "'": "'\u2019"}
_EPOCH = datetime.date(1970, 1, 1)
COLUMNS = ("names", "other_decimal", "words", "yyyymmdd", "pairs", "percents")  # of `Spelling`: names of columns


_POWERS = r"(?<=m)[23](?!\d)|(?<=/)1[.,]73 ?(?=m)|(?<=[x×*])10[*^eE]?\d{1,2}(?=/)|(?<=[^\W\d_])-[123]$"  # in a unit
NO_CENTS = ("/-", ",-", ",--", ".-", ".--", ",\u2013", ".\u2013", ",\u2014", ".\u2014")  # at the end of a whole amount


def is_unit(text: str) -> bool:
    """Whether a word can be a unit of numbers: it has no digit or sign of one, but for powers (m2, l-1, x10^9/L,
    mL/min/1.73m2) and what ends a whole amount (`/-`, `,-`), and no comma, apostrophe or point at an end, but for the
    point of a word cut short (kr., Fr.)."""
    unit = "".join(sign for sign in text.strip() if unicodedata.category(sign)[0] != "M")  # vowels of Indian letters
    unit = unit if unit in NO_CENTS else re.sub(_POWERS, "", unit)
    return unit in NO_CENTS or bool(unit and not re.search(r"[\d+-]|^[.,']|[,']$|(^|[^\w.])\.$|\.\.$", unit))


_PER_CENT = "[%\uff05\u066a]"
SHARE = f"{_PER_CENT}[{GAPS[' ']}]*(.+)|(.+?)[{GAPS[' ']}]*{_PER_CENT}"  # for RE2 and Python alike


_BLANK = "".join(map(chr, (*range(9, 14), *range(28, 33), 133))) + BLANKS + MARKS


def bare(text: str) -> str:
    """The text without what is blank at its ends: spaces, and marks that have no width."""
    return text.strip() if text.isascii() else text.strip(_BLANK)


NUMBERED = r"column \d+"  # what columns without a name of their own are called


def numbered(place: int) -> str:
    """The name of a column that its file does not name, by its place from 1 on; NUMBERED fits it."""
    return f"column {place}"


def composed(text: str) -> str:
    """The text in Unicode's form C: an accent that a machine writes as a character of its own is part of its letter, as
    others write it, so that both are one value. Case is left as it is."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


@dataclass(frozen=True)
class Spelling:
    """How an owner's source spells its values: stated by the owner, private, and none of the schema's business.

    `decimal`, `thousands`: of numbers (a space or an apostrophe stands for all its variants; groups have three digits,
    and with commas the last alone may: 12,34,567 as in India). `dates`: the order of day and month where the year comes
    last; a year of four digits that comes first needs none, nor does a month that is a word.
    `calendar`: years are those of the Buddhist era or the Republic of China (113/03/05), or dates those of the Persian
    calendar (1403-02-15).
    `century`: two digits of a year mean one of the hundred years from this one on (None: they are not read).
    `missing`: more words, in any case, that mean that there is no value; `age=999` says so of one column, and of a
    column of numbers too. `units`: words before or after a number that do not belong to it. `negative`: how numbers
    below zero are marked besides a sign before them: "trailing" is 12-, "parentheses" (12), "triangle" △12. `encoding`:
    of text files ("" is UTF-8, or UTF-16 with its mark). `header`: the line of a text file that names its columns (0:
    the first that is not empty); what stands above is not read. `no_header`: the first line is a record, and columns
    are numbered; `names` says the same, and what they are called. `below`: how many lines below it are no records, such
    as one of units; `footer`: how many of the last lines that are not blank. `misfits`: what becomes of records whose
    target is missing or fits no class: "ask" refuses them before anything is spent, "zero" lets each count as the zero
    vector, which none of its values moves; "" is "zero" for an owner among others, "ask" where one process has all.
    `other_decimal`: columns whose numbers have the other decimal sign, and the other one of point and comma between
    thousands. `kept`: words that are values though they usually mean that there is none (NA for Namibia or Napoli);
    `country=NA` says so of one column. `words`: columns whose fields are words, though they look like numbers or dates
    (001, 0123). `yyyymmdd`: columns of dates that are written as one number (20240131, with a time 202401311259).
    `pairs`: columns with two numbers in a field, such as blood pressure (120/80, 120x80): two columns, `bp (1)` and `bp
    (2)`. `months`: names of months that are not known, or mean two in two languages, with their numbers (listopada=11).
    `names`: the keys of JSON objects that are columns (else those that many have), or the columns of a text file that
    does not name them. `percents`: columns of shares, in which 85% is 0.85, as a field without the sign says it.
    """

    decimal: Decimal = "."
    thousands: Thousands = ""
    dates: Order = ""
    century: int | None = None
    missing: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    encoding: str = ""
    misfits: Misfits = ""
    negative: Negative = ""
    header: int = 0
    other_decimal: tuple[str, ...] = ()
    footer: int = 0
    below: int = 0
    kept: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    calendar: Calendar = ""
    yyyymmdd: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    months: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    no_header: bool = False
    percents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kinds = {
            "decimal": Decimal,
            "thousands": Thousands,
            "dates": Order,
            "misfits": Misfits,
            "negative": Negative,
            "calendar": Calendar,
        }
        for name, kind in kinds.items():
            if getattr(self, name) not in get_args(kind):
                known = ", ".join(repr(value) for value in get_args(kind))
                raise UsageError(
                    f"<<{sayable(name)}>> is one of {sayable(known)}; got {sayable(getattr(self, name))!r}; choose "
                    "one of them",
                    code="choice",
                )
        if self.decimal == self.thousands:
            raise UsageError(
                f"<<decimal>> and <<thousands>> are two characters; both are {sayable(self.decimal)!r}; change one",
                code="unique",
            )
        if self.century is not None and not 1000 <= self.century <= 9899:
            raise UsageError(
                f"<<century>> is the first of a hundred years, such as 1930; got {sayable(self.century)}; correct it",
                code="range",
            )
        for unit in self.units:
            if not is_unit(unit):
                rule = "a unit is a word or sign without digits but for powers, such as kg or m2"
                raise UsageError(f"{sayable(rule)}; got {sayable(unit)!r}; correct <<units>>", code="type")
        for name in ("header", "below", "footer"):
            if (lines := getattr(self, name)) < 0:
                raise UsageError(
                    f"<<{sayable(name)}>> counts lines, none or more; got {sayable(lines)}; correct it", code="range"
                )
        if self.header and (self.names or self.no_header):
            raise UsageError(
                f"a line names the columns, or <<names>> or <<no_header>> say that none does; got <<header>> "
                f"{sayable(self.header)} too; leave one out",
                code="together",
            )
        for name in ("missing", "kept"):
            words = (composed(word if "=" in word else bare(word)) for word in getattr(self, name))
            words = (word if "=" in word else small(word) for word in words)
            object.__setattr__(self, name, tuple(dict.fromkeys(words)))
        if odd := next(
            (word for word in self.kept if word.rpartition("=")[2].strip().lower() not in MISSING[1:]), None
        ):
            raise UsageError(
                f"<<kept>> has words that mean that there is no value where nothing else is stated: "
                f"{sayable(', '.join(MISSING[1:]))}; got {sayable(odd)!r}; leave it out",
                code="unknown",
            )
        object.__setattr__(self, "units", tuple(dict.fromkeys(composed(unit.strip()) for unit in self.units)))
        months = (small(composed(bare(each))) for each in self.months)
        object.__setattr__(self, "months", tuple(dict.fromkeys(months)))
        if odd := next((each for each in self.months if not re.fullmatch(rf"{WORD}=(0?[1-9]|1[0-2])", each)), None):
            raise UsageError(
                f"<<months>> has words with numbers of months, such as listopada=11; got {sayable(odd)!r}; mend it",
                code="type",
            )
        for name in COLUMNS:
            object.__setattr__(self, name, tuple(dict.fromkeys(map(composed, getattr(self, name)))))
        if self.encoding:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise UsageError(
                    f"<<encoding>> is a name such as utf-8, cp1252 or latin-1; got {sayable(self.encoding)!r}; "
                    "correct it",
                    code="unknown",
                ) from None

    @property
    def plain(self) -> bool:
        """Whether numbers are read as `float` reads them and nothing else is."""
        more = self.thousands or self.units or self.negative or self.other_decimal or self.percents
        return self.decimal == "." and not more

    @property
    def among_others(self) -> "Spelling":
        """The same of an owner that takes part among others, whose values stop no run but by its word."""
        return replace(self, misfits="zero") if not self.misfits else self

    def of(self, column: str) -> "Spelling":
        """The spelling of a column's numbers."""
        if self.percents:
            shares = (column,) if composed(column) in self.percents else ()
            return replace(replace(self, percents=()).of(column), percents=shares)
        if composed(column) not in self.other_decimal:
            return self if not self.other_decimal else replace(self, other_decimal=())
        decimal: Decimal = "," if self.decimal == "." else "."
        between: dict[str, Thousands] = {",": ".", ".": ","}
        thousands = between.get(self.thousands, self.thousands)
        return replace(self, decimal=decimal, thousands=thousands, other_decimal=())

    def is_missing(self, text: str | None, column: str = "") -> bool:
        """Whether a text of a column without space around it means that there is no value."""
        return text is None or small(composed(text)) in self.markers(column)

    def markers(self, column: str) -> tuple[str, ...]:
        """The words of a column, in small letters, that mean that there is no value."""
        kept = {word.rpartition("=")[2].strip().lower() for word in self.kept if _says_of(word, column)}
        return (
            *(word for word in MISSING if word not in kept),
            *(each for word in self.missing for each in both_small(word)),
        )

    def number(self, text: str) -> float | None:
        """The finite number that a text spells; None if it spells none."""
        text = composed(bare(text))
        found = self._signed(text)
        return self._signed(western(text, self.decimal).strip()) if found is None and not text.isascii() else found

    def _signed(self, text: str) -> float | None:
        """With a plain sign or none: a share by its sign of per cent, as it stands, without its unit, or in parentheses
        with one."""
        if self.percents and re.search(_PER_CENT, text):
            share = re.fullmatch(SHARE, text, re.DOTALL)
            found = None if share is None else self._number(share[1] or share[2])
            return None if found is None else found / 100
        found = self._number(text)
        if found is None and self.units:
            owed = re.fullmatch(self.owed_pattern, text, re.DOTALL)
            if owed is not None:
                text = "-" + next(filter(None, owed.groups()))
            stripped = re.fullmatch(self.unit_pattern, text, re.DOTALL)
            found = None if stripped is None else self._number("".join(stripped.groups()))
        return found

    def _number(self, text: str) -> float | None:
        found = self._plain(text)
        if found is None and self.negative:
            below = re.fullmatch(self.negative_pattern, text, re.DOTALL)
            found = None if below is None else self._plain(f"-{below[1]}")
        return found

    def _plain(self, text: str) -> float | None:
        plain = text
        if self.decimal == ",":
            plain = "x" if "." in text else text.replace(",", ".")
        if NUMBER.fullmatch(plain) is None and self.thousands and re.fullmatch(self.group_pattern, text, re.ASCII):
            plain = re.sub(f"[{GAPS[self.thousands]}]", "", text).replace(self.decimal, ".")
        return float(plain) if is_number(plain) else None

    @property
    def group_pattern(self) -> str:
        """Numbers in groups of three digits, for RE2 and Python alike."""
        groups = rf"\d{{1,3}}([{GAPS[self.thousands]}]\d{{3}})+"
        if self.thousands == ",":
            groups = rf"({groups}|\d{{1,2}}(,\d{{2}})+,\d{{3}})"
        return rf"[+-]?{groups}([{self.decimal}]\d*)?"

    @property
    def unit_pattern(self) -> str:
        """A number (sign, rest) with a unit before or after it, for RE2 and Python alike."""
        units = self._units_pattern
        return rf"([+-]?)(?:{units})?[{GAPS[' ']}]*(.*?)[{GAPS[' ']}]*(?:{units})?"

    @property
    def owed_pattern(self) -> str:
        """An amount with a unit in parentheses, or beside them, as accounts write negative ones, for RE2 and Python
        alike: ($1,234), $ (1,234)."""
        units = self._units_pattern
        gap = f"[{GAPS[' ']}]*"
        within = rf"\((?:(?:{units}){gap}([\d.,].*)|([\d.,].*?){gap}(?:{units}))\)"
        return rf"(?:{within}|(?:{units}){gap}\(([\d.,].*)\)|\(([\d.,].*)\){gap}(?:{units}))"

    @property
    def negative_pattern(self) -> str:
        """A number that is marked as negative as was stated, for RE2 and Python alike."""
        if self.negative == "trailing":
            return rf"(\d|[\d.,].*?[^.,{GAPS[' ']}])[{GAPS[' ']}]*-"
        return r"\(([\d.,].*)\)" if self.negative == "parentheses" else "[\u25b3\u25b2] ?([\\d.,].*)"

    @property
    def _units_pattern(self) -> str:
        return "|".join(re.escape(unit) for unit in sorted(self.units, key=len, reverse=True))

    @property
    def date_orders(self) -> tuple[str, ...]:
        """The orders in which a date is read."""
        order = "roc" if self.calendar == "minguo" else self.dates
        return ("ymd", *([order] if order else []), "dby", "ybd", "bdy", "tháng", "era")

    def days(self, text: str) -> float | None:
        """The days from 1970-01-01 to the date that a text spells, with a part of a day for its time, as it is written
        (an offset from UTC does not count); None if it spells none."""
        plain = bare_date(composed(bare(text)))
        digit = "0" <= plain[:1] <= "9"
        for order, begins, pattern, names in _patterns(self.date_orders):
            if (digit if begins is None else not digit and plain[: len(begins[0])].lower() in begins) and (
                found := pattern.fullmatch(plain)
            ):
                return self._days(dict(zip(names, found.groups(), strict=True)), short=order != "roc")
        return None

    def _days(self, part: dict[str, str | None], short: bool) -> float | None:
        era = part.get("e")
        year = 1 if part["y"] == FIRST else int(part["y"] or "")
        if era is not None:
            year += ERAS[era]
        elif short and len(part["y"] or "") == 2:
            if self.century is None:
                return None
            year += self.century - self.century % 100 + (100 if year < self.century % 100 else 0)
        time = time_of(*(part[key] for key in ("h", "i", "s", "half")))
        if time is None:
            return None
        calendar = self.calendar if era is None else ""
        if calendar and not YEARS[calendar][0] <= year <= YEARS[calendar][1]:
            return None
        month, day = month_of(part["m"] or "", self.month_numbers), int(part["d"] or "")
        if calendar == "persian":
            days = persian_days(year, month, day)
            return None if days is None else days + time
        try:
            date = datetime.date(year + OURS.get(calendar, 0), month, day)
        except ValueError:
            return None
        return (date - _EPOCH).days + time

    @property
    def month_numbers(self) -> dict[str, int]:
        """The number of each month by its name."""
        stated = (each.rpartition("=") for each in self.months)
        ours = {each: int(number) for word, _, number in stated for each in both_small(word)}
        return {**MONTHS_OF[self.calendar], **ours}

    def __repr__(self) -> str:
        return f"Spelling({', '.join(f'{name}={value!r}' for name, value in self.options().items())})"

    def options(self) -> dict[str, Any]:
        """What differs from the default, by the setting's name."""
        plain = asdict(PLAIN)
        return {name: value for name, value in asdict(self).items() if value != plain[name]}


@lru_cache(64)
def _patterns(
    orders: tuple[str, ...],
) -> tuple[tuple[str, tuple[str, ...] | None, re.Pattern[str], tuple[str, ...]], ...]:
    """Each order, the letters that a date of it begins with (None: a digit), its pattern, and what that finds."""
    begins = {"bdy": tuple({word[:3] for word in ENGLISH}), "era": tuple(ERAS)}
    found = ((order, begins.get(order), *DATE_PATTERNS[order]) for order in orders)
    return tuple((order, first, re.compile(text, re.ASCII), names) for order, first, text, names in found)


def stating(**settings: Any) -> str:
    """How an error says that its reader states these of a source's spelling: one setting, as Python writes it."""
    said = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return f"<<spelling=Spelling({said.replace('>>', '>' + chr(92) + 'x3e')})>>"


def _says_of(word: str, column: str) -> bool:
    """Whether a word, alone or with the name of a column before it, is stated of this column."""
    of, equals, _ = word.rpartition("=")
    return not equals or of.strip() == composed(column)


PLAIN = Spelling()


def is_number(text: str) -> bool:
    """Whether a text is a finite decimal number."""
    return NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def is_missing(text: str | None) -> bool:
    """Whether a text means that there is no value."""
    return text is None or text.lower() in MISSING


_LINE_END = re.compile("\r\n|\n|\r")
_ENDED = r"\d+\.\d*[1-9]0+"  # a number with zeros after its decimals
_CODE = re.compile(rf"0\d+(\.\d+)?|{_ENDED}", re.ASCII)  # a number whose zeros are part of how it is written


def canonical(text: str, spelling: Spelling = PLAIN) -> str:
    """The spelling under which values are compared: the shortest one of a number, so that `4.0` is `4`; true, false;
    each end of a line is a space, as in records."""
    plain = spelling.decimal == "." and is_number(text)  # as most are: nothing else has to be tried
    text = text if plain else _LINE_END.sub(" ", composed(bare(text)))
    number = float(text) if plain else spelling.number(text)
    if number is not None:
        return f"{number + 0.0!r}".removesuffix(".0")
    return text.lower() if text.lower() in ("true", "false") else text


def listed(text: str) -> str:
    """How a value of a public list is called: as it is compared, but a code keeps its zeros (007, 250.10)."""
    plain = bare(text)
    return plain if _CODE.fullmatch(plain) else canonical(text)


def ended(values: Iterable[str]) -> frozenset[str]:
    """The values of a public list that only zeros after their decimals tell from others of it: 250.10 beside 250.1, two
    diagnoses of ICD-9. A field is such a value where it is written so; all else is compared by `canonical`."""
    names = {listed(value) for value in values}
    times = Counter(map(canonical, names))
    return frozenset(name for name in names if times[canonical(name)] > 1 and re.fullmatch(_ENDED, name, re.ASCII))


def comparing(values: Iterable[str]) -> Callable[[str], str]:
    """The spelling under which a text is held against the values of a public list: equal ones are one value."""
    codes = ended(values)
    return lambda text: plain if (plain := bare(text)) in codes else canonical(text)


def named(text: str, values: Iterable[str]) -> str | None:
    """Which of some listed values a text is; None for none."""
    values = tuple(values)
    key = comparing(values)
    spelled = key(text)
    return next((value for value in values if key(value) == spelled), None)
