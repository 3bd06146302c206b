"""Things chosen by name: our own, those of other packages, and what happens when there is none or one too many."""

import ast
import statistics
import sys
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from dpmpc import registry
from dpmpc.errors import UsageError
from dpmpc.learning.method import DEFAULT_METHOD, METHODS
from dpmpc.learning.rehearsal import Descends
from dpmpc.learning.source import SOURCES
from dpmpc.learning.task import TASKS
from dpmpc.mpc.contract.backend import BACKENDS, BY_LEVEL, CHECKED, DEFAULT, FOR_MANY, FOR_TWO, GARBLED
from dpmpc.mpc.contract.levels import transfers_k
from dpmpc.mpc.transport.link import LINKS
from dpmpc.privacy.law import DEFAULT_LAW, LAWS, PURE_LAW, calibration_names, law_for, law_of_sampler, sampler_names
from dpmpc.registry import Registry
from tests.refusals import refuses

GROUP = "dpmpc.things"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """The entry points that other packages have."""
    points: list[EntryPoint] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])
    return points


def things() -> Registry[object]:
    return Registry("thing", GROUP, {"pi": "math:pi", "mean": "statistics:mean"})


def test_things_are_loaded_when_they_are_first_asked_for(
    installed: list[EntryPoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("a_package_elsewhere")
    module.thing = object()  # type: ignore[attr-defined]
    installed += [EntryPoint("theirs", "a_package_elsewhere:thing", GROUP), EntryPoint("x", "none:none", "others")]
    found = things()
    assert found.names() == ("pi", "mean", "theirs") and "theirs" in found and "x" not in found
    with pytest.raises(UsageError):
        found["theirs"]
    monkeypatch.setitem(sys.modules, "a_package_elsewhere", module)
    assert found["theirs"] is module.thing  # type: ignore[attr-defined]
    assert dict(found.items())["theirs"] is module.thing  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["none", "", "Pi", None, 3])
def test_an_unknown_name_is_told_the_known_ones(installed: list[EntryPoint], name: str) -> None:
    with refuses("choice", repr(name), "pi", "mean"):
        things()[name]


def test_what_another_package_breaks_is_one_warning(
    installed: list[EntryPoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that ends the program, as one that reads sys.argv does, and things that are none."""
    (tmp_path / "ends_the_program.py").write_text("raise SystemExit('usage:\\nof another program')")
    monkeypatch.syspath_prepend(tmp_path)
    installed.append(EntryPoint("ends", "ends_the_program:thing", GROUP))
    broken = things()
    with pytest.warns(UserWarning, match="'ends' .* fails with SystemExit: usage: of another program; mend") as said:
        assert [name for name, _ in (*broken.items(), *broken.items())] == ["pi", "mean"] * 2
    assert len(said) == 1
    for ours in (LAWS, BACKENDS, METHODS, TASKS, SOURCES):
        installed.append(EntryPoint("number", "math:pi", ours.group))
        again = type(ours)(ours.kind, ours.group, ours._own, ours._fits)
        with pytest.warns(UserWarning, match="must be one; 'number' is math:pi, of type float") as said:
            assert [name for name, _ in again.items()] == [name for name in ours.names() if name != "number"]
        assert len(said) == 1


def test_a_name_belongs_to_one_package(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("pi", "math:pi", GROUP))  # the same thing twice is no clash
    assert things().names() == ("pi", "mean")
    installed.append(EntryPoint("mean", "statistics:fmean", GROUP))
    clashing = things()
    with pytest.warns(UserWarning, match="'mean' is statistics:mean, and statistics:fmean claims it too") as said:
        assert clashing.names() == ("pi", "mean")
    assert len(said) == 1 and "mean" in clashing and clashing["mean"] is statistics.mean


@pytest.mark.parametrize("ours", [LAWS, BACKENDS, METHODS, LINKS])
def test_our_own_things_load_under_their_own_names(ours: Registry[object]) -> None:
    names = ours.names()
    assert names and len(set(names)) == len(names)
    for name in names:
        assert getattr(ours[name], "name", name) == name
    with refuses("choice", ours.kind):
        ours["nonesuch"]


def test_choices_of_the_command_line_follow_from_the_laws() -> None:
    assert DEFAULT in BACKENDS
    assert [law_of_sampler(name) for name in ("discrete", "box-muller", "log-laplace", "none")] == [
        None, "gaussian", "laplace", None
    ]  # fmt: skip
    assert set(sampler_names()) >= {"discrete", "box-muller", "log-laplace"}
    assert set(calibration_names()) >= {"tight", "zcdp", "paper"}
    for name, law in LAWS.items():
        assert law.calibrations[0] == "tight" and str(law) == name
        for sampler in law.samplers:
            assert law.sampler(sampler, 1000.0).name == sampler


# -- no name of an entry outside its registry ---------------------------------------------------------------------
# Where a name may be compared with, fallen back on or listed, and why.
MAY_NAME = {
    "dpmpc/privacy/law.py": "the registry, and the default laws",
    "dpmpc/mpc/contract/backend.py": "the registry, and the default backends",
    "dpmpc/learning/method.py": "the registry, and the default method",
    "circuits": "families of circuits, which know no registry",
    "dpmpc/mpc/mpyc/fixed.py": "the same families, drawn with another arithmetic",
    "experiments/dpmpc_experiments/methods": "the papers' methods, each with the formulas of its own law",
    "dpmpc/aggregation/wire/transcript.py": "an event of transcripts that is called like a backend",
}
ROOT = Path(__file__).parents[1]
REGISTERED = frozenset((*LAWS.names(), *BACKENDS.names(), *METHODS.names()))


def decided(node: ast.AST) -> list[ast.expr | None]:
    """The expressions of a node by which a program decides, falls back, or lists what may be chosen."""
    match node:
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.MatchValue():
            return [node.value]
        case ast.arguments():
            return [*node.defaults, *node.kw_defaults]
        case ast.keyword(arg="default" | "choices"):
            return [node.value]
        case ast.Assign():
            return [] if [getattr(target, "id", None) for target in node.targets] == ["name"] else [node.value]
        case ast.AnnAssign():
            return [node.value]
        case ast.BoolOp():
            return list(node.values)
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.Return():
            return [node.value]
        case ast.Subscript() if last(node.value) in ("Literal", "LAWS", "BACKENDS", "METHODS"):
            return [node.slice]
        case ast.Call() if last(node.func).endswith("Choice"):
            return list(node.args)
    return []


def last(node: ast.expr) -> str:
    """The last of the names of `a.b.c`; empty for all else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def names_in(source: str) -> list[tuple[int, str]]:
    """(line, name) of every registered name that a source decides by."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        for expression in decided(node):
            collected = isinstance(node, (ast.Compare, ast.Subscript, ast.Call, ast.keyword))
            several = collected and isinstance(expression, (ast.Tuple, ast.List, ast.Set))
            for each in expression.elts if several else [expression]:  # type: ignore[union-attr]
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value in REGISTERED:
                    found.add((each.lineno, each.value))
    return sorted(found)


def test_no_name_of_a_law_backend_or_method_stands_outside_its_registry() -> None:
    used = set()
    for top in ("dpmpc", "circuits", "cli", "benchmarks", "experiments"):
        for path in sorted((ROOT / top).rglob("*.py")):
            place = path.relative_to(ROOT)
            if any((ROOT / parent).is_symlink() for parent in place.parents):
                continue  # a link to a folder that is looked at by itself
            found = names_in(path.read_text(encoding="utf-8"))
            allowed = {str(p) for p in (place, *place.parents)} & MAY_NAME.keys()
            assert allowed or not found, f"{place}: {found}: ask the registry's entry, or use the registry's default"
            used |= allowed if found else set()
    assert used == MAY_NAME.keys(), "a place that names nothing needs no permission"


@pytest.mark.parametrize(
    "source",
    [
        'if law == "gaussian": pass',
        'if law.name != "laplace": pass',
        'if method in ("output", other): pass',
        'if "mpyc" == backend: pass',
        'law = law or "gaussian"',
        'law = "laplace" if not delta else given',
        'def f(*, method: str = "gradient"): pass',
        'def f(backend="sharing"): pass',
        'class A:\n    law: str = "gaussian"',
        'class A:\n    law = "gaussian"',
        '_METHOD = "gradient"',
        'option("--method", type=Choice(["gradient", *more]))',
        'parser.add_argument("--law", default="gaussian")',
        'method: Literal["gradient", "output"] | None',
        'entry = LAWS["laplace"]',
        'def f():\n    return "ot"',
        'match law:\n    case "gaussian": pass',
    ],
)
def test_a_name_outside_its_registry_is_seen(source: str) -> None:
    assert names_in(source), source


def test_words_that_are_no_choice_of_an_entry_are_let_be() -> None:
    assert not names_in('class A:\n    name = "gaussian"\nsay("output")\nx = {"sharing": 1}\nif a == "uniform": pass')


def test_the_defaults_are_what_is_said_of_them() -> None:
    """With a delta a law whose mu^2 the adviser and surveys can share out, without one a pure law; a method of many
    releases, which the adviser knows."""
    assert LAWS[DEFAULT_LAW].by_mu and not LAWS[DEFAULT_LAW].pure and LAWS[PURE_LAW].pure
    assert law_for(1e-5) == DEFAULT_LAW and law_for(0.0) == law_for(None) == PURE_LAW
    assert METHODS[DEFAULT_METHOD].repeats and isinstance(METHODS[DEFAULT_METHOD], Descends)
    assert {DEFAULT, FOR_TWO, FOR_MANY, GARBLED, *CHECKED.values(), *BY_LEVEL.values()} <= set(BACKENDS.names())
    for k, name in BY_LEVEL.items():
        assert transfers_k(name) == k
    for _, law in LAWS.items():
        assert not (law.by_mu and law.pure) and not (law.by_mu and law.norm != 2)
    assert [name for name, method in METHODS.items() if method.may_be_pure] == ["output"]
    assert [name for name, method in METHODS.items() if method.lam_moves] == ["output"]


def test_packages_are_looked_through_once_for_all_registries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again where another folder of packages has come."""
    read: list[int] = []
    monkeypatch.setattr(
        registry.metadata, "entry_points", lambda found=metadata.entry_points: read.append(1) or found()
    )
    registry._points.cache_clear()
    for _ in range(3):
        assert things().own_alone and things().names() == ("pi", "mean")
    assert len(read) == 1
    info = tmp_path / "more-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: more\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\ntau = math:tau\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert things().names() == ("pi", "mean", "tau") and not things().own_alone
    assert len(read) == 2
