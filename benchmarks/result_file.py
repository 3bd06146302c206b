"""The result file of the suite: what was measured, where, as JSON or CSV."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dpmpc.benchmarks.quartiles import Figure
from dpmpc.errors import UsageError
from dpmpc.folders import make_folder
from dpmpc.mpc.contract.backend import DEFAULT

SCHEMA = "dpmpc.bench/1"
_COMPUTED = ("iteration", "limit", "noise")  # kinds of records whose key names a backend; older files leave it out


@dataclass(frozen=True)
class Record:
    """One row: `key` tells what was measured, `counts` are exact, `seconds` are figures of repetitions, `values` are
    the rest.
    """

    kind: str  # iteration, limit, noise, growth, parties
    key: dict[str, Any]
    counts: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, Figure] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> tuple[str, str]:
        """What two result files match rows by."""
        return self.kind, json.dumps(self.key, sort_keys=True)

    def title(self) -> str:
        """The key in a line."""
        return f"{self.kind} " + " ".join(f"{k}={v}" for k, v in self.key.items())


@dataclass(frozen=True)
class Results:
    """A result file."""

    machine: dict[str, Any]
    profile: str
    records: tuple[Record, ...]
    findings: tuple[dict[str, Any], ...] = ()
    seconds: float = 0.0

    def find(self, kind: str, **key: Any) -> list[Record]:
        """The records of a kind whose key has these values."""
        return [r for r in self.records if r.kind == kind and all(r.key.get(k) == v for k, v in key.items())]


def replace_rows(path: Path, rows: Sequence[dict[str, Any]], key: Sequence[str]) -> None:
    """Writes rows into a CSV file in place of those that have the same values of the columns `key`, after all others.
    Errors: a path that cannot be written."""
    mine = {tuple(str(row[name]) for name in key) for row in rows}
    kept: list[dict[str, Any]] = []
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            kept = [row for row in csv.DictReader(file) if tuple(row[name] for name in key) not in mine]
    make_folder(path.parent, "figures go into a folder that can be written")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows([*kept, *rows])
    _write(path, text.getvalue())


def write_json(results: Results, path: Path) -> None:
    """Write the file. Errors: a path that cannot be written."""
    text = json.dumps({"schema": SCHEMA, **asdict(results)}, indent=1, allow_nan=False) + "\n"
    _write(path, text)


def write_csv(results: Results, path: Path) -> None:
    """One line a record; figures as name.median, name.q1, name.q3, name.repetitions. Errors: as `write_json`."""
    rows = [
        _flat(record) | {"commit": results.machine.get("commit"), "time": results.machine.get("time")}
        for record in results.records
    ]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise _unwritable(path, error) from None


def _flat(record: Record) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": record.kind, **record.key, **record.counts, **record.values}
    for name, figure in record.seconds.items():
        row |= {f"{name}.{part}": value for part, value in asdict(figure).items()}
    return row


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"results must go to a file that can be written; {path}: {error.strerror}; name another")


def read(path: Path) -> Results:
    """The results in a file of `write_json`. Errors: UsageError for another file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["schema"] != SCHEMA:
            raise UsageError(
                f"a result file must have schema {SCHEMA}; {path} has {value['schema']}; measure again with --json",
                code="file",
            )
        records = tuple(_record(row) for row in value["records"])
        return Results(value["machine"], value["profile"], records, tuple(value["findings"]), value["seconds"])
    except OSError as error:
        raise UsageError(
            f"results are read from a file of --json; {path}: {error.strerror}; check the path", code="path"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"results are read from a file of --json; {path} is not one ({error}); measure again with --json"
        ) from None


def _record(row: dict[str, Any]) -> Record:
    seconds = {name: Figure(**values) for name, values in row["seconds"].items()}
    key = {**row["key"], "backend": row["key"].get("backend", DEFAULT)} if row["kind"] in _COMPUTED else row["key"]
    return Record(row["kind"], key, row["counts"], seconds, row["values"])


def by_key(records: Sequence[Record]) -> dict[tuple[str, str], Record]:
    """The records by `name`; the last of equal ones."""
    return {record.name: record for record in records}
