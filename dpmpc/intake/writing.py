"""Tables written to files of the kinds that are read."""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from dpmpc.errors import UsageError, sayable
from dpmpc.folders import replaced
from dpmpc.intake.engine import duckdb, registered
from dpmpc.intake.files import pyarrow_module
from dpmpc.intake.reading import literal
from dpmpc.intake.table import connect

_FORMATS = {
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
    ".parquet": "FORMAT parquet",
    ".pq": "FORMAT parquet",
}
_PACKED = {".gz": "gzip", ".zst": "zstd"}
_ARROW = (".arrow", ".feather", ".ipc")


def write_table(columns: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Writes columns of equal length to a file whose suffix says its kind; it is whole or not there, and for this user
    alone.

    Errors: another suffix, a file that cannot be written.
    """
    packed = _PACKED.get(path.suffix)
    suffix = Path(path.stem).suffix if packed else path.suffix
    if suffix not in _FORMATS and (packed or suffix not in _ARROW):
        kinds = ", ".join((*_FORMATS, *_ARROW))
        raise UsageError(
            f"<<out>> says its kind by its suffix ({sayable(kinds)}); got '{path.name}'; rename it", code="path"
        )
    if not path.parent.is_dir():
        raise UsageError(
            f"<<out>> must be a file that can be written; {sayable(path)}: No such file or directory; name another",
            code="path",
        )
    try:
        with replaced(path) as part:
            if suffix in _ARROW:
                feather = pyarrow_module("pyarrow.feather", path.name)
                feather.write_feather(pyarrow_module("pyarrow", path.name).table(dict(columns)), str(part))
            else:
                squeeze = f", COMPRESSION {packed}" if packed and "parquet" not in _FORMATS[suffix] else ""
                with connect(None, None) as connection:
                    registered(connection, "predictions", dict(columns))
                    connection.execute(f"COPY predictions TO {literal(str(part))} ({_FORMATS[suffix]}{squeeze})")
    except (OSError, duckdb.Error) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0].split(": ")[-1][:120]
        raise UsageError(
            f"<<out>> must be a file that can be written; {sayable(path)}: {sayable(reason)}; name another"
        ) from None


def print_table(columns: Mapping[str, NDArray[Any]], file: IO[str], said: Callable[[str], str] = str) -> None:
    """Writes columns as CSV for people: numbers with six digits, whole ones with all. said: of each text."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(said, columns))
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        writer.writerow([said(each) if isinstance(each, str) else _number(each) for each in row])


def _number(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
