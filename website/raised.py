"""The errors that the sources raise, read off their syntax trees; nothing is run."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("dpmpc", "cli", "circuits")
AREAS = {
    "intake": "Records",
    "records": "Records",
    "learning": "Learning",
    "privacy": "Privacy",
    "statistics": "Statistics",
    "noise": "Noise",
    "circuits": "Noise",
    "mpc": "Parties and connections",
    "aggregation": "Plans, owners, releases",
    "run": "Runs",
    "planning": "Runs",
    "local": "Runs",
    "tables": "Statistics",
    "consortium": "Consortia, kits",
    "estimators": "scikit-learn",
    "flower": "Flower",
    "verify": "Verification",
    "dossier": "Reports",
    "experiments": "Experiments",
    "processes": "Processes",
    "cli": "Command line",
}
BASES = {"DpmpcError"}


@dataclass(frozen=True, order=True)
class Message:
    """An error's text, in two parts, as Markdown, and its class."""

    rule: str
    remedy: str
    kind: str


def escaped(text: str, *, code: bool = True) -> str:
    """Text for a cell of a table: nothing in it is markup, or only `code`."""
    text = " ".join(text.split()).replace("|", "\\|")
    if code:
        return text
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part
        if part.startswith("`")
        else re.sub(r"([\\<>*_\[\]#])", r"\\\1", part.replace("\\|", "|")).replace("|", "\\|")
        for part in parts
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def nodes() -> dict[Path, list[ast.ClassDef | ast.Call]]:
    """The classes and calls of every source, which is walked once; links are not followed."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents if ROOT in parent.parents):
                tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                found[path.relative_to(ROOT)] = [node for node in tree if isinstance(node, (ast.ClassDef, ast.Call))]
    return found


def classes(sources: Iterable[Sequence[ast.ClassDef | ast.Call]]) -> set[str]:
    """The names of the classes that derive from DpmpcError."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for source in sources
        for node in source
        if isinstance(node, ast.ClassDef)
    }
    known = set(BASES)
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    return known


def text_of(node: ast.expr) -> str | None:
    """The text of an expression, what is filled in in braces; None where it is made elsewhere."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None and right is None else f"{left or '{…}'}{right or '{…}'}"
    return None


def _piece(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    names = [
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(part.value)
        if isinstance(node, ast.Attribute | ast.Name)
    ]
    simple = isinstance(part.value, ast.Name | ast.Attribute)
    return "{" + (names[0] if simple and names else "…") + "}"


def _last(node: ast.expr) -> str:
    """The last of the names of `a.b.c`; empty for all else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def raised() -> dict[str, list[Message]]:
    """The messages by area, each once."""
    sources = nodes()
    known = classes(sources.values())
    found: dict[str, set[Message]] = {}
    for path, source in sources.items():
        area = AREAS.get(path.parts[1] if path.parts[0] == "dpmpc" else path.parts[0], "Elsewhere")
        for node in source:
            if isinstance(node, ast.ClassDef) or not node.args or (kind := _last(node.func)) not in known:
                continue
            text = text_of(node.args[0])
            if text is not None and text.strip("{…} "):
                found.setdefault(area, set()).add(_message(text, kind))
    order = list(dict.fromkeys([*AREAS.values(), "Elsewhere"]))
    return {area: sorted(found[area]) for area in order if area in found}


def _message(text: str, kind: str) -> Message:
    shown = re.sub(r"<<([a-z_{}…]+)(?:=(.*?))?>>", lambda m: f"`{m[1]}`" if m[2] is None else f"`{m[1]}={m[2]}`", text)
    rule, _, remedy = shown.rpartition("; ")
    if not rule:
        rule, remedy = shown, ""
    return Message(escaped(rule, code=False), escaped(remedy, code=False), kind)
