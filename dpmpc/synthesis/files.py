"""Synthetic rows as CSV and Parquet, with what is to be said of them in first lines and metadata."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.intake.engine import registered
from dpmpc.intake.reading import literal
from dpmpc.intake.table import connect, quoted

Values = NDArray[Any]
_AT_ONCE = 1 << 16


def csv_text(values: Mapping[str, Values], lines: Sequence[str], digits: Mapping[str, int]) -> Iterator[str]:
    """The parts of a CSV file: remarks that begin with #, the first of which says how many there are; the names; rows.
    What is missing is empty."""
    remarks = [f"# {line}" for line in lines]
    count = len(remarks) + 1
    yield f"# {count} lines of remarks, then names and rows: pandas.read_csv(file, skiprows={count})\n"
    yield "".join(f"{line}\n" for line in remarks)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(values)
    rows = len(next(iter(values.values())))
    for begin in range(0, rows, _AT_ONCE):
        part = {name: column[begin : begin + _AT_ONCE] for name, column in values.items()}
        writer.writerows(zip(*(_texts(column, digits.get(name)) for name, column in part.items()), strict=True))
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def write_csv(
    path: Path, values: Mapping[str, Values], lines: Sequence[str], digits: Mapping[str, int]
) -> None:  # fmt: skip
    """Writes the rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_text(values, lines, digits))


def write_parquet(
    path: Path, values: Mapping[str, Values], lines: Sequence[str], digits: Mapping[str, int]
) -> None:  # fmt: skip
    """Writes the rows as Parquet; what is said of them is metadata under the key dpmpc, and a first line in it."""
    connection = connect(None, None)
    try:
        columns = {f"c{k}": column for k, column in enumerate(values.values())}
        registered(connection, "rows", columns)
        parts = []
        for k, (name, column) in enumerate(values.items()):
            kind = "VARCHAR" if column.dtype == object else "BIGINT" if digits.get(name) == 0 else "DOUBLE"
            missing = f"CASE WHEN NOT isnan(c{k}) THEN c{k} END" if column.dtype != object else f"c{k}"
            parts.append(f"CAST({missing} AS {kind}) AS {quoted(name)}")
        said = literal("\n".join(lines))
        connection.execute(
            f"COPY (SELECT {', '.join(parts)} FROM rows) TO {literal(str(path))} "
            f"(FORMAT parquet, KV_METADATA {{dpmpc: {said}}})"
        )
    finally:
        connection.close()


def _texts(column: Values, digits: int | None) -> list[str]:
    if column.dtype == object:
        return ["" if value is None else str(value) for value in column]
    return ["" if np.isnan(value) else f"{value:.{digits or 0}f}" for value in column]
