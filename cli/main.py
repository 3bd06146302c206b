"""The `dpmpc` command: a group whose commands are imported when they are called."""

import importlib
import importlib.util
import sys
from typing import Any

import click

from dpmpc.errors import DpmpcError
from dpmpc.processes import logs

COMMANDS = {
    "train": "train a private model: owners, parties, noise inside MPC, one report",
    "predict": "apply a trained model to new records",
    "report": "a run as one page to read, check and sign",
    "advise": "what to run for a budget, from public numbers alone",
    "describe": "look at your own records before a run, and draft a schema",
    "check": "hold your records against a schema or plan: what is missing, unknown, clipped",
    "account": "noise scale from a privacy budget and back, for every calibration",
    "budget": "what was spent on the same data over several runs",
    "init": "write consortium.toml: one file for a run over several machines",
    "plan": "check consortium.toml and write the plan",
    "kit": "write a folder for every site of consortium.toml",
    "join": "take part from a kit: run this site",
    "status": "how far a run is: beside it, or after its end",
    "keys": "certificates for a run over several machines",
    "sample": "draw noise inside MPC and measure it",
    "circuit": "show what a sampler computes on secret bits",
    "verify": "check that noise was added once, after aggregation",
    "experiment": "reproduce the papers' comparisons",
    "bench": "measure what an iteration costs",
}


class _Lazy(click.Group):
    """A group that imports `dpmpc.cli.NAME` when command NAME is called, and lists those that are installed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if importlib.util.find_spec(f"dpmpc.cli.{name}") is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"dpmpc.cli.{cmd_name}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
@click.version_option(package_name="dpmpc")
@click.pass_context
def group(ctx: click.Context, debug: bool) -> None:
    """Differentially private training across organisations.

    Owners' vectors are added up inside secure multi-party computation, one copy of noise is made there, and only the
    noisy sum is opened. Start with:

    \b
      dpmpc train --data breast-cancer --owners 5 --epsilon 1 \\
        --delta 1e-4 -M 3 --out runs/demo
    """


def main(arguments: list[str] | None = None) -> Any:
    """Runs a command and exits: 0, 2 for bad usage, another code for a failure. A failure is one line on standard
    error."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    try:
        code = group.main([a for a in arguments if a != "--debug"], prog_name="dpmpc", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except DpmpcError as error:
        if debug:
            raise
        click.echo(logs.json_line(f"error: {error}") if logs.as_json() else f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            error.show()
            sys.exit(error.exit_code)
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "dpmpc"
        click.echo(f"error: {error.format_message().rstrip('.')}; see {where} --help", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("error: stopped by the user; finished iterations are kept", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
