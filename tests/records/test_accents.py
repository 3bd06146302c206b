"""An accent that a file writes as a character of its own: the same value, and the same column, as that letter."""

import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmpc.intake.hashing import bucket, bucket_sql
from dpmpc.intake.spelling import Spelling, canonical
from dpmpc.intake.table import code_sql, value_sql
from dpmpc.learning.additive import Additive
from dpmpc.records.check import check
from dpmpc.records.derive import TableSettings, schema_of_bounds
from dpmpc.records.loading import CsvFile, opened
from dpmpc.records.mapping import Mapping, owner_numbers
from dpmpc.records.ownership import KeptOwners
from dpmpc.records.persons import kept, persons_of
from dpmpc.records.schema import Categorical, Labels, Schema, checked_bounds
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.tables import Tables
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")
TEXTS = ("Médecine", "Å", "한국", "ἄλφα", "ﬁ", "é́", "Škoda", "Ω", "a", "TRUE", "Ärzte 3", "ö", "1,5 Å", "2021年3月4日")
WAYS = ("NFC", "NFD")
COMPOSED, DECOMPOSED = (unicodedata.normalize(way, "Müdigkeit") for way in WAYS)


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


@pytest.fixture(params=["frame", "file", "spelled otherwise"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[object, Spelling]:
    """Every text in both encodings, a row of each, as a frame or a file."""
    frame = pd.DataFrame({"v": [unicodedata.normalize(way, text) for text in TEXTS for way in WAYS]})
    if request.param == "frame":
        return frame, Spelling()
    frame.to_csv(tmp_path / "all.csv", index=False)
    spelling = Spelling(decimal=",", units=(decomposed("Å"),), missing=(decomposed("ö"),), header=1)
    return CsvFile(tmp_path / "all.csv"), spelling if request.param == "spelled otherwise" else Spelling(header=1)


def test_both_encodings_are_one_value(both: tuple[object, Spelling]) -> None:
    source, spelling = both
    values = {canonical(text): k for k, text in enumerate(TEXTS)}
    with opened(source, spelling=spelling) as (table, _):
        asked = (code_sql(table, "v", values), bucket_sql(table, "v", 1 << 20), value_sql(table, "v", read="either"))
        found = [np.concatenate(parts) for parts in zip(*table.blocks(asked), strict=True)]
    for column in found:
        np.testing.assert_array_equal(column[::2], column[1::2])
    gone = np.array([spelling.is_missing(text) for text in TEXTS])
    assert gone.any() == bool(spelling.missing)
    hashed = [-1 if none else bucket("v", decomposed(text), 1 << 20) for text, none in zip(TEXTS, gone, strict=True)]
    assert found[1][::2].tolist() == hashed and len(set(hashed)) == len(TEXTS)
    ways = [(spelling.number(text), spelling.days(text)) for text in map(decomposed, TEXTS)]
    assert ways == [(spelling.number(text), spelling.days(text)) for text in TEXTS]
    read = [number if number is not None else days for number, days in ways]
    expected = [np.nan if none else np.inf if x is None else x for x, none in zip(read, gone, strict=True)]
    np.testing.assert_array_equal(found[2][::2], expected)


def test_case_and_what_only_looks_alike_stay_apart() -> None:
    assert len({canonical(text) for text in ("ä", "Ä", "a", "ﬁ", "fi", "µ", "μ", "①", "1")}) == 9


def test_schemas_levels_conditions_questions_columns() -> None:
    """One question, one schema, records in the one encoding or the other: the same sums."""
    frame = pd.DataFrame({COMPOSED: ["stark", "é", None, "É"], "tag": ["é", "é", "x", COMPOSED]})
    other = frame.map(lambda v: decomposed(v) if isinstance(v, str) else v).rename(columns=decomposed)
    sums = set()
    for way in (str, decomposed):
        bounds = checked_bounds({way(COMPOSED): ["stark", way("é")], "tag": [way("é"), way(COMPOSED)]}, "bounds")
        columns = Columns.of_bounds(bounds)
        for written in (str, decomposed):
            line = written(f"table({COMPOSED}) by tag where tag in {{é, {COMPOSED}}}")
            tables = Tables.of(columns, [line])
            for records in (frame, other):
                with opened(records) as (table, _):
                    sums.add(tuple(tables.encode(table)[0].tolist()))
    assert len(sums) == 1 and sum(next(iter(sums))) > 0
    with refuses("unique", "tag"):
        checked_bounds({"tag": ["é", decomposed("é")]}, "bounds")
    with refuses("unique", "é"), opened(pd.DataFrame({"é": [1], decomposed("é"): [2]})):
        pass


def test_owners_persons_and_training_rows() -> None:
    frame = pd.DataFrame({
        "site": [COMPOSED, DECOMPOSED, "b", "b"], "who": ["é", decomposed("é"), "x", "y"],
        COMPOSED: ["é", decomposed("é"), "x", "x"], "sick": ["ja", "nein", "ja", "nein"],
    })  # fmt: skip
    with opened(frame) as (table, _):
        _, names = owner_numbers(table, "site")
        assert names == tuple(sorted((COMPOSED, "b"), key=str.encode))
        assert len(np.unique(persons_of(kept(table, KeptOwners("who", 2, None, 0))))) == 3
        bounds = {DECOMPOSED: [decomposed("é"), "x"], "sick": ["nein", "ja"]}
        schema = schema_of_bounds(table, TableSettings("sick", "site", ("who",)), bounds)  # type: ignore[arg-type]
        assert schema.columns == (Categorical(COMPOSED, ("é", "x")),)
        others = [each.column for each in check(schema, table).found if "not read" in each.text]
        assert others == ["site, who"]
        codes, y = next((values[0], y) for values, y, _ in Mapping(table, schema).blocks())
    assert codes.tolist() == [0, 0, 1, 1] and y.tolist() == [1, -1, 1, -1]


def test_predictions_of_both_encodings_agree() -> None:
    schema = Schema((Categorical("v", ("é", "x")),), Labels("sick", ("ja",), ("nein",)), True, "fill", "public")
    model = Additive.of(schema.on("additive"), np.array([1.0, -1.0, 0.5]))
    found = model.decision_function({"v": ["é", decomposed("é"), "x", "É"]})
    assert found[0] == found[1] > found[2] and found[3] != found[0]
    assert replace(model, intercept=0.0).decision_function({"v": ["é"]})[0] != 0
