"""A survey publishes nothing of a column whose records are all alike: none has a value, or all have the same word."""

import numpy as np
import pytest

from dpmpc.learning.survey import FoundColumn, Survey
from dpmpc.learning.survey_columns import surveyed_schema
from dpmpc.records.schema import Labels, Schema

N, NOISE = 3000, 30.0
ROWS = np.arange(N)


def column(*words: int) -> np.ndarray:
    """Fields by turns: a bucket of texts each, -1 for none that is there."""
    place = np.resize(np.array(words, dtype=float), N)
    return np.column_stack([np.where(place < 0, np.nan, np.inf), place])


@pytest.mark.parametrize("noise", [0.0, NOISE])
def test_columns_whose_records_are_all_alike_are_left_out(noise: float) -> None:
    columns = {"empty": column(-1), "constant": column(7), "ticked": column(7, -1), "ward": column(7, 9),
               "rarely": np.where(ROWS[:, None] % 10 == 0, column(7), column(-1))}  # fmt: skip
    asked, rng = Survey((), tuple(columns), buckets=128), np.random.default_rng(3)
    total = asked.encode(columns)
    found = asked.findings(total + rng.normal(0, noise, len(total)), N, noise)
    for name in ("empty", "constant"):
        assert found.columns[name] == FoundColumn(None, 128, (), False)
    for name in ("ticked", "rarely"):
        assert (found.columns[name].kept, found.columns[name].missing) == ((7,), True)
    assert found.columns["ward"].kept == (7, 9) and not found.columns["ward"].missing
    schema = surveyed_schema(found, Schema((), Labels("y", ("1",), ("0",)), unknown=tuple(columns)))
    assert [each.name for each in schema.columns] == ["ticked", "ward", "rarely"]
