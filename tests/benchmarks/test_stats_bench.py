"""The benchmark of statistics: what it says of files it lacks, and that joint runs are those of the plan."""

import sys
from pathlib import Path

import pytest

from dpmpc.aggregation.plan.stages import noise_of
from dpmpc.benchmarks.stats import main
from dpmpc.benchmarks.stats_coverage import made
from dpmpc.benchmarks.stats_study import coverage, everyone, joint


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
