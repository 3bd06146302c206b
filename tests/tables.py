"""Reading small tables in tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmpc.intake.files import open_file
from dpmpc.intake.scratch import scratch_folder
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.table import connect
from dpmpc.records.loading import opened


def write(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def cells_of(source: Any) -> tuple[tuple[str, ...], list[list[str]]]:
    """The column names and the cleaned texts of a source, NULL as an empty text."""
    with opened(source) as (table, _):
        rows = table.rows(", ".join(table.text(name) for name in table.names))
        return table.names, [["" if cell is None else str(cell) for cell in row] for row in rows]


def csv_cells(
    path: Path, *, names: Sequence[str] | None = None, separator: str | None = None, comment: str | None = None
) -> tuple[tuple[str, ...], list[list[str]]]:
    """The same of a CSV file."""
    with scratch_folder() as folder:
        connection = connect(folder, None)
        said = Spelling(header=int(names is None and comment is None))
        table = open_file(
            path, connection, folder, kind=".csv", names=names, separator=separator, comment=comment, spelling=said
        )
        rows = table.rows(", ".join(table.text(name) for name in table.names))
        result = table.names, [["" if cell is None else str(cell) for cell in row] for row in rows]
        connection.close()
        return result


__all__ = ["cells_of", "csv_cells", "write"]
