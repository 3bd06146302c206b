"""A schedule of stages: a source of another package whose releases follow from one before, over several machines."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.of_vectors import OfVectors, chosen
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.aggregation.plan.stages import after_first
from dpmpc.aggregation.wire.transcript import OpenedVectors
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.status import read_status
from dpmpc.errors import UsageError
from dpmpc.extend import check_source
from dpmpc.learning.source import SOURCES, Following, Schedule, Source, Stage, Sum
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.composition import spent
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.ledgers import merge, read_ledgers
from dpmpc.privacy.sensitivity import Sensitivity, Weights
from dpmpc.run.files import OWNERS_OPENED, PRESENT
from dpmpc.run.stages import RunStages, StagePart
from dpmpc.statistics.columns import Columns, Quantity, category
from dpmpc.statistics.tables import Tables
from dpmpc.tables.stats import reopened
from dpmpc.verify.verification import verify_structure
from tests.machines import apart, followed, sites
from tests.refusals import refuses

SIZES = (400, 400, 400)
WARDS = ("north", "south", "west")
COLUMNS = Columns((Quantity("age", 0.0, 100.0), category("ward", WARDS)))


def bins(ward: str) -> Tables:
    return Tables.of(COLUMNS, [f"hist(age, bins=5) where ward = {ward}"])


@dataclass(frozen=True)
class Fullest(Source):
    """How old people are in the fullest ward, of which a first release tells; each at a price of its own. `held`: of
    how many other records, of each owner, an evaluation asks afterwards."""

    KIND: ClassVar[str] = "fullest"
    UNITS: ClassVar[tuple[str, ...]] = ("record", "owner")

    epsilon: float = 0.5
    held: tuple[int, ...] = ()

    @property
    def schedule(self) -> Schedule:
        first = Stage("first", Tables.of(COLUMNS, ["table(ward)"]), self.epsilon)
        after = (Stage("check", bins("north"), None, "held_out", self.held),) if self.held else ()
        return Schedule((first,), after)

    def follows(self, opened: Sum) -> Following:
        found = bins(WARDS[int(np.argmax(opened.total))])
        return Following(found, found.coordinates)

    @property
    def coordinates(self) -> int:
        return bins("north").coordinates

    @property
    def clip(self) -> float:
        return bins("north").clip

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return bins("north").by_record(sizes, "size", dimension)

    def by_owner(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return bins("north").by_owner(sizes, "size", dimension)


@dataclass(frozen=True)
class Dearer(Fullest):
    """One whose second stage costs more than was planned, or leads to longer vectors."""

    KIND: ClassVar[str] = "dearer"
    how: str = ""

    @property
    def schedule(self) -> Schedule:
        first, table = super().schedule.before[0], Tables.of(COLUMNS, ["table(ward)"])
        if self.how.startswith("now "):
            wide = Tables.of(COLUMNS, ["table(ward, age)"]) if "longer" in self.how else table
            return Schedule((Stage("second", wide, 0.2 if "dearer" in self.how else 0.1),))
        return Schedule((first,) if self.how == "at once" else (first, Stage("second", table, 0.1)))

    def follows(self, opened: Sum) -> Following:
        if self.how in ("itself", "at once"):
            return Following(Tables.of(COLUMNS, ["table(ward, age)"]), 64)
        return Following(replace(self, how=f"now {self.how}"), self.coordinates)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SOURCES, "_targets", {**SOURCES._targets, "fullest": "", "dearer": ""})
    monkeypatch.setattr(SOURCES, "_loaded", {**SOURCES._loaded, "fullest": Fullest, "dearer": Dearer})


def planned(source: Source, *, part: str = "", **settings: Any) -> Plan:
    asked = OfVectors(**{"epsilon": 1.0, "delta": 1e-6, "law": "gaussian", "neighbours": "record", **settings})
    given = {
        "run_id": "fullest", "data": "wards", "data_id": data_digest("wards"), "sizes": SIZES, "releases": 1,
        "dimension": source.coordinates, "weights": "size", "part": part, **(chosen(asked) | {"pool": False}),
    }  # fmt: skip
    return Plan(source=source, **given)


def files(folder: Path) -> list[Path]:
    """A CSV file an owner: most people are in the south, and old there."""
    rng = np.random.default_rng(5)
    found = []
    for owner, size in enumerate(SIZES):
        ward = rng.choice(WARDS, size, p=(0.2, 0.7, 0.1))
        age = np.where(ward == "south", rng.integers(60, 80, size), rng.integers(0, 40, size))
        found.append(folder / f"owner{owner}.csv")
        lines = [f"{a},{w}" for a, w in zip(age, ward, strict=True)]
        found[-1].write_text("\n".join(["age,ward", *lines, ""]))
    return found


@pytest.mark.parametrize("role", ["apart", "both"])
def test_what_follows_a_stage_follows_at_every_process_and_prices_add_up(role: str, tmp_path: Path) -> None:
    check_source(Fullest(), SIZES)
    plan, path = planned(Fullest(), role=role, parties=3), tmp_path / "plan.json"
    plan.write(path)
    assert Plan.read(path) == plan and promise_of(plan).epsilon == 1.0
    said = taking_part(plan)
    assert any("after a first" in line for line in said) and any(line.startswith("first a first of") for line in said)
    ends = (sites if role == "both" else apart)(path, tmp_path, files(tmp_path))
    assert ends == [None] * len(ends)
    names = [*"012", *(() if role == "both" else ("owner0", "owner1", "owner2"))]
    texts = {followed(tmp_path / name).read_text() for name in names}
    assert len(texts) == 1
    after = Plan.from_text(texts.pop())
    assert after.source == bins("south") and after.before == plan.before
    assert len({(tmp_path / name / "answers.json").read_text() for name in names}) == 1
    for place in ("0/first", "0"):
        (evidence,) = verify_structure(tmp_path / place).evidence
        assert evidence.holds, evidence.failed
    stage = read_status(tmp_path / "0" / "first")
    assert stage.plan == plan.first and stage.spent is not None and stage.spent.releases == 1
    (answer,) = reopened(tmp_path / names[-1]).answers  # of the ward that was found
    counts = {line.labels[0]: line.number.estimate or 0.0 for line in answer.lines if line.statistic == "count"}
    assert counts["[60, 80)"] > 500 and abs(counts["[0, 20)"]) < 100
    entries = merge(read_ledgers(tmp_path / "0"))
    assert [entry.run for entry in entries] == ["fullest+first", "fullest"]
    assert spent(entries[:1], plan.data_id, delta=plan.delta).epsilon == pytest.approx(0.5, abs=0.01)
    assert 0.97 < spent(entries, plan.data_id, delta=plan.delta).epsilon <= 1.0 + 1e-9


def test_a_process_holds_its_limits_against_the_whole_before_the_first_stage(tmp_path: Path) -> None:
    plan, path = planned(Fullest(), role="both", parties=3), tmp_path / "plan.json"
    plan.write(path)
    records = files(tmp_path)
    for limits, what in (
        (Limits(epsilon=0.9, delta=1e-6), "epsilon"),  # the first stage alone would be within it
        (Limits(budget="0.9,1e-6", data_id="wards"), "budget"),
    ):
        ends = sites(path, tmp_path / what, records, limits=limits)
        assert all(isinstance(end, UsageError) and what in str(end) for end in ends), ends
        assert not list((tmp_path / what).rglob("ledger*.jsonl"))
        seen = read_status(tmp_path / what / "0")
        assert seen.plan == plan and seen.spent is None


def test_a_plan_whose_stages_are_left_out_of_its_price_or_length_is_refused() -> None:
    whole = planned(Fullest())
    value = json.loads(whole.to_text())
    cheap = planned(Fullest(epsilon=0.4))
    assert cheap.derived.mechanism.scale < planned(Fullest()).derived.mechanism.scale
    for change in (
        {"before": []}, {"released": None}, {"source": {"fullest": {"epsilon": 1.1}}},
        {"dimension": value["dimension"] - 1}, {"dimension": value["dimension"] + 1},
        {"source": {"fullest": {"held": [10, 10, 10]}}},
    ):  # fmt: skip
        source = {"fullest": {**value["source"]["fullest"], **change.pop("source", {}).get("fullest", {})}}
        with pytest.raises(UsageError):
            Plan.from_text(json.dumps({**value, "source": source, **change})).derived  # noqa: B018
    assert value["released"] == [] and "before" not in value
    asked = Plan.from_text(json.dumps({**value, "source": {"fullest": {**value["source"]["fullest"], "epsilon": 0.4}}}))
    assert asked == cheap and asked.derived == cheap.derived
    assert asked.digest(FIRST_ATTEMPT) != whole.digest(FIRST_ATTEMPT)


@pytest.mark.parametrize("how", ["dearer", "longer", "itself", "at once", "as planned"])
def test_what_follows_is_no_dearer_and_no_longer_than_was_planned(how: str) -> None:
    source = Dearer(how=how)
    plan = planned(source)
    total = np.zeros(plan.first.dimension, dtype=np.int64)
    if how == "as planned":
        second = after_first(plan, total)
        assert second.before == plan.before and second.first.run_id == "fullest+second"
        return
    with refuses("plan", *((8, 64) if how == "at once" else ())):
        after_first(plan, total)


def test_a_stage_after_the_releases_is_of_other_records_at_the_plans_price(tmp_path: Path) -> None:
    """Run once: what was made is read again, and what was opened for another plan is not."""
    label = f"record:{'0' * 16}/training"
    with refuses("plan", "check"):
        planned(Fullest(held=(50, 60, 70)))
    with refuses("plan", "check"):
        planned(Fullest(held=(50, 60, 70)), part=label.replace("training", "held_out"))
    plan = planned(Fullest(held=(50, 60, 70)), part=label)
    mine: list[tuple[Placement, StagePart]] = []

    def run(part: StagePart, where: Placement) -> None:
        if part.stage is not None:
            mine.append((where, part))
            assert Plan.read(where.out / "plan.json") == part.plan and not part.begins
            part.stage.settle(np.arange(part.plan.dimension, dtype=np.int64) << part.plan.grid.bits, None)

    where = Placement(out=tmp_path / "run", index="owner0", plan_file=tmp_path / "plan.json")
    (tmp_path / "run").mkdir()
    with refuses("peer", "owners.opened.bin"):
        RunStages(plan, where).after(plan, run, lambda text: None)
    opened = OpenedVectors(where.out / OWNERS_OPENED)
    opened.append(0, np.zeros(plan.dimension, dtype=np.int64))
    opened.close()
    for _ in range(2):
        RunStages(plan, where).after(plan, run, lambda text: None)
    ((inside, part),) = mine
    made = part.plan
    assert inside.out == where.out / "check" and part.whole == plan
    assert (made.sizes, made.epsilon, made.delta) == ((50, 60, 70), plan.epsilon, plan.delta)
    assert made.part == label.replace("training", "held_out") and made.run_id == "fullest+check" and not made.before
    assert np.array_equal(np.load(inside.out / "opened.npy"), np.arange(made.dimension))
    other = replace(plan, source=replace(plan.source, held=(50, 60, 71)))  # type: ignore[type-var]
    RunStages(other, where).after(other, run, lambda text: None)
    assert len(mine) == 2 and asdict(made.derived.mechanism) != {}


def test_two_runs_of_several_stages_beside_each_other_are_not_both_begun(tmp_path: Path) -> None:
    """Each process reserves every stage, also one after the releases, before the first message: of two runs at a budget
    with room for one, the second is refused with nothing spent. What a part of one run has reserved, another part of it
    does not ask for again."""
    plan = planned(Fullest(), parties=3)
    other = replace(plan, run_id="other")
    books = Books.kept(None, Budget(1.0, 1e-6, tmp_path), callers=False)
    for index in ("0", "owner0"):
        (tmp_path / index).mkdir()
        plan.write(tmp_path / index / "plan.json")
    first, owner = (Placement(out=tmp_path / name, index=name, plan_file=tmp_path / name / "plan.json")
                    for name in ("0", "owner0"))  # fmt: skip
    second = replace(first, out=tmp_path / "other")
    with RunStages(plan, first, books).reserved(), RunStages(plan, owner, books).reserved():
        assert [(e.run, e.release) for e in merge(read_ledgers(tmp_path))] == [("fullest+first", 0), ("fullest", 0)]
        with refuses("budget", "wards", "epsilon 1", 2, setting="budget"):
            RunStages(other, second, books).reserved().__enter__()
        assert not (tmp_path / "other").exists()
    with RunStages(other, second, books).reserved():
        assert len(merge(read_ledgers(tmp_path))) == 2
    assert not merge(read_ledgers(tmp_path))


def test_an_owner_goes_on_after_a_stage_without_some_others(tmp_path: Path) -> None:
    """Its ledger does not say who was there, on whose number of records what follows may depend; its folder does."""
    plan = planned(Fullest(), parties=3, min_owners=2)
    where = Placement(out=tmp_path / "mine", index="owner0", plan_file=tmp_path / "plan.json")
    total = 100 * np.eye(plan.first.dimension, dtype=np.int64)[1]

    def run(part: StagePart, inside: Placement) -> None:
        if part.stage is not None:
            assert part.begins
            opened = OpenedVectors(inside.out / OWNERS_OPENED)
            opened.append(0, total)
            opened.close()
            part.stage.settle(total, (0, 1))

    stages = RunStages(plan, where)
    made, _ = stages.run(run, lambda text: None)
    stages.check()
    assert made == after_first(plan, total, (0, 1))
    for wrong in ("[0, 7]", "{}"):
        (where.out / "first" / PRESENT).write_text(wrong)
        with refuses("over", "first", setting="out"):
            stages.check()
