"""The `dpmpc` command: a group whose commands are imported when they are called."""

import atexit
import contextlib
import difflib
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from dpmpc.aggregation.owner.imports import PRELOAD
from dpmpc.cli.commands import COMMANDS, GROUPS, imported, there
from dpmpc.cli.everywhere import have_common_options
from dpmpc.cli.help import on_one_screen
from dpmpc.cli.output import end_output, keep_output
from dpmpc.errors import DpmpcError, UsageError, machine_text, owner_text, spelt
from dpmpc.processes import exhausted, logs, standing
from dpmpc.processes.memory import importing
from dpmpc.processes.paths import keep_children_safe

if TYPE_CHECKING:
    from dpmpc.registry import Registry

_START = ("train", "stats", "synth", "meet")  # parties, as a rule
_ALONE = {"-h", "--help", "--help-all", "-I", "--index", "--engine", "--plan-only", "--dry", "--of"}  # without any
_LONGEST, _END = 3000, 300  # characters of a last line, and of its end where it has more


class _Named(click.Path):
    """A path that is said: an empty one would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("names a file or a folder; it is empty; name one, or leave it out", param, ctx)
        return super().convert(value, param, ctx)


def _name_paths(command: click.Command) -> None:
    """Has a command, and those in it, refuse empty paths."""
    for param in command.params:
        if type(param.type) is click.Path:
            named = _Named()
            vars(named).update(vars(param.type))
            param.type = named
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        _name_paths(each)


def _others() -> "Registry[click.Command]":
    """The commands of other packages: entry points of the group dpmpc.commands."""
    from dpmpc.registry import Registry

    return Registry("command", "dpmpc.commands", {}, lambda thing: isinstance(thing, click.Command))


class _Lazy(click.Group):
    """A group that imports `dpmpc.cli.NAME` when command NAME is called, and lists those that are installed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        own = [name for name in COMMANDS if there(name)]
        return [*own, *(name for name in _others().names() if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS and there(cmd_name):
            with importing():
                command = imported(cmd_name)
        elif cmd_name not in COMMANDS and cmd_name in (others := _others()):
            command = others[cmd_name]
        else:
            return None
        assert isinstance(command, click.Command)
        _name_paths(command)
        if cmd_name in COMMANDS:
            have_common_options(command)
        on_one_screen(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            said = f"; did you mean {near[0]}?" if near else ""
            ctx.fail(f"no such command {args[0]!r}{said}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        installed = self.list_commands(ctx)
        others = [(name, each.get_short_help_str(80)) for name, each in _others().items() if name not in COMMANDS]
        for title, commands in {**GROUPS, "Of other packages": dict(others)}.items():
            if here := [(name, help) for name, help in commands.items() if name in installed]:
                with formatter.section(title):
                    formatter.write_dl(here)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
@click.version_option(package_name="dpmpc")
@click.pass_context
def group(ctx: click.Context, debug: bool) -> None:
    """Differentially private training across organisations.

    Owners' vectors are added up inside secure multi-party computation, one copy of noise is made there, and only the
    noisy sum is opened. Start with:

    \b
      dpmpc example hospitals
      dpmpc train --csv hospitals.csv --target readmitted \\
        --owners-column site --epsilon 1 --delta 1e-5 --out demo
    """


def named(name: str) -> click.Command:
    """The command of that name, as the group runs it. Errors: KeyError."""
    found = group.get_command(click.Context(group), name)
    if found is None:
        raise KeyError(name)
    return found


def main(arguments: list[str] | None = None) -> Any:
    """Runs a command and exits: 0, 2 for bad usage, another code for a failure. A failure is one line on standard
    error."""
    return _begin(sys.argv[1:] if arguments is None else arguments, standing.ahead)


def _begin(arguments: list[str], start: Callable[[Sequence[str]], None]) -> Any:
    """`start`: what makes the process that parties are forked from."""
    _fill_streams()
    keep_children_safe()
    _speak_anywhere()
    with _ends_as_by_ctrl_c() as stopped, logs.speaking("dpmpc.cli.settings:spelling"):
        return _main(arguments, stopped, start)


def _fill_streams() -> None:
    """Has no file that is opened later take the number of a stream that was closed at the start: what libraries print
    would be written into it."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the least number that is free, which is this one


def _speak_anywhere() -> None:
    """What a terminal or a pipe cannot show is escaped: what was paid for is printed whatever its encoding."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError):  # a terminal that was opened to be read too cannot be asked where it is
                stream.reconfigure(errors="backslashreplace")


def program() -> None:
    """`main` as a program of its own, which ends as one does (its threads, what was to be done at the end, what was
    printed), but takes no module apart: that takes longer than many a command."""
    with exhausted.ending():
        exhausted.make_ready(2, _no_memory(sys.argv[1:]))
        if sys.argv[1:2] and sys.argv[1] in _START:  # what it says may be paid for
            keep_output()
        try:
            _begin(sys.argv[1:], standing.fork)  # nothing has been read yet
        except SystemExit as end:
            watched = sys.gettrace() or sys.getprofile()  # by who says something at the very end
            if watched or not isinstance(end.code, int):
                raise
            exhausted.make_ready(2, b"", end.code)  # all is said
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            try:
                for stream in filter(None, (sys.stdout, sys.stderr)):
                    stream.flush()
            except OSError:
                raise end from None  # nobody reads it: as the interpreter says
            os._exit(end.code)


def _no_memory(arguments: Sequence[str]) -> bytes:
    """The last line of a command that has no memory left, as it would otherwise say it; JSON without a time."""
    text = f"error: {exhausted.text(lambda name, value: '--' + name.replace('_', '-'))}"
    if _as_json(arguments):
        text = json.dumps({"level": "error", "text": text, "code": DpmpcError.code, "setting": None})
    return f"{text}\n".encode()


def _as_json(arguments: Sequence[str]) -> bool:
    """Whether last lines are JSON."""
    return logs.as_json() or "--json" in arguments


def _main(arguments: list[str], stopped: list[int], start: Callable[[Sequence[str]], None]) -> Any:
    """`stopped`: has a signal's number when that ends the command."""
    debug, last_line = "--debug" in arguments, partial(_last_line, arguments)
    try:
        if sys.stdout is None:  # before anything is spent that could then be told to nobody
            raise UsageError(
                "what a command says needs somewhere to go; standard output is closed; leave it open, or send it to a "
                "file or to /dev/null"
            )
        if arguments[:1] and arguments[0] in _START and not _ALONE & {word.partition("=")[0] for word in arguments}:
            start(PRELOAD)
        code = group.main([a for a in arguments if a != "--debug"], prog_name="dpmpc", standalone_mode=False)
        end_output(sys.stdout)
        sys.exit(code if isinstance(code, int) else 0)
    except DpmpcError as error:
        if debug:
            raise
        from dpmpc.cli.settings import spelling

        last_line(f"error: {owner_text(error, spelling)}", code=error.code, setting=error.setting)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        by, code = ("SIGTERM", 143) if stopped else ("the user", 130)
        last_line(f"error: stopped by {by}; what was opened is kept")
        sys.exit(code)
    except (OSError, MemoryError, RuntimeError) as error:
        said = machine_text(error)
        if debug or said is None:
            raise
        from dpmpc.cli.settings import spelling

        last_line(f"error: {spelt(said, spelling)}")
        sys.exit(1)
    except ModuleNotFoundError as error:
        if debug or (error.name or "").partition(".")[0] != "sklearn":
            raise
        last_line("error: this needs scikit-learn, which is not installed; pip install scikit-learn")
        sys.exit(UsageError.exit_code)
    except click.ClickException as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            error.show()
            sys.exit(error.exit_code)
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "dpmpc"
        rule = " ".join(error.format_message().split())  # choices that are missing stand on lines of their own
        param = getattr(error, "param", None)
        name = None if param is None else param.name
        last_line(f"error: {rule.rstrip('.')}; see {where} --help", code=UsageError.code, setting=name)
        sys.exit(error.exit_code)


def _last_line(arguments: Sequence[str], text: str, code: str = DpmpcError.code, setting: str | None = None) -> None:
    """The text on standard error; where logs or what the command prints are JSON, as a JSON object with the code of the
    rule that was broken and the setting that it is about."""
    from dpmpc.show.terminal import harmless

    lines = (line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ... {line[-_END:]}" for line in text.split("\n"))
    text = harmless("\n".join(lines))  # a value in it may be anybody's
    click.echo(logs.json_line(text, code=code, setting=setting) if _as_json(arguments) else text, err=True)


@contextlib.contextmanager
def _ends_as_by_ctrl_c() -> Iterator[list[int]]:
    """SIGTERM, which systemd and containers send, ends a command as Ctrl-C does: with a last word to all others. The
    list has the signal when it has come."""
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        came.append(number)
        interrupt = signal.getsignal(signal.SIGINT)  # an event loop's own, where one runs
        if not callable(interrupt):  # a shell's background job ignores it
            raise KeyboardInterrupt
        interrupt(signal.SIGINT, frame)

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    program()
