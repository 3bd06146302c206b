"""The benchmark of statistics: what it says of files it lacks, and that joint runs are those of the plan."""

import sys
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.plan.stages import noise_of
from dpmpc.benchmarks.result_file import replace_rows
from dpmpc.benchmarks.stats import main
from dpmpc.benchmarks.stats_coverage import made
from dpmpc.benchmarks.stats_docs import lines
from dpmpc.benchmarks.stats_study import coverage, everyone, joint
from dpmpc.benchmarks.stats_survival import NULLS, chances

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "command",
    [["timing", "--only", "table1"], ["coverage", "--data", "adult", "--repeat", "1"], ["joint", "--data", "adult"]],
)
def test_missing_records_are_one_line(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["stats", *command, "--data-dir", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"^error: this data set needs adult/adult\.data; .*--data-dir$"):
        main()
    monkeypatch.delenv("DPMPC_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["stats", *command])
    with pytest.raises(SystemExit, match=r"^error: .*no data folder is known; give --data-dir or set DPMPC_DATA$"):
        main()


def test_what_the_page_says_of_coverage_is_what_the_result_files_hold() -> None:
    page = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8").splitlines()
    found = list(lines(ROOT / "docs" / "experiments" / "stats"))
    assert len(found) >= 9 and [line for line in found if line not in page] == []


def test_result_files_keep_the_rows_of_other_cells(tmp_path: Path) -> None:
    out = tmp_path / "found" / "coverage.csv"
    for data, n in (("a", 1), ("b", 1), ("a", 2), ("a", 1)):
        rows = [{"data": data, "n": n, "share": k} for k in range(2)]
        replace_rows(out, rows, ("data", "n"))
    assert out.read_text().splitlines() == ["data,n,share", "b,1,0", "b,1,1", "a,2,0", "a,2,1", "a,1,0", "a,1,1"]


@pytest.mark.parametrize("name", ["even arms", "a short arm", "rare deaths"])
def test_the_tables_of_a_null_are_those_of_its_records(name: str) -> None:
    """10^6 records drawn one by one: every cell within 7 deviations of its chance (false alarms below 4e-10)."""
    null, n, rng = NULLS[name], 1_000_000, np.random.default_rng(7)
    arm = (rng.random(n) > null.first).astype(int)
    death, leave = rng.exponential(1 / null.death, n), rng.exponential(1 / null.leave, n)
    last = np.minimum(leave, np.array(null.ends)[arm])
    died, there = (death <= last) & (death < 1), np.minimum(death, last)
    place = np.where(~died & (last >= 1), null.bins, np.minimum(there * null.bins, null.bins).astype(int))
    for mask, chance in zip((died, ~died), chances(null), strict=True):
        cells = np.bincount(arm[mask] * (null.bins + 1) + place[mask], minlength=2 * (null.bins + 1))
        cells = cells.reshape(2, -1)[:, : chance.shape[1]]
        assert (np.abs(cells - n * chance) <= 7 * np.sqrt(n * chance * (1 - chance)) + 1e-9).all()


def test_a_joint_run_has_the_noise_of_its_stages_and_every_kind_of_answer() -> None:
    """Held-out records are those of the plan, and intervals are made of the stages' own noise (the seed is fixed)."""
    run = joint(5000, 3.0)
    assert sum(run.asking.sizes) == 5000 and sum(run.study.held) == 1500 and sum(run.training.sizes) == 3500
    assert run.study.tables is None and run.training.released and noise_of(run.asking) > 0
    people = everyone(made(6000), run)
    found = coverage(run, people, 2)
    kinds = {kind for about, kind in found if about == "data"}
    assert kinds >= {"table1: percent", "median: median", "km: survival", "model: AUC", "model: Brier score"}
    assert found["data", "table1: count"].given == 2 * 16 and 0.7 < found["data", "table1: count"].share <= 1
    assert all(tally.given + tally.refused > 0 for tally in found.values())
