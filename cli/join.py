"""`dpmpc join`: one site of a consortium, from its kit."""

import json
import os
from pathlib import Path
from typing import Any

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import setting_option
from dpmpc.cli.sources import source_options
from dpmpc.processes import logs
from dpmpc.processes.logs import LEVELS
from dpmpc.settings import said


@click.command("join")
@click.argument("kit", type=click.Path(path_type=Path))
@source_options
@click.option("--precision", type=click.Choice(["double", "single"]), default="double", help="As in `dpmpc train`.")
@setting_option("executor")
@setting_option("workers")
@setting_option("ids")
@setting_option("out", help="Where the run is kept.  [default: run in KIT]")
@setting_option("overwrite")
@setting_option("limits", name="accept", help="What this organisation takes part in.  [default: limits.toml in KIT]")
@setting_option("ledgers")
@setting_option("account")
@setting_option("listen")
@setting_option("threads")
@setting_option("wait", help="How long to wait for others to come.  [default: the kit's]")
@setting_option("stall", help="Silence that counts as loss.  [default: the kit's]")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Try everything without a run, at all sites at about the same time: records, limits, certificates, disk, "
    "ports, who reaches whom, clocks. Nothing is spent.",
)
@click.option("--log-level", type=click.Choice(LEVELS), help="The least that logs hold.  [default: info]")
@click.option("--log-json", is_flag=True, help="Logs, and what is shown meanwhile, as JSON lines.")
def command(kit: Path, **own: Any) -> None:
    """Run the site that KIT, a folder which `dpmpc kit` wrote, is for: a party, an owner with its records, or both in
    one process. The model comes to KIT/run/model.npz, answers to KIT/run/answers.html.

    \b
    Examples:
      dpmpc join kit/                  a party
      dpmpc join kit/ --csv mine.csv   an owner, or a site that is both
      dpmpc join kit/ --dry-run        before the day: is everybody reached?
    """
    from dpmpc.cli.progress import make_progress
    from dpmpc.cli.train import results_in, show
    from dpmpc.consortium.joining import Joining, join, kit_spelling, try_out

    logs.choose(own.pop("log_level"), own.pop("log_json"))
    os.umask(0o077)  # what a run writes is for this user alone
    if own["csv"] is not None:
        own["csv"] = str(own["csv"])
    if own.pop("dry_run"):
        with make_progress() as progress:
            try_out(kit, Joining.of(**said(own)), progress)
        give({"ready": True, "spent": 0})
        click.echo("all is ready; nothing was spent")
        return
    with make_progress() as progress:
        out = join(kit, Joining.of(**said(own)), progress)
    found = results_in(out)
    report = out / "report.json"
    give({
        "folder": out, **dict(reversed(found)),
        "report": json.loads(report.read_text(encoding="utf-8")) if report.exists() else None,  # of any source
    })  # fmt: skip
    done = [f"the {what}: {path}" for what, path in found] or ["no model here; the sites that saw the end have it"]
    if logs.as_json():
        for line in done:
            click.echo(logs.json_line(line))
        return
    if (asked := out / "questions/answers.txt").exists():
        click.echo(asked.read_text(encoding="utf-8"))
    if (out / "answers.txt").exists():
        click.echo((out / "answers.txt").read_text(encoding="utf-8"))
    elif (out / "report.json").exists():
        show(out, kit_spelling)
    elif (out / "figures.json").exists():
        from dpmpc.consortium.status import read_lines
        from dpmpc.statistics.figures import BALANCING

        for what, value in read_lines(out):
            words = value.replace(BALANCING, kit_spelling("class_weight", "balanced"))
            click.echo(f"{what}: {words}")
    for line in done:
        click.echo(line)
