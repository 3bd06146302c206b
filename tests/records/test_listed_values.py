"""A value of a public list is the same value in every file, however its owner spells, and for whatever it is listed."""

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import UsageError
from dpmpc.intake.missing import keeping
from dpmpc.intake.spelling import Spelling, listed, named
from dpmpc.intake.staging import held
from dpmpc.intake.table import Table, code_sql
from dpmpc.learning.additive import Additive, Curve
from dpmpc.records import CsvFile
from dpmpc.records.check import check
from dpmpc.records.derive import TableSettings
from dpmpc.records.loading import opened
from dpmpc.records.mapping import Mapping
from dpmpc.records.schema import Categorical, Classes, Labels, Schema
from dpmpc.records.targets import Floats, Target
from dpmpc.statistics.columns import category
from dpmpc.tables.asked import stats
from dpmpc.tables.synth import synth

EACH = 40  # records of each field


@dataclass(frozen=True)
class Spelled:
    """Fields as an owner writes them, and the place of the listed value that each is; -2 for none."""

    spelling: Spelling
    values: tuple[str, ...]
    fields: dict[str, int]


ICD = ("401.9", "250.10", "V45.81")
CASES = {
    "plain": Spelled(Spelling(), ("1", "2.5", "low"), {"1": 0, "1.0": 0, "2.50": 1, "low": 2, " low ": 2, "Low": -2}),
    "codes beside decimal commas": Spelled(
        Spelling(decimal=","), ICD, {"401.9": 0, "250.10": 1, "V45.81": 2, "401,9": 0, "4019": -2, "250.1": 1}
    ),
    "codes in a column of the other sign": Spelled(
        Spelling(other_decimal=("c",)), ICD, {"401.9": 0, "250.10": 1, "V45.81": 2, "401,90": 0, "1.401.9": -2}
    ),
    "numbers with commas": Spelled(Spelling(decimal=","), ("1.5", "20"), {"1,5": 0, "1,50": 0, "20,0": 1, "2,0": -2}),
    "as the file has it": Spelled(Spelling(decimal=","), ("1,5", "2,5"), {"1,5": 0, "2,5": 1, "3,5": -2}),
    "thousands": Spelled(Spelling(thousands=","), ("1234", "5"), {"1,234": 0, "1234": 0, "5": 1, "1.234": -2}),
    "points between thousands": Spelled(
        Spelling(decimal=",", thousands="."),
        ("1234", "1.234", "401.9"),
        {"1.234": 0, "1234": 0, "1,234": 1, "401.9": 2, "4.019": -2},
    ),
    "codes with zeros": Spelled(Spelling(), ("007", "044", "103"), {"007": 0, "7": 0, "044": 1, "103": 2, "70": -2}),
    "codes with zeros that are words": Spelled(
        Spelling(words=("c",)), ("007", "044", "103"), {"007": 0, "7": 0, "044": 1, "103": 2, "70": -2}
    ),
    "codes with zeros beside decimal commas": Spelled(
        Spelling(decimal=",", words=("c",)), ("007", "01.5"), {"007": 0, "7": 0, "01.5": 1, "70": -2}
    ),
    "codes that zeros tell apart": Spelled(
        Spelling(), ("250.1", "250.10", "401.9"),
        {"250.1": 0, "250.10": 1, " 250.10 ": 1, "0250.1": 0, "401.9": 2, "401.90": 2, "25.01": -2},
    ),
    "such codes beside decimal commas": Spelled(
        Spelling(decimal=","), ("250.1", "250.10", "V45.8"),
        {"250.1": 0, "250.10": 1, "250,1": 0, "V45.8": 2, "250,2": -2},
    ),
    "shares": Spelled(Spelling(percents=("c",)), ("0.85", "1"), {"85%": 0, "0.85": 0, "100 %": 1, "85": -2}),
    "a sign of per cent in a list": Spelled(Spelling(), ("85%", "9%"), {"85%": 0, "9%": 1, "85": -2}),
    "units": Spelled(Spelling(units=("kg",)), ("70", "80"), {"70 kg": 0, "70": 0, "80kg": 1, "7 kg": -2}),
    "limits that are levels": Spelled(Spelling(units=("<", ">")), ("<30", ">30"), {"<30": 0, ">30": 1, "30": -2}),
    "below zero": Spelled(Spelling(negative="parentheses"), ("-5", "5"), {"(5)": 0, "-5": 0, "5": 1, "(6)": -2}),
    "words": Spelled(
        Spelling(), ("true", "Zürich", "NA"), {"TRUE": 0, "true": 0, "Zu\u0308rich": 1, "NA": 2, "zürich": -2}
    ),
    "lines": Spelled(Spelling(), ("a b", "d"), {"a\r\nb": 0, "a\nb": 0, "a\rb": 0, "a b": 0, "d": 1, "a  b": -2}),
}


def written(case: Spelled, folder: Path) -> CsvFile:
    path = folder / "r.csv"
    fields = [field for field in case.fields for _ in range(EACH)]
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL)
        rows.writerow(["c", "y", "site"])
        rows.writerows([field, "ab"[k % 2], "north" if k % 2 else "south"] for k, field in enumerate(fields))
    return CsvFile(path)


def places(case: Spelled) -> list[int]:
    return [place for place in case.fields.values() for _ in range(EACH)]


def codes_of(table: Table, sql: str) -> list[int]:
    return [int(code) for (codes,) in table.blocks([sql]) for code in codes]


def target_codes(table: Table, target: Target) -> Floats:
    mapping = Mapping(table, Schema((Categorical("y", ("a", "b")),), target))
    return np.concatenate([y for _, y, _ in mapping.blocks()])


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_every_way_that_reads_a_list_finds_the_same_values(case: Spelled, tmp_path: Path) -> None:
    source, meant = written(case, tmp_path), np.array(places(case))
    schema = Schema((Categorical("c", case.values),), Labels("y", ("b",), ("a",)))
    assert schema.listed["c"] == category("c", case.values).levels
    zero = Spelling(**{**case.spelling.options(), "misfits": "zero"})
    with opened(source, spelling=zero, names=("c", "y")) as (found, _):
        table = keeping(found, {"c": case.values})
        (level,), by = category("c", case.values).sql(table), {v: k for k, v in enumerate(schema.listed["c"])}
        assert codes_of(table, level) == codes_of(table, code_sql(table, "c", by)) == meant.tolist()
        for each in (table, held(table, ["c", "y"])):
            assert codes_of(each, level if each is table else code_sql(each, "c", by)) == meant.tolist()
        read = np.concatenate([block[0] for block, _, _ in Mapping(table, schema).blocks()])
        assert read.tolist() == meant.tolist()  # what is trained on, and predicted
        counts = {each.name: each for each in check(schema, table).counts}
        assert counts["c"].unknown == (meant == -2).sum() and counts["c"].missing == 0
        classes = target_codes(table, Classes("c", case.values))
        assert np.array_equal(classes, np.where(meant < 0, np.nan, meant), equal_nan=True)
        for positive in case.values[:2]:
            label = TableSettings("c", classes=case.values[:2], positive=positive).stated
            at = case.values.index(positive)
            known = np.where(meant == at, 1.0, np.where(meant == 1 - at, -1.0, np.nan))
            assert label is not None and np.array_equal(target_codes(table, label), known, equal_nan=True)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_statistics_and_synthetic_tables_count_what_is_listed(case: Spelled, tmp_path: Path) -> None:
    """The noise of a count has a deviation below 1 at this budget: a miss by 9 has a chance below 1e-15."""
    source, there = written(case, tmp_path), Counter(places(case))
    promise: dict[str, Any] = {
        "owners": "site", "bounds": {"c": list(case.values), "y": ["a", "b"]}, "spelling": case.spelling,
        "engine": "clear", "epsilon": 25.0, "delta": 1e-5, "hopeless": "allow",
    }  # fmt: skip
    quoted = [f'"{value}"' for value in case.values]
    asked = [
        'table("c")', *(f'count where "c" = {value}' for value in quoted),
        f'count where "c" in {{{", ".join(quoted[:2])}}}',
    ]  # fmt: skip
    table, *singles, both = stats(source, asked, **promise).outcome.answers
    lines = {line.labels[0]: line.number.estimate or 0.0 for line in table.lines if line.statistic != "percent"}
    for k, value in enumerate(case.values):
        assert abs(lines[value] - there[k]) < 9 and abs((singles[k].lines[0].number.estimate or 0.0) - there[k]) < 9
    assert abs((both.lines[0].number.estimate or 0.0) - there[0] - there[1]) < 9
    drawn = Counter(synth(source, seed=1, **promise).values["c"])
    assert all(abs(drawn[value] - there[k]) < 12 for k, value in enumerate(case.values)) and {*drawn} <= {
        *case.values, None, "(other)"
    }  # fmt: skip


def test_a_list_calls_its_values_as_it_has_them_and_has_each_once() -> None:
    assert [*map(listed, ("007", " 250.10", "4.0", "1e3", "TRUE", "-0.50", "0.5"))] == [
        "007", "250.10", "4", "1000", "true", "-0.5", "0.5",
    ]  # fmt: skip
    assert named("7", ("044", "007")) == "007" and named("7.5", ("044", "007")) is None
    for twice in (("7", "007"), ("250.1", "0250.1"), ("4", "4.0")):
        with pytest.raises(UsageError):
            Categorical("c", twice)
        with pytest.raises(UsageError):
            category("c", twice)
        with pytest.raises(UsageError):
            Classes("c", twice)
        assert named(twice[1], twice[:1]) == twice[0]


def test_an_additive_model_in_python_finds_codes_by_either_way_of_writing() -> None:
    curve = Curve("c", table={"007": 1.5, "250.10": -2.0}, missing=0.25)
    model = Additive(Labels("y", ("b",), ("a",)), 0.0, (curve,))
    given = {"c": ["007", 7, "7", "250.10", 250.1, "8", None]}
    assert model.contribution(curve, given)[:, 0].tolist() == [1.5, 1.5, 1.5, -2.0, -2.0, 0.0, 0.25]
