"""Buckets of texts: the database's are those of the function; numbers and dates have none."""

import datetime

import pandas as pd

from dpmpc.intake.hashing import bucket, bucket_sql
from dpmpc.records.check import check
from dpmpc.records.loading import opened
from dpmpc.records.schema import Labels, Schema, Surveyed


def test_only_texts_have_buckets() -> None:
    frame = pd.DataFrame({
        "word": ["Rome", None, "true", "Ä b"], "number": [1.0, 2.0, 3.0, 4.0],
        "day": pd.to_datetime([datetime.date(2020, 1, k) for k in range(1, 5)]),
    })  # fmt: skip
    with opened(frame) as (table, _):
        [found] = [list(block) for block in table.blocks([bucket_sql(table, name, 97) for name in frame.columns])]
    words = [-1 if word is None else bucket("word", word, 97) for word in ("Rome", None, "true", "Ä b")]
    assert found[0].tolist() == words and found[1].tolist() == found[2].tolist() == [-1.0] * 4


def test_an_owner_reads_back_which_of_its_texts_are_in_which_bucket() -> None:
    place = bucket("ward", "icu", 97)
    other = next(k for k in range(97) if k != place)
    schema = Schema((Surveyed("ward", buckets=97, kept=(place, other)),), Labels("y", ("1",), ("0",)))
    with opened({"ward": ["icu", "er", "icu", None], "y": [0, 1, 0, 1]}) as (table, _):
        (note,) = [each.text for each in check(schema, table).found if each.column == "ward"]
    assert note == f"ward#{place} is 'icu' x 2"
    assert "icu" not in str(schema.to_json()) and f"ward#{place}" in schema.feature_names
