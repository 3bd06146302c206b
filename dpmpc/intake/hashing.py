"""Texts as numbers of buckets, so that a category can be counted and mapped without its text being known or sent.

The bucket of a text is the first 60 bits of SHA-256(column name, 0x1f, text in Unicode's form C) modulo their number:
the same on every machine, in DuckDB and in Python. `true` and `false` count in any case. Two texts may share a bucket.
"""

import hashlib
from typing import TYPE_CHECKING

from dpmpc.intake.reading import literal
from dpmpc.intake.spelling import composed

if TYPE_CHECKING:  # a party, which reads no records, starts without a database engine
    from dpmpc.intake.table import Table

_SEPARATOR = "\x1f"
BUCKETS = 256  # of a column of texts: several texts share each, and few of a list do
_DIGITS = 15  # of 4 bits: below 2^63, which DuckDB's BIGINT holds


def spelled_key(text: str) -> str:
    """The text whose digest `bucket` takes."""
    spelled = composed(text)
    return spelled.lower() if spelled.lower() in ("true", "false") else spelled


def bucket(name: str, text: str, buckets: int) -> int:
    """The bucket, 0 ... buckets - 1, of a text in column `name`."""
    return int(_digest(name, text)[:_DIGITS], 16) % buckets


def bucket_sql(table: "Table", name: str, buckets: int) -> str:
    """SQL for the bucket of a column's text as a DOUBLE; -1 where it is missing, and for every value of a column of
    numbers or of dates."""
    if table[name].kind in ("number", "date"):
        return "CAST(-1 AS DOUBLE)"
    text = table.text(name)
    spelled = f"CASE WHEN lower({text}) IN ('true', 'false') THEN lower({text}) ELSE {text} END"
    digest = f"sha256(concat({literal(name + _SEPARATOR)}, {spelled}))"
    number = f"CAST(concat('0x', left({digest}, {_DIGITS})) AS BIGINT) % {buckets}"
    return f"CAST(CASE WHEN {table.missing(name)} THEN -1 ELSE {number} END AS DOUBLE)"


def check_number(name: str, text: str) -> int:
    """32 bits of the same digest that `bucket` leaves, the 61st to the 92nd."""
    return int(_digest(name, text)[_DIGITS : _DIGITS + 8], 16)


def _digest(name: str, text: str) -> str:
    # a text of a file of JSON may have half a character, which no record has
    return hashlib.sha256(f"{name}{_SEPARATOR}{spelled_key(text)}".encode("utf-8", "surrogatepass")).hexdigest()
