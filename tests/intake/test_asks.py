"""What fields alone do not tell is asked, and of each column it is said how to change what becomes of it."""

from datetime import date
from typing import Any

import pytest

from dpmpc.errors import spelt
from dpmpc.intake.column_profile import ColumnProfile, Kind
from dpmpc.intake.describe import Described
from dpmpc.intake.forms import FORMS, NAMED, NEGATIVE, Forms, proposed
from dpmpc.intake.hashing import BUCKETS, bucket
from dpmpc.intake.spelling import Spelling
from dpmpc.local.named_records import with_spelling
from dpmpc.records.check import check
from dpmpc.records.draft import column_of
from dpmpc.records.loading import load, opened
from dpmpc.records.schema import Date, Numeric, Range, Schema, Surveyed
from dpmpc.show.summary import _who


def column(*, points: int = 0, units: dict[str, int] | None = None, **counts: int) -> Forms:
    """Of 100 fields, so many of each form; `points`: numbers such as 1.234, which are read."""
    given = {name.replace("_", " "): count for name, count in counts.items()}
    whole = dict.fromkeys((*FORMS, *NAMED, *NEGATIVE), 0) | given
    assert whole.keys() == {*FORMS, *NAMED, *NEGATIVE}
    return Forms(100, whole, units or {}, {}, (points, points), (points, 0), "c", 100)


@pytest.mark.parametrize(
    ("found", "asked", "reads"),
    [
        (column(comma=50, points=50), "fields such as 1.234 have decimal points, or points", Spelling(",", ".")),
        (column(comma_three=100), "fields such as 1,234 have decimal commas, or commas between", Spelling(".", ",")),
        (column(day_or_month=100), "no field tells day from month; state dates=dmy or", Spelling(dates="mdy")),
        (column(day_first=60, month_first=40), "60 fields have the day first and 40 the month", Spelling(dates="dmy")),
        (column(gap=60, tick=40), "between thousands 60 spaces and 40 apostrophes stand", Spelling(thousands=" ")),
        (column(trailing=60, parentheses=40), "60 have a minus after them and 40", Spelling(negative="trailing")),
        (column(units={"kg": 60, "lb": 40}), "one column has kg and lb; state one of them", Spelling(units=("kg",))),
        (column(day_first=100, short_year=100), "years of two digits; century says of which", None),
        (column(point=100, comma_groups=5), "", Spelling(thousands=",")),
        (column(comma=60, point_groups=40), "", Spelling(",", ".")),
        (column(day_first=50, day_or_month=50, dots=100), "", Spelling(dates="dmy")),
    ],
)
def test_what_fields_do_not_tell_is_asked(found: Forms, asked: str, reads: Spelling | None) -> None:
    spelling, asks = proposed(Spelling(), [found])
    assert asked in spelt("; ".join(asks)) and bool(asks) == bool(asked)
    assert reads is None or spelling == reads


def test_a_fiftieth_of_the_fields_that_is_spelled_otherwise_stops_a_run() -> None:
    assert column(comma=2, points=98).otherwise and not column(comma=1, points=99).otherwise


def test_an_owner_whose_numbers_are_spelled_otherwise_than_it_stated_is_warned() -> None:
    schema = Schema((Numeric("x", 0.0, 1.0),), Range("y", 0.0, 9.0))
    with opened({"x": [f"0,{k}5" for k in range(30)], "y": list(range(30))}) as (table, _):
        found = with_spelling(check(schema, table), table).found
    (text,) = [each.text for each in found if each.severity == "warning" and "as they were stated" in each.text]
    assert "(x)" in text and "decimal=','" in text


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("number", "drop=['c']"),
        ("category", "drop=['c']"),
        ("identifier", 'schema: kind = "category", categories = ["...", "..."]'),
        ("free text", 'schema: kind = "category", categories = ["...", "..."]'),
        ("empty", ""),
    ],
)
def test_each_column_has_the_setting_or_line_that_changes_what_becomes_of_it(kind: Kind, line: str) -> None:
    values = (("a", 5), ("b", 5)) if kind == "category" else ()
    found = ColumnProfile("c", "VARCHAR", kind, "feature", 10, 0, 2, values=values, listed=True)
    assert spelt(found.change) == line and found.does


def test_dates_become_days_and_times_the_part_of_a_day() -> None:
    day, time = (
        ColumnProfile("c", "VARCHAR", kind, "feature", 10, 0, 2, least=18_300.0, greatest=19_000.0)
        for kind in ("date", "time")
    )
    assert column_of(day, hashed=True) == Date("c", date(2020, 1, 1), date(2023, 1, 1))
    assert column_of(time, hashed=True).features == ("c hour",)


def test_what_is_published_of_texts_is_a_number_that_two_records_share() -> None:
    found = ColumnProfile(
        "c", "VARCHAR", "category", "feature", 10, 0, 3, values=(("icu", 5), ("er", 4), ("rare", 1)), listed=True
    )
    column = column_of(found, hashed=True)
    assert isinstance(column, Surveyed) and set(column.kept) == {bucket("c", text, BUCKETS) for text in ("icu", "er")}
    assert not any(text in str(column) for text in ("icu", "er'", "rare"))


def test_texts_that_are_read_off_records_are_published_as_numbers_alone() -> None:
    records = {"c": ["icu", "er"] * 10, "x": list(range(20)), "y": [0, 1, 1, 0] * 5}
    found = load(records, target="y", test_fraction=0.0).feature_names
    assert {f"c#{bucket('c', text, BUCKETS)}" for text in ("icu", "er")} < set(found) and "icu" not in str(found)


def test_a_run_says_which_columns_it_leaves_out_by_their_reason() -> None:
    report: dict[str, Any] = {
        "data": "x.csv", "owners": 2, "owner_sizes": [5, 5], "parties": 3, "threshold": 1, "engine": "clear",
        "iterations": 2, "method": "gradient", "dimension": 1, "learning": {}, "privacy": {"neighbours": "record"},
        "columns": {"used": {"a": 1}, "left_out": {"id": "as asked", "b": "nothing stood out", "c": "as asked"}},
    }  # fmt: skip
    assert [said for what, said in _who(report) if what == "left out"] == ["id, c: as asked", "b: nothing stood out"]


def test_a_quantity_that_is_one_number_is_warned_of() -> None:
    schema = Schema((Numeric("x", 0.0, 1.0),), Range("y", 0.0, 9.0))
    alike = "it is 7 in 2 records, all that fit"
    for values, said in (([7, 7, None], alike), ([7, 6, None], ""), ([7, None, None], "")):
        with opened({"x": [0.0, 0.5, 1.0], "y": values}, spelling=Spelling(misfits="zero")) as (table, _):
            found = [each for each in check(schema, table).found if "all that fit" in each.text]
        assert bool(found) == bool(said) and all(said in each.text and each.severity == "warning" for each in found)


def test_all_that_was_found_of_a_column_is_there_as_json() -> None:
    found = ColumnProfile(
        "c", "VARCHAR", "number", "feature", 10, 2, 6, unread=1, least=1.0, greatest=9.0, odd=("x",), why="numbers"
    )
    assert Described(found, (("1", 7),), ("odd",)).to_json() == {
        "name": "c", "kind": "number", "role": "feature", "type": "VARCHAR", "missing": 2, "not_read": 1, "distinct": 6,
        "least": 1.0, "greatest": 9.0, "values": {"1": 7}, "used": True, "why": "numbers", "notes": ["odd"],
        "does": "a number; not read, so missing: 1 field", "change": "drop=['c']",
    }  # fmt: skip
