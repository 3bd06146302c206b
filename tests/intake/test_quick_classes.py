"""Classes of letters and digits that are compiled quickly stand for RE2's own."""

import re
import unicodedata

import duckdb
import pytest

from dpmpc.intake.forms import FIGURES, PREFIX, SUFFIX
from dpmpc.intake.reading import literal
from dpmpc.intake.scripts import quick

SPANS = (
    (0x20, 0x7F), (0xA0, 0x250), (0x370, 0x600), (0x620, 0x700), (0x900, 0xA00), (0xE00, 0xE5C), (0x1E00, 0x2190),
    (0x3040, 0x3100), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xFF01, 0xFF5E),
)  # fmt: skip
BLOCKS = "".join(chr(k) for span in SPANS for k in range(*span))


@pytest.mark.parametrize("pattern", [r"\pL", r"\pN", r"\P{Nd}", r"[\pL\pM.]", r"[^\pL\pN\s]", r"[^\pL]"])
def test_they_have_the_same_characters_of_the_worlds_scripts(pattern: str) -> None:
    """But for signs and combining marks that stand among letters, and rare numerals."""
    known = [sign for sign in BLOCKS if unicodedata.category(sign)[0] != "M" and unicodedata.category(sign) != "Cn"]
    query = f"SELECT s, regexp_full_match(s, {literal(pattern)}), regexp_full_match(s, {literal(quick(pattern))})"
    with duckdb.connect() as connection:
        rows = connection.execute(f"{query} FROM (SELECT unnest(?) AS s)", [known]).fetchall()
    other = {sign for sign, before, now in rows if before != now}
    assert any(before for _, before, _ in rows) and not all(before for _, before, _ in rows)
    assert not any(unicodedata.category(sign) in ("Lu", "Ll", "Lo", "Nd") for sign in other if sign < "\u2000"), other
    assert not any(sign.isascii() for sign in other) and len(other) < 0.05 * len(rows)


def test_no_pattern_of_a_look_has_one_of_the_slow_ones() -> None:
    for pattern in (FIGURES, PREFIX, SUFFIX):
        assert not re.search(r"\\p[LMN]|\\P", pattern)
