"""`dpmpc experiment`: the papers' tables and figures, run again."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from dpmpc.show.terminal import Terminal

NAMES = ("table1", "convergence", "epsilon", "skew", "parties", "cape", "calibration", "utility")
_OURS = ("synth", "central", "lengths", "curves", "bands", "bounds")  # comparisons that no paper has


@click.command("experiment")
@click.argument("name", metavar="NAME", type=click.Choice([*NAMES, *_OURS, "all"]))
@click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Folder of the data sets' files [$DPMPC_DATA]."
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for results.")
@click.option("--repeats", type=click.IntRange(1), help="Noise seeds a setting [5 to 40, by experiment].")
@click.option("--jobs", type=click.IntRange(1), help="Processes [all cores].")
@click.option(
    "--executor",
    default="processes",
    show_default=True,
    metavar="WHERE",
    help="Where tasks run: processes, joblib, dask:ADDRESS, or MODULE:FUNCTION, which returns an Executor.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="First seed of noise, splits, partitions."
)
@click.option("--quick", is_flag=True, help="Fewer data sets, settings and repeats: a look, no verdict.")
def command(
    name: str,
    data_dir: Path | None,
    out: Path,
    repeats: int | None,
    jobs: int | None,
    executor: str,
    seed: int,
    quick: bool,
) -> None:
    """Reproduce a table or a figure of the papers, in the clear, with every run in a CSV file.

    Writes OUT/NAME/runs.csv, summary.csv, PNG figures and report.md, which puts our number beside the printed one. Runs
    that are already in runs.csv are not computed again.

    NAME is table1, convergence, epsilon, skew, parties, cape, calibration, utility, or all of them; or synth, which
    compares synthetic tables by several methods (docs/synth.md), central, which holds the defaults against what a
    trusted curator could learn with the same promise, lengths, which tries shorter and longer descents than the
    adviser's, curves, which tries straight and bent numbers with descents of several lengths, or bounds, which holds
    public bounds that restrict a survey against a survey alone and bounds alone (docs/accuracy.md); or bands, which
    measures how often bands of noise around an additive model's curves would hold the truth (docs/data.md).
    """
    from dpmpc_experiments.catalog import run_experiments
    from dpmpc_experiments.plan import Plan

    if name in _OURS:
        from dpmpc_experiments import bands, bounds, central, curves, lengths, synth

        said = Terminal(sys.stderr)
        runs: dict[str, Any] = {
            "synth": synth.run,
            "central": central.run,
            "lengths": lengths.run,
            "curves": curves.run,
            "bands": bands.run,
            "bounds": bounds.run,
        }
        times = repeats or {"bands": bands.RUNS, "bounds": bounds.SPLITS}.get(name, 5)
        click.echo(str(runs[name](out, data_dir, times, seed, quick, said.text)))
        return
    plan = Plan(seed=seed, repeats=repeats, quick=quick)
    names = NAMES if name == "all" else (name,)
    workers = jobs or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    report = run_experiments(
        names, plan, out, data_dir=data_dir, jobs=workers, terminal=Terminal(sys.stderr), executor=executor
    )
    click.echo(str(report))
