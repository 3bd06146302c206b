"""An error that anybody may read says no value of a record, no row and no count of records."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "dpmpc"
BELOW = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] not in ("cli", "benchmarks")]


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
