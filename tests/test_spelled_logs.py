"""Messages mark settings until a surface spells them: no log and no last word has a mark, or another's words."""

import ast
import gc
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dpmpc.errors
from dpmpc.cli.advise import command as advise_command
from dpmpc.cli.join import command as join_command
from dpmpc.cli.settings import spelling
from dpmpc.consortium.joining import kit_spelling
from dpmpc.errors import PeerError, UsageError, python_spelling, spelt
from dpmpc.mpc.parties.loss_tolerance import LossTolerantMesh
from dpmpc.mpc.transport.abort_reason import MOST_REASON, pack, unpack
from dpmpc.planning.adviser import Circumstances, advise
from dpmpc.planning.request import Request
from dpmpc.processes import logs
from dpmpc.processes.logs import log_to, speaking
from dpmpc.processes.status import Status
from dpmpc.processes.worker import run_role
from dpmpc.settings import declared

ROOT = Path(dpmpc.errors.__file__).parent
BELOW = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] not in ("cli", "benchmarks")]
MARKED = "held-out records need a plan; <<test_fraction=0>> holds none out; give <<test_fraction=0.3>>"


def kinds_in(trees: Iterable[ast.Module]) -> set[str]:
    """The names of `DpmpcError` and of all classes that are made of it."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = [(node.name, set(map(ast.unparse, node.bases))) for node in classes]
    kinds = {"DpmpcError"}
    for _ in range(4):
        kinds |= {name for name, of in bases if kinds & of}
    return kinds


def spoken_early(tree: ast.Module, kinds: set[str]) -> Iterator[tuple[int, str]]:
    """(line, name) of each text that `str` or an f-string makes of an error of dpmpc: settings are spelled there."""

    def uses(body: ast.AST, name: str) -> Iterator[tuple[int, str]]:
        for part in ast.walk(body):
            made = part.value if isinstance(part, ast.FormattedValue) else None
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "str" and part.args:
                made = part.args[0]
            if isinstance(made, ast.Name) and made.id == name:
                yield part.lineno, name

    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name and node.type is not None:
            if kinds & {part.split(".")[-1] for part in ast.unparse(node.type).strip("()").split(", ")}:
                yield from uses(node, node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                if argument.annotation is not None and kinds & set(ast.unparse(argument.annotation).split(" | ")):
                    yield from uses(node, argument.arg)


def parsed() -> dict[str, ast.Module]:
    """The trees of `BELOW`, by path. While they come to be, a million objects, no garbage is looked for among them: it
    would take three times as long as to parse."""
    gc.disable()
    try:
        return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in BELOW}
    finally:
        gc.enable()


def test_no_text_that_is_passed_on_spells_an_error_before_its_surface_does() -> None:
    trees = parsed()
    kinds = kinds_in(trees.values())
    assert len(trees) > 400 and {"PeerError", "Told", "Refused", "RecordError"} < kinds
    assert [(name, *each) for name, tree in trees.items() for each in spoken_early(tree, kinds)] == []


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    go()\nexcept PeerError as error:\n    log(f'{error}')",
        "try:\n    go()\nexcept (OSError, UsageError) as error:\n    raise UsageError(f'limits: {error}')",
        "def lost(peer: Connection, why: PeerError) -> None:\n    peer.farewell(str(why))",
    ],
)
def test_a_text_that_speaks_early_would_be_seen(text: str) -> None:
    kinds = {"PeerError", "UsageError"}
    assert len(list(spoken_early(ast.parse(text), kinds))) == 1
    marked = text.replace("{error}", "{error.message}").replace("str(why)", "why.message")
    assert not list(spoken_early(ast.parse(marked), kinds))


def said_by(surfaces: list[str], text: str) -> str:
    """The line of a log that is opened under these surfaces, the outermost first."""
    file = io.StringIO()
    file.name = "<log>"  # type: ignore[misc]
    if surfaces:
        with speaking(surfaces[0]):
            return said_by(surfaces[1:], text)
    log_to(file)(text)
    return file.getvalue().partition(" ")[2].rstrip()


CLI, KIT = "dpmpc.cli.settings:spelling", "dpmpc.consortium.joining:kit_spelling"


def test_a_log_spells_settings_as_the_surface_it_was_opened_under() -> None:
    assert said_by([], MARKED) == spelt(MARKED)
    assert said_by([CLI], MARKED) == spelt(MARKED, spelling)
    assert said_by([CLI, KIT], MARKED) == spelt(MARKED, kit_spelling)
    assert "test_fraction = 0.3 in [records] of consortium.toml" in said_by([CLI, KIT], MARKED)
    assert said_by([CLI, KIT, KIT], "<<decimal=,>>") == "--decimal ,"  # an option of `join`: the command line's word
    assert said_by(["os:system"], "<<true=1>>") == "true=1"  # nothing of another package is called
    assert not os.environ.get(logs.SPELLING)


def test_surfaces_that_leave_in_the_order_in_which_they_came_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(logs.SPELLING, "dpmpc.outer:spelling")
    first, second = speaking(KIT), speaking(CLI)
    first.__enter__()
    second.__enter__()
    assert os.environ[logs.SPELLING].split() == [CLI, KIT, "dpmpc.outer:spelling"]
    first.__exit__(None, None, None)
    assert os.environ[logs.SPELLING].split() == [CLI, "dpmpc.outer:spelling"]
    second.__exit__(None, None, None)
    assert os.environ[logs.SPELLING] == "dpmpc.outer:spelling"


@pytest.mark.parametrize("surfaces", [[], [CLI], [CLI, KIT]])
@pytest.mark.parametrize(
    "value", ["x", "[", "['a'", "[1]", "[['a']]", "'", "(" * 200, "f(", "f(a=b)", "f(**{})", "f(a=())", "\0"]
)
@pytest.mark.parametrize("name", ["spelling", "drop", "person", "classes", "bounds", "no_such"])
def test_no_value_that_another_site_marks_ends_this_one(surfaces: list[str], value: str, name: str) -> None:
    said = said_by(surfaces, f"told: <<{name}={value}>>")
    assert said.startswith("told:") and "<<" not in said


@pytest.mark.parametrize("length", range(MOST_REASON - len(MARKED), MOST_REASON + 1))
def test_a_last_word_that_is_cut_ends_before_a_setting_or_after_it(length: int) -> None:
    whole = "x" * length + MARKED
    heard = unpack(pack(whole))
    assert whole.startswith(heard) and heard.count("<<") == heard.count(">>")


def fails(**_: Any) -> None:
    """A role that fails with a setting marked."""
    raise UsageError(MARKED)


class _Leaving:
    """A connection that keeps what it is told."""

    def __init__(self) -> None:
        self.told = list[str]()

    def farewell(self, reason: str) -> None:
        self.told.append(reason)

    async def gone(self, seconds: float) -> None:
        """At once."""


def of_worker(folder: Path, log: Callable[[str], None]) -> None:
    run_role("tests.test_spelled_logs:fails", {}, lambda event, **fields: None, log)


def of_left_out_party(folder: Path, log: Callable[[str], None]) -> None:
    mesh, peer = object.__new__(LossTolerantMesh), _Leaving()
    mesh.peers, mesh.gone = {1: peer}, {1: PeerError("gone")}  # type: ignore[dict-item, assignment]
    mesh._leave_out(1, PeerError(MARKED))
    assert len(peer.told) == 1
    log(unpack(pack(peer.told[0])))


@pytest.mark.parametrize("sink", [of_worker, of_left_out_party])
@pytest.mark.parametrize(("surfaces", "says"), [([CLI], spelling), ([CLI, KIT], kit_spelling)])
def test_every_sink_has_the_words_of_its_surface(sink: Any, surfaces: list[str], says: Any, tmp_path: Path) -> None:
    lines = list[str]()
    sink(tmp_path, lambda text: lines.append(said_by(surfaces, text)))
    assert len(lines) == 1 and spelt(MARKED, says) in lines[0]


def test_a_status_keeps_the_marks_for_who_reads_it(tmp_path: Path) -> None:
    with pytest.raises(PeerError), Status(tmp_path / "status_owners.json", "owners"):
        raise PeerError(MARKED)
    assert json.loads((tmp_path / "status_owners.json").read_text())["event"] == f"error: {MARKED}"


def test_a_site_is_told_no_option_that_its_command_lacks() -> None:
    options = {flag for each in join_command.params for flag in (*each.opts, *each.secondary_opts)}
    said = [kit_spelling(name, value) for name in declared(Request) for value in (None, "5")]
    named = [found[1] for text in said if (found := re.match(r"`join (--?[\w-]+)", text))]
    assert len(named) > 20 and {*named} <= options
    assert kit_spelling("max_rows", "5") == "`dpmpc train --max-rows 5`, which a consortium does not have"
    assert kit_spelling("drop", "['a']") == "what the schema of consortium.toml does not list"


@pytest.mark.parametrize(("surface", "way"), [(spelling, "give --bounds"), (python_spelling, "give bounds")])
def test_what_the_adviser_warns_of_is_spelled_by_who_says_it(surface: Any, way: str) -> None:
    found = advise(Circumstances(4, 60, 300, 31, 0.5, 1e-5, columns=30))
    assert any(way in spelt(text, surface) for text in found.marked)
    assert found.warnings == [spelt(text) for text in found.marked] == found.to_json()["warnings"]
    if surface is spelling:
        words = "--owners 4 --total 300 --smallest 60 --dimension 31 --columns 30 --epsilon .5 --delta 1e-5"
        shown = CliRunner().invoke(advise_command, words.split())
        assert shown.exit_code == 0 and way in " ".join(shown.output.split())
