"""`dpmpc train`: a private model from the records of several owners."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dpmpc.cli.defaults import out_of, with_delta
from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import spelling as as_options
from dpmpc.cli.sources import spelling_of
from dpmpc.cli.train_options import OPTIONS, SectionedCommand
from dpmpc.errors import UsageError, spelt
from dpmpc.planning.request import Request
from dpmpc.processes.memory import importing
from dpmpc.settings import said
from dpmpc.show.terminal import Terminal, TextColumn, TextRow

_OF_PROCESSES = (
    "index", "addresses", "base_port", "wait", "stall", "listen", "out", "overwrite", "resume", "plan_file",
    "plan_only", "tls", "limits", "threads", "ssl",
)  # fmt: skip
_RESULTS = (("answers", "questions/answers.html"), ("answers", "answers.html"), ("model", "model.npz"),
            ("rows", "synthetic.parquet"), ("report on the rows", "synthetic.md"))  # fmt: skip
_PLACES = ("out", "base_port", "wait", "stall", "listen", "index", "plan_file", "overwrite", "tls", "threads")


def run_command(**given: Any) -> None:
    """Train one private model on the records of several owners.

    Owners clip and round their vectors and send shares to N parties. The parties add them up, add ONE noise vector that
    they made together, and open only the noisy sum. The run directory gets report.json, model.npz, history.csv, a log,
    a transcript and a ledger of each party.

    \b
    Examples:
      dpmpc example hospitals       made-up records to try it on
      dpmpc train --csv hospitals.csv --target readmitted --owners-column site --epsilon 1 --delta 1e-5 --out demo
      dpmpc train --data adult --data-dir DIR --owners 100 --method output --epsilon 0.5 -M 3 --out runs/adult
      dpmpc train --resume demo
    """
    with importing():
        from dpmpc.aggregation.plan.plan import Plan
        from dpmpc.cli.progress import make_progress
        from dpmpc.consortium import start as starting
        from dpmpc.consortium.placement import Placement
        from dpmpc.consortium.plan_alone import plan_only
        from dpmpc.planning import overrides as beside
        from dpmpc.processes import logs

    logs.choose(given.pop("log_level"), given.pop("log_json"))
    os.umask(0o077)  # what a run writes is for this user alone
    run = {key: given.pop(key) for key in _OF_PROCESSES}
    explicit = {name for name, value in given.items() if value not in (None, ())}
    if run.pop("ssl"):
        if run["tls"] is not None:
            raise UsageError("--ssl is --tls .config; another folder was given too; leave one of them out")
        run["tls"] = Path(".config")
    given["spelling"] = spelling_of(given)
    addresses = run.pop("addresses")
    if addresses:
        given["parties"] = len(addresses)
        explicit.add("parties")
    resume: Path | None = run.pop("resume")
    if resume is not None:
        where = Placement(out=resume, **said({name: run[name] for name in ("base_port", "wait", "stall", "threads")}))
        with make_progress() as progress:
            starting.carry_on(where, progress)
        show(resume)
        return
    if run["plan_file"] is None:
        with_delta(given)
    elif run["plan_only"]:
        raise UsageError("--plan-only makes the plan; --plan has one that was made; leave one of them out")
    if run["out"] is None and run["index"] is None:
        run["out"] = out_of("train")
    if run["out"] is None:
        raise UsageError("a run needs a directory for its results; none was given; add --out DIRECTORY")
    limits = beside.limits_of(run["limits"], given, explicit if run["plan_file"] is not None else set())
    if run["plan_file"] is not None and run["index"] is None and run["limits"] is None:  # all of the plan, here
        beside.check_kept(limits, run["plan_file"])
        limits = None
    where = Placement(
        **said({name: run[name] for name in _PLACES}),
        **said({name: given[name] for name in ("role", "budget", "ledgers", "account", "data_id")}),
        addresses=addresses,
        limits=limits,
    )
    if where.plan_file is not None:
        given = beside.planned(where.plan_file, given, explicit)
    alone = where.party is not None and where.role != "both"
    request = None if where.plan_file is not None and alone else Request(**said(given))
    if run["plan_only"]:
        assert request is not None
        said_of_plan = spelt(plan_only(request, where), as_options)
        give({"plan": where.out / "plan.json", "about": said_of_plan.split("\n")})
        click.echo(said_of_plan)
        return
    with make_progress() as progress:
        starting.start(request, where, progress)
    if where.plan_file is not None and not Plan.read(where.plan_file).source.TRAINS:
        show_made(where.out)
    elif not alone:
        show(where.out)


def show(run: Path, spelling: Callable[[str, str | None], str] = as_options) -> None:
    """Prints the summary of a finished run; `spelling`: how settings are written where it was started."""
    from dpmpc.local.report import read_report
    from dpmpc.show.summary import summary
    from dpmpc.statistics.figures import BALANCING

    columns = [TextColumn(right=True, long="whole", style="bold"), TextColumn()]
    report = read_report(run)
    give({"folder": run, **report})
    lines = [(k, v.replace(BALANCING, spelling("class_weight", "balanced"))) for k, v in summary(report, run)]
    rows = [TextRow([what, value], "yellow" if what == "warning" else "") for what, value in lines]
    Terminal(sys.stdout).table(columns, rows, header=False, gap=4)


def show_made(run: Path) -> None:
    """Prints what a run made, at one of its processes, that trained nothing."""
    found, report = results_in(run), run / "report.json"
    said = json.loads(report.read_text(encoding="utf-8")) if report.exists() else None  # a party has none
    give({"folder": run, **dict(reversed(found)), "report": said})
    if (run / "answers.txt").exists():
        click.echo((run / "answers.txt").read_text(encoding="utf-8"))
    for what, path in found or [("folder", run)]:
        click.echo(f"the {what}: {path}")


def results_in(out: Path) -> list[tuple[str, Path]]:
    """What a run's folder has for people, and where."""
    return [(what, out / name) for what, name in _RESULTS if (out / name).exists()]


command = SectionedCommand(
    "train",
    callback=run_command,
    params=[option for options in OPTIONS.values() for option in options],
    help=run_command.__doc__,
)
