"""Fields that look like none of our numbers and dates, and lines that are no records: read as stated, proposed
by a look, and nothing of them dropped unsaid."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpmpc.cli.describe import command as describe_command
from dpmpc.errors import RecordError, owner_text
from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.intake.footer import FooterError
from dpmpc.intake.head import HeaderError
from dpmpc.intake.profile import TableProfile, explore
from dpmpc.intake.spelling import Spelling
from dpmpc.learning.rehearsal import RehearsalRecords
from dpmpc.records import CsvFile, load
from dpmpc.records.classes import target_read
from dpmpc.records.derive import TableSettings
from dpmpc.records.loading import opened
from dpmpc.records.schema import Date, Labels, Numeric, Range, Schema
from tests.refusals import refuses
from tests.tables import write

pytestmark = pytest.mark.usefixtures("small_tables")
N = 120
Y = Labels("y", ("yes",), ("no",))


def table(folder: Path, **columns: Any) -> Path:
    """A file of N records with these columns, each a function of a record's number, and a target."""
    rows = [[str(field(k)) for field in columns.values()] + [("no", "yes")[k % 3 == 0]] for k in range(N)]
    return write(folder, "\n".join(map(";".join, [[*columns, "y"], *rows])) + "\n")


def explored(source: Any, **stated: Any) -> TableProfile:
    with opened(source, spelling=Spelling(**stated)) as (found, _):
        return explore(found, target="y")[0]


def noted(path: Path, word: str, **stated: Any) -> list[str]:
    return [note for note in explored(CsvFile(path), **stated).notes if word in note]


@pytest.mark.parametrize(
    ("field", "calendar", "first"),
    [
        (lambda k: f"{1 + k % 28:02}/0{1 + k % 9}/{2560 + k % 8}", "buddhist", 17167.0),
        (lambda k: f"139{k % 10}-0{1 + k % 9}-{1 + k % 28:02}", "persian", 15054.0),
        (lambda k: f"{2010 + k % 8}-0{1 + k % 9}-{1 + k % 28:02}", "", 14610.0),
    ],
)
def test_a_look_proposes_the_calendar_that_all_years_are_of(
    field: Any, calendar: Any, first: float, tmp_path: Path
) -> None:
    found = explored(CsvFile(table(tmp_path, d=field, v=lambda k: k)))
    assert found.proposed.calendar == calendar and found["d"].kind == "date" and found["d"].unread == 0
    assert found["d"].least == first
    assert bool(calendar) == any("leave <<calendar>> out" in ask for ask in found.asks)
    beside = explored(CsvFile(table(tmp_path, d=field, born=lambda k: f"19{50 + k % 50}-01-01")))
    assert beside.proposed.calendar == ""  # another column has our years: a calendar would lose them
    assert bool(calendar) == any("write Gregorian dates" in note for note in beside.notes)


def test_two_numbers_in_a_field_are_two_columns_where_it_is_stated(tmp_path: Path) -> None:
    odd = {5: "140", 6: "", 7: "NA", 8: "1/2/3", 9: "120 / 80", 10: "x/7", 11: "120/", 12: "125x81", 13: "90 × 65"}
    path = table(tmp_path, bp=lambda k: odd.get(k, f"{110 + k % 30}/{60 + k % 25}"), v=lambda k: k)
    (note,) = noted(path, "two numbers in a field")
    assert "'bp'" in note and note.endswith("<<spelling=Spelling(pairs=('bp',))>>")
    columns = (Numeric("bp (1)", 0, 300), Numeric("bp (2)", 0, 300))
    frame = {
        "bp": np.array([odd.get(k, f"{110 + k % 30}/{60 + k % 25}") for k in range(N)], dtype=object),
        "y": np.array([("no", "yes")[k % 3 == 0] for k in range(N)], dtype=object),
    }
    both = []
    for source in (CsvFile(path), frame):
        data = load(source, schema=Schema(columns, Y), spelling=Spelling(pairs=("bp",)), test_fraction=0.0)
        assert [(c.missing, c.unread) for c in data.counts] == [(2, 3), (3, 2)]  # 140 and 1/2/3, x; 120/ has no second
        both.append(np.asarray(data.X).tobytes())
    assert both[0] == both[1]
    with opened(CsvFile(path), spelling=Spelling(pairs=("bp",))) as (found, _):
        assert found.names == ("bp (1)", "bp (2)", "v", "y")
        rows = found.rows(f"{found.number('bp (1)')}, {found.number('bp (2)')}")
    assert rows[:2] == [(110, 60), (111, 61)] and rows[9] == (120, 80) and rows[10] == (None, 7)
    assert rows[12:14] == [(125, 81), (90, 65)]
    assert not noted(path, "two numbers", pairs=("bp",))
    with refuses("column", "pb"), opened(CsvFile(path), spelling=Spelling(pairs=("pb",))):
        pass
    halves = Spelling(pairs=("bp",), missing=("bp (2)=60",), words=("bp (1)",))
    with opened(CsvFile(path), spelling=halves) as (found, _):
        assert found.one(f"count(*) FILTER (WHERE {found.missing('bp (2)')})")[0] == 3 + sum(
            k % 25 == 0 for k in range(N) if k not in odd
        )


def test_an_estimator_reads_pairs_and_dates_of_one_number() -> None:
    import pandas as pd

    days = pd.date_range("2024-01-01", periods=N)
    frame = pd.DataFrame(
        {"bp": [f"{110 + k % 30}/{60 + k % 25}" for k in range(N)], "on": [int(f"{d:%Y%m%d}") for d in days]}
    )
    plain = pd.DataFrame(
        {"bp (1)": [110.0 + k % 30 for k in range(N)], "bp (2)": [60.0 + k % 25 for k in range(N)], "on": days}
    )
    columns = (Numeric("bp (1)", 0, 300), Numeric("bp (2)", 0, 300), Date("on", days[0].date(), days[-1].date()))
    asked: dict[str, Any] = {"epsilon": 5, "delta": 1e-5, "engine": "clear", "iterations": 2}
    asked |= {"schema": Schema(columns, Labels("(target)", ("1",), ("0",))), "classes": [0, 1]}
    y = np.arange(N) % 2
    spelled = PrivateLogisticRegression(**asked, spelling=Spelling(pairs=("bp",), yyyymmdd=("on",))).fit(frame, y)
    with opened({**frame}, spelling=spelled.spelling) as (found, _):
        names = ("bp (1)", "bp (2)")
        read = found.rows(", ".join([*(found.number(name) for name in names), found.days("on")]))
    want = zip(plain["bp (1)"], plain["bp (2)"], (plain["on"] - pd.Timestamp(0)).dt.days, strict=True)
    assert read == [tuple(map(float, row)) for row in want]
    assert len(spelled.predict(frame)) == N


DAYS = {"20240305": 19787, "20240229": 19782, "20230229": None, "20241301": None, "202403051200": 19787.5,
        "20240305120000": 19787.5, " 20240305 ": 19787, "20240305.0": 19787, "2024-03-05": 19787, "2024": None,
        "": None, "202403": None}  # fmt: skip


def test_dates_that_are_written_as_one_number_are_read_where_it_is_stated(tmp_path: Path) -> None:
    texts = np.array([*DAYS] * 2, dtype=object)
    with opened({"d": texts, "k": np.arange(len(texts))}, spelling=Spelling(yyyymmdd=("d",))) as (found, _):
        assert [row[0] for row in found.rows(found.days("d"), 'ORDER BY "k"')] == [*DAYS.values()] * 2
    path = table(tmp_path, d=lambda k: f"20{10 + k % 14}0{1 + k % 9}{10 + k % 19}", v=lambda k: 20240101 + 37 * k)
    (note,) = noted(path, "yyyymmdd")
    assert "column 'd'" in note and note.endswith("<<spelling=Spelling(yyyymmdd=('d',))>>")
    found = explored(CsvFile(path), yyyymmdd=("d",))
    assert found["d"].kind == "date" and found["d"].unread == 0 and not any("yyyymmdd" in n for n in found.notes)


def test_limits_are_said_and_read_as_units_are(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        crp=lambda k: "<0.5" if k % 8 == 0 else f"{k % 40}.{k % 7}",
        gfr=lambda k: ">60 mL/min" if k % 2 else f"{20 + k % 40} mL/min",
        few=lambda k: "<1" if k == 7 else str(k),
    )
    notes = noted(path, "limit")
    assert [note.partition(" has fields such as ")[2].partition(",")[0] for note in notes] == ["'<0.5'", "'>60 mL/min'"]
    assert notes[0].endswith("<<spelling=Spelling(units=('<',))>>")
    assert notes[1].endswith("<<spelling=Spelling(units=('\\x3e', 'mL/min'))>>") or "'>', 'mL/min'" in notes[1]
    found = explored(CsvFile(path), units=("<", ">", "mL/min"))
    assert [found[name].kind for name in ("crp", "gfr")] == ["number"] * 2 and not found["gfr"].unread
    assert Spelling(units=(">", "mL/min")).number(">60 mL/min") == 60
    shown = CliRunner().invoke(describe_command, [str(path), "--target", "y"], standalone_mode=False)
    assert "--unit '<'" in shown.output and "--unit '>' --unit mL/min" in shown.output


CODES = {
    "income": (lambda k: (-7, -8, -9)[k % 3] if k % 5 == 0 else 1000 + 37 * k, (-9, -8, -7)),
    "hours": (lambda k: 97 + k // 6 % 3 if k % 6 == 0 else k % 60, (97, 98, 99)),
    "children": (lambda k: 999 if k % 9 == 0 else k % 6, (999,)),
    "degrees": (lambda k: k % 40 - 3, ()),
    "age": (lambda k: 18 + k % 82, ()),
    "delay": (lambda k: -1 if k % 4 == 0 else 3 * k, (-1,)),
    "balance": (lambda k: 37 * (k - 60), ()),
    "scale": (lambda k: 1 + k % 9, ()),
}


def test_codes_of_surveys_are_said_and_numbers_near_others_are_not(tmp_path: Path) -> None:
    path = table(tmp_path, **{name: field for name, (field, _) in CODES.items()})
    (note,) = noted(path, "far from all their others")  # one line, however many columns have codes
    coded = {name: codes for name, (_, codes) in CODES.items() if codes}
    assert note.startswith(f"{len(coded)} columns have values far from all their others ('income' -9, -8, -7, 'hours'")
    assert repr(tuple(f"{name}={code}" for name, codes in coded.items() for code in codes)) in note


def test_codes_among_more_numbers_than_are_listed_are_said(tmp_path: Path) -> None:
    rows = 3000
    frame = {
        "income": np.where(np.arange(rows) % 9 == 0, -8.0, np.arange(rows) * 7.0),
        "price": np.where(np.arange(rows) % 9 == 0, 99999.0, np.arange(rows) + 1.0),
        "gain": np.arange(rows) - 8.0,
        "y": np.where(np.arange(rows) % 3, "no", "yes").astype(object),
    }
    notes = [note for note in explored(frame).notes if "far from" in note]
    assert [note.split("'")[1] for note in notes] == ["income", "price"] and "income=-8" in notes[0]


BODY = "".join(f'P{k};"two\nlines; {k}";{k % 40},5;{"x" * (k % 4 == 0)}\n' for k in range(N))


def test_names_are_found_above_records_of_several_lines_with_empty_fields(tmp_path: Path) -> None:
    path = write(tmp_path, "sep=;\nReport;;;\n;;;\nClient;;Amounts;\nid;text;sum;left\n" + BODY)
    with pytest.raises(HeaderError) as error, opened(CsvFile(path), spelling=Spelling(",")):
        pass
    assert error.value.likely == {"header": 5}
    with opened(CsvFile(path), spelling=Spelling(header=5)) as (found, _):
        assert found.names == ("id", "text", "sum", "left") and found.n == N


def test_a_row_of_totals_at_the_end_is_proposed_as_no_record(tmp_path: Path) -> None:
    lone = write(tmp_path, "id;text;sum;left\n" + BODY + "Total;;4711,5;\n")
    with opened(CsvFile(lone), spelling=Spelling(",")) as (found, _):
        notes = explore(found, target="left")[0].notes
    assert any(note.endswith("it is the last line; state <<spelling=Spelling(footer=1)>>") for note in notes)
    above = write(tmp_path, "id;text;sum;left\n" + BODY + "Total;;4711,5;\nmade by hand\nthe end\n")
    with pytest.raises(FooterError) as error, opened(CsvFile(above), spelling=Spelling(",")):
        pass
    assert error.value.likely == {"footer": 3}
    kinds = write(tmp_path, "id;text;sum;left\n" + BODY + "total;hip;4711,5;x\nend\n")  # a full row is a record
    with pytest.raises(FooterError) as error, opened(CsvFile(kinds), spelling=Spelling(",")):
        pass
    assert error.value.likely == {"footer": 1}


def test_a_target_of_one_value_or_none_is_told_how_to_state_its_classes(tmp_path: Path) -> None:
    path = write(tmp_path, "id;text;sum;left\n" + BODY)
    with opened(CsvFile(path)) as (found, _), pytest.raises(RecordError) as error:
        target_read(found, TableSettings("left"), 1, Range("left", 0.0, 1.0))
    assert "state classes=['', 'x']" in owner_text(error.value) and "left" not in error.value.message
    shown = CliRunner().invoke(describe_command, [str(path), "--target", "left"], standalone_mode=False)
    assert f"x {N // 4} (25.0%), no value {3 * N // 4} (75.0%)" in shown.output
    assert "a run needs --classes '' --classes x" in shown.output
    stated = TableSettings("left", classes=["", "x"]).stated
    assert isinstance(stated, Labels) and (stated.positive, stated.negative) == (("x",), ("",))


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
@pytest.mark.parametrize("clip", [0.1, 1.0])
def test_what_there_is_to_gain_is_above_nothing(dimension: int, clip: float) -> None:
    """Also where Newton's whole steps lead away from the optimum, as with two features and clipped residuals."""
    stage = RehearsalRecords(dimension, "ridge", residual_clip=clip)
    assert 0 < stage.start < 1
    near = stage.optimum + 1e-3 * np.random.default_rng(1).standard_normal((50, dimension))
    assert (stage.gap(near) > 0).all()
