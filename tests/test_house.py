"""The house keeps its order: imports point down, every module has its layer, every public name has one home."""

import ast
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import dpmpc
from dpmpc.learning.source import SOURCES
from dpmpc.learning.task import TASKS
from dpmpc.mpc.transport.link import LINKS
from dpmpc.statistics.kind import QUESTION_KINDS
from website import house

ROOT = Path(__file__).parents[1]
LAYERS = "imports point down, and every module has its layer"
BACKENDS = "mpc: a backend is one folder"
AGGREGATION = "aggregation: plan, wire, party, owner"
CIRCUITS = "circuits see NumPy, gmpy2, mpmath, the standard library and dpmpc.lazy"
MPYC = "one module imports mpyc"
INTAKE, RECORDS = "intake: texts, tables, sources, looks", "records: schema, mapping, rows, data sets"
PUBLISHED = "intake could be published alone"
SHOW = "show renders values, and knows nothing that makes them"
RUN = "run executes a plan, and knows nothing of who asks for it or shows it"
RUN_ROOM, SHOW_ROOM = (
    "run: a stage over the engine, the engine over what it needs",
    "show: files and summaries over pages over forms",
)
PLANNING, TABLES = "planning: a request, and its plan", "tables: questions, statistics, synthetic tables"
LOCAL, CONSORTIUM = "local: records, survey, releases, results", "consortium: a file, its kits, each process's part"
EXPERIMENTS = "experiments are a distribution of their own"
OPENED, CONNECTED = "sums are opened by aggregation and run alone", "run alone connects, and has releases made"
ALONE = "the backend mpyc computes with MPyC alone"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


# -- contracts ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree that the contracts are about, with its links; an sdist has none."""
    if not (ROOT / "dpmpc" / "cli").exists():
        pytest.skip("import-linter needs the repository's links")
    into = tmp_path_factory.mktemp("house")
    for name in ("dpmpc", "circuits", "cli", "benchmarks", "experiments"):
        ignored = shutil.ignore_patterns("__pycache__", "results")
        shutil.copytree(ROOT / name, into / name, symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", into)
    return into


def broken(tree: Path) -> tuple[set[str], str]:
    """(the contracts that the tree breaks, what import-linter says); it reads the tree and runs none of it."""
    program = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    outcome = subprocess.run(
        [sys.executable, "-c", program, "--no-logo"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": "experiments"},
        capture_output=True,
        text=True,
        check=False,
    )
    text = outcome.stdout
    assert not outcome.stderr and "Analyzed" in text, outcome
    verdicts = dict(re.findall(r"^(.*) (KEPT|BROKEN)(?: \(.*\))?$", text, re.MULTILINE))
    found = {name for name, verdict in verdicts.items() if verdict == "BROKEN"}
    assert set(verdicts) == {each["name"] for each in CONTRACTS}
    assert bool(outcome.returncode) == bool(found)
    return found, text


def test_the_contracts_hold(copy: Path) -> None:
    assert broken(copy)[0] == set()


# Lines that break contracts, each with what is then said of it: together where they break different ones, or where one
# contract names each of them.
BREAKING = [
    (
        {LAYERS},
        ("dpmpc/mpc/numbers/field.py", "from dpmpc.local import report", "mpc.numbers.field -> dpmpc.local.report"),
        ("dpmpc/local/launcher.py", "import dpmpc.cli.main", "local.launcher -> dpmpc.cli.main"),
        ("dpmpc/privacy/laplace.py", "from dpmpc.learning.losses import ridge", "laplace -> dpmpc.learning.losses"),
        (
            "dpmpc/noise/pool.py",
            "def late():\n    from dpmpc.aggregation.plan.plan import Plan",
            "noise.pool -> dpmpc.aggregation.plan.plan",
        ),
        ("dpmpc/errors.py", "import dpmpc.registry", "dpmpc.errors -> dpmpc.registry"),
        ("dpmpc/utils.py", "", "- dpmpc.utils\n"),
        ("dpmpc/extra/__init__.py", "", "- dpmpc.extra\n"),
    ),
    (
        {CIRCUITS, MPYC, BACKENDS, AGGREGATION},
        ("circuits/heap.py", "from dpmpc.errors import UsageError", "circuits.heap -> dpmpc.errors"),
        ("dpmpc/mpc/parties/session.py", "import mpyc.sectypes", "mpc.parties.session -> mpyc"),
        (
            "dpmpc/mpc/replicated/layout.py",
            "from dpmpc.mpc.shamir.layout import ManyLayout",
            "mpc.replicated.layout -> dpmpc.mpc.shamir.layout",
        ),
        (
            "dpmpc/aggregation/plan/plan.py",
            "import dpmpc.aggregation.wire.frames",
            "plan.plan -> dpmpc.aggregation.wire",
        ),
    ),
    (
        {ALONE, BACKENDS, AGGREGATION},
        (
            "dpmpc/mpc/mpyc/holder.py",
            "from dpmpc.mpc.shamir.engine import ManyEngine",
            "mpc.mpyc.holder -> dpmpc.mpc.shamir.engine",
        ),
        ("dpmpc/mpc/shamir/pace.py", "import dpmpc.mpc.checked.fold", "mpc.shamir.pace -> dpmpc.mpc.checked.fold"),
        ("dpmpc/aggregation/odd.py", "", "- dpmpc.aggregation.odd\n"),
    ),
    (
        {LAYERS, INTAKE, RECORDS, PUBLISHED, EXPERIMENTS},
        ("dpmpc/local/plain.py", "import dpmpc_experiments.task", "local.plain -> dpmpc_experiments.task"),
        ("dpmpc/intake/spelling.py", "import dpmpc.intake.table", "intake.spelling -> dpmpc.intake.table"),
        ("dpmpc/intake/files.py", "import dpmpc.records.schema", "intake.files -> dpmpc.records.schema"),
        ("dpmpc/records/schema.py", "import dpmpc.records.mapping", "records.schema -> dpmpc.records.mapping"),
        ("dpmpc/records/odd.py", "", "- dpmpc.records.odd\n"),
    ),
    (
        {LAYERS, SHOW},
        ("dpmpc/show/forms.py", "import dpmpc.statistics.tables", "show.forms -> dpmpc.statistics.tables"),
        ("dpmpc/show/pictures.py", "def late():\n    import dpmpc.local.report", "show.pictures -> dpmpc.local.report"),
    ),
    (
        {LAYERS, RUN, RUN_ROOM, SHOW_ROOM},
        ("dpmpc/run/engine.py", "import dpmpc.local.job", "run.engine -> dpmpc.local.job"),
        ("dpmpc/run/opening.py", "def late():\n    import dpmpc.show.files", "run.opening -> dpmpc.show.files"),
        ("dpmpc/run/resume.py", "import dpmpc.run.once", "run.resume -> dpmpc.run.once"),
        ("dpmpc/show/html.py", "import dpmpc.show.figures", "show.html -> dpmpc.show.figures"),
    ),
    (
        {OPENED, CONNECTED},
        (
            "dpmpc/tables/meet.py",
            "from dpmpc.aggregation.owner.session import session_of",
            "tables.meet -> dpmpc.aggregation.owner.session",
        ),
        (
            "dpmpc/flower/courier.py",
            "def late():\n    from dpmpc.aggregation.owner.session import Connected",
            "flower.courier -> dpmpc.aggregation.owner.session",
        ),
        ("dpmpc/run/stages.py", "from dpmpc.run.opening import connected", "run.stages -> dpmpc.run.opening"),
        ("dpmpc/local/sites.py", "from dpmpc.run.engine import releases", "local.sites -> dpmpc.run.engine"),
        ("dpmpc/verify/fresh.py", "def late():\n    import dpmpc.run.opening", "verify.fresh -> dpmpc.run.opening"),
    ),
    (
        {PLANNING, TABLES, LOCAL, CONSORTIUM},
        ("dpmpc/planning/request.py", "import dpmpc.planning.training", "planning.request -> dpmpc.planning.training"),
        ("dpmpc/tables/questions.py", "import dpmpc.tables.stats", "tables.questions -> dpmpc.tables.stats"),
        ("dpmpc/local/job.py", "import dpmpc.local.trained", "local.job -> dpmpc.local.trained"),
        ("dpmpc/local/odd.py", "", "- dpmpc.local.odd\n"),
        ("dpmpc/consortium/status.py", "import dpmpc.consortium.kit", "consortium.status -> dpmpc.consortium.kit"),
    ),
    (
        {LAYERS, CIRCUITS, ALONE},
        ("circuits/heap.py", "import dpmpc.mpc.numbers.field", "circuits.heap -> dpmpc.mpc.numbers.field"),
    ),
    (
        {ALONE},
        (
            "dpmpc/mpc/mpyc/runtime.py",
            "def late():\n    import dpmpc.mpc.transport.wire",
            "mpc.mpyc.runtime -> dpmpc.mpc.transport.wire",
        ),
    ),
]


@pytest.mark.parametrize("case", BREAKING, ids=lambda case: case[1][0])
def test_an_import_that_points_up_and_a_module_without_a_layer_are_refused(copy: Path, case: Any) -> None:
    contracts, *lines = case
    before = {path: path.read_text() if path.exists() else None for path in (copy / where for where, *_ in lines)}
    try:
        for where, line, _ in lines:
            path = copy / where
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{before[path] or ''}\n{line}\n")
        found, text = broken(copy)
    finally:
        for path, held in before.items():
            if held is not None:
                path.write_text(held)
            else:
                shutil.rmtree(path.parent) if path.name == "__init__.py" else path.unlink()
    assert contracts <= found
    for *_, says in lines:
        assert says in text, says


ROOMS = [each for each in CONTRACTS if each["type"] == "layers" and each["containers"] != ["dpmpc"]]


def test_every_room_has_walls_that_stand(copy: Path) -> None:
    """In each room one module of its lowest floor reaches for one of its highest, and each contract says which."""
    rooms = {path.parent.name for path in (copy / "dpmpc").glob("*/__init__.py")} - {"benchmarks"}  # of studies
    assert {each["containers"][0] for each in ROOMS} == {f"dpmpc.{room}" for room in rooms}
    before, said = {}, {}
    try:
        for each in ROOMS:
            room, floors = each["containers"][0], each["layers"]
            high, low = (floor.split(" | ")[0] for floor in (floors[0], floors[-1]))
            path = copy.joinpath(*room.split("."), low)
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            before[path] = path.read_text()
            path.write_text(f"{before[path]}\n\ndef late() -> None:\n    import {room}.{high}\n")
            said[each["name"]] = f"{room}.{low} -> {room}.{high}"
        found, text = broken(copy)
    finally:
        for path, held in before.items():
            path.write_text(held)
    assert said.keys() <= found
    assert not [line for line in said.values() if line not in text]


CIRCLES = """
import grimp

graph = grimp.build_graph("dpmpc", exclude_type_checking_imports=True, cache_dir=None)
left = {module: graph.find_modules_directly_imported_by(module) - {module} for module in graph.modules}
for _ in range(2):  # those that import none that is left; then those that none imports
    while free := {module for module, others in left.items() if not others & left.keys()}:
        left = {module: others for module, others in left.items() if module not in free}
    left = {module: {each for each, others in left.items() if module in others} for module in left}
print(len(graph.modules), *sorted(left))
"""


def test_no_files_import_one_another_in_a_circle(copy: Path) -> None:
    """Also not when they are called; for type checkers alone some do."""

    def circles() -> list[str]:
        said = subprocess.run([sys.executable, "-c", CIRCLES], cwd=copy, capture_output=True, text=True, check=True)
        number, *found = said.stdout.split()
        assert int(number) > 600
        return found

    assert circles() == []
    path = copy / "dpmpc" / "learning" / "settings.py"
    held = path.read_text()
    path.write_text(f"{held}\n\ndef late() -> None:\n    import dpmpc.learning.method\n")
    found = circles()
    path.write_text(held)
    assert {"dpmpc.learning.settings", "dpmpc.learning.method"} <= {*found} and "dpmpc.learning.gradient" not in found


def test_every_folder_of_code_is_checked_and_installed() -> None:
    """Links serve the tools that read the tree; a package that is not in pyproject.toml is not installed, and studies
    are not meant to be."""
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("dpmpc", "circuits", "cli", "benchmarks")
        for path in (ROOT / top).rglob("__init__.py")
        if not any(part.is_symlink() for part in path.parents)
    }
    named = {name if name.startswith("dpmpc") else f"dpmpc.{name}" for name in folders}
    assert named - {"dpmpc.benchmarks.studies"} == set(settings["tool"]["setuptools"]["packages"])
    for name in ("circuits", "cli", "benchmarks"):
        link = ROOT / "dpmpc" / name
        assert link.resolve() == ROOT / name or not link.exists()  # an sdist has none


# -- the public names --------------------------------------------------------------------------------------------------
def declared() -> dict[str, str]:
    """Public name -> home, as type checkers read it."""
    tree = ast.parse((ROOT / "dpmpc" / "__init__.py").read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(guarded.test) == "TYPE_CHECKING"
    return {
        alias.name: str(node.module).removeprefix("dpmpc.")
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is None
    }


def test_type_checkers_and_programs_find_the_same_names() -> None:
    assert declared() == dpmpc._HOMES and sorted(dpmpc.__all__) == sorted(dpmpc._HOMES)
    assert len(dpmpc.__all__) == len(set(dpmpc.__all__)) and set(dpmpc.__all__) <= set(dir(dpmpc))
    everything: dict[str, object] = {}
    exec("from dpmpc import *", everything)  # noqa: S102
    assert set(dpmpc.__all__) <= set(everything)
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        dpmpc.nonesuch  # noqa: B018


@pytest.mark.parametrize("name", dpmpc.__all__)
def test_a_public_name_has_one_home_and_says_what_it_is(name: str) -> None:
    thing, home = getattr(dpmpc, name), f"dpmpc.{dpmpc._HOMES[name]}"
    assert getattr(importlib.import_module(home), name) is thing
    defined = set()
    for node in ast.parse(Path(str(sys.modules[home].__file__)).read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            defined.add(ast.unparse(node.target))
    assert name in defined, f"{home} only passes {name} on"
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert thing.__module__ == home
    assert (thing.__doc__ or "").strip()
    if inspect.isclass(thing):
        silent = [
            member
            for member, value in vars(thing).items()
            if not member.startswith("_")
            and (inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod))
            and not (inspect.getdoc(getattr(thing, member)) or "").strip()
        ]
        assert silent == []
    if inspect.isfunction(thing):
        assert not [p for p in inspect.signature(thing).parameters.values() if p.annotation is p.empty]


def test_to_import_dpmpc_costs_nothing_that_is_not_used() -> None:
    """In a process of its own; what stays out is loaded with the first name that needs it."""
    program = (
        "import sys, dpmpc; heavy = {'numpy', 'scipy', 'sklearn', 'mpyc', 'cryptography', 'matplotlib', 'click'}; "
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules})); "
        "dpmpc.UsageError, dpmpc.PeerError; print(sorted(name for name in sys.modules if name.startswith('dpmpc')))"
    )
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout.splitlines() == ["[]", "['dpmpc', 'dpmpc.errors']"]


def test_no_two_files_of_tests_have_one_name() -> None:
    """They are imported by their names alone: with two of one name no test of the whole suite begins."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(names) > 200 and [name for name, times in names.items() if times > 1] == []


def test_a_class_name_says_one_thing() -> None:
    """A reader who meets a name need not ask which of two it is. By a pattern: to parse all files takes seconds."""
    named = Counter(
        name
        for top in ("dpmpc", "circuits", "cli", "benchmarks")
        for path in (ROOT / top).rglob("*.py")
        if not any(part.is_symlink() for part in path.parents)
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert len(named) > 700 and [name for name, times in named.items() if times > 1] == []


# -- texts -------------------------------------------------------------------------------------------------------------
def test_folders_are_made_in_one_place() -> None:
    """`make_folder` says in one line what keeps a folder from being made; a bare call would say it in a traceback."""
    paths = [
        path for name in ("dpmpc", "cli", "circuits", "benchmarks") for path in sorted((ROOT / name).rglob("*.py"))
    ]
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in paths
        if re.search("mkdir|makedirs", text := path.read_text(encoding="utf-8"))  # few: to parse all takes seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in ("mkdir", "makedirs")
    ]
    assert len(paths) > 400 and {call.partition(":")[0] for call in calls} == {"dpmpc/folders.py"}, calls


def test_files_that_the_texts_name_exist() -> None:
    named = {
        (page.name, path)
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
        for path in re.findall(r"`((?:tests|dpmpc|circuits|benchmarks|cli|docs)/[\w./-]+)`", page.read_text())
    }
    assert ("privacy.md", "tests/privacy/test_gaussian.py") in named
    assert [(page, path) for page, path in sorted(named) if not (ROOT / path).exists()] == []


def test_modules_that_the_texts_name_exist() -> None:
    all_of = (dpmpc.LAWS, dpmpc.BACKENDS, dpmpc.METHODS, LINKS, QUESTION_KINDS, SOURCES, TASKS)
    groups = {registry.group for registry in all_of}
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for name in set(re.findall(r"\bdpmpc\.[a-z_]+(?:\.[a-z_]+)*", page.read_text())) - groups:
            module, _, attribute = name.rpartition(".")
            found = hasattr(importlib.import_module(module), attribute) or importlib.util.find_spec(name)
            assert found, f"{page.name}: {name}"


def test_the_page_for_contributors_names_every_room() -> None:
    contract = next(c for c in CONTRACTS if c["name"] == LAYERS)
    floors = [[name.strip() for name in floor.split("|")] for floor in contract["layers"]]
    text, rooms = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), [name for floor in floors for name in floor]
    assert ["verify", "estimators", "flower"] in floors and all(f"`{name}" in text for name in rooms)


def test_the_page_on_architecture_names_what_is_there() -> None:
    """Each folder and file of the package stands in its table once, and each file that it sends a reader to exists."""
    text = (ROOT / "docs" / "explain" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`dpmpc\.([a-z_]+)`", text)
    inside = [path for path in (ROOT / "dpmpc").iterdir() if path.is_dir() or path.suffix == ".py"]
    assert sorted(named) == sorted(path.stem for path in inside if not path.name.startswith("__"))
    files = re.findall(r"`(dpmpc/[\w/]+\.py)`", text)
    assert len(files) >= 3 and [path for path in files if not (ROOT / path).is_file()] == []


def test_the_pictures_of_the_architecture_are_those_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn anew they are what the page shows; all imports point down, and every state is code that is there."""
    floor_of = {name: k for k, floor in enumerate(house.floors()) for name in floor}
    arrows = house.imports(floor_of)
    assert len(arrows) > 100 and all(floor_of[a] < floor_of[b] for a, b in arrows)
    drawn = house.least(arrows)
    assert house.least(drawn) == drawn < arrows and ("cli", "errors") in arrows - drawn
    shown = {name: getattr(house, name) for name in ("ROOMS", "STATES")}
    for name in shown:
        monkeypatch.setattr(house, name, tmp_path / name)
    house.main()
    for name, path in shown.items():
        assert (tmp_path / name).read_text() == path.read_text(), "python -m website.house draws them"
    for _, _, _, code in house.BOXES.values():
        assert pkgutil.resolve_name(f"dpmpc.{code}"), code
    assert {name for arrow in house.ARROWS for name in arrow} == {*house.BOXES}
