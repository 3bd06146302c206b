"""What becomes of a source's sums is its own word: nobody else asks which source it is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmpc.learning.source import SOURCES

ROOT = Path(__file__).parents[2]
KINDS = {SOURCES[name].__name__ for name in SOURCES.names()}
OWN = {Path(SOURCES[name].__module__.replace(".", "/") + ".py") for name in SOURCES.names()}  # may narrow to themselves


def switches(text: str) -> Iterator[str]:
    """The places of a program that ask which source something is: by its class, however that is imported, or by the
    name of its kind."""
    tree = ast.parse(text)
    named = set(KINDS)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            named |= {alias.asname for alias in node.names if alias.name in KINDS and alias.asname}
        elif isinstance(node, ast.Assign) and _classes(node.value, named):  # a name for several
            named |= {target.id for target in node.targets if isinstance(target, ast.Name) and node.value}
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("isinstance" | "issubclass"), [_, asked]) if _classes(asked, named):
                yield ast.unparse(node)
            case ast.MatchClass(cls) if _classes(cls, named):
                yield ast.unparse(node)
            case ast.Compare(left, [_], [right]):
                sides = (left, right)
                types = [s for s in sides if isinstance(s, ast.Call) and ast.unparse(s.func) == "type"]
                types += [s for s in sides if isinstance(s, ast.Attribute) and s.attr in ("__class__", "KIND")]
                if types and any(_classes(s, named) or _kind(s) for s in sides):
                    yield ast.unparse(node)


def _classes(node: ast.AST, named: set[str]) -> bool:
    """Whether an expression is a class of a source, or several."""
    match node:
        case ast.Name(name):
            return name in named
        case ast.Attribute(_, name):
            return name in KINDS
        case ast.BinOp(left, ast.BitOr(), right):
            return _classes(left, named) or _classes(right, named)
        case ast.Tuple(each) | ast.List(each) | ast.Set(each):
            return any(_classes(one, named) for one in each)
    return False


def _kind(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value):
            return value in SOURCES.names()
        case ast.Tuple(each) | ast.List(each) | ast.Set(each):
            return any(map(_kind, each))
    return False


def test_nobody_asks_which_source_it_is() -> None:
    files = [path for top in ("dpmpc", "cli") for path in (ROOT / top).rglob("*.py") if not path.is_symlink()]
    assert len(files) > 300
    found = {
        str(path.relative_to(ROOT)): places
        for path in files
        if path.relative_to(ROOT) not in OWN and (places := list(switches(path.read_text(encoding="utf-8"))))
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(plan.source, Tables)",
        "isinstance(source, Tables | Synthesis | None)",
        "isinstance(x, (int, statistics.tables.Tables))",
        "source = plan.source\nassert not issubclass(SOURCES[kind], Learning)",
        "from dpmpc.learning.method import Learning as L\nisinstance(s, L)",
        "ASKED = (Tables, Synthesis)\nisinstance(s, ASKED)",
        "match plan.source:\n    case Study():\n        pass",
        "type(plan.source) is Vectors",
        "plan.source.__class__ == Vectors",
        'plan.source.KIND == "tables"',
        'source.KIND in ("tables", "study")',
    ],
)
def test_a_switch_is_found_however_it_is_written(text: str) -> None:
    assert list(switches(text))


def test_what_is_no_switch_is_left_alone() -> None:
    assert not list(switches("isinstance(column, Surveyed)\nTables.of(columns, queries)\nx = y == 'tables'"))
