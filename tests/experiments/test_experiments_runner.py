"""Tasks, runner, summary, figures and the command of the experiments."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from dpmpc_experiments import calibration, cape, convergence, epsilon, parties, runner, skew, utility
from dpmpc_experiments.catalog import EXPERIMENTS, run_experiments
from dpmpc_experiments.command import NAMES, command
from dpmpc_experiments.figures import Line, Panel, draw
from dpmpc_experiments.plan import Plan
from dpmpc_experiments.report import table
from dpmpc_experiments.runner import Workers, read_rows
from dpmpc_experiments.summary import curve, select, write_summary
from dpmpc_experiments.task import COLUMNS, Row, Source, Task, execute
from scipy import stats

from dpmpc.show.terminal import Terminal
from tests.refusals import refuses

QUIET = Terminal(io.StringIO())
SOURCE = Source("synthetic", 1, 0.1, 200, 0.5)


def small(method: str, **changes: object) -> Task:
    task = Task("t", SOURCE, "even:5", 1, method, "zcdp", (0.5, 1.0), 1e-3, 6, 1.0, (1, 2, 3), (1, 3, 6))
    return replace(task, **changes)  # type: ignore[arg-type]


def run(tasks: list[Task], path: Path, jobs: int = 1) -> list[Row]:
    with Workers(jobs, None) as workers:
        return workers.submit(tasks, path).finish(QUIET, "t")


def test_rows_of_a_task() -> None:
    task = small("MPC Grad P")
    rows = execute(task, None)
    assert len(rows) == task.rows == 18 and set(rows[0]) == set(COLUMNS)
    assert [row["iteration"] for row in rows[:3]] == [1, 3, 6]
    assert float(rows[0]["scale"]) > float(rows[9]["scale"]) > 0
    assert all(float(row["gap"]) > 0 for row in rows)


def test_a_row_can_be_computed_again_from_its_own_seed() -> None:
    rows = execute(small("MPC Grad P"), None)
    again = execute(small("MPC Grad P", epsilons=(1.0,), seeds=(2,), at=(6,)), None)[0]
    (row,) = [row for row in rows if (row["epsilon"], row["seed"], row["iteration"]) == (1.0, 2, 6)]
    assert again["objective"] == pytest.approx(row["objective"], rel=1e-12)


def test_finished_tasks_are_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "runs.csv"
    first = run([small("MPC Grad P"), small("Pathak")], path)
    assert len(read_rows(path)) == len(first) == 36
    called: list[str] = []

    def counting(task: Task, data_dir: Path | None) -> list[Row]:
        called.append(task.method)
        return execute(task, data_dir)

    monkeypatch.setattr(runner, "execute", counting)
    second = run([small("MPC Grad P"), small("Pathak"), small("WD-DP")], path)
    assert called == ["WD-DP"] and len(second) == 54
    changed = run([small("Pathak", seeds=(1, 2, 4))], path)
    assert called == ["WD-DP", "Pathak"] and len(changed) == len(read_rows(path)) == 18


def test_a_file_cut_short_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.csv"
    whole = run([small("MPC Grad P"), small("Pathak")], path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: int(len(text) * 0.8)], encoding="utf-8")
    again = run([small("MPC Grad P"), small("Pathak")], path)
    assert len(again) == 36 and len(read_rows(path)) == 36
    key = lambda row: (row["method"], row["epsilon"], row["seed"], row["iteration"])  # noqa: E731
    for a, b in zip(sorted(whole, key=key), sorted(again, key=key), strict=True):
        assert float(a["objective"]) == pytest.approx(float(b["objective"]), rel=1e-9)


def test_other_columns_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    assert read_rows(path) == [] and read_rows(tmp_path / "none.csv") == []


@pytest.mark.slow
def test_processes_give_the_rows_of_one_process(tmp_path: Path) -> None:
    tasks = [small("MPC Grad P"), small("Local Out P")]
    one, two = run(tasks, tmp_path / "one.csv"), run(tasks, tmp_path / "two.csv", jobs=2)
    pick = lambda rows: sorted((str(r["method"]), float(r["objective"])) for r in rows)  # noqa: E731
    assert [m for m, _ in pick(one)] == [m for m, _ in pick(two)]
    assert [v for _, v in pick(one)] == pytest.approx([v for _, v in pick(two)], rel=1e-9)


def test_task_keys_tell_tasks_apart() -> None:
    tasks = [small("Pathak"), small("LA"), small("Pathak", seeds=(1,)), small("Pathak", step_of="WD-DP")]
    assert len({task.key for task in tasks}) == 4 and small("Pathak").key == tasks[0].key


@pytest.mark.parametrize("module", [convergence, epsilon, skew, parties, cape, calibration, utility])
def test_tasks_of_every_experiment_are_distinct_and_quick_is_less(module: object) -> None:
    experiment = EXPERIMENTS[str(module.__name__).rpartition(".")[2]]  # type: ignore[attr-defined]
    full, quick = experiment.tasks(Plan()), experiment.tasks(Plan(quick=True))
    assert len({task.key for task in full}) == len(full) > 0
    assert sum(task.rows for task in quick) < sum(task.rows for task in full)
    assert {task.source.dataset for task in experiment.tasks(Plan(datasets=("adult",)))} <= {
        "adult", "synthetic", "breast-cancer", "diabetes",
    }  # fmt: skip
    assert all(len(task.seeds) <= 7 for task in experiment.tasks(Plan(repeats=7)))


def test_curve_is_the_mean_and_students_interval() -> None:
    rows: list[Row] = [{"iteration": 5, "gap": v, "method": "a"} for v in (1.0, 2.0, 4.0)]
    rows += [{"iteration": 1, "gap": 3.0, "method": "b"}]
    line = curve(select(rows, method="a"), "gap")
    low, high = stats.t.interval(0.95, 2, loc=7 / 3, scale=stats.sem([1.0, 2.0, 4.0]))
    assert line.x == (5.0,) and line.mean[0] == pytest.approx(7 / 3)
    assert (line.low[0], line.high[0]) == pytest.approx((low, high))
    assert curve(rows, "gap").x == (1.0, 5.0) and curve(rows, "gap").at(1.4) == 3.0


def test_summary_file(tmp_path: Path) -> None:
    rows: list[Row] = [{"m": "a", "gap": 1.0}, {"m": "a", "gap": 3.0}, {"m": "b", "gap": 5.0}]
    write_summary(rows, ("m",), ("gap",), tmp_path / "s.csv")
    with (tmp_path / "s.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert lines == [["m", "runs", "gap_mean", "gap_sd"], ["a", "2", "2", "1.41"], ["b", "1", "5", "0"]]


@pytest.mark.slow
def test_figures_are_written(tmp_path: Path) -> None:
    rows: list[Row] = [{"iteration": t, "gap": 1.0 / t + 0.1 * s} for t in (1, 2, 3) for s in range(5)]
    line = Line("MPC Grad P", curve(rows, "gap"), "MPC Grad P")
    draw(tmp_path / "f.png", [[Panel("a", "x", "y", [line], log_y=True, floor=1e-3)], [Panel("b", "x", "y", [line])]])
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_tables_escape_bars() -> None:
    assert table(["a"], [["|x|"]]) == ["| a |", "| --- |", "| \\|x\\| |"]


def test_command_writes_table_1_with_a_verdict_for_each_column(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["table1", "--out", str(tmp_path), "--seed", "3"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    report = (tmp_path / "table1" / "report.md").read_text(encoding="utf-8")
    assert report.count("| reproduced") == 6 and "log(1/delta)" in report and "Noise seeds 3" in report


def test_command_knows_every_experiment() -> None:
    assert tuple(EXPERIMENTS) == NAMES


def test_missing_data_is_a_usage_error(tmp_path: Path) -> None:
    with refuses("path", setting="data_dir"):
        run_experiments(["convergence"], Plan(), tmp_path, data_dir=tmp_path, jobs=1, terminal=QUIET)


@pytest.mark.slow
def test_an_experiment_end_to_end(tmp_path: Path) -> None:
    """The parties experiment on embedded data with one seed: figures, summary, and a verdict for every statement."""
    parties_plan = Plan(quick=True, repeats=1)
    path = run_experiments(["parties"], parties_plan, tmp_path, data_dir=None, jobs=1, terminal=QUIET)
    report = path.read_text(encoding="utf-8")
    assert report.count("PSGD similar to GOP") == 4 and "Computed: 168 of 168 tasks at commit" in report
    again = run_experiments(["parties"], parties_plan, tmp_path, data_dir=None, jobs=1, terminal=QUIET)
    assert again.read_text(encoding="utf-8") == report  # nothing new was computed
    assert {p.name for p in path.parent.iterdir()} == {
        "report.md", "runs.csv", "computed.txt", "summary.csv", "parties-simulated.png", "parties-wdbc.png",
    }  # fmt: skip


@pytest.mark.slow
def test_a_task_that_fails_ends_the_run_and_what_was_finished_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    bad = small("MPC Grad P", owners="half:2")
    tasks = [small("MPC Grad P"), bad, *(small("MPC Grad P", owner_seed=s) for s in range(2, 600))]
    with refuses("choice", "half:2"):
        run(tasks, path, jobs=2)
    kept = {row["task"] for row in read_rows(path)}
    assert bad.key not in kept and len(kept) < 590  # the waiting tasks were cancelled
    with refuses("choice", "half:2"):
        run(tasks[:2], path)
    assert len(read_rows(path)) == 18
