"""The encoding that a text seems to be in, for its owner's eyes: it is proposed, never taken.

Each candidate is held against what it makes of the bytes that are not ASCII: frequent characters of its script. A byte
of a Western encoding stands alone among ASCII letters or nearly so; those of Chinese, Japanese and Korean come in
pairs, whose first byte lies in the rows of the frequent characters.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

_HEAD = 1 << 18
_HIGH = re.compile(rb"[\x80-\xff]")
_Place = tuple[bytes, bytes, bytes]  # a byte between its neighbours
# The first bytes of frequent characters, and the second ones.
_PAIRS = {  # of two that suit as well the narrower, which comes first
    "cp949": ((0xB0, 0xC8), (0xA1, 0xFE)),
    "gb18030": ((0xB0, 0xD7), (0xA1, 0xFE)),
    "big5": ((0xA4, 0xC6), (0x40, 0xFE)),
    "cp932": ((0x82, 0x97), (0x40, 0xFC)),
    "euc_jp": ((0xA4, 0xCF), (0xA1, 0xFE)),
}
_SIGN_ROWS = {"cp932": (0x81, 0x81)}  # the first bytes of signs, where these are others than the common ones
_SIGNS = "°²³µ€£₪§«»“”„‘’–—…·\u00a0º¦"
_EURO = {"cp1252": "\u00a4"}  # what ISO 8859-15 has for it
_NEARLY = 0.5  # of the bytes that are not ASCII


def two_bytes(head: bytes) -> str:
    """The name of the encoding of a text without mark each of whose characters has two bytes; "" if it is none."""
    even, odd = head[0:_HEAD:2], head[1:_HEAD:2]
    for name, high, low in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if high.count(0) > len(high) // 4 and not low.count(0):
            return name
    return ""


def likely(path: Path) -> str:
    """The name of the encoding that the first part of a text file, which is not UTF-8, seems to be in; of those that
    its bytes can be in "cp1252" or "mac_roman" where none stands out."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    whole = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1] or head
    found = (match.span() for match in _HIGH.finditer(whole))
    places = Counter((whole[at - 1 : at], whole[at:end], whole[end : end + 1]) for at, end in found)
    scores = {name: _pairs(whole, name) for name in _PAIRS}
    scores |= {name: _letters(whole, places, name) for name in _LETTERS}
    best = max(scores, key=lambda name: scores[name])
    if scores[best] <= _NEARLY:
        best = "cp1252" if _decoded(whole, "cp1252") else "mac_roman"
    if best == "cp1252" and b"\xa4" in whole and not re.search(rb"[\x80-\x9f]", whole):
        return "iso8859-15"  # the sign of the euro, where cp1252 has one of no currency
    return best


def _decoded(text: bytes, name: str) -> str:
    """The text; nothing if it is in another encoding."""
    try:
        return text.decode(name)
    except UnicodeDecodeError:
        return ""


def _pairs(text: bytes, name: str) -> float:
    """The part of the high bytes that are in pairs of frequent characters."""
    if not _decoded(text, name):
        return 0.0
    (low, high), (least, most) = _PAIRS[name]
    at = fits = odd = 0
    while at < len(text):
        if text[at] < 0x80:
            at += 1
            continue
        pair = text[at : at + 2]
        good = len(pair) == 2 and low <= pair[0] <= high and least <= pair[1] <= most
        around = text[at - 1 : at] + text[at + 2 : at + 3]
        good = good and not (around.isascii() and around.isalpha() and pair[1:].isalpha())  # one among ASCII letters
        first, last = _SIGN_ROWS.get(name, (0xA1, 0xA3))
        sign = len(pair) == 2 and (first <= pair[0] <= last or 0x30 <= pair[1] <= 0x39)  # of four bytes: gb18030's
        fits, odd = fits + good, odd + (not good and not sign)
        at += 4 if 0x30 <= pair[-1] <= 0x39 else 2
    return fits / max(1, fits + odd)


_WEST = "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿœšžßÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝŒŠŽª"
_CENTRAL = "ąćęłńóśźżáčďéěíňřšťúůýžäöüßôľĺŕőűăâîşţđĄĆĘŁŃÓŚŹŻÁČĎÉĚÍŇŘŠŤÚŮÝŽÄÖÜÔĽĹŔŐŰĂÂÎŞŢĐ"
_WESTERN = (  # what one language has: letters of several are in fewer texts than other letters of another encoding
    "äöüß", "éèêàâçëîïôùûüÿœæ", "áéíñóúüº", "ãáàâçéêíõóôúü", "àèéìíîòóù", "åäöé", "æøåé", "áðéíóúýþæö", "éëïèöü",
    "àçèéíïòóúü", "äöåšž",
)  # fmt: skip
_CENTRALS = ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîşţ", "čćđšž", "äöüß")
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯЁІЇЄҐ"
_LETTERS = {  # of two that suit as well the commoner, which comes first
    "cp1252": _WEST,
    "cp1254": "çğıöşüâîûÇĞİÖŞÜÂÎÛ",
    "cp1250": _CENTRAL,
    "cp1257": "ąčęėįšųūžāēģīķļņõäöüĄČĘĖĮŠŲŪŽĀĒĢĪĶĻŅÕÄÖÜ",
    "cp1255": "".join(map(chr, range(0x5D0, 0x5EB))),
    "cp1256": "".join(map(chr, range(0x621, 0x64B))) + "\u067e\u0686\u0698\u06a9\u06af\u06cc",
    "cp874": "".join(map(chr, (*range(0xE01, 0xE2F), *range(0xE30, 0xE3B), *range(0xE40, 0xE4F)))),
    "cp1251": _CYRILLIC,
    "iso8859-5": _CYRILLIC,
    "cp1253": "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩΆΈΉΊΌΎΏ",
    "iso8859-2": _CENTRAL,
    "mac_roman": _WEST.replace("š", "").replace("ž", ""),
    "cp850": _WEST,
    "cp852": _CENTRAL,
    "koi8_r": _CYRILLIC,
    "cp866": _CYRILLIC,
    "mac_cyrillic": _CYRILLIC,
    "mac_latin2": _CENTRAL,
}
_LANGUAGES: dict[str, tuple[str, ...]] = {
    "cp1252": _WESTERN,
    "cp1254": ("çğıöşüâîû",),
    "cp1250": _CENTRALS,
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äöõüšž"),
    "iso8859-2": _CENTRALS,
    "mac_roman": _WESTERN,
    "cp850": _WESTERN,
    "cp852": _CENTRALS,
    "mac_latin2": _CENTRALS,
}


def _letters(text: bytes, places: Mapping[_Place, int], name: str) -> float:
    """The part of the high bytes that are letters in words of this script, or signs between them. Latin letters stand
    among ASCII ones; those of other scripts among themselves; none is a capital after a small one. Half of it is what
    fits the one language of a Latin encoding that fits best. `places`: each of them with its neighbours, and how often
    it is there, as a long text has few that differ."""
    if not _decoded(text, name):
        return 0.0
    latin, letters, languages = name in _LANGUAGES, _LETTERS[name], _LANGUAGES.get(name, ("",))
    fits = high = 0
    of_language = [0] * len(languages)
    for place, count in places.items():
        before, character, after = (byte.decode(name) for byte in place)
        high += count
        around = before + after
        if character in letters:
            beside = sum(other.isascii() and other.isalpha() if latin else other in letters for other in around)
            turned = character.isupper() and before.islower()
            turned |= len(around) == 2 and around.isascii() and around.isdigit()  # no letter stands between digits
            fit = not turned and (beside > 0 or (latin and not any(ord(other) >= 0x80 for other in around)))
            own = [fit and (not latin or character.lower() in each) for each in languages]
        else:
            between = len(around) == 2 and all(other.isalpha() for other in around)  # where an apostrophe alone stands
            fit = character in (*_SIGNS, _EURO.get(name)) and (character == "’" or not between)
            own = [fit] * len(languages)
        fits += count * fit
        of_language = [known + count * each for known, each in zip(of_language, own, strict=True)]
    return (fits + max(of_language)) / max(1, 2 * high)
