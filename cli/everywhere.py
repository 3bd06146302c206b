"""What every command has: `--config` and `--save-config`, one file of settings; `--json`, its result for programs;
`--quiet`, neither progress nor notes."""

import contextlib
import io
import sys
from functools import partial
from typing import Any, TextIO

import click

from dpmpc.cli.run_file import config_option, save, save_option, settle

_FOUND = "dpmpc.found"
_HELP_JSON = "Print the result as JSON, and an error too; what is shown meanwhile goes to standard error."
_HELP_QUIET = "Show no progress and no notes: results, warnings and errors alone."


def give(value: Any) -> None:
    """What the command found: `--json` prints it, also where an error follows. A command that gives nothing has its
    lines printed."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_FOUND] = value


def have_common_options(command: click.Command) -> None:
    """Gives a command, and those in it, the options that all have."""
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        have_common_options(each)
    if isinstance(command, click.Group) and not command.invoke_without_command:
        return
    if any(each.name == "config" for each in command.params):
        return
    command.params += [
        config_option(),
        save_option(),
        click.Option(["--json", "as_json"], is_flag=True, expose_value=False, callback=_kept, help=_HELP_JSON),
        click.Option(["--quiet"], is_flag=True, expose_value=False, callback=_kept, help=_HELP_QUIET),
    ]
    vars(command)["invoke"] = partial(_invoke, command.invoke)


def _kept(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[f"dpmpc.{param.name}"] = value


def _invoke(whole: Any, ctx: click.Context) -> Any:
    """Runs the command; prints its result where JSON was asked for. Returns what it returns."""
    settle(ctx)
    save(ctx)
    if isinstance(ctx.command, click.Group) and ctx.invoked_subcommand is not None:
        return whole(ctx)
    as_json, told, ended = bool(ctx.meta.get("dpmpc.as_json")), io.StringIO(), False
    try:
        with contextlib.ExitStack() as stack:
            if ctx.meta.get("dpmpc.quiet"):
                stack.enter_context(contextlib.redirect_stderr(_Quiet(sys.stderr)))
            if as_json:
                stack.enter_context(contextlib.redirect_stdout(told))
            try:
                code = whole(ctx)
            except click.exceptions.Exit:
                ended = True
                raise
            ended = True
            return code
    finally:
        if as_json and (ended or _FOUND in ctx.meta):
            from dpmpc.show.values import json_text

            lines = {"lines": told.getvalue().splitlines()}
            click.echo(json_text(ctx.meta.get(_FOUND, lines)), nl=False)


class _Quiet(io.TextIOBase):
    """Standard error without what only tells how it goes: whole lines that warn are passed on."""

    def __init__(self, to: TextIO) -> None:
        self._to, self._line = to, ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line.startswith("warning:") or "Warning: " in line:
                self._to.write(line + "\n")
        return len(text)

    def flush(self) -> None:
        self._to.flush()
