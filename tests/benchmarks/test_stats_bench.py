"""The benchmark of statistics: what it says of files it lacks, and that joint runs are those of the plan."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.plan.stages import noise_of
from dpmpc.benchmarks.result_file import replace_rows
from dpmpc.benchmarks.studies import stats_effects, stats_real
from dpmpc.benchmarks.studies.stats import main
from dpmpc.benchmarks.studies.stats_coverage import made
from dpmpc.benchmarks.studies.stats_docs import lines
from dpmpc.benchmarks.studies.stats_study import coverage, everyone, joint
from dpmpc.benchmarks.studies.stats_survival import NULLS, chances
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.sets import CellModel

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


@pytest.mark.parametrize("name", ["8 cells", "a count", "four grades"])
def test_sets_hold_the_truth_and_those_that_know_no_noise_do_not(name: str) -> None:
    """60 releases: at a coverage of .95 fewer than 40 hold it with probability below 1e-9; so do fewer than 40 where
    the noise's variance is left out. One setting's sets are followed to their ends, too."""
    setting = next(each for each in stats_effects.SETTINGS if each.name == name)
    rows = list(stats_effects.measured(setting, 2000, 0.3, 60, 5, None if name == "8 cells" else 0))
    assert len(rows) == len(setting.effects)
    assert all((float(row["width"] or 0) > 0.5) == (name == "8 cells") == bool(row["open"]) for row in rows)
    for row in rows:
        assert float(row["data"]) >= 40 / 60 and float(row["population"]) >= 40 / 60, row
    sigma = gaussian_scale(0.3, 1e-5, math.sqrt(2))
    counts = stats_effects.drawn(setting, 500, 60, np.random.default_rng(6))
    noisy = counts + stats_effects.noise(sigma, counts.shape, Prg(bytes(32)))
    truth = np.tile(setting.truth[setting.model.predictors :], 60)
    which = np.tile(np.arange(setting.model.predictors, len(setting.truth)), 60)
    of = np.repeat(np.arange(60), len(setting.effects))
    naive = CellModel(setting.model, setting.design, noisy, 1.0, 0.0, 1.0).keeps(list(which), list(truth), 0.05, of)
    assert naive.reshape(60, -1).sum(axis=0).min() < 40


def test_designs_that_nobody_chose_are_the_same_each_time_and_of_every_kind() -> None:
    """And none is refused before anything is spent; what is said of one is a promise of its own shares."""
    drawn, again = (list(stats_effects.drawn_settings(stats_effects.DRAWN)) for _ in range(2))
    assert drawn == again and len({setting.name for setting, _, _ in drawn}) == stats_effects.DRAWN
    assert {setting.family for setting, _, _ in drawn} == {"logit", "poisson", "ordinal", "cox"}
    assert {epsilon for _, _, epsilon in drawn} == {0.3, 1.0, 3.0} and any(setting.crossed for setting, _, _ in drawn)
    for setting, n, epsilon in drawn:
        said = stats_effects.predicted_errors(setting, n, stats_effects._sigma(epsilon))[setting.model.predictors :]
        assert len(said) == len(setting.effects) and 0 < said.min() and said.max() <= 1
        assert setting.part.sum() == pytest.approx(1) and setting.expected(n).sum() == pytest.approx(n, rel=1e-3)
    setting = next(each for each, _, _ in drawn if each.crossed and len(each.shape) == 2)
    cells, marks = setting.part.reshape(setting.shape), setting.marks.reshape(*setting.shape, -1)
    ratio = cells[1, 1] * cells[0, 0] / cells[1, 0] / cells[0, 1]
    assert math.log(ratio) == pytest.approx(setting.together) and setting.together
    assert np.argwhere(marks[:, :, -1]).tolist() == [[1, 1]]


def drawn_design(rng: np.random.Generator) -> stats_effects.EffectDesign:
    """A family, two covariates of which one may be rare, an outcome, effects."""
    family = str(rng.choice(["logit", "logit", "poisson", "ordinal", "cox"]))
    rare = float(rng.uniform(0.06, 0.5))
    three = rng.dirichlet([6.0, 6.0, 6.0])
    common = {"logit": (0.1, 0.5), "poisson": (0.4, 1.0), "ordinal": (0.2, 0.3), "cox": (0.3, 0.7)}[family]
    levels = ((1 - rare, rare), tuple(three.tolist()))
    early = tuple(rng.uniform(0, 0.6, 2).tolist()) if family == "cox" else ()
    effects = tuple(rng.normal(0, 0.6, 3).tolist())
    return stats_effects.EffectDesign("drawn", levels, float(rng.uniform(*common)), effects, (), family, early)


def widths_found(setting: stats_effects.EffectDesign, n: int, sigma: float, many: int, seed: int) -> Floats:
    """(coefficients,) the medians of sets' half widths over 1.96, of drawn releases."""
    rng = np.random.default_rng(seed)
    counts = setting.drawn(n, many, rng)
    noisy = counts + sigma * rng.standard_normal(counts.shape)
    table = CellModel(setting.model, setting.design, noisy, sigma**2, 0.0, 1.0)
    B, P = setting.model.predictors, setting.design.shape[2]
    which, of = np.tile(np.arange(B, P), many), np.repeat(np.arange(many), P - B)
    steps = np.full(P, 0.2)
    wide = stats_effects._widths(table, which, of, steps, np.tile(setting.truth[B:], many))
    return np.asarray(np.median(wide.reshape(many, -1), axis=0) / (2 * 1.96))


@pytest.mark.parametrize("seed", range(4))
def test_sets_are_as_wide_as_a_dry_run_says_of_drawn_settings(seed: int) -> None:
    """Within 15 % where the error is at most .25 and never narrower than .85 of it. Of 30 releases a median is good to
    some 2 %, so that a forecast that is right is refused with probability below 1e-9."""
    rng = np.random.default_rng([seed, 56])
    setting, epsilon = drawn_design(rng), float(rng.choice([0.3, 1.0]))
    sigma, n, B = gaussian_scale(epsilon, 1e-5, math.sqrt(2)), 800, setting.model.predictors
    while (said := stats_effects.predicted_errors(setting, n, sigma)[B:]).max() > 0.25:
        n = int(n * 1.5)
    found = widths_found(setting, n, sigma, 30, seed) / said
    assert (found > 0.85).all() and (found < 1.15).all(), (setting, n, epsilon, said, found)


def test_a_forecast_knows_of_hidden_directions_and_of_bends() -> None:
    """Of an exposure that the noise hides: the deviation of a root by the expected table is too small by a half for the
    other coefficients, and the forecast is not."""
    setting = next(each for each in stats_effects.SETTINGS if each.name == "a rare exposure")
    sigma = gaussian_scale(0.3, 1e-5, math.sqrt(2))
    said = stats_effects.predicted_errors(setting, 2000, sigma)[1:]
    expected = CellModel(setting.model, setting.design, setting.expected(2000), sigma**2, 0.0, 1.0)
    plain, found = expected.deviations(setting.truth)[1:], widths_found(setting, 2000, sigma, 20, 3)
    assert (found[1:] > 1.4 * plain[1:]).all()
    assert (0.85 * said[1:] < found[1:]).all() and (found[1:] < 1.2 * said[1:]).all(), found / said


def test_many_tables_at_once_are_each_alone() -> None:
    setting = next(each for each in stats_effects.SETTINGS if each.name == "a rare outcome")
    counts = stats_effects.drawn(setting, 2000, 4, np.random.default_rng(6))
    noisy = counts + stats_effects.noise(5.3, counts.shape, Prg(bytes(32)))
    together = CellModel(setting.model, setting.design, noisy, 5.3**2, 0.0, 1.0)
    of, which = np.repeat(np.arange(4), 3), np.tile([1, 2, 3], 4)
    found = together.sets(list(which), 0.05, of)
    for t in range(4):
        alone = CellModel(setting.model, setting.design, noisy[t], 5.3**2, 0.0, 1.0)
        for one, each in zip(alone.sets([1, 2, 3], 0.05), found[3 * t : 3 * t + 3], strict=True):
            assert (one.low, one.high) == pytest.approx((each.low, each.high), abs=1e-3)
        assert together.at_zero([1])[0][t] == pytest.approx(alone.at_zero([1])[0][0], abs=1e-6)


def test_a_real_table_is_its_own_population() -> None:
    """Made up, as no table is shipped: the truth is the root of the whole table's score, draws have its mean (20,000
    records: within 6 deviations of a binomial), and sets hold the truth in 40 and more of 60 releases."""
    rows = [(a, b, y) for a in (0, 1) for b in (0, 1, 2) for y in (0, 1) for _ in range(3 + 2 * a + b + 4 * y * a)]
    design = stats_real.counted("a table", (2, 3), rows)
    whole = CellModel(design.model, design.design, design.expected(1000), 0.0)
    assert np.abs(whole.score(design.truth[None])[0]).max() < 1e-6
    drawn, mean = design.drawn(20_000, 1, np.random.default_rng(1))[0], design.expected(20_000)
    assert drawn.sum() == 20_000 and (np.abs(drawn - mean) < 6 * np.sqrt(mean)).all()
    assert mean[0, 0] == pytest.approx(20_000 * rows.count((0, 0, 0)) / len(rows))
    for row in stats_effects.measured(design, 5000, 1.0, 60, 5):
        assert float(row["data"]) >= 40 / 60 and float(row["population"]) >= 40 / 60, row
