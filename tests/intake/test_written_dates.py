"""Dates in files that people write: bare in TOML or as texts, they say the same; names of months."""

import datetime
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpmpc.cli.main import group
from dpmpc.cli.settings import spelling as options
from dpmpc.consortium.toml_keys import RecordsPart
from dpmpc.errors import spelt
from dpmpc.intake.forms import missing_sql, months_in
from dpmpc.intake.month_names import IN_TWO, MONTHS
from dpmpc.intake.profile import explore, look
from dpmpc.intake.reading import days_sql
from dpmpc.intake.scripts import small
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.written import written
from dpmpc.records.derive import spelled_otherwise
from dpmpc.records.loading import opened
from dpmpc.records.schema import Classes, Date, Range, Schema, column_of_bounds, read_bounds
from tests.intake import month_names
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")

TABLE = """
target = "y"
positive = ["yes"]
[bounds]
age = [0, 100]
admitted = [{first}, {last}]
"""


@pytest.mark.parametrize("quote", ["", '"'])
def test_bounds_of_a_consortium_may_be_dates(quote: str, tmp_path: Path) -> None:
    text = TABLE.format(first=f"{quote}2020-01-01{quote}", last=f"{quote}2024-12-31{quote}")
    bounds = written(text, RecordsPart, "a table", "consortium.toml", toml=True).bounds
    assert bounds == {"age": [0, 100], "admitted": ["2020-01-01", "2024-12-31"]}
    (tmp_path / "bounds.toml").write_text(text.split("[bounds]")[1])
    assert isinstance(column_of_bounds("admitted", read_bounds(tmp_path / "bounds.toml")["admitted"]), Date)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_schema_in_toml_may_have_bare_dates(quote: str, tmp_path: Path) -> None:
    column = {"kind": "date", "name": "admitted", "first": "2020-01-01", "last": "2025-01-01"}
    target = {"kind": "label", "name": "y", "positive": ["yes"], "negative": ["no"]}
    (tmp_path / "s.json").write_text(json.dumps({"columns": [column], "target": target, "bounds": "public"}))
    (tmp_path / "s.toml").write_text(
        f"""bounds = "public"
[[columns]]
kind = "date"
name = "admitted"
first = {quote}2020-01-01{quote}
last = {quote}2025-01-01{quote}
[target]
kind = "label"
name = "y"
positive = ["yes"]
negative = ["no"]
"""
    )
    assert Schema.read(tmp_path / "s.toml") == Schema.read(tmp_path / "s.json")


def test_a_name_of_a_month_means_one_and_is_read_alike_by_rule_and_database() -> None:
    assert not IN_TWO.keys() & MONTHS.keys()
    stated = Spelling(months=("listopada=11", " Wrz=10"))
    texts = [f"7 {word} 2024" for word in (*MONTHS, *IN_TWO, "Brachmond")]
    with opened({"t": np.array(texts, dtype=object), "k": np.arange(len(texts))}) as (table, _):
        for spelling in (Spelling(), stated):
            found = [row[0] for row in table.rows(days_sql(table.text("t"), spelling), 'ORDER BY "k"')]
            assert found == [spelling.days(text) for text in texts]
            assert found.count(None) == 1 + len(IN_TWO) - (spelling is stated)
    day = {word: stated.days(f"7 {word} 2024") for word in ("listopada", "listopadu", "wrz", "października")}
    assert day["listopada"] == day["listopadu"] and day["wrz"] == day["października"]
    for wrong in ("listopada", "listopada=13", "5=5", "=5", "a b=3"):
        with refuses("type", "listopada", setting="months"):
            Spelling(months=(wrong,))


def test_the_table_of_names_is_what_the_locales_make() -> None:
    """Byte by byte, of the version of Babel that it says: whoever changes it by hand is told so. Another version has at
    most the words of some locales otherwise."""
    babel = pytest.importorskip("babel")
    text = month_names.PLACE.read_text(encoding="utf-8")
    if f"with Babel {babel.__version__}:" in text:
        assert month_names.made() == text
    known, now = set(text.split()), set(month_names.made().split())
    assert len(known & now) > 0.9 * len(known | now) and len(MONTHS) > 800


@pytest.mark.parametrize("language", month_names.LANGUAGES)
def test_the_names_of_months_are_those_of_the_locales(language: str) -> None:
    """Against CLDR, whose tables have forms within a date and alone, whole and short. Words that mean two months in two
    languages are none; nor are numbers in place of words."""
    babel = pytest.importorskip("babel")
    forms = babel.Locale.parse(language).months
    words = {
        (str(word).rstrip("."), month)
        for form in forms.values() for width in ("wide", "abbreviated") for month, word in form[width].items()
    }  # fmt: skip
    words = {(word, month) for word, month in words if re.fullmatch(r"(d’)?[^\W\d]{2,}", word)}
    assert len(words) > 11 or language in ("hi", "th")  # whose marks are no letters
    for word, month in words:
        day = (datetime.date(2024, month, 7) - datetime.date(1970, 1, 1)).days
        assert Spelling().days(f"7 {word} 2024") == (None if small(word) in IN_TWO else day), (word, month)


def test_names_of_months_that_are_not_known_are_asked_for_and_stop_a_run() -> None:
    """Where they are all, or few: never left out or missing without a word. Words between other numbers are none."""
    names = ("marca", "maja", "września", "listopada")
    old = ("Brachmond", "Heumond")
    for months, unknown in ((names, "listopada (11 in Polish, 10 in Croatian)"), (old, "brachmond, heumond")):
        days = np.array([f"{1 + k % 28} {months[k % len(months)]} {2000 + k % 24}" for k in range(60)], dtype=object)
        with opened({"day": days, "y": np.arange(60) % 2}) as (table, _):
            found, _plain = look(table, target="y")
            said = spelled_otherwise(found)
            assert "1 column of" in said and "(day)" in said and unknown in said.replace("'", ""), said
            assert f"which number each has: --month {unknown.split()[0].strip(',')}=N" in spelt(said, options)
            assert explore(table)[0].asks == found.asks and not any("no option" in note for note in found.notes)
        stated = Spelling(months=tuple(f"{word}={k}" for k, word in enumerate(months, 6)))
        with opened({"day": days, "y": np.arange(60) % 2}, spelling=stated) as (table, _):
            found, _plain = look(table, target="y")
            assert found["day"].kind == "date" and found["day"].unread == 0 and not spelled_otherwise(found)
    assert months_in(("wt. 5 Listopada 2024 r.", "5. Lip 1999 10:30", "3 maja 2024")) == (("lip", 0), ("listopada", 0))
    doses = np.array([f"{1 + k % 9} tabl {5 * k}" for k in range(60)], dtype=object)
    with opened({"dose": doses, "y": np.arange(60) % 2}) as (table, _):
        assert not spelled_otherwise(look(table, target="y")[0])


def test_a_dash_alone_and_words_of_offices_look_like_missing() -> None:
    texts = ["-", "\u2212", "\u2013", "\u2010", "b/d", "N.C.", "a", "1", "+"]
    with opened({"t": np.array(texts, dtype=object), "k": np.arange(len(texts))}) as (table, _):
        found = [row[0] for row in table.rows(missing_sql(table.text("t")), 'ORDER BY "k"')]
    assert found == [True] * 6 + [False] * 3


def test_a_draft_takes_a_task_where_numbers_may_be_classes(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,y\n" + "".join(f"{k % 7},{k % 3}\n" for k in range(30)))
    for task, kind in (("softmax", Classes), ("ridge", Range)):
        asked = ["describe", tmp_path / "x.csv", "--target", "y", "--task", task, "--schema", tmp_path / "s.toml"]
        found = CliRunner().invoke(group, [str(word) for word in asked])
        assert found.exit_code == 0 and isinstance(Schema.read(tmp_path / "s.toml").target, kind), found.output
