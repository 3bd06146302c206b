"""What fields alone do not tell is asked, and of each column it is said how to change what becomes of it."""

import pytest

from dpmpc.data.forms import FORMS, NAMED, NEGATIVE, Forms, proposed
from dpmpc.data.looked import Kind, Looked
from dpmpc.data.spelling import Spelling
from dpmpc.errors import spelt


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
    found = Looked("c", "VARCHAR", kind, "feature", 10, 0, 2, values=values, listed=True)
    assert spelt(found.change) == line and found.does
