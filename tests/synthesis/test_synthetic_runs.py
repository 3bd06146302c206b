"""Synthetic tables through plans and real parties: price, files, answers, odd columns, and what may not be."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant

import dpmpc
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.cli.main import group
from dpmpc.errors import owner_text
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.privacy.ledgers import read_ledgers
from dpmpc.records.origins import PUBLIC
from dpmpc.records.schema import checked_bounds
from dpmpc.run.files import WHOLE
from dpmpc.statistics.cells import RecordFields
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.tables import STEP
from dpmpc.synthesis.asking import pairs
from dpmpc.synthesis.caveats import CAVEATS
from dpmpc.synthesis.cuts import stated
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.source import Synthesis
from dpmpc.tables.stats import noise_of, reopened
from dpmpc.tables.synth_made import made_from
from dpmpc.tables.synth_plan import plan_of_synthesis
from tests.machines import apart, followed, sites
from tests.refusals import Rule, breaks, refuses
from tests.runs import dpmpc as dpmpc_command

pytestmark = pytest.mark.usefixtures("small_tables")

BOUNDS: dict[str, Any] = {"sex": ["F", "M"], "age": [18, 90], "died": ["no", "yes"], "ward": ["a", "b", "c"]}
CUTS = {"age": [18, 40, 60, 75, 90]}
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}


def people(n: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = np.clip(np.rint(rng.gamma(9, 6, n)), 18, 90)
    ward = np.where(rng.random(n) < 0.7, np.where(age > 60, "c", "a"), "b")
    return pd.DataFrame({
        "sex": rng.choice(["F", "M", None], n, p=[0.5, 0.45, 0.05]), "age": age,
        "died": np.where(rng.random(n) < age / 150, "yes", "no"), "ward": ward,
        "site": rng.choice(["x", "y", "z"], n, p=[0.6, 0.3, 0.1]),
    })  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path, pd.DataFrame]:
    frame, out = people(9000), tmp_path_factory.mktemp("synth") / "run"
    found = dpmpc.synth(
        frame, owners="site", bounds=BOUNDS, cuts=CUTS, target="died", constraints=["ward = c and age in 18..40"],
        seed=3, out=out, **PROMISE,
    )  # fmt: skip
    return found, out, frame


def farthest(release: Any, absent: bool = False) -> float:
    """How far two records' vectors lie apart, in records: by trying all pairs of records that differ in their cells.
    `absent`: how far any lies from that of an empty place."""
    tables = release.tables
    columns = tables.columns.columns
    grids = [np.array([0, 1, 2, -1])[: 4 if k == 3 else 3] for k in range(len(columns))]
    grids[1] = np.array([10.0, 18.0, 50.0, 90.0, 100.0, np.nan])
    cells = np.array(np.meshgrid(*grids, indexing="ij")).reshape(len(columns), -1)
    parts = [part if k == 1 else part.astype(np.int64) for k, part in enumerate(cells)]
    records = RecordFields(cells.shape[1], dict(zip(columns, parts, strict=True)))
    vectors = tables.layout.encode(records, np.arange(records.n), records.n) * STEP
    square = (vectors**2).sum(axis=1)
    if absent:
        return float(np.sqrt(square.max()))
    return float(np.sqrt(np.max(square[:, None] + square[None, :] - 2 * vectors @ vectors.T)))


def composed(ratios: list[float]) -> float:
    """The epsilon of Gaussian releases that move by so many deviations of their noise, at delta 1e-5."""
    accountant = pld_privacy_accountant.PLDAccountant(value_discretization_interval=1e-3)
    for ratio in ratios:
        accountant.compose(dp_event.GaussianDpEvent(1 / ratio))
    return float(accountant.get_epsilon(1e-5))


def test_both_releases_together_cost_what_is_promised(made: tuple[Any, Path, pd.DataFrame]) -> None:
    """By another route: distances between encoded records, found by trying all pairs, over the noise; composed by
    dp_accounting's privacy loss distributions, which know nothing of mu."""
    found = made[0]
    ratios = [farthest(release) / noise_of(release.plan) for release in found.releases]
    mu2 = mu_of_budget(1.0, 1e-5) ** 2
    assert ratios[0] ** 2 / mu2 == pytest.approx(0.25, rel=0.03)
    assert ratios[1] ** 2 / mu2 == pytest.approx(0.75, rel=0.03)
    assert 0.97 < composed(ratios) <= 1.002  # the rest pays for rounding, and for diameters that are bounds
    assert composed([1.05 * ratio for ratio in ratios]) > 1.01  # noise a twentieth less would break it
    assert "epsilon = 1, delta = 1e-05; neighbours: one record of one owner" in found.guarantee
    assert len(found.releases[1].plan.before) == 1 and found.releases[0].plan.before == ()


def test_places_keep_the_number_of_records_private(tmp_path: Path) -> None:
    """A record that leaves its place empty is covered too, by distances to the zero vector. There are as many rows as
    the noisy tables say: within ten deviations of their count (false alarm below 1e-20)."""
    frame, out, places = people(3000), tmp_path / "out", (2500, 1200, 400)
    given: dict[str, Any] = {"owners": "site", "cuts": CUTS, "engine": "clear", "seed": 1, "bounds": BOUNDS, **PROMISE}
    with refuses("records", 312, 5):
        dpmpc.synth(frame, capacity=(2500, 1200, 5), out=out, **given)
    assert not out.exists()
    made = dpmpc.synth(frame, capacity=places, out=out, **given)
    plans = [Plan.read(out / name / "plan.json") for name in ("first", "")]
    assert all(plan.capacity and plan.sizes == places for plan in plans)
    assert "the numbers of records are private" in made.guarantee
    ratios = [max(farthest(r), farthest(r, absent=True)) / noise_of(r.plan) for r in made.releases]
    assert 0.97 < composed(ratios) <= 1.002
    noisy = Noisy(made.releases[0].tables.columns, made.statistics.opened)
    assert noisy.opened.known is None and len(made.frame()) == round(noisy.n)
    assert abs(noisy.n - 3000) < 10 * noisy.deviation([]) and noisy.deviation([]) > 1
    surveyed = dpmpc.synth(frame, capacity=places, **given | {"cuts": None})
    assert all(release.plan.capacity for release in surveyed.releases)
    assert abs(len(surveyed.frame()) - 3000) < 20 * noisy.deviation([])


def test_the_rows_tell_what_the_records_do(made: tuple[Any, Path, pd.DataFrame]) -> None:
    found, _, frame = made
    rows = found.frame()
    assert len(rows) == 9000 and list(rows.columns) == ["sex", "age", "died", "ward"]
    assert abs((rows["died"] == "yes").mean() - (frame["died"] == "yes").mean()) < 0.03
    assert abs(rows["age"].mean() - frame["age"].mean()) < 2 and rows["age"].between(18, 90).all()
    old, old_true = (f[f["age"] > 60]["died"].eq("yes").mean() for f in (rows, frame))
    young, young_true = (f[f["age"] < 40]["died"].eq("yes").mean() for f in (rows, frame))
    assert abs(old - old_true) < 0.08 and abs(young - young_true) < 0.08 and old_true - young_true > 0.2
    assert not ((rows["ward"] == "c") & rows["age"].between(18, 39)).any()
    assert set(rows["sex"].dropna()) <= {"F", "M", "(other)"} and rows.attrs["dpmpc"].startswith(CAVEATS[0])
    assert 0 < np.mean([error.whole for error in found.errors]) < 0.15 and len(found.errors) == 6


def test_every_output_says_what_it_is(made: tuple[Any, Path, pd.DataFrame]) -> None:
    found, out, _ = made
    lines = (out / "synthetic.csv").read_text().splitlines()
    count = int(lines[0].split()[1])
    assert all(line.startswith("#") for line in lines[:count]) and lines[count] == "sex,age,died,ward"
    assert [line[2:] for line in lines[1:count]] == found.lines
    again = pd.read_csv(out / "synthetic.csv", skiprows=count)
    parquet = pyarrow.parquet.read_table(out / "synthetic.parquet")
    assert parquet.schema.metadata[b"dpmpc"].decode().splitlines() == found.lines
    assert parquet.to_pandas()["age"].tolist() == again["age"].tolist() == found.values["age"].tolist()
    report = (out / "synthetic.md").read_text()
    assert all(line in report for line in found.lines) and "age, died" in report
    for text in (report, (out / "columns.json").read_text()):
        assert "29 % of a nominal 95 %" in text
    assert len(json.loads((out / "synthetic.json").read_text())["pairs"]) == 6
    first, second = (Plan.read(out / part / "plan.json") for part in ("first", ""))
    assert second.before == (first.derived.mechanism,)


def test_noisy_tables_travel_with_it_and_answer_at_no_cost(
    made: tuple[Any, Path, pd.DataFrame], tmp_path: Path
) -> None:
    """Intervals hold what the records say: of 23 counts more than 8 misses of 5 % have a chance below 1e-5 each, and
    none is as far off as 7 deviations."""
    found, out, frame = made
    files = sorted(path for path in out.rglob("*"))
    runner = CliRunner()
    said = runner.invoke(
        group, ["stats", "table(ward) by died", "mean(age)", "count", "--of", str(out), "--json"]
    )
    assert said.exit_code == 0, said.output
    assert sorted(out.rglob("*")) == files
    held = reopened(out).asked(["table(ward) by died", "table(sex)", "table(age) by ward"])
    misses = 0
    for answer in held.answers:
        for line in answer.lines:
            if line.statistic != "count" or answer.question.startswith("table(age)"):
                continue
            labels = dict(zip(answer.headers, line.labels, strict=True))
            true = np.ones(len(frame), dtype=bool)
            for name, label in labels.items():
                true &= (frame[name].isna() if label == "(missing)" else frame[name] == label).to_numpy()
            number = line.number
            misses += not number.low - 1e-9 <= true.sum() <= number.high + 1e-9
            assert abs(number.estimate - true.sum()) < 7 * number.noise
    assert misses <= 8
    [line] = [x for x in reopened(out).asked(["mean(age)"]).answers[0].lines]
    assert line.number.low - 1 < frame["age"].mean() < line.number.high + 1
    alone = found.releases[0].asked(["table(ward) by died"]).answers[0].lines
    each = [
        (x.number.noise, y.number.noise)
        for x, y in zip(alone, held.answers[0].lines, strict=True)
        if x.statistic == "count"
    ]  # what noise a percentage has depends on its noisy whole
    shown = [both / one for one, both in each if one and both]
    assert len(shown) > 6 and max(shown) < 0.8  # two releases know more than one
    with refuses("unknown", "median(age)"):
        _ = reopened(out).asked(["median(age)"]).answers
    with refuses("unknown", "table(sex, ward) by died"):
        _ = reopened(out).asked(["table(sex, ward) by died"]).answers


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (
            {"bounds": {**BOUNDS, "town": [f"t{k}" for k in range(200_000)]}},
            breaks("range", "town", 200002, setting="drop"),
        ),
        ({"bounds": {"age": [18, 90]}}, breaks("enough", "age", setting="bounds")),
        ({"bounds": None, "cuts": None, "drop": ["sex", "died", "ward"]}, breaks("enough", "age")),
        ({"target": "dead"}, breaks("column", "dead", "died")),
        ({"target": "dead", "cuts": None}, breaks("column", "dead", setting="target")),
        ({"bounds": None, "cuts": None, "constraints": ["ward = c"]}, breaks("together", setting="constraints")),
        ({"cuts": {"sex": [1, 2]}}, breaks("column", "sex", setting="cuts")),
        ({"rows": 0}, breaks("range", 0, setting="rows")),
        ({"rows": 10**15}, breaks("memory", "1,000,000,000,000,000", setting="rows")),
        ({"seed": -1}, breaks("range", -1, setting="seed")),
        ({"digits": ["age"]}, breaks("type", "['age']", setting="digits")),
        ({"cuts": [18, 90]}, breaks("type", "[18, 90]", setting="cuts")),
        ({"target": 3}, breaks("type", 3, setting="target")),
        ({"hopeless": "maybe"}, breaks("choice", "maybe", setting="hopeless")),
        ({"delta": 0.0}, breaks("together", "delta 0", setting="delta")),
        ({"constraints": ["ward = d"]}, breaks("choice", "ward", "d")),
        ({"constraints": ["ward = c and age in 20..40"]}, breaks("range", "18, 40, 60", setting="cuts")),
        (
            {"constraints": ["ward = c and age in 18..40"], "cuts": None},
            breaks("range", "age in 18..40", setting="cuts"),
        ),
        (
            {"constraints": [f"sex = {s} and ward = {w}" for s in "FM" for w in "abc"]},
            breaks("together", "sex, ward", setting="constraints"),
        ),
        ({"bounds": None, "cuts": None, "epsilon": 0.01}, breaks("enough", 600, setting="bounds")),
        ({"digits": {"sex": 1}}, breaks("range", "sex=1", setting="digits")),
        ({"owners": None}, breaks("missing", setting="owners_column")),
        ({"schema": "schema.json"}, breaks("together", setting="schema")),
        ({"epsilon": 0.001}, breaks("enough", "age", 600, setting="epsilon")),
    ],
)
def test_what_cannot_be_is_one_line_and_spends_nothing(change: dict[str, Any], broken: Rule, tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "owners": "site",
        "bounds": BOUNDS,
        "cuts": CUTS,
        **PROMISE,
        "out": tmp_path / "no",
        **change,
    }
    with refuses(broken) as error:
        dpmpc.synth(people(600), **given)
    assert "\n" not in owner_text(error.value) or "^" in owner_text(error.value)  # where the language points
    assert not (tmp_path / "no").exists()


def test_the_command_writes_one_file_and_its_folder(tmp_path: Path) -> None:
    people(4000).to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "bounds.json").write_text(json.dumps(BOUNDS))
    (tmp_path / "cuts.toml").write_text("age = [18, 40, 60, 90]\n")
    (tmp_path / "zeros.toml").write_text('impossible = ["sex = M and ward = b"]\n')
    words = [
        "synth", "--csv", str(tmp_path / "all.csv"), "--owners-column", "site",
        "--bounds", str(tmp_path / "bounds.json"),
        "--cuts", str(tmp_path / "cuts.toml"), "--constraints", str(tmp_path / "zeros.toml"), "--rows", "300",
        "--digits", "age=1", "--epsilon", "2", "--delta", "1e-5", "--engine", "clear", "--out", str(tmp_path / "s.csv"),
    ]  # fmt: skip
    said = CliRunner().invoke(group, words)
    assert said.exit_code == 0 and said.output.startswith(CAVEATS[0]), said.output
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert len(lines) == int(lines[0].split()[1]) + 1 + 300
    assert {path.name for path in (tmp_path / "s").iterdir()} >= {
        "first",
        "plan.json",
        "synthetic.md",
        "synthetic.parquet",
    }
    assert CliRunner().invoke(group, words).exit_code != 0  # nothing is written over


def test_a_dry_run_and_a_budget_that_is_too_small_spend_nothing(tmp_path: Path) -> None:
    """A budget below the whole promise refuses the first release already; so does one that earlier runs have used."""
    frame, file = people(3000), tmp_path / "people.csv"
    frame.to_csv(file, index=False)
    (tmp_path / "bounds.json").write_text(json.dumps(BOUNDS))
    (tmp_path / "cuts.json").write_text(json.dumps(CUTS))
    command = [
        "synth", "--csv", str(file), "--owners-column", "site", "--bounds", str(tmp_path / "bounds.json"), "--cuts",
        str(tmp_path / "cuts.json"), "--target", "died", "--epsilon", "1", "--delta", "1e-5",
    ]  # fmt: skip
    said = dpmpc_command(*command, "--dry")
    assert said.returncode == 0 and said.stdout.startswith("3,000 records of 3 owners, 4 columns\n"), said.stdout
    assert "  age: 7 cells, " in said.stdout and "Second, at most: " in said.stdout
    wrong = CliRunner().invoke(group, [*command, "--dry", "--digits", "age=13"])
    assert wrong.exit_code != 0 and "decimals of a column" in str(wrong.exception)
    account = tmp_path / "account"
    held = ["--account", str(account), "--data-id", "people", "--out", str(tmp_path / "out")]
    refused = dpmpc_command(*command, *held, "--budget", "0.9,1e-5")
    assert refused.returncode == 2 and "would make epsilon 1" in refused.stderr, refused.stderr
    assert not list(tmp_path.rglob("ledger*.jsonl"))
    done = dpmpc_command(*command, *held, "--budget", "1,1e-5")
    assert done.returncode == 0, done.stderr
    more = dpmpc_command(*command, *held[:-1], tmp_path / "more", "--budget", "1.2,1e-5")
    assert more.returncode == 2 and not (tmp_path / "more").exists(), more.stderr


@pytest.mark.parametrize("role", ["apart", "both"])
def test_over_several_machines_every_process_makes_the_same_second_release(role: str, tmp_path: Path) -> None:
    """Releases between the same processes, each of which follows from the one before: their plans are the same
    everywhere, all together cost the promise, rows and answers come of them, and the ledgers have a line each. With
    role both a survey comes first, which finds the cells of age; without, owners have capacities, and how many rows
    there are is what the noisy tables say: within 300 of the truth, more than eight deviations of their noise."""
    surveyed = role == "both"
    digits = {"age": 1} if surveyed else None
    frame = people(6000, 2)
    sizes = tuple(int((frame.site == site).sum()) for site in "xyz") if surveyed else (4096, 2048, 1024)
    columns = stated(Columns.of_bounds(checked_bounds(BOUNDS, "test")), {} if surveyed else CUTS, None)
    settings = PROMISE | {"neighbours": "record", "role": role, "parties": 3}
    never = ["ward = c and age in 18..40"] * (not surveyed)
    plan = plan_of_synthesis(columns, "died", never, sizes, "people", None, settings, PUBLIC, capacity=not surveyed,
                             digits=digits)  # fmt: skip
    path = tmp_path / "plan.json"
    plan.write(path)
    assert Plan.read(path) == plan and promise_of(plan).epsilon == 1.0
    records = [tmp_path / f"{site}.csv" for site in "xyz"]
    for site, record in zip("xyz", records, strict=True):
        frame[frame.site == site].drop(columns="site").to_csv(record, index=False)
    ends = (apart if role == "apart" else sites)(path, tmp_path, records)
    assert ends == [None] * len(ends)
    names = [*"012", *(() if role == "both" else ("owner0", "owner1", "owner2"))]
    for stage in ("survey", "first") if surveyed else ("first",):
        led = [tmp_path / name / "first" / WHOLE if stage == "survey" else followed(tmp_path / name) for name in names]
        assert len({file.read_text() for file in led}) == 1
    owner = tmp_path / ("0" if role == "both" else "owner0")
    rows = pd.read_parquet(owner / "synthetic.parquet")
    assert abs(len(rows) - 6000) < (1 if surveyed else 300)
    assert surveyed or not ((rows.ward == "c") & (rows.age < 40)).any()
    assert abs((rows.died == "yes").mean() - (frame.died == "yes").mean()) < 0.05
    found = reopened(owner)
    assert len(found.earlier) == 1
    assert all(each.plan.capacity == (not surveyed) for each in (found, *found.earlier))
    mu2 = [(farthest(each) / noise_of(each.plan)) ** 2 for each in (*found.earlier, found)]
    whole = mu_of_budget(1.0, 1e-5) ** 2 * (0.95 if surveyed else 1.0)
    assert sum(mu2) == pytest.approx(whole, rel=0.03) and mu2[0] < 0.3 * sum(mu2)
    if surveyed:
        before = Plan.read(owner / "survey" / "plan.json")
        mu = before.source.by_record(sizes, "size", before.dimension).l2 * sum(sizes) / noise_of(before)
        assert mu**2 + sum(mu2) == pytest.approx(whole / 0.95, rel=0.03) and mu**2 == pytest.approx(whole / 19, rel=0.1)
        cuts = found.tables.columns["age"].cuts
        assert 8 <= len(cuts) <= 15 and (cuts[0], cuts[-1]) == (18, 90)
        assert all(10 * cut % 1 == pytest.approx(0.5) for cut in cuts[1:-1])  # between two numbers of one decimal
        assert (rows.age % 1 != 0).any() and np.allclose(10 * rows.age, np.rint(10 * rows.age))
        assert abs(rows.age.mean() - frame.age.mean()) < 2
    assert len(found.asked(pairs(found.tables.columns)).answers) == 6
    again = made_from(owner, rows=500, seed=1)
    assert len(again.frame()) == 500 and again.structure == made_from(tmp_path / names[-1]).structure
    for wrong, broken in (
        ({"rows": -5}, breaks("range", -5, setting="rows")),
        ({"seed": -1}, breaks("range", -1, setting="seed")),
        ({"digits": {"ward": 1}}, breaks("range", "ward=1", setting="digits")),
    ):
        with refuses(broken):
            made_from(owner, **wrong)
    for name in names:
        assert sum(len(book.entries) for book in read_ledgers(tmp_path / name)) == (3 if surveyed else 2)


def test_what_a_plan_of_a_synthetic_table_cannot_be() -> None:
    columns = Columns.of_bounds(checked_bounds(BOUNDS, "test"))
    known = stated(columns, {}, 6)
    for wrong, survey in ((columns, None), (known, 0.2)):
        with refuses("plan"):
            Synthesis(wrong, survey=survey)
    with refuses("enough", "age", 120, setting="epsilon"):
        plan_of_synthesis(known, None, [], (40, 40, 40), "p", None, PROMISE | {"parties": 3}, PUBLIC)
    for digits in ({"ward": 1}, {"age": 13}, {"age": True}, {"eag": 1}):
        with refuses("range", 0, 12, setting="digits"):
            plan_of_synthesis(known, None, [], (4000,) * 3, "p", None, PROMISE | {"parties": 3}, PUBLIC, digits=digits)
    with refuses("column", "dyed", "died"):
        plan_of_synthesis(known, "dyed", [], (4000,) * 3, "p", None, PROMISE | {"parties": 3}, PUBLIC)


def test_a_table_of_persons_promises_all_records_of_one(tmp_path: Path) -> None:
    """One row is kept of each person and owner: sizes are numbers of persons, and a release moves as tables of persons
    do (`tests/statistics` hold that), which is all owners' records where a person is at each of three."""
    frame = people(1500)
    frame["patient"] = [f"p{k % 600}" for k in range(1500)]
    given: dict[str, Any] = {"owners": "site", "bounds": BOUNDS, "cuts": CUTS, "engine": "clear", "hopeless": "allow"}
    made = dpmpc.synth(frame, person="patient", **given, **PROMISE)
    at = frame.drop_duplicates(["site", "patient"]).groupby("site").size().tolist()
    for release in made.releases:
        plan = release.plan
        assert plan.neighbours == "person" and plan.person_rows == 1 and list(plan.sizes) == at
        record = plan.source.levels("record", plan.sizes, plan.weights, plan.dimension)["record"]
        absent = plan.source.by_presence(plan.sizes, plan.weights, plan.dimension)
        assert absent is not None and plan.derived.sensitivity.l2 >= 3 * max(record.l2, absent.l2) * 0.999
    assert "patient" not in made.frame()
    assert promise_of(made.releases[1].plan).neighbours.startswith("all records of one person replaced, at every owner")
    two = dpmpc.synth(frame, person="patient", person_rows=2, **given, **PROMISE)
    assert two.releases[1].plan.sizes == tuple(2 * size for size in at) and two.releases[1].opened.known is None
    surveyed = dpmpc.synth(frame.drop(columns=["sex"]), person="patient", owners="site", hopeless="allow",
                           engine="clear", epsilon=8.0, delta=1e-5)  # fmt: skip
    assert all(each.plan.neighbours == "person" for each in surveyed.releases) and "patient" not in surveyed.frame()


def test_releases_of_one_table_count_as_one_run(tmp_path: Path) -> None:
    out = tmp_path / "a"
    dpmpc.synth(people(3000), owners="site", bounds=BOUNDS, engine="clear", out=out, data_id="once", **PROMISE)
    found = CliRunner().invoke(group, ["budget", str(out), "--json"])
    row = json.loads(found.output)["data"][0]
    assert (row["runs"], row["releases"], row["attempts"]) == (1, 3, 1)
    assert row["epsilon"] == pytest.approx(1.0, abs=2e-3)
