"""Fields, codes and lines that files of other offices have: read as what they are, or said, never dropped unsaid. A
clean table in other habits' dress is the same matrix."""

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_diabetes, load_wine

from dpmpc.cli.main import named
from dpmpc.codec import of_json
from dpmpc.errors import RecordError, owner_text
from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.intake.calendars import clock_time
from dpmpc.intake.csvfile import EncodingError
from dpmpc.intake.head import HeaderError
from dpmpc.intake.lint import LARGEST, SMALLEST
from dpmpc.intake.missing import frame_without_codes
from dpmpc.intake.profile import TableProfile, explore, look
from dpmpc.intake.reading import clock_sql, days_sql, number_sql
from dpmpc.intake.scripts import ARABIC_COMMA, ARABIC_POINT
from dpmpc.intake.spelling import Spelling, canonical
from dpmpc.learning.survey_numbers import HIGHEST, LOWEST
from dpmpc.records import CsvFile, Schema, load
from dpmpc.records.check import check
from dpmpc.records.loading import opened
from dpmpc.records.schema import VERSION
from tests.intake.exports import PERSIAN_DIGITS, WIDE_DIGITS, grouped
from tests.refusals import refuses
from tests.tables import write

describe_command = named("describe")

pytestmark = pytest.mark.usefixtures("small_tables")

DAYS = {
    "26 nov. 2022": 19322, "1er mars 2024": 19783, "3. März 2024": 19785, "12-Okt-2023": 19642,
    "5 de marzo de 2022": 19056, "26 DÉCEMBRE 2020": 18622, "7 kasım 2019": 18207, "5 марта 2024": 19787,
    "平成元年1月8日": 6947, "2024년 3월 5일": 19787, "2024. 3. 5.": 19787, "２０２４／１／５": 19727,
    "۲۰۲۱-۰۱-۰۲": 18629, "2024. március 5.": 19787, "2024. márc. 5.": 19787, "5. března 2024": 19787,
    "5. maaliskuuta 2024": 19787, "5 Μαρτίου 2024": 19787, "5 березня 2024": 19787, "5 martie 2024": 19787,
    "5 Maret 2024": 19787, "ngày 5 tháng 3 năm 2024": 19787, "5 tháng 3, 2024": 19787, "Tuesday, March 5, 2024": 19787,
    "Dienstag, 5. März 2024": 19787, "mardi 5 mars 2024": 19787, "le 5 mars 2024": 19787, "Tue 5 Mar 2024": 19787,
    "út 5. března 2024": 19787, "вт, 5 марта 2024": 19787, "Di, 2024-03-05": 19787, "ti 2024-03-05": 19787,
    "2024-03-05 klo 12.00": 19787.5, "2024-03-05 kl. 12:00": 19787.5, "5 mars 2024 à 12h00": 19787.5,
    "2024-03-05, 12:00 Uhr": 19787.5, "5 de março de 2024 às 12:00": 19787.5, "2024-03-05 12 h 00": 19787.5,
    "2024-03-05 오후 12:00": 19787.5, "2024年3月5日12時00分": 19787.5, "令和4年11月26日": 19322, "5 मार्च 2024": 19787,
    "2024年3月5日 下午12:00": 19787.5, "2024-03-05 12:00 μ.μ.": 19787.5, "2024-03-05, 12:00:00\u202fPM": 19787.5,
    "2024-03-05 12:00 p. m.": 19787.5, "2024-03-05 ÖS 12:00": 19787.5, "2024-03-05 12:00 م": 19787.5,
    "2024年3月5日 12時0分": 19787.5, "5 มีนาคม 2024": 19787, "5 มี.ค. 2024": 19787, "5 مارس 2024": 19787,
    "\u202a2024-03-05\u202c": 19787, "\u2067\u200f2024-03-05\u2069": 19787, "2024-03-05\u00a0": 19787,
}  # fmt: skip
NUMBERS = {
    "۱۲٬۳۴۵٫۵": 12345.5, "１２３": 123.0, "५०": 50.0, "－5": -5.0, "–5": -5.0, "\u200e5": 5.0, "\ufeff18": 18.0,
}  # fmt: skip
NONE = (
    "12 foo 2020",
    "-5 kr.kr.",
    "5/-/-",
    "mars 5, 2024",
    "令和04年13月1日",
    "()",
    "-",
    "(",
    "1e5e",
    "٬5",
    "５％",
    "((5))",
    "-5-",
    "(-5)",
    "1-2",
    "5 listopada 2024",
    "mar 5 2024 5",
    "Mo 5",
    "tháng 3 năm 2024",
    "2024. foo 5.",
)
CLOCKS = {"13:45": 0.5729166666666666, "1:45 pm": 0.5729166666666666, "９：０５": 9.0 / 24 + 5 / 1440, "12:00 AM": 0.0,
          "klo 12.00": 0.5, "kl. 12:00": 0.5, "kl 12.00": 0.5, "12.00 Uhr": 0.5, "12:00 Uhr": 0.5, "12h00": 0.5,
          "klo 12:00:00": 0.5, "12:00 hod.": 0.5, "12.00 hrs": 0.5, "오후 12:00": 0.5,
          "下午12時00分": 0.5, "오후 12시 0분": 0.5,
          "12:00 p. m.": 0.5,
          "12:00\u202fPM": 0.5, "12:00 ب.ظ": 0.5, "12時00分00秒": 0.5}  # fmt: skip
NO_CLOCKS = (
    "오후 13:00",
    "12시",
    "오전",
    "12:00م م",
    "klo 25.00",
    "12.00",
    "kl 12",
    "12.65 Uhr",
    "um 12.00",
    "24:00",
    "13:65",
    "7:5",
    "0:10 am",
    "1345",
)
SPELLINGS = (
    Spelling(),
    Spelling(",", ".", "dmy", negative="trailing"),
    Spelling(".", ",", "mdy", 1930, units=("kg", "$", "%"), negative="parentheses"),
    Spelling(".", ",", "dmy", 1990, units=("kr.", "Rs.", "/-")),
)
OTHERS = {  # years and dates of other calendars: what they are in ours
    "buddhist": {
        "5 มี.ค. 2567": 19787, "05/03/2567": 19787, "2567-03-05 12:00": 19787.5, "29/02/2567": 19782, "5/3/67": 19787,
        "29/02/2566": None, "05/03/2024": None, "0567-03-05": None, "令和6年3月5日": 19787,
    },
    "persian": {
        "15 اسفند 1402": 19787, "1402/12/15": 19787, "۱۴۰۲-۱۲-۱۵ 12:00": 19787.5, "15/12/1402": 19787,
        "15/12/02": 19787,
        "1403-12-30": 20167, "1402-12-30": None, "1403-02-31": 19863, "1403-07-31": None, "1403-13-01": None,
        "1403-00-01": None, "1403-01-00": None, "2024-03-05": None, "5 March 1403": None, "令和6年3月5日": 19787,
        "1349-01-01": 79, "1357-11-22": 3328, "1178-01-01": -62377,
    },
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
def test_other_digits_months_eras_and_marks_are_read_alike_by_rule_and_database(spelling: Spelling) -> None:
    marked = ["5-", "5 -", "(5)", "(1,234.5)", "1.234,5-", "$(12)", "(12) kg", "12- kg", "(12.5", "12-13"]
    marked += ["12 kr.", "kr. 5", "5kr", "Rs. 1,23,456/-", "5/-", "12.03.2023 r.", "5 марта 2024 г.", "1.2.99 г. 13:05"]
    marked += [
        "5. 3. 2024",
        "5. 3. 24",
        " 5/ 3/2024",
        "Di 05.03.2024",
        "5.3.2024 klo 12.00",
        "tor 5. 3. 2024 kl. 12.30",
    ]
    marked += ["05/03/2024 às 12:00", "5.3.2024, 12.00 Uhr", "5 . 3 . 2024", "so 5.3.", "sex 05/03/24"]
    texts = [*DAYS, *NUMBERS, *NONE, *CLOCKS, *NO_CLOCKS, *marked]
    texts += [f"{a}{b}" for a in NUMBERS for b in ("-", " kg", ")")]
    with opened({"t": np.array(texts, dtype=object), "k": np.arange(len(texts))}) as (table, _):
        text = table.text("t")
        for sql, rule in (
            (number_sql(text, spelling, loose=True), spelling.number),
            (days_sql(text, spelling), spelling.days),
            (clock_sql(text), clock_time),
        ):
            found = [row[0] for row in table.rows(sql, 'ORDER BY "k"')]
            assert [None if v is None or not math.isfinite(v) else v for v in found] == [rule(text) for text in texts]
    assert [spelling.days(text) for text in DAYS] == list(DAYS.values())
    assert [spelling.number(text) for text in NUMBERS] == list(NUMBERS.values())
    assert [clock_time(text) for text in (*CLOCKS, *NO_CLOCKS)] == [*CLOCKS.values(), *[None] * len(NO_CLOCKS)]
    assert all(spelling.days(text) is None for text in NONE)
    below = {"": [None] * 3, "trailing": [-5, None, -1234.5], "parentheses": [None, -1234.5, None]}[spelling.negative]
    assert [spelling.number(text) for text in ("5-", "(1,234.5)", "1.234,5-")] == below


@pytest.mark.parametrize("calendar", OTHERS)
def test_dates_of_other_calendars_are_read_alike_by_rule_and_database(calendar: Any) -> None:
    """Also every day of a cycle of leap years, and every field that is read without."""
    spelling = Spelling(dates="dmy", century={"buddhist": 2500, "persian": 1400}[calendar], calendar=calendar)
    known = OTHERS[calendar]
    first = {"buddhist": 2560, "persian": 1390}[calendar]
    every = [
        f"{first + k % 34}-{m:02}-{d:02}" for k in range(34) for m in range(14) for d in (0, 1, 28, 29, 30, 31, 32)
    ]
    texts = [*known, *DAYS, *NUMBERS, *NONE, *CLOCKS, *every]
    with opened({"t": np.array(texts, dtype=object), "k": np.arange(len(texts))}) as (table, _):
        found = [row[0] for row in table.rows(days_sql(table.text("t"), spelling), 'ORDER BY "k"')]
    assert found == [spelling.days(text) for text in texts]
    assert dict(zip(texts, found, strict=True)) | known == dict(zip(texts, found, strict=True))


def test_the_persian_years_begin_when_they_did() -> None:
    """As calendars have it: the days of the new year, and the leap years of a cycle."""
    began = {1300: "1921-03-21", 1354: "1975-03-21", 1399: "2020-03-20", 1400: "2021-03-21", 1403: "2024-03-20",
             1404: "2025-03-21", 1408: "2029-03-20", 1409: "2030-03-21"}  # fmt: skip
    persian = Spelling(calendar="persian")
    assert all(persian.days(f"{year}-01-01") == Spelling().days(day) for year, day in began.items())
    leap = [year for year in range(1370, 1410) if persian.days(f"{year}-12-30") is not None]
    assert leap == [1370, 1375, 1379, 1383, 1387, 1391, 1395, 1399, 1403, 1408]


def test_a_number_that_stands_for_none_is_none_where_it_was_stated(tmp_path: Path) -> None:
    text = "age,cost,y\n" + "".join(f"{999 if k % 5 == 0 else k},{999.0 if k % 3 else 7},{k % 2}\n" for k in range(60))
    columns = [{"kind": "number", "name": name, "low": 0, "high": 1000} for name in ("age", "cost")]
    target = {"kind": "label", "name": "y", "positive": [1], "negative": [0]}
    schema = Schema.from_json({"version": VERSION, "columns": columns, "target": target})
    path = write(tmp_path, text)
    frame = {name: np.array(part) for name, part in zip(
        ("age", "cost", "y"), np.genfromtxt(io.StringIO(text), delimiter=",", skip_header=1).T, strict=True
    )}  # fmt: skip
    for stated, gone in (((), (0, 0)), (("age=999",), (12, 0)), (("999",), (12, 40)), (("AGE=999",), (0, 0))):
        for source in (CsvFile(path), frame):
            data = load(source, schema=schema, spelling=Spelling(missing=stated), test_fraction=0.0)
            assert tuple(count.missing for count in data.counts) == gone
    swedish = write(tmp_path, "a;y\n" + "9,99e2;1\n999;0\n1;1\n" * 9, "s.csv")
    with opened(CsvFile(swedish), spelling=Spelling(",", missing=("999",))) as (table, _):
        assert table.one(f"count(*) FILTER (WHERE {table.missing('a')})") == (18,)
    assert np.isnan(frame_without_codes(frame, Spelling(missing=("age=999",)))["age"]).sum() == 12


def test_an_estimator_keeps_codes_out_as_if_they_were_missing() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 90, (400, 2))
    coded, y = X.copy(), np.where(X[:, 0] > 45, 1, 0)
    gone = rng.random(400) < 0.1
    coded[gone, 1], X[gone, 1] = 999.0, np.nan
    asked: dict[str, Any] = {"epsilon": 5, "delta": 1e-5, "engine": "clear", "bounds": (0, 100), "classes": [0, 1]}
    model = PrivateLogisticRegression(**asked, iterations=2, spelling=Spelling(missing=("999",))).fit(coded, y)
    assert np.array_equal(model.predict_proba(coded), model.predict_proba(X))
    assert not np.array_equal(model.predict_proba(coded[gone]), model.predict_proba(np.nan_to_num(X[gone], nan=0.0)))


UNITS = {"kr.": True, "Fr.": True, "/-": True, "mg/dl": True, "\u20ac": True, "%": True, "m\u00b2": True,
         "": False, ".": False, "kr..": False, "-": False, "x1": False, "'kg": False, "kg,": False,
         "/.": False}  # fmt: skip


@pytest.mark.slow
def test_no_unit_is_proposed_that_may_not_be_stated(tmp_path: Path) -> None:
    for unit, good in UNITS.items():
        if good:
            Spelling(units=(unit,))
        else:
            with refuses("type", setting="units"):
                Spelling(units=(unit,))
    odd = ("kr.", "kr..", "r.'", "e.-", "\u2103", "\u2030", "a1", "\u043b\u0435\u0442", "#", "/-", "h/2")
    for k, unit in enumerate(odd):
        path = write(tmp_path, "v;y\n" + "".join(f"{k},5 {unit};{k % 2}\n" for k in range(40)), f"{k}.csv")
        with opened(CsvFile(path)) as (table, _):
            found, _ = look(table, target="y")  # no error
        assert set(found.proposed.units) <= {unit}, found.proposed


MIXED = "own;three;dollar;y\n" + "".join(f"{k},25;{1 + k % 9}.1{k % 7}3;${270 + k}.48;{k % 2}\n" for k in range(60))


def test_columns_may_have_the_other_decimal_sign(tmp_path: Path) -> None:
    """What has a point among decimal commas is flagged before anything is spent, and is read where it is stated."""
    path = write(tmp_path, MIXED)
    with refuses("records", "spelling=Spelling") as refused:
        load(CsvFile(path), target="y", spelling=Spelling(","))
    assert "other_decimal=('dollar',)" in owner_text(refused.value) and "thousands='.'" in owner_text(refused.value)
    assert "fields such as 1.234 have decimal points, or points between thousands" in owner_text(refused.value)
    assert "dollar may have decimal points" in owner_text(refused.value) and "270" not in refused.value.message
    both = Spelling(",", units=("$",), other_decimal=("three", "dollar"))
    with opened(CsvFile(path), spelling=both) as (table, _):
        rows = table.rows(", ".join(table.number(name) for name in ("own", "three", "dollar")))
        found, plain = look(table, target="y")
        assert found.proposed == both and not found.asks
        assert [row[0] for row in plain.rows(plain.number("dollar"))] == [270.48 + k for k in range(60)]
    texts = [line.split(";") for line in MIXED.splitlines()[1:]]
    names = ("own", "three", "dollar")
    assert rows == [tuple(both.of(n).number(text) for n, text in zip(names, line, strict=False)) for line in texts]
    assert both.of("three") == Spelling(".", units=("$",)) and both.of("own") == Spelling(",", units=("$",))
    assert Spelling(".", ",", other_decimal=("a",)).of("a") == Spelling(",", ".")
    with refuses("column", "thre"):
        with opened(CsvFile(path), spelling=Spelling(other_decimal=("thre",))):
            pass
    shown = CliRunner().invoke(describe_command, [str(path), "--decimal", ","], standalone_mode=False)
    assert "--other-decimal dollar" in shown.output


@pytest.mark.slow
def test_one_refusal_says_all_that_a_file_needs_stated(tmp_path: Path) -> None:
    """Where the encoding or the line of names must be stated, the fields' spelling is in the same refusal: as it says
    it, the file is read, and nothing is left to ask."""
    text = "Auszug der Klinik\nStand;heute;;\n\nGr\u00f6\u00dfe;Tag;Kosten;y\n"
    text += "".join(f"{k},5;{13 + k % 9}.01.2024;{k + 1}.234,50 \u20ac;{k % 2}\n" for k in range(60))
    path = write(tmp_path, text.encode("cp1252"))
    for source in (CsvFile(path), str(path)):
        with pytest.raises(RecordError) as refused:
            load(source, target="y")
        said = owner_text(refused.value)
        assert "Gr\u00f6" not in refused.value.message and not re.search(r"\d", refused.value.message)
        stated = eval(re.search(r"Spelling\(.*?\)(?=>|$| \()", said)[0], {"Spelling": Spelling})  # type: ignore[index]
        assert stated == Spelling(",", ".", "dmy", units=("\u20ac",), encoding="cp1252", header=4)
        with opened(source, spelling=stated) as (table, _):
            found, _ = look(table, target="y")
        assert found.proposed == stated and [c.kind for c in found.columns] == ["number", "date", "number", "number"]
    with refuses("records", "ascii", kind=EncodingError):
        load(CsvFile(path), target="y", spelling=Spelling(encoding="ascii"))


def test_an_empty_field_may_be_a_class(tmp_path: Path) -> None:
    """As where a cross is made or none: the refusal says how to state it."""
    path = write(tmp_path, "age,flag,y\n" + "".join(f"{k},{'A' * (k % 2)},{'X' * (k % 3 == 0)}\n" for k in range(60)))
    with refuses("records", "classes=['', 'X']"):
        load(CsvFile(path), target="y")
    assert np.array_equal(
        load(CsvFile(path), target="y", classes=["", "X"], test_fraction=0.0).y,
        np.where(np.arange(60) % 3 == 0, 1.0, -1.0),
    )
    columns = [{"kind": "number", "name": "age", "low": 0, "high": 60}]
    columns += [{"kind": "category", "name": "flag", "categories": ["A", ""]}]
    target = {"kind": "label", "name": "y", "positive": ["X"], "negative": [""]}
    schema = Schema.from_json({"version": VERSION, "columns": columns, "target": target})
    frame = {name: np.array(part, dtype=object) for name, part in zip(
        ("age", "flag", "y"), zip(*(line.split(",") for line in path.read_text().split()[1:]), strict=True), strict=True
    )}  # fmt: skip
    for source in (CsvFile(path), frame):
        data = load(source, schema=schema, test_fraction=0.0)
        assert np.array_equal(data.y, np.where(np.arange(60) % 3 == 0, 1.0, -1.0))
        assert np.array_equal(np.asarray(data.X)[:, 1:3] > 0, [[k % 2 == 1, k % 2 == 0] for k in range(60)])
    with opened(CsvFile(path)) as (table, _):
        found = check(schema, table)
    assert not found.refused and "20 of 60 records are X" in "; ".join(found.lines())


ROWS = "".join(f"{20 + k};{k / 7:.2f};{'yes' if k % 3 else 'no'}\n" for k in range(40))
ABOVE = {
    "title": ("Export of the clinic\nPeriod;2021\nage;cost;y\n", 3),
    "empty cells": ("Export;;\n;;\nage;cost;y\n", 3),
    "two lines": ("Patient;;\nage;cost;y\n", 2),
    "sep": ("sep=;\nExport;;\nage;cost;y\n", 3),
}


@pytest.mark.parametrize("above", ABOVE)
def test_lines_above_the_names_are_found_and_stated(above: str, tmp_path: Path) -> None:
    head, line = ABOVE[above]
    path = write(tmp_path, head + ROWS)
    with refuses("records", line, kind=HeaderError) as error:
        with opened(CsvFile(path)):
            pass
    assert error.value.likely == {"header": line} and "age" not in error.value.message
    with opened(CsvFile(path), spelling=Spelling(header=line)) as (table, _):
        assert table.names == ("age", "cost", "y") and table.n == 40
    shown = CliRunner().invoke(describe_command, [str(path), "--target", "y"], standalone_mode=False)
    assert f"read as with these options, which a run needs too: --header {line}" in shown.output


@pytest.mark.parametrize(
    "text", ["a;;;\n1;2;3;4\n2;3;4;5\n", "a,b\n1,x; y; z\n2,u; v; w\n3,4\n", "id;;y\n1;2;3\nu;v;4\n"]
)
def test_other_files_are_what_they_were(text: str, tmp_path: Path) -> None:
    with opened(CsvFile(write(tmp_path, text))) as (table, _):
        assert table.n > 0
    with refuses("range", -1, setting="header"):
        Spelling(header=-1)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_of_two_bytes_a_character_without_mark_is_known(encoding: str, tmp_path: Path) -> None:
    path = write(tmp_path, ("größe;y\n" + "1;0\n" * 9).encode(encoding))
    with refuses("records", encoding, kind=EncodingError) as error:
        with opened(CsvFile(path)):
            pass
    with opened(CsvFile(path), spelling=Spelling(**error.value.likely)) as (table, _):
        assert table.names == ("größe", "y")
    with refuses("file"):
        with opened(CsvFile(write(tmp_path, b"a,b\n\0\0\1,2\n"))):
            pass


ODD = {
    "second": (["a;b;c;y"] + ["1;2;x;0", "3;4;z;1"] * 20 + ["\ufeffa;b;c;y"], "1 record names the columns again"),
    "totals": (["id;b;y"] + [f"{k};2;{k % 2}" for k in range(40)] + ["Total (40 records);80;"], "called a total"),
    "years": (
        ["d;y"] + [f"256{k % 8}-01-1{k % 9};{k % 2}" for k in range(40)],
        "years 2560 to 2567, and is read as if these were of the Gregorian calendar; if they are of another, state it: "
        "<<spelling=Spelling(calendar='buddhist')>>",
    ),
    "lunar": (["d;y"] + [f"144{k % 8}-01-1{k % 9};{k % 2}" for k in range(40)], "another, write Gregorian dates"),
    "groups": (["v;y"] + [f"{1 + k % 9}.{100 + k};{k % 2}" for k in range(40)], "all 40 numbers with a point have"),
    "figures": (["v;y"] + [f'"=""{k}""";{k % 2}' for k in range(40)], "40 fields have digits and signs that no option"),
    "eras": (["v;y"] + [f"R4.1{k % 3}.{1 + k % 28};{k % 2}" for k in range(99)], "99 fields have digits and signs"),
}  # fmt: skip
EVEN = {
    "identifier": ["v;y"] + [f"P-{k:05d};{k % 2}" for k in range(40)],
    "decimals": ["v;y"] + [f"{k / 8};{k % 2}" for k in range(40)],
    "codes": ["icd;y"] + [f"I{k % 30}.9;{k % 2}" for k in range(90)],
    "ranges": ["v;y"] + [f"{k % 9}0-{k % 9}9;{k % 2}" for k in range(90)],
}


@pytest.mark.slow
def test_what_no_option_reads_is_said_and_what_is_even_is_not(tmp_path: Path) -> None:
    def said(lines: list[str]) -> str:
        with opened(CsvFile(write(tmp_path, "\n".join(lines) + "\n"))) as (table, _):
            return "; ".join(line for line in look(table, target="y")[0].notes if " alone tells the target" not in line)

    for lines, words in ODD.values():
        assert words in said(lines)
    for lines in EVEN.values():
        assert said(lines) == ""


CLEAN = {"wine": load_wine, "diabetes": load_diabetes}
WIDE = {**WIDE_DIGITS, ord("-"): "\uff0d"}
PERSIAN = {**PERSIAN_DIGITS, ord("."): ARABIC_POINT, ord(","): ARABIC_COMMA}
DRESSES: dict[str, tuple[Any, dict[str, Any]]] = {  # how a number is written, and how the file is
    "German": (lambda v: grouped(v, 4, ",", "."), {"separator": ";", "encoding": "cp1252", "end": "\r\n"}),
    "Swiss": (lambda v: grouped(v, 4, ".", "\u2019"), {"separator": "\t", "above": "Auszug\nStand heute\n"}),
    "SAP": (lambda v: grouped(abs(v), 4, ",", ".") + "-" * int(v < 0), {"separator": "|", "end": "\r"}),
    "accounts": (lambda v: f"({grouped(-v, 4, '.', ',')})" if v < 0 else grouped(v, 4, ".", ","),
                 {"encoding": "utf-16-le"}),
    "French": (lambda v: grouped(v, 4, ",", "\u202f") + "\u00a0mg", {"separator": ";", "encoding": "utf-8-sig"}),
    "Persian": (lambda v: f"{v:,.4f}".translate(PERSIAN), {"tail": ","}),
    "full-width": (lambda v: f"{v:.4f}".translate(WIDE), {"encoding": "utf-16"}),
}  # fmt: skip


def dressed(folder: Path, X: Any, y: Any, write_number: Any, habits: dict[str, Any]) -> Path:
    """A file of these records in a dress."""
    out, separator, end = io.StringIO(), habits.get("separator", ","), habits.get("end", "\n")
    out.write(habits.get("above", ""))
    rows = csv.writer(out, delimiter=separator, lineterminator=habits.get("tail", "") + end)
    rows.writerow([*(f"x{k}" for k in range(X.shape[1])), "y"])
    for row, label in zip(X, y, strict=True):
        rows.writerow([*("" if math.isnan(v) else write_number(v) for v in row), label])
    path = folder / "dressed.csv"
    path.write_bytes(out.getvalue().encode(habits.get("encoding", "utf-8")))
    return path


@pytest.mark.parametrize(
    "dress", [name if name == "German" else pytest.param(name, marks=pytest.mark.slow) for name in DRESSES]
)
def test_a_clean_table_in_any_dress_is_the_same_matrix(dress: str, tmp_path: Path) -> None:
    """By the spelling that a look proposes, and by nothing else; so a model of it is the same, and its figures are."""
    bunch = CLEAN["wine" if dress == "SAP" else "diabetes"]()
    rng, few = np.random.default_rng(4), np.s_[20:160, :6]
    X = np.round(np.asarray(bunch.data, dtype=float)[few] * np.array([1000, 1, 1, 1000, 1, 1]) - 1, 4)
    X[rng.random(X.shape) < 0.03] = np.nan
    y = np.where(np.asarray(bunch.target)[20:160] > 0.5 + (dress != "SAP") * 140, "sick", "well")
    path = dressed(tmp_path, X, y, *DRESSES[dress])
    shown = CliRunner().invoke(describe_command, [str(path), "--target", "y", "--json"], standalone_mode=False)
    proposed = of_json(Spelling, json.loads(shown.stdout)["proposed"])
    columns = [{"kind": "number", "name": f"x{k}", "low": -50.0, "high": 2e6} for k in range(X.shape[1])]
    target = {"kind": "label", "name": "y", "positive": ["sick"], "negative": ["well"]}
    schema = Schema.from_json({"version": VERSION, "columns": columns, "target": target})
    plain = load({**{f"x{k}": v for k, v in enumerate(X.T)}, "y": y.astype(object)}, schema=schema, test_fraction=0.0)
    found = load(CsvFile(path), schema=schema, spelling=proposed, test_fraction=0.0)
    assert len(set(y)) == 2 and np.isnan(X).any() and (X < 0).any()
    assert np.array_equal(found.X, plain.X) and np.array_equal(found.y, plain.y)


@pytest.mark.slow
def test_what_a_run_needs_stated_is_said_at_once(tmp_path: Path) -> None:
    """By the first error about a file, with its words for missing; and by a look, with columns that a run without a
    schema reads though a schema would leave them out."""
    rows = [
        f"P{k:05};{k % 40},5;{'k.A.' if k % 9 == 0 else f'{k % 50},25'};{'ja' if k % 2 else 'nein'}" for k in range(400)
    ]
    path = tmp_path / "klinik.csv"
    path.write_bytes("\r\n".join(["Nummer;Größe;Wert;Ziel", *rows, ""]).encode("cp1252"))
    with refuses("records", "decimal=','", "missing=('k.a.',)", "encoding='cp1252'"):
        load(CsvFile(path), target="Ziel")
    shown = CliRunner().invoke(describe_command, [str(path), "--target", "Ziel"], standalone_mode=False)
    assert "Nummer: identifier, left out" in shown.output
    assert "which costs noise; to leave them out: --drop Nummer\n" in shown.output
    clean = CliRunner().invoke(
        describe_command, [str(path), "--target", "Ziel", "--drop", "Nummer"], standalone_mode=False
    )
    assert "which costs noise" not in clean.output


def explored(path: Path) -> TableProfile:
    with opened(CsvFile(path)) as (table, _):
        return explore(table, target="y")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "units"),
    [
        ("R {:,.2f}", ("R",)),  # rand
        ("R{:,.2f}", ("R",)),
        ("S/ {:,.2f}", ("S/",)),  # soles
        ("Bs. {:,.2f}", ("Bs.",)),  # bolivianos
        ("Tk {:,.2f}", ("Tk",)),  # taka
        ("E{:.1f}", ()),  # codes
        ("OP {:.0f}", ()),
        ("klo {:.0f}.30", ()),  # times of day
    ],
)
def test_a_short_word_before_amounts_is_a_unit_and_one_before_codes_and_times_is_none(
    field: str, units: tuple[str, ...], tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    scale = 24 if "klo" in field else 1e5
    rows = "".join(f'"{field.format(scale * v)}",{k % 2}\n' for k, v in enumerate(rng.random(300)))
    found = explored(write(tmp_path, "v,y\n" + rows))
    assert found.proposed.units == units
    assert found["v"].kind == ("number" if units else "time" if "klo" in field else "identifier")


@pytest.mark.slow
@pytest.mark.parametrize(
    "field",
    [
        "{}h {}m",
        "{} days {} hours",
        "37.{} ± 0.{}",
        "tháng {} năm 20{:02}",
    ],
)
def test_figures_that_are_left_out_are_said(field: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = "".join(f"{field.format(*rng.integers(10, 60, 2))},{k % 2}\n" for k in range(300))
    found = explored(write(tmp_path, "v,y\n" + rows))
    assert found["v"].kind != "number" and any("that no option reads" in note for note in found.notes)


def test_codes_of_statistics_programs_mean_that_there_is_no_value(tmp_path: Path) -> None:
    fields = (".A" if k % 9 == 0 else ".z" if k % 11 == 0 else str(k / 7) for k in range(300))
    rows = "".join(f"{field},{k % 2}\n" for k, field in enumerate(fields))
    assert explored(write(tmp_path, "v,y\n" + rows)).proposed.missing == (".a", ".z")


def test_marks_without_width_and_spaces_at_the_ends_of_a_value_are_none_of_it(tmp_path: Path) -> None:
    rows = "".join(
        f"{v},{k % 2}\n" for k, v in enumerate(["m", "\u200fm", "m\u202c", "\u2067f\u2069", "f\u00a0", "f"] * 40)
    )
    found = explored(write(tmp_path, "\u200ev\u200f,y\n" + rows))
    assert found["v"].values == (("f", 120), ("m", 120))
    assert canonical("\u202am\u202c") == "m"


def test_rows_of_another_length_are_counted_once(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,y\n" + "1,2,0\n" * 30 + "1,2\n" + "1,2,0\n" + "1,2,3,4\n" + "1\n" + "1,2,0\n")
    with refuses("records", 32, 2):
        explored(path)


def test_numbers_that_a_survey_cannot_tell_apart_are_said(tmp_path: Path) -> None:
    assert (SMALLEST, LARGEST) == (2.0**LOWEST, 2.0**HIGHEST)
    rows = "".join(f"{1_600_000_000_000 + 7919 * k},{k * 1e-10},{k},{k % 2}\n" for k in range(300))
    said = [note for note in explored(write(tmp_path, "ms,mol,n,y\n" + rows)).notes if "tells none apart" in note]
    assert [note.split("'")[1] for note in said] == ["ms", "mol"]
