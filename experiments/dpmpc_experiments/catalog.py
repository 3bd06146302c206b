"""Every experiment by name, and running some of them: tasks, figures, report."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dpmpc.errors import UsageError
from dpmpc.folders import OUT, make_folder
from dpmpc.records.schemas import FILE_SETS
from dpmpc.records.sets import find_file
from dpmpc.show.terminal import Terminal
from dpmpc_experiments import calibration, cape, convergence, epsilon, kdd98, parties, skew, surveyed, table1, utility
from dpmpc_experiments.plan import Experiment, Plan
from dpmpc_experiments.report import commit, markdown, provenance, record
from dpmpc_experiments.runner import Workers
from dpmpc_experiments.task import Row

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
    terminal: Terminal,
    executor: str = "processes",
) -> Path:
    """The path of the report written. Each experiment writes out/NAME: runs.csv, summary.csv, PNGs; out/report.md is
    all.

    Data sets whose files are not found are left out and named. Errors: a named experiment has none of its data sets.
    """
    lines, source = ["# Experiments", ""], commit()
    mine = {name: _with_data(EXPERIMENTS[name], plan, data_dir, terminal) for name in names}
    with Workers(jobs, data_dir, executor) as workers:
        work = {name: EXPERIMENTS[name].tasks(mine[name]) for name in names}
        for name in names:
            make_folder(out / name, OUT)
        batches = {name: workers.submit(tasks, out / name / "runs.csv") for name, tasks in work.items() if tasks}
        try:
            for name in names:
                rows, entry = [], ""
                if (batch := batches.get(name)) is not None:
                    rows = batch.finish(terminal, name)
                    if batch.fresh:
                        entry = f"{batch.fresh} of {len(work[name])} tasks at commit {source}, {batch.seconds:.0f} s of"
                        entry += " processor"
                log = record(out / name / "computed.txt", entry)
                lines += _report(EXPERIMENTS[name], rows, out / name, mine[name], log or [f"at commit {source}"])
        finally:
            for batch in batches.values():
                batch.cancel()
    report = out / "report.md"
    if len(names) > 1:
        report.write_text("\n".join(lines), encoding="utf-8")
        return report
    return out / names[0] / "report.md"


def _with_data(experiment: Experiment, plan: Plan, data_dir: Path | None, terminal: Terminal) -> Plan:
    """The plan with the experiment's data sets that are there."""
    found, missing = _available(experiment, data_dir)
    if experiment.datasets and not found and not experiment.embedded:
        raise UsageError(
            f"{experiment.name} needs one of {', '.join(experiment.datasets)}; none was found; give <<data_dir>>",
            code="path",
        )
    if missing:
        terminal.text(f"{experiment.name}: without {', '.join(missing)}, whose files are not in the data folder")
    return replace(plan, datasets=tuple(found) or ("none",), data_dir=data_dir)


def _report(experiment: Experiment, rows: list[Row], folder: Path, plan: Plan, computed: Sequence[str]) -> list[str]:
    """Writes an experiment's figures and report; the lines of its section in the report of all."""
    section = experiment.report(rows, folder, plan)
    about = provenance(plan, computed, len({row["seed"] for row in rows}) or 1)
    _, missing = _available(experiment, plan.data_dir)
    if missing:
        about += [f"Left out, for want of files: {', '.join(missing)}.", ""]
    lone = [f"# {experiment.name}: {experiment.reproduces}", "", *about, *markdown(section)]
    (folder / "report.md").write_text("\n".join(lone), encoding="utf-8")
    return [*markdown(section, f"{experiment.name}/"), *about]


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
