"""Columns of few spellings: what is worked out once a spelling is what is worked out once a record, to the last bit."""

from pathlib import Path

import numpy as np
import pytest

from dpmpc.data.hashing import BUCKETS, bucket_sql
from dpmpc.data.loading import opened
from dpmpc.data.spelled import reader
from dpmpc.data.table import Table, code_sql, value_sql

TEXTS = [None, "", " 7 ", "7", "1e3", "-0.1", "nan", "1_0", "it's", "a\\tb", "a\tb", "True", "NA", "2024-03-05",
         "Mar 5, 2024", "é", "0x10", "inf"]  # fmt: skip


def asked(table: Table) -> list[str]:
    """Of every kind that is asked of a column of texts."""
    return [
        value_sql(table, "t", read="either"),
        value_sql(table, "t", read="date"),
        bucket_sql(table, "t", BUCKETS),
        code_sql(table, "t", {"7": 0, "true": 1, "é": 2}),
    ]


@pytest.mark.parametrize("many", [False, True])
def test_a_spelling_is_read_as_its_records_are(tmp_path: Path, many: bool) -> None:
    rng = np.random.default_rng(3)
    texts = [TEXTS[k] for k in rng.integers(len(TEXTS), size=3000)]
    if many:  # of which each may be different: asked record by record
        texts = [text if k % 2 else f"{text} {k}" for k, text in enumerate(texts)]
    with opened({"t": np.array(texts, dtype=object)}, folder=tmp_path) as (table, _):
        how = reader(table, "t", asked)
        assert bool(how.values) is not many
        plain = [np.concatenate(parts) for parts in zip(*table.blocks(asked(table)), strict=True)]
        found = [np.concatenate(parts) for parts in zip(*map(how.read, table.blocks(how.expressions)), strict=True)]
    for one, other in zip(plain, found, strict=True):
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes()


def test_one_late_spelling_too_many_is_seen(tmp_path: Path) -> None:
    texts = ["a"] * 20000 + [f"b{k}" for k in range(300)]
    with opened({"t": np.array(texts, dtype=object)}, folder=tmp_path) as (table, _):
        assert not reader(table, "t", asked).values


def test_numbers_are_asked_for_themselves(tmp_path: Path) -> None:
    with opened({"t": np.arange(5.0)}, folder=tmp_path) as (table, _):
        how = reader(table, "t", lambda each: [value_sql(each, "t")])
        assert not how.values and how.expressions == (value_sql(table, "t"),)
