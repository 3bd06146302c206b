"""Codes are words, and words such as NA are values, where their owner or a schema says so; a look proposes both."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from click.testing import CliRunner

from dpmpc.cli.main import group
from dpmpc.intake.encodings import likely
from dpmpc.intake.hashing import bucket, bucket_sql
from dpmpc.intake.profile import TableProfile, explore, look
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.staging import held
from dpmpc.intake.table import code_sql, value_sql
from dpmpc.records import CsvFile, Schema, load
from dpmpc.records.derive import TableSettings, features_of
from dpmpc.records.loading import opened
from dpmpc.records.schema import Categorical, Labels
from tests.refusals import refuses
from tests.tables import write

pytestmark = pytest.mark.usefixtures("small_tables")

N = 120
WARDS = ("001", "002", "013", "101", "7")


def csv(folder: Path, separator: str = ";", **columns: list[str]) -> Path:
    rows = [separator.join(columns), *(separator.join(row) for row in zip(*columns.values(), strict=True))]
    return write(folder, "\n".join(rows) + "\n")


def some(*values: str) -> list[str]:
    return [values[k % len(values)] for k in range(N)]


def explored(path: Path, **stated: object) -> TableProfile:
    with opened(CsvFile(path), spelling=Spelling(**stated)) as (table, _):  # type: ignore[arg-type]
        return explore(table, target="y")[0]


def test_codes_with_zeros_before_them_are_proposed_as_words_and_asked(tmp_path: Path) -> None:
    path = csv(tmp_path, ward=some(*WARDS), beds=[str(k % 40) for k in range(N)], y=some("a", "b"))
    found = explored(path)
    assert found.proposed == Spelling(words=("ward",)) and found["ward"].kind == "category"
    assert found["ward"].shared == tuple(sorted(WARDS)) and found["beds"].kind == "number"
    assert len(found.asks) == 1 and "ward has numbers with zeros before them" in found.asks[0]
    with opened(CsvFile(path)) as (table, _):
        (line,) = look(table, target="y")[0].findings  # it is asked, or it is said: never both
        assert line.startswith("please decide: codes: ward has numbers with zeros before them")
        assert line.endswith("where nothing is stated; to read them as words: <<spelling=Spelling(words=('ward',))>>")


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ([f"{331 * (k % 37):05d}" for k in range(N)], "category"),  # of one width
        ([f"{97 * k:012d}" for k in range(N)], "number"),  # amounts, all different
        (["0", "0.5", "0.25", "3"], "number"),
        (["250.01", "V27.0", "E849", "401.9"], "category"),
        ([f"11010119900101{k:03d}{'0123456789X'[k % 11]}" for k in range(N)], "identifier"),
        ([f"{1000 + k % 9}" for k in range(N)], "number"),
    ],
)
def test_what_is_a_code_and_what_a_number(tmp_path: Path, fields: list[str], kind: str) -> None:
    commas = {"z": some("1,5", "2,25", "3,5", "0,7")} if kind == "category" else {}
    found = explored(csv(tmp_path, v=some(*fields), **commas, y=some("a", "b")))
    assert found["v"].kind == kind and not found.proposed.units and not found.proposed.other_decimal
    assert all(found[name].kind == "number" for name in commas)


def test_what_is_stated_to_be_words_is_read_so_and_a_schema_comes_first(tmp_path: Path) -> None:
    path = csv(tmp_path, ward=some(*WARDS), y=some("a", "b"))
    frame = pd.DataFrame({"ward": [int(w) for w in some(*WARDS)], "y": some("a", "b")})
    for source, first in ((CsvFile(path), "001"), (frame, "1")):
        for spelling, bucketed in ((Spelling(words=("ward",)), bucket("ward", first, 256)), (Spelling(), None)):
            with opened(source, spelling=spelling) as (table, _):
                for each in (table, held(table, table.names)):
                    asked = [value_sql(each, "ward", read="either"), bucket_sql(each, "ward", 256)]
                    value, place = next(iter(each.blocks(asked)))
                    assert (np.isinf(value[0]) and place[0] == bucketed) if bucketed is not None else value[0] == 1
                    code = next(iter(each.blocks([code_sql(each, "ward", {"1": 0, "13": 1})])))[0]
                    assert code[:3].tolist() == [0, -2, 1]  # of a schema's list numbers are compared as numbers
                    assert next(iter(each.blocks([value_sql(each, "ward")])))[0][2] == 13
    with refuses("column", "wart"), opened(CsvFile(path), spelling=Spelling(words=("wart",))):
        pass


def test_na_is_a_value_where_its_owner_or_a_schema_says_so(tmp_path: Path) -> None:
    path = csv(tmp_path, country=some("NA", "NL", "", "DE"), other=some("NA", "x"), y=some("a", "b"))
    gone = {}
    for kept in ((), ("na",), ("country=NA",)):
        with opened(CsvFile(path), spelling=Spelling(kept=kept)) as (table, _):
            plain = held(table, table.names)
            gone[kept] = plain.one(*(f"count(*) FILTER (WHERE {plain.missing(c)})" for c in ("country", "other")))
    assert gone == {(): (N // 2, N // 2), ("na",): (N // 4, 0), ("country=NA",): (N // 4, N // 2)}
    schema = Schema((Categorical("country", ("NA", "NL")),), Labels("y", ("b",), ("a",)))
    found = load(CsvFile(path), schema=schema, test_fraction=0.0)
    assert found.counts[0].missing == N // 4 and found.counts[0].unknown == N // 4
    with refuses("unknown", "none", setting="kept"):
        Spelling(kept=("none",))


def test_na_is_named_where_it_may_be_a_value(tmp_path: Path) -> None:
    """Among short codes, or beside empty fields; not as R writes what is missing."""
    columns = {"country": some("NA", "NL", "DE", "FR", "IT", "ES", "PT"), "sex": some("M", "F", "NA")}
    columns |= {"city": some("Napoli", "NA", "", "Roma"), "n": some("1", "NA", "3"), "y": some("a", "b")}
    notes = [note for note in explored(csv(tmp_path, **columns)).notes if "kept=" in note]
    assert [note.partition(":")[0] for note in notes] == ["column 'country'", "column 'city'"]
    assert "kept=('country=NA',)" in notes[0] and "18 fields" in notes[0]
    assert not [n for n in explored(csv(tmp_path, **columns), kept=("na",)).notes if "kept=" in n]


def many_like(fields: list[str]) -> list[str]:
    """The fields, and others that differ in one of their first two digits: few different ones would be categories."""
    found = dict.fromkeys(fields)
    for field in fields:
        for at in [k for k, each in enumerate(field) if each.isdigit()][:2]:
            zero = ord(field[at]) - int(field[at])
            found.update(dict.fromkeys(f"{field[:at]}{chr(zero + k)}{field[at + 1 :]}" for k in range(1, 10)))
    return list(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "proposed", "value"),
    [
        (["%5", "%85", "%100"], {"units": ("%",)}, 5),
        (["1.234 kr.", "12.500 kr.", "850 kr."], {"decimal": ",", "thousands": ".", "units": ("kr.",)}, 1234),
        (["$ (1,234.50)", "$ 12.50", "$ 3,000.25"], {"thousands": ",", "units": ("$",)}, -1234.5),
        (["\u0e55\u0e56 \u0e1b\u0e35", "\u0e57 \u0e1b\u0e35"], {"units": ("\u0e1b\u0e35",)}, 56),
    ],
)
def test_more_numbers_with_units(tmp_path: Path, fields: list[str], proposed: dict[str, object], value: float) -> None:
    columns = {"v": some(*many_like(fields)), "y": some("a", "b")}
    if proposed.get("decimal"):
        columns["w"] = some("1,5", "2,75")
    found = explored(csv(tmp_path, **columns))
    assert found["v"].kind == "number" and found["v"].unread == 0
    assert found.proposed == Spelling(**proposed)  # type: ignore[arg-type]
    assert found.proposed.number(fields[0]) == value


def test_two_digits_of_a_year_after_a_month_by_name_are_asked_for(tmp_path: Path) -> None:
    found = explored(csv(tmp_path, d=some("05-Mar-21", "17-AUG-99", "1 Dec 03"), y=some("a", "b")))
    assert found["d"].kind == "date" and found.proposed.century and not found.proposed.dates and len(found.asks) == 1


def test_nil_and_minus_beside_plus_are_results(tmp_path: Path) -> None:
    found = explored(csv(tmp_path, v=some("+", "++", "-", "Nil"), w=some("1.5", "-", "2"), y=some("a", "b")))
    assert found["v"].distinct == 4 and found["v"].missing == 0
    assert found.proposed.missing == ("w=-",) and found["w"].missing == N // 3 and found["w"].kind == "number"


@pytest.mark.parametrize("encoding", ["iso8859-5", "cp1251", "koi8_r", "cp866"])
def test_cyrillic_encodings_are_told_apart(tmp_path: Path, encoding: str) -> None:
    words = "Возраст;Отделение\n34;Хирургия\n51;Приёмный покой\n47;Терапия, женщины\n"
    (tmp_path / "a.csv").write_bytes(words.encode(encoding))
    assert likely(tmp_path / "a.csv") == encoding


def test_the_options_are_options(tmp_path: Path) -> None:
    path = csv(tmp_path, ward=some(*WARDS), country=some("NA", "NL", "DE"), y=some("a", "b"))
    options = ["--words", "ward", "--kept-word", "country=NA", "--json"]
    said = CliRunner().invoke(group, ["describe", str(path), *options], catch_exceptions=False)
    assert '"stated": {\n    "kept": [' in said.output and '"words": [' in said.output


def test_columns_of_types_that_no_model_reads_are_named_at_once_and_times_of_day_are_read() -> None:
    times = [pd.Timestamp("2024-01-01 13:45") + pd.Timedelta(minutes=7 * k) for k in range(N)]
    frame = pyarrow.table({
        "a": [{"k": k} for k in range(N)], "b": [[k] for k in range(N)], "n": range(N),
        "t": [each.time() for each in times], "y": list(some("a", "b")),
    })  # fmt: skip
    with opened(frame) as (table, _):
        found = look(table, target="y")[0]
        assert found["t"].kind == "time" and found["a"].kind == found["b"].kind == "other"
        assert any(note.endswith("leave them out: <<drop=['a', 'b']>>") for note in found.notes)
        with refuses("column", 2, "drop=['a', 'b']", setting="drop"):
            features_of(table, TableSettings("y"))
        assert features_of(table, TableSettings("y", drop=("a", "b"))) == ["n", "t"]


def test_a_frame_has_a_word_for_missing_of_one_column() -> None:
    frame = pd.DataFrame({"v": some("1,5", "x", "2"), "w": some("x", "z"), "y": some("a", "b")})
    with opened(frame, spelling=Spelling(decimal=",", missing=("v=x",))) as (table, _):
        found = look(table, target="y")[0]
    assert found["v"].missing == N // 3 and found["v"].kind == "number" and found["w"].missing == 0
