"""What stands in a condition of a query is worked out once a row too, as what is selected is."""

from datetime import date
from pathlib import Path

import pytest

from dpmpc.intake.once import asked, once
from dpmpc.intake.table import Table
from dpmpc.records import CsvFile
from dpmpc.records.check import check
from dpmpc.records.loading import opened
from dpmpc.records.schema import Date, Labels, Numeric, Schema

LONG = "lower(" * 40 + "a" + ")" * 40


def test_what_a_condition_and_the_selected_share_stands_there_once() -> None:
    value = once(LONG)
    found = asked(f"{value} AS t", "r", f"WHERE {value} <> 'x' AND {value} <> 'y' LIMIT 1")
    assert found.count(LONG) == 1 and found.endswith("WHERE \"(once 0.0)\" <> 'x' AND \"(once 0.0)\" <> 'y' LIMIT 1")
    assert asked("b", "r", "WHERE c") == "SELECT b FROM r WHERE c"


def test_a_look_at_values_beyond_their_bounds_asks_short_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, queries = tmp_path / "r.csv", list[str]()
    days = ["1987-03-14", "2001-05-06", "2030-01-01", "1987-03-14", "no day"]
    path.write_text("day,n,y\n" + "".join(f"{day},{k * 10},{k % 2}\n" for k, day in enumerate(days)))
    run = Table.run
    monkeypatch.setattr(Table, "run", lambda table, sql: queries.append(sql) or run(table, sql))
    columns = Date("day", date(2000, 1, 1), date(2010, 12, 31)), Numeric("n", 5.0, 25.0)
    schema = Schema(columns, Labels("y", ("1",), ("0",)))
    with opened(CsvFile(path)) as (table, _):
        found = "\n".join(finding.text for finding in check(schema, table).found)
    assert "3 values lie beyond 2000-01-01 to 2010-12-31: '1987-03-14' x 2, '2030-01-01'" in found
    assert queries and max(map(len, queries)) < 100_000  # of the days it was 900,000, which took seconds to plan
