"""Settings as options of the command line: one option a declaration, and how this surface spells a setting."""

import ast
import csv
import io
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import click

from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.settings import Declared, Settings, declared

_PROCESS = {"plan_file": "--plan"}  # only this surface says it
_SOURCE = {
    "missing": "--missing-word",
    "months": "--month",
    "units": "--unit",
    "other_decimal": "--other-decimal",
    "kept": "--kept-word",
    "pairs": "--pair",
    "percents": "--percent",
}  # settings of `intake.spelling`: of others the name is the flag
_LISTED = ("drop", "person", "classes")  # columns and classes, as Python has them


class Sizes(click.ParamType[tuple[int, ...]]):
    """Comma-separated whole numbers."""

    name = "N1,N2,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(
                f"sizes are whole numbers with commas between; got {value!r}; write for example 500,200,100", param, ctx
            )


def flags_of(each: Declared) -> tuple[str, ...]:
    """What the setting is called on the command line."""
    return each.setting.flags or ("--" + each.name.replace("_", "-"),)


class _Option(click.Option):
    """The option of a setting. Its help is made when somebody asks for it: it may name all methods, which are then
    imported."""

    def __init__(self, names: Sequence[str], each: Declared, **settings: Any) -> None:
        self._each, self._said = each, ""
        super().__init__(names, **settings)

    @property
    def help(self) -> str:
        return self._said or _help_of(self._each)

    @help.setter
    def help(self, said: str | None) -> None:
        self._said = said or ""


def _help_of(each: Declared) -> str:
    help = each.setting.help
    if each.setting.details is not None:
        help += " " + ". ".join(f"{name}: {text}" for name, text in each.setting.details()) + "."
    default = None if isinstance(each.default, bool) or each.default in (None, "", ()) else each.default
    shown = each.setting.rule or (str(default) if default is not None else "")
    return help + (f"  [default: {shown}]" if shown else "")


def option_of(each: Declared) -> click.Option:
    """The option of a setting. None is "not said": the default stands in the help."""
    names, metavar = flags_of(each), each.setting.metavar
    if each.kind is bool:
        if each.default is False:
            return _Option((*names, each.name), each, is_flag=True, default=None)
        off = f"{names[0]}/--no-{names[0].removeprefix('--')}"
        return _Option((off, *names[1:], each.name), each, default=None)
    if each.kind == tuple[int, ...]:
        return _Option((*names, each.name), each, type=Sizes())
    if each.kind == tuple[str, ...]:
        return _Option((*names, each.name), each, multiple=True, metavar=metavar)
    more: dict[str, Any] = {"type": each.kind if each.kind in (int, float) else str}
    if each.choices:
        offered = [name for name in each.choices if name != "stated"]
        if each.setting.flag_value is not None:
            offered = [name for name in offered if name != each.default]
            more |= {"is_flag": False, "flag_value": each.setting.flag_value}
        more["type"], metavar = click.Choice(offered), None
    elif metavar == "PATH":
        more["type"], metavar = click.Path(), None
    elif each.kind in (Path, Limits):
        more["type"] = click.Path(path_type=Path)
    elif metavar == "DIR":
        more["type"] = click.Path()
    return _Option((*names, each.name), each, metavar=metavar, **more)


def options_of(*groups: type[Settings], without: Iterable[str] = ()) -> list[click.Option]:
    """The options of all settings of these groups."""
    return [option_of(each) for group in groups for each in declared(group).values() if each.name not in set(without)]


def own_option(name: str, /, *flags: str, **own: Any) -> click.Option:
    """The option of a setting for one command; `flags`: other names than the setting's; `own`: what this command says
    otherwise: its help, a default, that it is required."""
    each, offered = known_settings()[name], own.get("type")
    if each.setting.details is not None and isinstance(offered, click.Choice):  # fewer than the setting has
        said = [part for part in each.setting.details() if part[0] in offered.choices]
        each = replace(each, setting=replace(each.setting, details=lambda: said))
    option = option_of(replace(each, setting=replace(each.setting, flags=flags)) if flags else each)
    if "default" in own or own.get("required"):  # the rule for what is not said is another here
        option.help = re.sub(r"  \[default: .*\]$", "", option.help or "")
        option.show_default = own.get("default") is not None
    for key, value in own.items():
        assert hasattr(option, key), key
        setattr(option, key, value)
    return option


def names_options(*, spell: bool = True) -> list[click.Option]:
    """`--name COLUMN`, `--spell COLUMN` and `--word-list FILE`, as training has them, of a command that reads the list
    itself; `spell`: whether it opens words before a survey, as training does."""
    said = known_settings()
    return [
        click.Option(["--name", "named"], multiple=True, metavar="COLUMN", help=_help_of(said["named"])),
        *([click.Option(["--spell"], multiple=True, metavar="COLUMN", help=_help_of(said["spell"]))] if spell else []),
        click.Option(["--word-list"], type=click.Path(path_type=Path), help=_help_of(said["word_list"])),
    ]


def setting_option(name: str, /, *flags: str, **own: Any) -> Callable[[Any], Any]:
    """A decorator that gives a command the option of a setting: see `own_option`."""
    option = own_option(name, *flags, **own)

    def decorated(command: Any) -> Any:
        command.__click_params__ = [*getattr(command, "__click_params__", ()), option]
        return command

    return decorated


@cache
def known_settings() -> dict[str, Declared]:
    """Every setting that a command may take, by name."""
    from dpmpc.aggregation.plan.of_vectors import OfVectors
    from dpmpc.planning.request import Request

    return {**declared(Here), **declared(OfVectors), **declared(Request)}


def spelling(name: str, value: str | None) -> str:
    """A setting as the command line writes it: -M, or -M 5."""
    from dpmpc.planning.request import Request

    known = declared(Request).get(name) or declared(Here).get(name)
    if value is not None and (name == "spelling" or (name in _LISTED and value[:1] in ("[", "'", '"'))):
        try:
            return _of_python(name, value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # another site may say anything
            pass
    flag = flags_of(known)[0] if known is not None else (_PROCESS | _SOURCE).get(name, "--" + name.replace("_", "-"))
    if known is not None and known.kind is bool and value in ("True", "False"):
        return flag if value == "True" else f"--no-{flag.removeprefix('--')}"
    return flag if value is None else f"{flag} {value}"


def _of_python(name: str, value: str) -> str:
    """What Python has as one value, as options. Errors: of a text that is no such value."""
    if name == "spelling":
        call = ast.parse(value, mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError(value)
        return options_stating({str(each.arg): ast.literal_eval(each.value) for each in call.keywords})
    columns = ast.literal_eval(value)
    each = columns if isinstance(columns, list) else [columns]
    return shlex.join(word for column in each for word in (f"--{name}", column))


def options_stating(settings: dict[str, Any]) -> str:
    """The options that state these settings of a source's spelling, as they are typed."""
    words: list[str] = []
    for name, value in settings.items():
        if value is True:
            words.append(f"--{name.replace('_', '-')}")
            continue
        if name == "names":
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow(value)
            value = line.getvalue()
        for part in value if isinstance(value, tuple) else (value,):
            words += [_SOURCE.get(name, f"--{name}"), {" ": "space", "'": "apostrophe"}.get(part, str(part))]
    return shlex.join(words)
