"""Digits, signs, months and eras as other languages write them, in terms of ASCII: for Python and, as text, for SQL."""

_ZEROS = "\uff10\u0660\u06f0\u0966\u09e6\u0e50"  # full-width, Arabic, Persian, Devanagari, Bengali, Thai
_MINUS = "\u2212\u2013\u2010\u2011\ufe63\uff0d"  # what spreadsheets and word processors write before negative numbers
_SIGNS = {"\uff0e": ".", "\uff0c": ",", "\uff0f": "/", "\uff1a": ":", "\uff0b": "+", "\uff05": "%", "\uff08": "(",
          "\uff09": ")", "\u066a": "%", "\u3000": " "}  # fmt: skip
_MARKS = "\u200b\u200e\u200f\u061c\ufeff"  # have no width: directions of writing, byte order marks between files
ARABIC_POINT, ARABIC_COMMA = "\u066b", "\u066c"  # of decimals, and between thousands
_DIGITS = {chr(ord(zero) + k): str(k) for zero in _ZEROS for k in range(10)}
_PLAIN = {**_DIGITS, **dict.fromkeys(_MINUS, "-"), **_SIGNS}
FROM, TO = "".join(_PLAIN) + _MARKS, "".join(_PLAIN.values())  # SQL's translate takes out what TO has nothing for
_TABLE = str.maketrans(FROM[: len(TO)], TO, _MARKS)

ERAS = {"\u660e\u6cbb": 1867, "\u5927\u6b63": 1911, "\u662d\u548c": 1925, "\u5e73\u6210": 1988, "\u4ee4\u548c": 2018}
FIRST = "\u5143"  # the year 1 of an era

ENGLISH = (
    "jan", "january", "feb", "february", "mar", "march", "apr", "april", "may", "jun", "june", "jul", "july", "aug",
    "august", "sep", "sept", "september", "oct", "october", "nov", "november", "dec", "december",
)  # fmt: skip
ENGLISH_LIST = "".join(word for word in ENGLISH if len(word) == 3)
# English, German, French, Spanish, Italian, Portuguese, Dutch, Scandinavian, Turkish and Russian words. Of Slavic ones
# that name different months in two languages none is read.
_MONTHS = (
    "jan january januar jänner janvier janv enero ene gennaio gen janeiro januari ocak oca января",
    "feb february februar febr feber février févr fév fevrier febrero febbraio fevereiro fev februari şubat "
    "şub февраля",
    "mar march märz maerz mär mrz mars marzo março marco maart mrt marts mart марта",
    "apr april avril avr abril abr aprile nisan nis апреля",
    "may mai mayo maggio mag maio mei maj mayıs mayis мая",
    "jun june juni juin junio giugno giu junho haziran haz июня",
    "jul july juli juillet juil julio luglio lug julho temmuz tem июля",
    "aug august août aout agosto ago augustus augusti ağustos ağu августа",
    "sep sept september septembre septiembre setiembre settembre set setembro eylül eyl сентября",
    "oct october okt oktober octobre octubre ottobre ott outubro out ekim eki октября",
    "nov november novembre noviembre novembro kasım kasim kas ноября",
    "dec december dez dezember décembre déc decembre diciembre dic dicembre dezembro desember des aralık aralik ara "
    "декабря",
)
MONTHS = {word: k for k, words in enumerate(_MONTHS, 1) for word in words.split()}
MONTH_LIST = "".join(f",{word}={k:02d}" for word, k in MONTHS.items()) + ","  # in which SQL finds a word's number


def western(text: str, decimal: str) -> str:
    """A text with ASCII digits and signs in place of others; `decimal`: the sign that an Arabic decimal point becomes.
    An Arabic comma, which stands between thousands alone, is taken out before three digits."""
    plain = text.translate(_TABLE).replace(ARABIC_POINT, decimal)
    for k in range(len(plain) - 4, -1, -1) if ARABIC_COMMA in plain else ():
        if plain[k] == ARABIC_COMMA and plain[k + 1 : k + 4].isdigit() and plain[k + 1 : k + 4].isascii():
            plain = plain[:k] + plain[k + 1 :]
    return plain
