"""One declaration a setting, many surfaces: each has every setting that makes sense on it, or an exemption with a
reason; an error names the setting, and each surface spells it."""

import ast
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
import numpy as np
import pytest
from click.testing import CliRunner

import dpmpc
from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.limits import AcceptFile, limit_of, limited
from dpmpc.aggregation.plan.of_vectors import OfVectors
from dpmpc.aggregation.plan.settings import GROUPS
from dpmpc.aggregation.wire.news import elsewhere
from dpmpc.cli.check import _of_a_plan
from dpmpc.cli.check import command as check
from dpmpc.cli.settings import flags_of, known_settings, spelling
from dpmpc.cli.status import command as status
from dpmpc.cli.surfaces import stale
from dpmpc.cli.train_options import OPTIONS
from dpmpc.consortium.joining import kit_spelling
from dpmpc.consortium.status import read_status
from dpmpc.consortium.toml import read_consortium
from dpmpc.consortium.toml_keys import _SECTIONS, ConsortiumFile
from dpmpc.consortium.toml_text import Founding, text_of
from dpmpc.errors import PeerError, UsageError, owner_text
from dpmpc.estimators import PrivateLogisticRegression, PrivateRegressor, PrivateRidge
from dpmpc.extend import plan_of
from dpmpc.intake.written import known_keys
from dpmpc.planning.request import Request
from dpmpc.planning.settings import OwnerSettings, RecordSettings
from dpmpc.processes.status import Status, status_path
from dpmpc.settings import declared
from dpmpc.tables.stats import OfTables
from tests.refusals import refuses

ROOT = Path(__file__).parents[1]
EVERYTHING = {**declared(Request), **declared(OfVectors)}
VECTORS = "of vectors that a caller brings; training derives it"
NOT_ON: dict[str, dict[str, str]] = {
    "the command line": {
        "releases": VECTORS,
        "sensitivity": VECTORS,
        "quantile": VECTORS,
        "records": "another thing there: where the records are",
    },
    "consortium.toml": {
        **{name: "each site says where its own records are, when it joins" for name in declared(RecordSettings)},
        **{name: "[[owners]] says who holds how many" for name in declared(OwnerSettings)},
        "releases": VECTORS,
        "sensitivity": VECTORS,
        "quantile": VECTORS,
        "engine": "a consortium's parties are there",
        "parties": "[[parties]] names them",
        "budget": "each site's own: budget of its limits",
        "ledgers": "each site's own: join --ledgers",
        "account": "each site's own: join --account",
    },
}
_HERE = "all processes are on this machine"
_OWN = "each process's own, and no part of a plan"
_ARRAYS = "records come as arrays or frames"
_NO_COLUMN = "vectors have no columns; a promise of persons is said by neighbours"
_NO_CLASSES = "a quantity has no classes"
_FILES = (
    "capacity", "data", "csv", "records", "database", "sql", "schema",
    "memory", "precision", "executor", "workers",
    "target", "owners_column", "data_dir", "bounds", "missing", "named", "spell", "word_list",
    "drop", "positive", "classes", "test_fraction", "max_rows", "intercept", "official_test", "dimension", "seed",
    "owners", "owner_sizes", "skew", "evaluate", "figures", "baseline", "ids",
)  # fmt: skip
_ESTIMATOR = {
    **dict.fromkeys(_FILES, _ARRAYS),
    **dict.fromkeys(("schema", "bounds"), "an object or a mapping will do too"),
    "classes": "those of the labels, of any type",
    "intercept": "fit_intercept, as scikit-learn calls it",
    **dict.fromkeys(("owners_column", "owners", "owner_sizes", "skew"), "owners= of fit says whose each row is"),
    **dict.fromkeys(("evaluate", "figures", "baseline", "test_fraction"), "scores are the caller's"),
    "task": "the estimator's class says it",
    "role": _HERE,
    "run_id": "each fit is a run of its own",
    "min_owners": "owners here are all here",
    "release_wait": "owners here are all here",
}
_ESTIMATED = {"delta": 1e-5, "data_id": "records"}


@dataclass(frozen=True)
class Surface:
    """A function, the class whose settings are its keywords, those that it leaves out and why, and defaults of its
    own."""

    function: Any
    kind: type
    without: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)


SURFACES = {
    "plan": Surface(dpmpc.Plan.create, OfVectors, dict.fromkeys(("budget", "account"), _OWN) | {"person": _NO_COLUMN}),
    "aggregator": Surface(dpmpc.Aggregator, OfVectors, {"role": _HERE, "person": _NO_COLUMN}),
    "mean": Surface(
        dpmpc.private_mean,
        OfVectors,
        {"role": _HERE, "releases": "one", "quantile": "one release", "person": _NO_COLUMN},
        {"epsilon": inspect.Parameter.empty},
    ),
    "source": Surface(plan_of, OfTables),
    "stats": Surface(dpmpc.stats, OfTables),
    "synth": Surface(dpmpc.synth, OfTables),
    "train": Surface(dpmpc.train, Request),
    "logistic": Surface(
        PrivateLogisticRegression, Request, {**_ESTIMATOR, "residual_clip": "of regression"}, _ESTIMATED
    ),
    "ridge": Surface(PrivateRidge, Request, {**_ESTIMATOR, "class_weight": _NO_CLASSES}, _ESTIMATED),
    "regressor": Surface(
        PrivateRegressor,
        Request,
        {**{name: why for name, why in _ESTIMATOR.items() if name != "task"}, "class_weight": _NO_CLASSES},
        _ESTIMATED,
    ),
}
OTHERWISE = {  # types
    "train": {"records": Any},
    **{name: {"data_id": str} for name in ("logistic", "ridge", "regressor")},
}


def test_every_surface_has_every_setting_or_a_reason() -> None:
    found = {
        "the command line": {str(option.name) for options in OPTIONS.values() for option in options},
        "consortium.toml": set(known_keys(ConsortiumFile)),
    }
    for surface, names in found.items():
        absent = EVERYTHING.keys() - names
        assert absent <= NOT_ON[surface].keys(), f"{surface} lacks {absent - NOT_ON[surface].keys()}"
        assert all(NOT_ON[surface].values())


def parts(hint: Any) -> set[Any]:
    """The types of which any will do."""
    return set(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else {hint}


@pytest.mark.parametrize("name", SURFACES)
def test_a_function_shows_every_setting_with_the_declared_type_and_default(name: str) -> None:
    """So that an editor, a type checker and `help` know them; or there is a reason why it does without."""
    surface = SURFACES[name]
    written, known = inspect.signature(surface.function).parameters, declared(surface.kind)
    assert all(surface.without.values()) and surface.without.keys() <= known.keys()
    for each in known.values():
        if each.name in surface.without:
            continue
        shown = written[each.name]
        assert shown.kind == shown.KEYWORD_ONLY
        chosen = each.optional or bool(each.setting.rule)
        assert shown.default == surface.defaults.get(each.name, None if chosen else each.default), each.name
        wanted, had = parts(each.kind) | ({type(None)} if chosen else set()), parts(shown.annotation)
        if str in wanted and each.setting.metavar == "DIR":
            had -= {Path}  # a path will do
        assert had == parts(OTHERWISE.get(name, {}).get(each.name, Union[tuple(wanted)])), each.name  # noqa: UP007


def test_limits_have_a_field_a_limit() -> None:
    hints = get_type_hints(dpmpc.Limits)
    assert list(hints) == [each.name for each in fields(dpmpc.Limits)] == list(limited())
    for name, each in limited().items():
        assert hints[name] == (limit_of(each).kind or each.kind) | None, name


FIRST = {"out", "vectors", "source", "sizes", "records", "queries"}
TABLES = {"records", "vectors", "schema", "bounds", "target_bounds", "classes"}  # of any library, or a file's name


@pytest.mark.parametrize("name", [*SURFACES, "account"])
def test_signatures_are_typed(name: str) -> None:
    """An editor knows every setting by its name and type: no `**options`, and `Any` for tables and events alone."""
    function = dpmpc.account if name == "account" else SURFACES[name].function
    for each in inspect.signature(function).parameters.values():
        assert each.kind is each.KEYWORD_ONLY or each.name in FIRST, each
        loose = Any in parts(each.annotation) or each.annotation is each.empty
        assert not loose or each.name in TABLES or each.name == "progress", each


COMMANDS = ("account", "advise", "sample", "init", "check", "describe", "join")


@pytest.mark.parametrize("name", COMMANDS)
def test_other_commands_take_their_options_from_the_declarations(name: str) -> None:
    """Where a command has a setting, it has all its names, and its choices or fewer."""
    known, seen = known_settings(), 0
    command = importlib.import_module(f"dpmpc.cli.{name}").command
    for option in command.params:
        if not isinstance(option, click.Option) or option.name not in known:
            continue
        seen += 1
        each = known[option.name]
        names = set(flags_of(each)) - ({"--scale"} if (name, option.name) == ("account", "scale") else set())
        assert names <= {part for flag in option.opts for part in flag.split("/")}, option.name
        if isinstance(option.type, click.Choice) and option.name != "engine":
            assert set(option.type.choices) <= set(each.choices), option.name
            for other in set(each.choices) - set(option.type.choices):
                assert f" {other}: " not in (option.help or ""), option.name  # what is offered is what is explained
    assert seen >= 4


def test_the_page_of_settings_is_that_of_the_declarations() -> None:
    assert not stale()


def test_every_setting_is_declared_once_and_helps() -> None:
    for name, each in EVERYTHING.items():
        assert len(each.setting.help) > 10 and each.setting.help.endswith("."), name
        owners = {other.group for kind in (Request, OfVectors) for key, other in declared(kind).items() if key == name}
        assert len(owners) == 1 or name in {"records", "weights", "data_id"}, f"{name} is declared in {owners}"
    names = [name for group in GROUPS.values() for name in declared(group)]
    assert len(names) == len(set(names))


def test_limits_are_called_as_settings_are() -> None:
    own = {"assumptions", "by_owner", "source"}
    assert set(known_keys(AcceptFile)) - own <= EVERYTHING.keys()


UNLIMITED = {
    "scale": "what a fixed scale comes to is accounted, and held against epsilon",
    "grid_bits": "sensitivity and noise are derived on it",
    "link": "it chooses a backend, which has a limit",
    "engine": "nobody takes part in a plan without parties",
    "pool": "when noise is made changes none of it",
    "role": "parties that are owners too learn what parties learn",
    "release_wait": "a matter of time",
    "quantile": "the norm that follows it is in the account",
    "account": "each process's own",
    "person": "the name of a column, in which each owner's process reads whose its records are",
    "person_owners": "fewer than all owners is an assumption of the promise, which limits allow or not",
    "weights": "what an owner's vector is multiplied by is in the account",
}


def test_every_setting_of_a_plan_has_a_limit_or_a_reason() -> None:
    plan = {**declared(OfVectors)}
    limits = limited()
    assert plan.keys() - limits.keys() == UNLIMITED.keys() - limits.keys()
    assert not UNLIMITED.keys() & limits.keys() and all(UNLIMITED.values())
    assert [each.name for each in fields(dpmpc.Limits)] == list(limits) == list(AcceptFile.__struct_fields__)


@pytest.mark.parametrize(
    ("name", "value", "flag", "python", "kit"),
    [
        ("parties", "5", "-M 5", "parties=5", "[[parties]] of consortium.toml"),
        ("threshold", None, "-T", "threshold", "threshold in [mpc] of consortium.toml"),
        ("data_id", "NAME", "--data-id NAME", "data_id=NAME", 'data_id = "NAME" in [run] of consortium.toml'),
        ("epsilon", "2", "--epsilon 2", "epsilon=2", "epsilon = 2 in [privacy] of consortium.toml"),
        ("pool", "False", "--no-pool", "pool=False", "pool = false in [mpc] of consortium.toml"),
        ("csv", None, "--csv", "csv", "`join --csv`"),
    ],
)
def test_each_surface_spells_a_setting(name: str, value: str | None, flag: str, python: str, kit: str) -> None:
    error = UsageError(f"the rule; the value; use <<{name}{'' if value is None else '=' + value}>>")
    assert owner_text(error) == f"the rule; the value; use {python}"
    assert error.spelt(spelling) == f"the rule; the value; use {flag}"
    assert error.spelt(kit_spelling) == f"the rule; the value; use {kit}"
    assert str(PeerError(error.to_owner)) == owner_text(error)  # as it comes from another process


def raised() -> Iterator[tuple[str, int, str]]:
    """Every text in an error that is raised below the command line: (file, line, text)."""
    for path in sorted((ROOT / "dpmpc").rglob("*.py")):
        if {"cli", "benchmarks", "circuits"} & set(path.relative_to(ROOT / "dpmpc").parts[:1]):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                for part in ast.walk(node.exc):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield str(path.relative_to(ROOT)), part.lineno, part.value


FLAG = re.compile(r"(?<![\w`<-])--[a-z]|(?<![\w`<-])-[MTIPB]\b")
ELSEWHERE = {"dpmpc/mpc/mpyc/program.py": "an option of MPyC's own launcher"}


def test_no_error_below_the_command_line_names_a_flag() -> None:
    texts = list(raised())
    assert len(texts) > 600
    wrong = [f"{file}:{line}: {text}" for file, line, text in texts if FLAG.search(text) and file not in ELSEWHERE]
    wrong = [text for text in wrong if "`dpmpc " not in text and "dpmpc " not in text]
    assert wrong == []


def test_errors_of_a_consortium_file_name_its_keys(tmp_path: Path) -> None:
    """Nonsense for every key: whoever prints the error, it says where in the file, and no flag."""
    path, lines, refused = tmp_path / "consortium.toml", text_of(Founding()).splitlines(), 0
    parts = {**_SECTIONS, "limits": AcceptFile}
    del parts["records"]
    for section, name in ((section, name) for section, kind in parts.items() for name in kind.__struct_fields__):
        rest = [line for line in lines if not re.match(rf"{name} +=", line)]
        at = next(k for k, line in enumerate(rest) if line.startswith(f"[{section}]"))
        for value in ('"nonsense"', "-7", '["nonsense"]'):
            path.write_text("\n".join([*rest[: at + 1], f"{name} = {value}", *rest[at + 1 :]]) + "\n")
            try:
                read_consortium(path)
            except UsageError as error:
                refused += 1
                assert not FLAG.search(said := error.spelt(spelling)), said
    assert refused > 100


def test_a_name_that_no_setting_has_is_answered_with_the_nearest() -> None:
    with refuses("unknown", kind=TypeError):
        dpmpc.Plan.create(owners=2, dimension=2, clip=1.0, epsilom=1.0)  # type: ignore[call-arg]
    with refuses("type", "x", setting="epsilon"):
        dpmpc.Plan.create(owners=2, dimension=2, clip=1.0, epsilon="x")  # type: ignore[arg-type]


def test_a_path_is_taken_where_a_text_that_names_a_file_is_due(tmp_path: Path) -> None:
    asked = Request(csv=tmp_path / "a.csv", schema=tmp_path / "s.toml", delta=1e-5)  # type: ignore[arg-type]
    assert (asked.csv, asked.schema) == (str(tmp_path / "a.csv"), str(tmp_path / "s.toml"))


def test_a_table_where_a_word_is_due_is_refused_without_its_values(tmp_path: Path) -> None:
    table = {"age": np.array([71.5, 43.25]), "died": np.array([0, 1])}
    with pytest.raises(UsageError) as caught:
        dpmpc.train(tmp_path / "run", data=table, target="died", epsilon=1.0, delta=1e-5)  # type: ignore[arg-type]
    assert owner_text(caught.value) == "data must be a text; got a dict; give one"


@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateRidge, PrivateRegressor])
def test_estimators_take_what_the_command_line_takes(kind: Any) -> None:
    for settings in (
        {"security": "active"},
        {"check_owners": "zero"},
        {"neighbours": "owner"},
        {"calibration": "zcdp"},
        {"budget": "1,1e-5"},
    ):
        assert kind(**settings).get_params().items() >= settings.items()
    assert inspect.signature(dpmpc.Aggregator).parameters["min_owners"].default is None


def test_a_check_of_records_names_options_that_it_has_and_else_the_places_of_the_plan(tmp_path: Path) -> None:
    """Every setting there is, said by `dpmpc check --plan`: in a kit, and beside another plan."""
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "site.toml").touch()
    own = {flag for param in check.params for flag in param.opts}
    for name in declared(Request):
        in_kit, made_here = (_of_a_plan(tmp_path / where / "plan.json")(name, None) for where in ("kit", "."))
        assert made_here in own or made_here.startswith("`dpmpc train -"), made_here
        assert in_kit in own or not FLAG.search(re.sub("`(join|dpmpc train) -", "", in_kit)), in_kit
    assert _of_a_plan(tmp_path / "kit" / "plan.json")("test_fraction", None).endswith("[records] of consortium.toml")


def test_what_a_process_keeps_of_its_end_names_settings_as_its_reader_does(tmp_path: Path) -> None:
    plan = dpmpc.Plan.create(owners=2, dimension=2, clip=1.0, delta=1e-5, epsilon=1.0)
    out = tmp_path / "run"
    out.mkdir()
    plan.write(plan_path(out))
    with pytest.raises(PeerError), Status(status_path(out, "party_0"), "party 0"):
        raise PeerError("every party must come; party 1 did not; start it, or mend <<addresses>>")
    for say, place in ((None, "addresses"), (spelling, "-P"), (kit_spelling, "[[parties]] of consortium.toml")):
        (state,) = read_status(out).processes if say is None else read_status(out, say).processes
        assert state.event.startswith("error: every party must come") and state.event.endswith(place), state.event
    (tmp_path / "site.toml").touch()
    shown = CliRunner().invoke(status, [str(tmp_path)]).output
    assert "[[parties]] of consortium.toml" in shown and "<<" not in shown


def test_who_finds_nobody_is_sent_for_what_there_is() -> None:
    """A stage has no model; a run that asks has answers."""
    plan = dpmpc.Plan.create(owners=2, dimension=2, clip=1.0, delta=1e-5, epsilon=1.0)
    stage = replace(plan, run_id=f"{plan.run_id}+survey")
    assert elsewhere(plan) == "take what the run wrote from another site, it is the same, or "
    assert elsewhere(stage) == ""
