"""One file of settings for every command, TOML: `--config run.toml` reads it, `--save-config run.toml` writes it.

Keys above all sections are for every command that has such an option; those in a section, `[train]`, are for that
command alone, and come before them. A key is the setting's name, as in consortium.toml and in Python; else the option's
with _ for -. What is said on the command line comes before both, a list as a whole. Paths are as on the command line. A
file of spelling is named (`spelling = "FILE"`), not repeated.
"""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dpmpc.cli.commands import COMMANDS, imported, there
from dpmpc.errors import UsageError, sayable

_OURS = ("config", "save_config", "as_json", "quiet", "help", "help_all")  # of one call, not of a run
_ONE_OF = (("csv", "records", "database", "sql", "source", "data"), ("bounds", "schema"))
_SAVE = "dpmpc.save_config"
_FIRST = "# Settings of dpmpc's commands: for --config. What is said on the command line comes before them.\n"


def config_option() -> click.Option:
    return click.Option(
        ["--config"], type=click.Path(path_type=Path), metavar="FILE", is_eager=True, expose_value=False,
        callback=_read, help="Settings from a TOML file, as --save-config writes it; options beside it come first.",
    )  # fmt: skip


def save_option() -> click.Option:
    return click.Option(
        ["--save-config"], type=click.Path(path_type=Path), metavar="FILE", expose_value=False, callback=_keep,
        help="Write what is said here, and in --config, to a file for --config, before the command begins.",
    )  # fmt: skip


def key_of(param: click.Parameter) -> str:
    """The key of an option or argument in the file."""
    from dpmpc.cli.settings import known_settings  # which needs what plans do: for commands that run

    assert param.name is not None
    if isinstance(param, click.Argument) or param.name in known_settings():
        return param.name
    flag = max(param.opts, key=len).lstrip("-").replace("-", "_")
    return param.name if flag in known_settings() else flag


def keys_of(command: click.Command) -> dict[str, click.Parameter]:
    """The keys that a command takes."""
    return {key_of(each): each for each in command.params if each.name not in _OURS}


def said_here(name: str) -> Any:
    """The value of an option that was said on the command line itself; None of one that a file said, or nobody."""
    context = click.get_current_context()
    return context.params[name] if context.get_parameter_source(name) is ParameterSource.COMMANDLINE else None


def _keep(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    ctx.meta[_SAVE] = value


def _read(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    """Has the file's settings as the command's defaults. Errors: UsageError: the file cannot be read; a key that is
    not known; a value that is none of the option's."""
    if path is None or ctx.resilient_parsing:
        return
    from dpmpc.intake.written import text_of, written

    try:
        said = written(text_of(path, "a settings"), dict[str, Any], "a settings", str(path), toml=True)
    except OSError as error:
        raise UsageError(f"--config is a file that can be read; {sayable(path)}: {error.strerror}; name one") from None
    words, known = _words(ctx), keys_of(ctx.command)
    own = _section(said, words, path)
    shared = {key: value for key, value in said.items() if not isinstance(value, dict)}
    for key in own:
        if key not in known:
            _unknown(key, known, f"`dpmpc {' '.join(words)}`", path)
    left_out = [key for key in shared if key not in known]
    if left_out:
        _of_others(left_out, words, path)
    chosen = {key: value for key, value in {**shared, **own}.items() if key in known}
    ctx.default_map = {str(known[key].name): _taken(ctx, known[key], key, value, path) for key, value in chosen.items()}


def _words(ctx: click.Context) -> list[str]:
    """The command's name, and of one that is in another, both."""
    found: list[str] = []
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        found.insert(0, str(at.info_name))
        at = at.parent
    return found or [str(ctx.info_name)]


def _section(said: Mapping[str, Any], words: Iterable[str], path: Path) -> dict[str, Any]:
    """What the command's own section says. Errors: a section that no command is called."""
    for name, value in said.items():
        if isinstance(value, dict) and name not in COMMANDS:
            near = difflib.get_close_matches(name, COMMANDS, 1)
            way = f"did you mean [{near[0]}]?" if near else "leave it out"
            raise UsageError(f"a section is the name of a command; {sayable(path)} has [{name[:40]}]; {way}")
    at: Any = said
    for word in words:
        at = at.get(word, {})
    return {name: value for name, value in at.items() if not isinstance(value, dict)}


def _of_others(left_out: list[str], words: list[str], path: Path) -> None:
    """Says which shared keys this command does not take. Errors: one that no command takes; one of the promise, which
    would then be a weaker one than the file says."""
    from dpmpc.aggregation.plan.settings import PromiseSettings
    from dpmpc.settings import declared

    taken: dict[str, set[str]] = {}
    for name in filter(there, COMMANDS):
        for each in _leaves(imported(name)):
            for key in keys_of(each):
                taken.setdefault(key, set()).add(name)
    for key in left_out:
        if key not in taken:
            _unknown(key, taken, "no command", path)
        if key in declared(PromiseSettings) and words[0] in ("train", "stats", "synth", "meet"):
            raise UsageError(
                f"a promise is made as the file says, or not; {sayable(path)} has {key}, which `dpmpc {words[0]}` does "
                f"not; put it below the name of a command that has it, [{min(taken[key])}]"
            )
    click.echo(f"{sayable(path)}: not of `dpmpc {' '.join(words)}`: {', '.join(left_out)}", err=True)


def _leaves(command: click.Command | None) -> list[click.Command]:
    if isinstance(command, click.Group):
        return [command, *(leaf for each in command.commands.values() for leaf in _leaves(each))]
    return [] if command is None else [command]


def _unknown(key: str, known: Iterable[str], what: str, path: Path) -> None:
    near = difflib.get_close_matches(key, list(known), 1)
    way = f"did you mean {near[0]!r}?" if near else "leave it out"
    whose = f"{what} has it" if what.startswith("no ") else f"{what} does not have it"
    raise UsageError(f"a key is the name of an option; {sayable(path)} has {key[:40]!r}, and {whose}; {way}")


def _taken(ctx: click.Context, param: click.Parameter, key: str, value: Any, path: Path) -> Any:
    """The value as the option takes it. Errors: UsageError, where it does not."""
    several = param.multiple or param.nargs == -1
    if several and not isinstance(value, list):
        value = [value]
    good = not isinstance(value, dict) and (several or not isinstance(value, list) or key == "owner_sizes")
    flag = isinstance(param, click.Option) and param.is_flag
    if isinstance(value, bool) != flag or (flag and not isinstance(value, bool)):
        good = False
    try:
        if not good:
            raise click.BadParameter(f"{value!r} is not {'true or false' if flag else 'a value of it'}")
        value = ",".join(map(str, value)) if key == "owner_sizes" and isinstance(value, list) else value
        param.type_cast_value(ctx, value)
    except click.BadParameter as error:
        raise UsageError(f"{sayable(path)}: {key}: {error.message.rstrip('.')}; change it there") from None
    return value


def settle(ctx: click.Context) -> None:
    """Takes out what the file says where the command line says another of the same: one source of records, one
    description of columns."""
    for group in _ONE_OF:
        by = {name: ctx.get_parameter_source(name) for name in group if name in ctx.params}
        if ParameterSource.COMMANDLINE in by.values():
            for name, source in by.items():
                if source is ParameterSource.DEFAULT_MAP:
                    ctx.params[name] = None


def save(ctx: click.Context) -> None:
    """Writes what was said to the file of --save-config, if there is one: of records and how they are spelled above all
    sections, the rest in the command's. Errors: UsageError: it cannot be written; it would hold a password."""
    path = ctx.meta.get(_SAVE)
    if path is None:
        return
    from dpmpc.cli.sources import SPELLING
    from dpmpc.folders import write_file
    from dpmpc.intake.database import reachable
    from dpmpc.intake.written import toml_value
    from dpmpc.planning.settings import RecordSettings
    from dpmpc.settings import declared

    of_records = {*declared(RecordSettings), *map(key_of, SPELLING)} - {"records_out"}
    shared, own = list[str](), list[str]()
    for key, param in keys_of(ctx.command).items():
        name = str(param.name)
        source, value = ctx.get_parameter_source(name), ctx.params.get(name)
        if source not in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP):
            continue
        if key == "database":
            reachable(str(value))  # refuses a password
        line = f"{key} = {toml_value(_listed(value))}"
        (shared if key in of_records else own).append(line)
    lines = [_FIRST, *shared, *(["", f"[{'.'.join(_words(ctx))}]", *own] if own else [])]
    try:
        write_file(path, "\n".join([*lines, ""]))
    except OSError as error:
        raise UsageError(f"--save-config is a file that can be written; {sayable(path)}: {error.strerror}") from None
    click.echo(f"{sayable(path)}: the settings said here; `dpmpc {' '.join(_words(ctx))} --config {path}`", err=True)


def _listed(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_listed(each) for each in value]
    return value if isinstance(value, bool | int | float | str) else str(value)
