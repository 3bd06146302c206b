"""Texts of a plan on somebody's screen. Who takes part reads who plans what; a text of the plan that ends a line, moves
the cursor or turns the direction of writing could make that say anything, a guarantee among others."""

import unicodedata

_ENDS = ("Cc", "Cs", "Zl", "Zp")  # control characters, halves of characters, ends of lines and paragraphs
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _harmless(c: str) -> bool:
    return (c.isascii() and c.isprintable()) or (unicodedata.category(c) not in _ENDS and c not in _TURNS)


def is_one_line(text: str) -> bool:
    """Whether a screen shows the text as it is, and nothing else differently."""
    return all(map(_harmless, text))


def one_line(text: str) -> str:
    """The text with an escape in place of every character that is more than seen."""
    return "".join(c if _harmless(c) else c.encode("unicode_escape", "replace").decode() for c in text)
