"""Digits, signs, months and eras as other languages write them, in terms of ASCII: for Python and, as text, for SQL."""

import re

from dpmpc.intake.month_names import ENGLISH, MONTHS
from dpmpc.lazy import regex

ZEROS = "\uff10\u0660\u06f0\u0966\u09e6\u0e50"  # full-width, Arabic, Persian, Devanagari, Bengali, Thai
WIDE_MINUS = "\u2212\u2013\u2010\u2011\ufe63\uff0d"  # as spreadsheets and word processors write it
_SIGNS = {"\uff0e": ".", "\uff0c": ",", "\uff0f": "/", "\uff1a": ":", "\uff0b": "+", "\uff05": "%", "\uff08": "(",
          "\uff09": ")", "\u066a": "%", "\u3000": " ", "\u00b7": "\u066b", "\u2219": "\u066b"}  # fmt: skip
# They have no width: directions of writing, byte order marks between files.
MARKS = "\u200b\u200e\u200f\u061c\ufeff\u2060\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
BLANKS = "\u00a0\u2007\u2009\u202f\u3000"  # spaces that are not ASCII
ARABIC_POINT, ARABIC_COMMA = "\u066b", "\u066c"  # of decimals, as a raised point (36·7) is, and between thousands
_DIGITS = {chr(ord(zero) + k): str(k) for zero in ZEROS for k in range(10)}
_PLAIN = {**_DIGITS, **dict.fromkeys(WIDE_MINUS, "-"), **_SIGNS}
FROM, TO = "".join(_PLAIN) + MARKS, "".join(_PLAIN.values())  # SQL's translate takes out what TO has nothing for
_TABLE = str.maketrans(FROM[: len(TO)], TO, MARKS)

# Letters and the marks on them, digits and numerals, for classes of RE2: it takes 4 ms to compile its own class of
# letters each time that one stands in a pattern, and .2 for these. Rare signs among letters are taken for letters.
LETTERS = (
    r"A-Za-z\x{aa}\x{b5}\x{ba}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{5ff}\x{610}-\x{65f}\x{66e}-\x{6d3}\x{6d5}-\x{6ef}"
    r"\x{6fa}-\x{963}\x{971}-\x{9e5}\x{9f0}-\x{e3e}\x{e40}-\x{e4f}\x{e80}-\x{1fff}\x{2126}\x{212a}-\x{212b}"
    r"\x{2c00}-\x{2dff}\x{3005}-\x{3007}\x{3040}-\x{fdff}\x{fe70}-\x{fefe}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}"
    r"\x{ff66}-\x{ffdf}"
)
_DIGIT = "0-9" + "".join(f"{zero}-{chr(ord(zero) + 9)}" for zero in ZEROS)
_NUMERAL = (
    _DIGIT
    + r"\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{2070}\x{2074}-\x{2079}\x{2080}-\x{2089}\x{2150}-\x{2189}\x{2460}-\x{249b}"
)

ERAS = {"\u660e\u6cbb": 1867, "\u5927\u6b63": 1911, "\u662d\u548c": 1925, "\u5e73\u6210": 1988, "\u4ee4\u548c": 2018}
FIRST = "\u5143"  # the year 1 of an era

# How dates and times that are not ASCII are written otherwise, for RE2 and Python alike. Spaces before AM and PM; words
# for these before a time (Korean, Japanese, Chinese, Turkish), or after it (Greek, Persian, Arabic); hours, minutes and
# seconds with a word after each; Thai months cut short (ม.ค.).
_TURNED = (
    ("[\u00a0\u2009\u202f]", " "),
    (r"(?:오전|午前|上午|ÖÖ) ?(\d.*)", r"\1 AM"),
    (r"(?:오후|午後|午后|下午|ÖS) ?(\d.*)", r"\1 PM"),
    (r"(:\d\d) ?(?:π\.?μ|ق\.?ظ|ص)\.?$", r"\1 AM"),
    (r"(:\d\d) ?(?:μ\.?μ|ب\.?ظ|م)\.?$", r"\1 PM"),
    (r" ?giờ ?(\d\d)(?: ?phút)?", r":\1"),
    (r"[時时시點点] ?(\d)[分분]", r":0\1"),
    (r"[時时시點点] ?(\d\d)[分분]", r":\1"),
    (r"(:\d\d) ?(\d\d)[秒초]", r"\1:\2"),
    (r"([日일])(\d)", r"\1 \2"),
    (r"([ก-๎]{1,2})\.([ก-๎])\.", r"\1\2"),
)
TURNED = tuple((regex(text, re.ASCII), other) for text, other in _TURNED)
TURNS = (  # one is in each
    "[\u00a0\u2009\u202f\u5348\u00d6\uc624\u03bc\u0638\u0635\u0645\u6642\u65f6\uc2dc\u9ede\u70b9\u65e5\uc77c\u0e04\u0e1e\u0e22\u1edd]"
)


def turned(text: str) -> str:
    """A date or a time with what is written otherwise elsewhere as it is in English."""
    if not text.isascii() and re.search(TURNS, text):
        for pattern, other in TURNED:
            text = pattern.sub(other, text)
    return text


ENGLISH_LIST = ", ".join(word for word in ENGLISH if len(word) == 3)
PERSIAN = "فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند"  # of the Persian calendar, not of ours
MONTHS_OF = dict.fromkeys(("", "buddhist", "minguo"), MONTHS)
MONTHS_OF |= {"persian": {word: k for k, word in enumerate(PERSIAN.split(), 1)}}


def small(text: str) -> str:
    """The text in small letters as DuckDB's `lower` writes them, whatever stands beside a letter: Python ends a Greek
    word with another sigma, and a Turkish İ becomes two characters."""
    return text.replace("Σ", "σ").replace("İ", "i").lower()


def both_small(word: str) -> tuple[str, ...]:
    """The word in small letters, with either sigma at the end of a Greek one: it stands in capitals elsewhere."""
    even = small(word).replace("ς", "σ")
    return tuple(dict.fromkeys((even, re.sub(r"σ\b", "ς", even))))


def month_list(months: dict[str, int]) -> str:
    """A text in which SQL finds a word's number."""
    return "".join(f",{word}={k:02d}" for word, k in months.items()) + ","


def western(text: str, decimal: str) -> str:
    """A text with ASCII digits and signs in place of others; `decimal`: the sign that an Arabic decimal point becomes.
    An Arabic comma, which stands between thousands alone, is taken out before three digits."""
    plain = text.translate(_TABLE).replace(ARABIC_POINT, decimal)
    for k in range(len(plain) - 4, -1, -1) if ARABIC_COMMA in plain else ():
        if plain[k] == ARABIC_COMMA and plain[k + 1 : k + 4].isdigit() and plain[k + 1 : k + 4].isascii():
            plain = plain[:k] + plain[k + 1 :]
    return plain


def quick(pattern: str) -> str:
    """A pattern for RE2 with these letters, digits and numerals in place of \\pL, \\pM, \\pN and \\P{Nd}."""

    def other(found: re.Match[str]) -> str:
        part = found[0].replace("\\pL\\pM", "\\pL")
        if part == "\\P{Nd}":
            return f"[^{_DIGIT}]"
        inner = part.replace("\\pL", LETTERS).replace("\\pN", _NUMERAL)
        return inner if part.startswith("[") else f"[{inner}]"

    return re.sub(r"\[(?:\\.|[^\]\\])+\]|\\pL|\\pN|\\P\{Nd\}", other, pattern)


# Words that seem to say that there is no value, in small letters: they are proposed, never taken.
LIKELY_MISSING = (
    "-", "--", "---", *WIDE_MINUS, "\\n", ".", "..", "...", "nan", "nil", "#n/a", "#na", "#n/v", "#nv", "#n/d", "n.a.",
    "n. a.", "k.a.", "k. a.", "<na>", "(null)", "not available", "missing", "n/d", "n.d.", "s.o.", "\u2014",
    "no data", "s/d", "sin datos", "b.d.", "b. d.", "neuvedeno", "nincs adat", "ei tietoa", "ingen data", "fehlt",
    "b/d", "n.c.", "n/c", "bez danych", "nema podataka", "nav datu", "n\u0117ra duomen\u0173", "ei mitattu",
    "nicht verf\u00fcgbar", "non renseign\u00e9", "non disponible", "non disponibile", "no disponible",
    "n\u00e3o dispon\u00edvel", "niet beschikbaar", "\u03b4/\u03c5", "\u30fc",
    "keine angabe", "uppgift saknas", "ikke oplyst", "brak danych", "n\u00e3o informado", "veri yok", "\u043d/\u0434",
    "\u043d.\u0434.", "\u043d\u0435\u0442 \u0434\u0430\u043d\u043d\u044b\u0445",
)  # fmt: skip
