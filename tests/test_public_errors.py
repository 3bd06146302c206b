"""Each error is public or private: `RecordError` may quote a record, every other one may not; and nothing that others
read is written from a private one."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpmpc.aggregation.party.beside_owner import named
from dpmpc.errors import DpmpcError, PeerError, RecordError, UsageError, error_of, public_text, reworded
from dpmpc.estimators.errors import EstimatorError, as_value_errors
from dpmpc.mpc.transport.abort_reason import public_reason
from dpmpc.processes.status import Status
from dpmpc.processes.worker import run_role

ROOT = Path(__file__).parents[1] / "dpmpc"
BELOW = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] not in ("cli", "benchmarks")]
PRIVATE = RecordError("the target must be a number; row 7 has 'Jane Doe'; mend it", "a target is no number")


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for path in BELOW:
        name = str(path.relative_to(ROOT))
        if not folders or name.startswith(folders):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


# -- what a public error interpolates ----------------------------------------------------------------------------------
# Of raises of public errors where records are read: all that they put into their texts, looked at one by one. Names of
# columns, files and settings, what a schema or a user says, shapes and types; no value, no row.
LOOKED_AT = {
    "intake/__init__.py": "name | __name__",
    "records/__init__.py": "name | __name__",
    "intake/union.py": (
        "sources[0] | source | ', '.join(odd[:6]) | name | first.type.lower() | first_source | other.type.lower()"
    ),
    "records/blocks.py": "error.strerror | size / 1000000000.0",
    "records/check.py": "path.name",
    "intake/csvfile.py": "encoding | error.strerror | name | path | reason | way",
    "intake/header_footer.py": "error.strerror | lines | name",
    "records/columns.py": (
        "column.name | list(self.kept)[:8] | list(self.parts) | self.first | self.high | self.knots[-1] | "
        "self.knots[0] | self.last | self.low | self.name | shown | what"
    ),
    "intake/database.py": "error.strerror",
    "records/dataset.py": "int(np.argmin(counts)) | len(drawn) | max_rows | n | test_fraction",
    "records/derive.py": (
        "asked.target | asked.task or 'logistic' | name | some(absent, 8) | some(self.classes, 8) | str(entry)[:60] | "
        "table.source | dropping(odd) | number_of(len(odd), 'column') | some(types, 6)"
    ),
    "records/example.py": "_LEAST | records | path",
    "intake/files.py": ("', '.join(double[:6]) or 'others' | KINDS | error.strerror | name | path.name | source | way"),
    "intake/profile.py": "name",
    "records/mapping.py": "', '.join(absent[:8]) | hint | self.schema.target.name",
    "records/memory.py": "text[:20]",
    "intake/objects.py": (
        "KINDS | array.dtype | dtype | error.strerror or error | name | sorted(shapes)[:4] | source | "
        "type(value).__name__"
    ),
    "records/scikit.py": "what",
    "records/ownership.py": (
        "_shown(counts) | counts.sum() | empty | groups.min() | len(capacity) | len(counts) | len(found) | "
        "len(groups) | n | owners | skew"
    ),
    "records/schema.py": (
        "', '.join(self.unknown[:6]) | VERSION | "
        "column | double or 'no columns' | entry | high | list(both) | list(self.kept)[:8] | "
        "list(self.parts) | list(spelled)[:8] | low | name | part.name | rule | self.first | self.last | "
        "self.low | self.name | self.version | shown | type(value).__name__ | value.get('version') | what"
    ),
    "intake/partitions.py": "_PLACE | known | name | path.name | paths[0].name | source",
    "intake/ranges.py": "name",
    "intake/packed.py": "error.strerror | kind | path.name",
    "intake/scratch.py": "base | error.strerror",
    "records/seeds.py": "seed",
    "records/sets.py": (
        "', '.join(NAMES) | DATA_DIR_VARIABLE | data_dir | dimension | files.split('|')[0] | folder | name | rows"
    ),
    "intake/spelling.py": (
        "getattr(self, name) | known | name | self.century | self.decimal | self.encoding | lines | rule | unit | "
        "', '.join(MISSING[1:]) | odd"
    ),
    "intake/table.py": (
        "MOST_COLUMNS | MOST_LETTERS | columns | longest | name | self.source | shown | some(self.names) | source"
    ),
    "records/targets.py": "high | list(both) | list(spelled)[:8] | low | part.name | self.name",
    "intake/writing.py": "kinds | path | path.name | reason",
    "intake/written.py": (
        "_LARGEST >> 20 | _LONGEST | _said(message, kind) | _where(name, place, text) | at | error | error.start | "
        "error.strerror | "
        "language | len(value) | name | next((key for key in names if names.count(key) > 1)) | path | path.name | "
        "said | size | text | value.bit_length() + 1 | what"
    ),
    "estimators/__init__.py": "name | __name__",
    "estimators/frames.py": (
        "', '.join(absent[:8]) | ', '.join(names[:4]) | d | kind | len(columns) | len(names) | low | n | "
        "names.shape | type(bounds).__name__ | bound | w.shape | own | name | column.shape"
    ),
    "estimators/targets.py": "values.dtype | table[name].type",
    "estimators/persons.py": "estimator.person | n | ids.shape",
    "estimators/regression.py": "task.name",
    "estimators/linear.py": (
        "'es' * (len(self.classes_) != 1) | len(X) | len(columns) | len(self.classes_) | len(values) | name | "
        "schema.classes"
    ),
}


def interpolated(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, expression) of all that raises of public errors put into their texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            if "RecordError" in ast.unparse(node.exc.func):
                continue
            for part in ast.walk(node.exc):
                if isinstance(part, ast.FormattedValue):
                    yield part.lineno, ast.unparse(part.value)


def test_public_errors_say_only_what_was_looked_at_where_records_are_read() -> None:
    wrong, seen = [], 0
    for name, tree in trees("intake/", "records/", "estimators/"):
        known = set(LOOKED_AT.get(name, "").split(" | "))
        for line, what in interpolated(tree):
            seen += 1
            if what not in known:
                wrong.append(f"dpmpc/{name}:{line} says {{{what}}} in public: a RecordError, or look at it")
    assert wrong == [] and seen > 150


# -- what others read --------------------------------------------------------------------------------------------------
WRITERS = {
    "log",
    "_log",
    "write",
    "farewell",
    "_refused",
    "_refuse",
    "emit",
    "say",
    "pack",
    "append",
    "Refused",
    "part",
}
HARMLESS = {
    "PeerError",
    "Refused",
    "Told",
    "OSError",
    "TimeoutError",
    "ssl.SSLError",
    "CheatError",
    "OwnerError",
    "Later",
}


def told(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """(line, what was caught, writer) of each text of a caught error that goes to a writer unfiltered."""
    for handler in ast.walk(tree):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        caught = "BaseException" if handler.type is None else ast.unparse(handler.type)
        for call in ast.walk(handler):
            if not isinstance(call, ast.Call) or ast.unparse(call.func).split(".")[-1] not in WRITERS:
                continue
            for part in ast.walk(call):
                inner = part.value if isinstance(part, ast.FormattedValue) else None
                if isinstance(part, ast.Call) and ast.unparse(part.func) == "str" and part.args:
                    inner = part.args[0]
                if isinstance(part, ast.Attribute) and part.attr == "message":
                    inner = part.value
                if isinstance(inner, ast.Name) and inner.id == handler.name:
                    yield call.lineno, caught, ast.unparse(call.func)


def test_no_writer_takes_the_text_of_an_error_that_may_quote_a_record() -> None:
    """Logs, frames, statuses, transcripts, refusals to peers: of an error that is not one of processes alone, they get
    `public_text`. The one way for a private text is the event `error`, from a process to who started it."""
    found = [(name, *each) for name, tree in trees() for each in told(tree)]
    assert len(found) > 5
    wrong = [each for each in found if not set(each[2].strip("()").split(", ")) <= HARMLESS]
    assert [each for each in wrong if each[0] != "records/check.py" and each[3] != "emit"] == []
    assert {each[0] for each in wrong if each[3] == "emit"} <= {"processes/worker.py"}


def test_a_writer_that_is_told_too_much_would_be_seen() -> None:
    for text in ("log(f'failed: {error}')", "peer.farewell(str(error))", "emit('stage', text=f'{error}')"):
        tree = ast.parse(f"try:\n    go()\nexcept DpmpcError as error:\n    {text}\n")
        ((_, caught, _),) = told(tree)
        assert caught == "DpmpcError" and caught not in HARMLESS
    assert not list(told(ast.parse("try:\n    go()\nexcept DpmpcError as error:\n    log(public_text(error))\n")))
    tree = ast.parse("raise UsageError(f'a target is a number; {value!r}')")
    assert [what for _, what in interpolated(tree)] == ["value"]


# -- a private error on its way ----------------------------------------------------------------------------------------
def test_an_error_stays_private_however_it_is_passed_on() -> None:
    event = {"message": PRIVATE.message, "code": PRIVATE.exit_code, "public": PRIVATE.public}
    for error in (
        reworded(PRIVATE, lambda text: f"first: {text}"),
        named("owner 3", PRIVATE),
        error_of(event["message"], event["code"], event["public"]),  # type: ignore[arg-type]
    ):
        assert isinstance(error, RecordError) and "Jane" in str(error)
        assert "Jane" not in public_text(error) and "no number" in public_text(error)
        assert "Jane" not in public_reason("owner 3", error)
    with pytest.raises(EstimatorError) as caught, as_value_errors():
        raise PRIVATE
    assert "Jane" in str(caught.value) and "Jane" not in public_text(caught.value)
    assert isinstance(reworded(PeerError("gone"), str.upper), PeerError)
    assert type(error_of("x", 2)) is UsageError and type(error_of("x", 1)) is DpmpcError


def test_a_role_that_fails_on_a_record_logs_and_reports_no_value_of_it(tmp_path: Path) -> None:
    lines, events = list[str](), list[dict[str, Any]]()

    def emit(event: str, **fields: Any) -> None:
        events.append({"event": event, **fields})

    code = run_role("tests.test_public_errors:fails", {}, emit, lines.append)
    assert code == 2 and len(lines) == 1 and "Jane" not in lines[0] and "no number" in lines[0]
    assert events == [{"event": "error", "message": PRIVATE.message, "code": 2, "public": PRIVATE.public}]
    again = error_of(events[0]["message"], events[0]["code"], events[0]["public"])
    with pytest.raises(RecordError), Status(tmp_path / "status.json", "owner 0"):
        raise named("owner 0", again)
    assert "Jane" not in (tmp_path / "status.json").read_text() and json.loads((tmp_path / "status.json").read_text())


def fails(**_: Any) -> None:
    """A role that fails on a record."""
    raise PRIVATE
