"""Buckets of texts: the database's are those of the function; numbers and dates have none."""

import datetime

import pandas as pd

from dpmpc.data.hashing import bucket, bucket_sql
from dpmpc.data.loading import opened


def test_only_texts_have_buckets() -> None:
    frame = pd.DataFrame({
        "word": ["Rome", None, "true", "Ä b"], "number": [1.0, 2.0, 3.0, 4.0],
        "day": pd.to_datetime([datetime.date(2020, 1, k) for k in range(1, 5)]),
    })  # fmt: skip
    with opened(frame) as (table, _):
        [found] = [list(block) for block in table.blocks([bucket_sql(table, name, 97) for name in frame.columns])]
    words = [-1 if word is None else bucket("word", word, 97) for word in ("Rome", None, "true", "Ä b")]
    assert found[0].tolist() == words and found[1].tolist() == found[2].tolist() == [-1.0] * 4
