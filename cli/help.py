"""`--help` on one screen, `--help-all` for the rest: the same for every command.

Where all of a command's help fits a screen, both say the same. Else `--help` has its first options of those that matter
(`MATTER`, in that order, after what a command cannot do without), each with its first sentence, and the names of the
others by section, as far as a screen reaches.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click

LINES, WIDTH, MOST = 45, 80, 10
_EXAMPLE = WIDTH - 2  # the help is moved in
MATTER = (
    "csv", "target", "owners_column", "epsilon", "delta", "bounds", "out", "classes", "drop", "figures", "dry", "of",
    "form", "table_to", "schema", "queries", "rows", "records", "plan_file", "schema_out", "html_out", "method",
    "owners", "smallest", "total", "iterations", "scale", "parties", "accept", "listen", "dry_run", "json_file",
    "as_json", "wait",
)  # fmt: skip
_ALL = "dpmpc.help_all"
_SPELLED = "How a file is spelled"
_WAY = "`dpmpc describe` proposes these"


def on_one_screen(command: click.Command) -> None:
    """Gives a command, and those in it, both helps."""
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        on_one_screen(each)
    if isinstance(command, click.Group) or any(each.name == "help_all" for each in command.params):
        return
    command.help = folded(inspect.cleandoc(command.help or ""))
    whole = command.format_options
    option = click.Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, help="Show every option and exit.",
        callback=_show_all,
    )  # fmt: skip
    command.params.append(option)
    vars(command)["format_options"] = partial(_short, command, whole)


def folded(text: str) -> str:
    """A help whose examples are no wider than a screen: a command goes on below, before one of its options."""
    found = list[str]()
    for line in re.sub(r" \\\n +", " ", text).split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        while len(line) > _EXAMPLE and (line.lstrip().startswith("dpmpc ") or line.startswith(" ")):
            at = line.rfind(" -", len(indent) + 6, _EXAMPLE - 2)
            if at < 0:
                break
            found.append(f"{line[:at]} \\")
            line = f"{indent}  {line[at + 1 :]}"
        found.append(line)
    return "\n".join(found)


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _short(command: click.Command, whole: Any, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Writes the options that matter below what the formatter has, or all where they fit."""
    begun = len(formatter.getvalue().splitlines())
    trial = _like(formatter)
    whole(ctx, trial)
    if ctx.meta.get(_ALL) or begun + len(trial.getvalue().splitlines()) <= LINES:
        whole(ctx, formatter)
        return
    options = [each for each in command.get_params(ctx) if isinstance(each, click.Option) and not each.hidden]
    first = sorted((each for each in options if each.required or each.name in MATTER), key=_place)[:MOST]
    for count in range(len(first), 0, -1):
        trial = _like(formatter)
        _write(ctx, trial, command, options, first[:count])
        if begun + len(trial.getvalue().splitlines()) <= LINES or count == 1:
            formatter.write(trial.getvalue())
            return


def _like(formatter: click.HelpFormatter) -> click.HelpFormatter:
    return click.HelpFormatter(width=min(formatter.width, WIDTH))


def _place(option: click.Option) -> tuple[bool, int]:
    return not option.required, MATTER.index(option.name) if option.name in MATTER else -1


def _write(
    ctx: click.Context, into: click.HelpFormatter, command: click.Command, options: Sequence[click.Option],
    first: Sequence[click.Option],
) -> None:  # fmt: skip
    into.write("\n")
    with into.section("Options that matter"):
        records = [record for each in first if (record := each.get_help_record(ctx)) is not None]
        into.write_dl([(name, _sentence(text)) for name, text in records], col_max=28)
    rest = [each for each in options if each not in first and not {"--help", "--help-all"} & set(each.opts)]
    with into.section(f"{len(rest)} more, by --help-all"):
        for title, names in _sections(command, rest).items():
            into.write(f"{' ' * into.current_indent}{_line(title, names, into.width - into.current_indent)}\n")


def _sentence(text: str) -> str:
    """The first sentence of a help."""
    return text.split("  [")[0].partition(". ")[0].rstrip(".") + "."


def _sections(command: click.Command, rest: Sequence[click.Option]) -> Mapping[str, list[str]]:
    """The names of options by the sections that the command has, or that its options are of."""
    from dpmpc.cli.sources import SPELLING  # it imports what a command that is only named does not need

    spelled = {each.name for each in SPELLING}
    own: Mapping[str, Sequence[click.Option]] = getattr(command, "sections", {})
    found: dict[str, list[str]] = {}
    for each in rest:
        of = next((title for title, options in own.items() if each in options), "Others")
        title = f"{_SPELLED} ({_WAY})" if each.name in spelled else of
        found.setdefault(title, []).append(max(each.opts, key=len))
    return found


def _line(title: str, names: Sequence[str], width: int) -> str:
    """The title and as many names as fit, and how many there are besides."""
    for count in range(len(names), -1, -1):
        more = f", {len(names) - count} more" if count < len(names) else ""
        line = f"{title}: {', '.join(names[:count])}{more}"
        if len(line) <= width or not count:
            return line.replace(": , ", ": ")
    return title
