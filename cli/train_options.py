"""The options of `dpmpc train`, by section: those of the settings, and what only the command line says."""

from pathlib import Path
from typing import Any

import click

from dpmpc.aggregation.plan.limits import limited
from dpmpc.aggregation.plan.settings import Accounting, Attendance, Choosing, Computing, Noise, Promise
from dpmpc.cli.settings import options_of
from dpmpc.cli.sources import SPELLING
from dpmpc.mpc.transport.heartbeat import STALL
from dpmpc.processes.logs import LEVELS
from dpmpc.runs.settings import LearningSettings, Naming, OwnerSettings, RecordSettings


def _option(*names: str, **settings: Any) -> click.Option:
    """An option that shows its default, if it has one."""
    return click.Option(names, show_default=settings.get("default") is not None, **settings)


_PROCESSES = [
    _option(
        "-I",
        "index",
        metavar="I",
        help="Start one process here: party I (0 ... N-1), `owners` for all owners, `owner0` and so on for one.",
    ),
    _option(
        "-P",
        "addresses",
        multiple=True,
        metavar="HOST:PORT",
        help="Address of a party, once for each in order; implies -M. Party I listens there, and for owners on "
        "PORT + N.",
    ),
    _option(
        "--listen",
        metavar="HOST[:PORT]",
        help="With -I and -P: where this party listens, if others call it at another address (NAT, a proxy); for "
        "owners on PORT + N. 0.0.0.0 and :: are all addresses.",
    ),
    _option(
        "-B",
        "base_port",
        type=int,
        metavar="PORT",
        help="Party I listens on PORT + I, and for owners on PORT + N + I.  [default: free ports; 11365 with -I]",
    ),
    _option(
        "--tls",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="With -I: folder with ca.crt and this process's own .crt and .key, as `dpmpc keys` makes them. "
        "Addresses off this machine need it.",
    ),
    _option("--ssl", is_flag=True, help="As in MPyC, certificates in the folder .config: --tls .config."),
    _option(
        "--threads",
        type=click.IntRange(1),
        help="Threads of a party that compute.  [default: the cores of its machine, shared by the parties on it]",
    ),
    _option(
        "--wait",
        type=float,
        metavar="SECONDS",
        help="How long to wait for another process to come.  [default: 60; 600 with -I]",
    ),
    _option(
        "--stall",
        type=float,
        default=STALL,
        metavar="SECONDS",
        help="A process of which nothing at all was heard for so long counts as lost. Long work is no silence.",
    ),
]
_RUN = [
    _option("--out", type=click.Path(path_type=Path), help="Run directory for report, model, history and logs."),
    _option("--overwrite", is_flag=True, help="Replace an earlier run in --out."),
    _option(
        "--resume",
        type=click.Path(path_type=Path),
        metavar="RUN",
        help="Carry on an interrupted run from its last opened iterate. Takes no other option than -B, --threads, "
        "--wait and --stall.",
    ),
    _option(
        "--plan",
        "plan_file",
        type=click.Path(path_type=Path),
        help="With -I: the plan.json of the run, made by --plan-only. A party then needs no records. Privacy and "
        "security beside it are limits that the plan must keep: --epsilon and --delta, -T, --neighbours, --data-id, "
        "--budget, --security and so on (docs/settings.md, Limits).",
    ),
    _option(
        "--accept",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"With -I: TOML file of what this organisation takes part in: {', '.join(limited())}.",
    ),
    _option("--plan-only", is_flag=True, help="Write plan.json to --out, print the noise scale and stop."),
    _option(
        "--log-level",
        type=click.Choice(LEVELS),
        help="The least that logs hold.  [default: info]",
    ),
    _option("--log-json", is_flag=True, help="Logs, and what is shown meanwhile, as JSON lines."),
]

OPTIONS: dict[str, list[click.Option]] = {
    "Records": [*options_of(RecordSettings), *SPELLING],
    "Owners": options_of(OwnerSettings, Attendance),
    "Learning": options_of(LearningSettings),
    "Privacy": options_of(Promise, Noise),
    "Parties": [*options_of(Choosing, Computing), *_PROCESSES],
    "The run": [*_RUN, *options_of(Naming, Accounting)],
}


class SectionedCommand(click.Command):
    """A command with these options, whose help lists them by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, options in OPTIONS.items():
            with formatter.section(title):
                records = [option.get_help_record(ctx) for option in options]
                formatter.write_dl([record for record in records if record is not None])
