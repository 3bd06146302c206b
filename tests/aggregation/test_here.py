"""The settings of a process: declared once, the same on every surface."""

import inspect
import json
from pathlib import Path
from typing import Any, TypedDict, Unpack, get_args, get_type_hints

import click
import pytest

import dpmpc
from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.plan import here as module
from dpmpc.aggregation.plan.here import HERE, Here
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.cli.main import group
from dpmpc.cli.settings import flags_of, options_of
from dpmpc.cli.surfaces import table
from dpmpc.codec import of_json, to_json
from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.settings import declared, keywords, setting, within
from tests.refusals import refuses

KEYWORDS = [kind for kind in vars(module).values() if isinstance(kind, type(TypedDict("T", {})))]  # type: ignore[operator]
CALLED = ("127.0.0.1:11301", "127.0.0.2:11301", "127.0.0.3:11301")


@pytest.mark.parametrize("kind", KEYWORDS)
def test_the_keywords_of_constructors_are_the_declared_settings(kind: Any) -> None:
    """Type checkers read a TypedDict: its keys are settings, each of the declared type (a path may be a text)."""
    for name, hint in get_type_hints(kind).items():
        each = declared(Here)[name]
        wanted = {each.kind} | ({type(None)} if each.optional else set())
        assert {*get_args(hint)} - {str, Path} == wanted - {str, Path} or hint is each.kind
        assert (str in get_args(hint)) == bool({str, Path} & wanted)


def test_every_constructor_that_takes_them_shows_them() -> None:
    for function, some in (
        (dpmpc.Owner, {"tls", "wait", "out", "stall", "limits", "account"}),
        (dpmpc.Site, {"tls", "wait", "out", "stall", "limits", "account", "threads"}),
        (dpmpc.Party, {"tls", "wait", "out", "stall", "limits", "account", "threads", "listen", "ledgers"}),
        (dpmpc.Aggregator, {"out", "wait", "stall", "budget", "account"}),
    ):
        shown = inspect.signature(function).parameters
        assert some <= shown.keys() and not any(each.kind == each.VAR_KEYWORD for each in shown.values())
        assert all(shown[name].default == declared(Here)[name].default for name in some & {"wait", "stall", "out"})


@dataclass(frozen=True, kw_only=True)
class Longer(Here):
    """A process with one setting more."""

    grace: float = setting(5.0, "Seconds that a process is given to end.", check=within(0, 60), unit="seconds")


class LongerKeywords(TypedDict, total=False):
    grace: float


@keywords(Longer)
def started(plan: str, **own: Unpack[LongerKeywords]) -> Longer:
    return Longer(**own)


def test_a_new_setting_of_a_process_is_declared_once() -> None:
    """One field: checked, handed on, in the command's help, in the table of the docs, in a signature, in a job."""
    (option,) = (each for each in options_of(Longer) if each.name == "grace")
    assert option.opts == ["--grace"] and "given to end" in str(option.help) and "5.0" in str(option.help)
    assert Longer(wait=2.0).but(grace=7).grace == 7.0
    with pytest.raises(UsageError) as refused:
        Longer(grace=61.0)
    assert "<<grace>> must lie in 0..60; got 61.0" in refused.value.to_owner
    assert any(line.startswith("| `grace` | `--grace` |") and "`5.0`" in line for line in table(Longer))
    assert str(inspect.signature(started).parameters["grace"]) == "grace: float = 5.0"
    with refuses("unknown", "grace", kind=TypeError):
        started("p", grave=1.0)  # type: ignore[call-arg]
    made = Longer(out=Path("x"), grace=7.0, index="1", limits=Limits(epsilon=1.0, delta=1e-5, law=("gaussian",)))
    assert of_json(Longer, json.loads(json.dumps(to_json(made)))) == made


def test_the_command_line_has_every_setting_of_a_process() -> None:
    train = group.get_command(click.Context(group), "train")
    assert train is not None
    flags = {flag for option in train.params for flag in option.opts}
    assert {flag for each in declared(Here).values() for flag in flags_of(each)} <= flags


def test_what_does_not_go_together_is_refused() -> None:
    for wrong in (
        {"addresses": CALLED},
        {"tls": "keys"},
        {"limits": Limits()},
        {"listen": "0.0.0.0", "index": "1"},
        {"listen": "0.0.0.0", "index": "owners", "addresses": CALLED},
        {"index": "party1"},
        {"base_port": 80},
        {"wait": 0.0},
        {"wait": float("inf")},
        {"stall": 2.0},
        {"threads": 0},
        {"out": ""},
        {"account": ""},
        {"role": "none"},
    ):
        with pytest.raises(UsageError) as refused:
            Here(**wrong)  # type: ignore[arg-type]
        assert any(f"<<{name}" in refused.value.to_owner for name in wrong), refused.value


def test_patience_depends_on_who_starts_the_others() -> None:
    assert HERE.patience == 60 and Here(index="0").patience == 600 and Here(index="0", wait=3.0).patience == 3


def test_what_it_may_spend_is_read_once(tmp_path: Path) -> None:
    plan = dpmpc.Plan.create(owners=2, dimension=2, clip=1.0, delta=1e-5, data_id="some")
    books = Books.of(Here(budget="2,1e-5", account=str(tmp_path)))
    account = books.account(plan)
    assert books.budget is not None and books.budget.limit == (2.0, 1e-5)
    assert account is not None and account.folder == tmp_path and not account.keeps
    kept = Books.of(Here(account=str(tmp_path), out=tmp_path / "run")).account(plan)
    assert kept is not None and kept.keeps
