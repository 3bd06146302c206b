"""Every experiment by name, and running some of them: tasks, figures, report."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from dpmpc.data.schemas import FILE_SETS
from dpmpc.data.sets import find_file
from dpmpc.errors import UsageError
from dpmpc.experiments import calibration, cape, convergence, epsilon, kdd98, parties, skew, surveyed, table1, utility
from dpmpc.experiments.plan import Experiment, Plan
from dpmpc.experiments.report import commit, markdown, provenance, record
from dpmpc.experiments.runner import read_rows, run_tasks

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (table1, convergence, epsilon, skew, parties, cape, calibration, utility)
}


def run_experiments(
    names: Sequence[str],
    plan: Plan,
    out: Path,
    *,
    data_dir: Path | None,
    jobs: int,
    console: Console,
    executor: str = "processes",
) -> Path:
    """The path of the report written. Each experiment writes out/NAME: runs.csv, summary.csv, PNGs; out/report.md is
    all.

    Data sets whose files are not found are left out and named. Errors: a named experiment has none of its data sets.
    """
    lines, source = ["# Experiments", ""], commit()
    for name in names:
        experiment = EXPERIMENTS[name]
        found, missing = _available(experiment, data_dir)
        if experiment.datasets and not found and not experiment.embedded:
            raise UsageError(f"{name} needs one of {', '.join(experiment.datasets)}; none was found; give --data-dir")
        if missing:
            console.print(f"{name}: without {', '.join(missing)}, whose files are not in the data folder")
        mine = replace(plan, datasets=tuple(found) or ("none",), data_dir=data_dir)
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        work, runs = experiment.tasks(mine), folder / "runs.csv"
        known = {row["task"] for row in read_rows(runs)}
        start = time.perf_counter()
        rows = []
        if work:
            rows = run_tasks(work, runs, data_dir=data_dir, jobs=jobs, console=console, name=name, executor=executor)
        fresh = len({row["task"] for row in rows} - known)
        seconds = time.perf_counter() - start
        entry = f"{fresh} of {len(work)} tasks at commit {source} in {seconds:.0f} s by {jobs} {executor}"
        log = record(folder / "computed.txt", entry if fresh else "")
        section = experiment.report(rows, folder, mine)
        repeats = len({row["seed"] for row in rows}) or 1
        about = provenance(plan, log or [f"at commit {source}"], repeats)
        if missing:
            about += [f"Left out, for want of files: {', '.join(missing)}.", ""]
        lone = [f"# {name}: {experiment.reproduces}", "", *about, *markdown(section)]
        (folder / "report.md").write_text("\n".join(lone), encoding="utf-8")
        lines += [*markdown(section, f"{name}/"), *about]
    report = out / "report.md"
    if len(names) > 1:
        report.write_text("\n".join(lines), encoding="utf-8")
        return report
    return out / names[0] / "report.md"


def _available(experiment: Experiment, data_dir: Path | None) -> tuple[list[str], list[str]]:
    found: list[str] = []
    missing: list[str] = []
    for dataset in experiment.datasets:
        if dataset == "kddcup98":
            (found if kdd98.find(data_dir) else missing).append(dataset)
            continue
        if dataset == surveyed.HOSPITALS:
            files = [f"heart_disease/processed.{site}.data" for site in surveyed.SITES]
            (found if _all_found(files, data_dir) else missing).append(dataset)
            continue
        schema = FILE_SETS[dataset]
        files = [f"{schema.folder}/{file}" for file in schema.files]
        (found if _all_found(files, data_dir) else missing).append(dataset)
    return found, missing


def _all_found(files: Sequence[str], data_dir: Path | None) -> bool:
    try:
        for file in files:
            find_file(file, data_dir)
    except UsageError:
        return False
    return True
