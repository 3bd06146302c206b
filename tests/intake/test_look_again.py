"""A second look takes over what the first found of columns whose fields it reads alike; that it finds what it would
have found by itself `test_intake` holds of whole exports. What reads as a number is found alike by SQL and by Python,
whatever units stand in it."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from dpmpc.intake import profile as intake
from dpmpc.intake.spelling import GAPS, Spelling
from dpmpc.intake.table import Table
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened

pytestmark = pytest.mark.usefixtures("small_tables")


def test_a_column_of_many_texts_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "ONCE", 0)
    path = tmp_path / "t.csv"
    rows = (f"{k % 97},5;Befund {k:x} unauff\u00e4llig, kg {k}" for k in range(3000))
    path.write_text("gewicht;text\n" + "\n".join(rows) + "\n", encoding="utf-8")
    seen: list[list[str]] = []
    facts = intake.facts_of
    monkeypatch.setattr(intake, "facts_of", lambda table, names: seen.append(list(names)) or facts(table, names))
    with opened(CsvFile(path)) as (table, _):
        found = intake.explore(table)[0]
    assert found.proposed.decimal == "," or "gewicht" in found.proposed.other_decimal
    assert [name for names in seen for name in names].count("text") == 1
    assert found["text"].kind == "free text" and [name for names in seen for name in names].count("gewicht") == 2


def test_units_and_gaps_are_read_alike_by_sql_and_by_python(tmp_path: Path) -> None:
    spelling = Spelling(decimal=",", thousands=".", units=("kg", "\u20ac", "kr."), negative="trailing")
    gap = [*GAPS[" "].replace("\\", "")[:6]]
    heads = ["", "+", "-", "kg", "kg ", "\u20ac", "- ", f"-{gap[-1]}", "(", "kr.", "x", "-kg", "k"]
    tails = ["", "kg", " kg", f"{gap[-1]}kg", "\u20ac", ")", "-", " kr.", "kgs", "\u0661", "kg kg", f"5{gap[-1]}"]
    cores = ["1", "1,5", "1.234,5", "1.5", "\uff11\uff12", "\u0661\u066b5", "unauff\u00e4llig", "kg", "5 kg 5", ""]
    texts = sorted({f"{a}{b}{c}".strip() for a, b, c in itertools.product(heads, cores, tails)} - {""})
    with opened({"t": np.array(texts, dtype=object)}, spelling=spelling) as (table, _):
        assert isinstance(table, Table)
        read = [row[0] for row in table.rows(table.number("t"))]
    wrong = [
        (text, mine, own)
        for text, mine in zip(texts, read, strict=True)
        if (own := spelling.number(text)) != (None if mine is None or not np.isfinite(mine) else mine)
    ]
    assert not wrong, wrong[:10]
