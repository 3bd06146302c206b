"""The options of `dpmpc train`, by section: those of the settings, and what only the command line says."""

from pathlib import Path
from typing import Any

import click

from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.settings import (
    Accounting,
    Attendance,
    Choosing,
    Computing,
    Ledgers,
    Noise,
    PromiseSettings,
)
from dpmpc.cli.defaults import OUT, with_delta_rule
from dpmpc.cli.settings import options_of, own_option
from dpmpc.cli.sources import SPELLING
from dpmpc.planning.settings import LearningSettings, Naming, OwnerSettings, RecordSettings
from dpmpc.processes.logs import LEVELS
from dpmpc.settings import declared


def _option(*names: str, **settings: Any) -> click.Option:
    """An option that shows its default, if it has one."""
    return click.Option(names, show_default=settings.get("default") is not None, **settings)


_OF_RUN = ("out", "overwrite", "limits")  # settings of a process that stand with those of the run
_PROCESSES = [
    *options_of(Here, without=(*_OF_RUN, "role", *declared(Accounting), *declared(Ledgers))),
    _option("--ssl", is_flag=True, help="As in MPyC, certificates in the folder .config: --tls .config."),
]
_RUN = [
    own_option("out", help=f"Run directory for report, model, history and logs.  [default: {OUT.format('train')}]"),
    *(own_option(name) for name in _OF_RUN if name != "out"),
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
        help="The plan.json of the run, made by --plan-only or `dpmpc plan`. With -I one process of it is started; a "
        "party then needs no records. Without, all of a plan that trains nothing is executed here. Privacy and "
        "security beside it are limits that the plan must keep: --epsilon and --delta, -T, --neighbours, --data-id, "
        "--budget, --security and so on (docs/settings.md, Limits).",
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
    "Privacy": with_delta_rule(options_of(PromiseSettings, Noise)),
    "Parties": [*options_of(Choosing, Computing), *_PROCESSES],
    "The run": [*_RUN, *options_of(Naming, Ledgers, Accounting)],
}


class SectionedCommand(click.Command):
    """A command with these options, whose help lists them by section."""

    sections = OPTIONS

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        known = {id(option) for options in OPTIONS.values() for option in options}
        rest = [each for each in self.get_params(ctx) if id(each) not in known and isinstance(each, click.Option)]
        for title, options in {**OPTIONS, "Help": rest}.items():
            with formatter.section(title):
                records = [option.get_help_record(ctx) for option in options]
                formatter.write_dl([record for record in records if record is not None])
