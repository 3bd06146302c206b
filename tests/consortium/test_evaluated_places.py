"""Held-out persons, and held-out records whose number is private, over several machines: who is in which part, how far
neighbours move what is released, and a run."""

import csv
import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import stage_plan
from dpmpc.consortium.joining import kit_spelling
from dpmpc.consortium.one_release import vectors_of
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_of_machines import plan_of_machines
from dpmpc.consortium.rehearsing import id_column, write_records
from dpmpc.consortium.start import start
from dpmpc.consortium.status import read_lines
from dpmpc.errors import UsageError
from dpmpc.learning.model import read_model
from dpmpc.local.job import OwnersJob
from dpmpc.local.named_records import load_owner
from dpmpc.local.own_records import own_records
from dpmpc.planning import forecast
from dpmpc.planning.request import Request
from dpmpc.privacy.assignment import Assignment, hashes, in_places
from dpmpc.privacy.composition import spent
from dpmpc.privacy.ledgers import merge, read_ledgers
from dpmpc.records.schema import Labels, Numeric, Schema
from dpmpc.run.stages import StageJob
from dpmpc.statistics.evaluated import tables_of
from dpmpc.statistics.held_out import EVALUATION, HELD_OUT, Evaluated
from tests.machines import together
from tests.refusals import refuses
from tests.runs import own_addresses

pytestmark = pytest.mark.usefixtures("small_tables")

SCHEMA = Schema((Numeric("x", -1.0, 1.0),), Labels("y", ("1",), ("0",)))
Rows = dict[str, list[tuple[float, str]]]  # of each id: what its records hold


def planned(sizes: tuple[int, ...], **asked: Any) -> Plan:
    """A plan made without any record."""
    how: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "iterations": 2, "data_id": "ward", "run_id": "r"} | asked
    request = Request(
        schema="schema.json", owner_sizes=sizes, evaluate=False, test_fraction=0.4, preprocessing="records", **how
    )
    plan, note = plan_of_machines(request, SCHEMA, sizes, complete=False, owners=[f"o{j}" for j in range(len(sizes))])
    assert not note and isinstance(plan.source, Evaluated)
    return plan


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Figures of few records, and an account of the test's own."""
    monkeypatch.setattr(forecast, "LOUDEST", 1e9)
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))


def evaluation_of(plan: Plan) -> Plan:
    """The plan of its last stage, of a model that is known."""
    return stage_plan(plan, plan.source.schedule.after[0], tables_of(SCHEMA, np.array([1.0, 0.2])))


def vectors(
    folder: Path, plan: Plan, owner: int, rows: Rows, ids: str | None, made: Plan | None = None
) -> tuple[Any, Any]:
    """(the training records as they lie in their places, the vector of the evaluation) of an owner with these records,
    by what its own process does. `made`: `evaluation_of` the plan, for who asks often."""
    path = folder / "records.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "x", "y"])
        writer.writerows([who, x, y] for who, some in rows.items() for x, y in some)
    request = Request(csv=str(path), planned=True, evaluate=False, delta=1e-5, ids=ids)
    data = load_owner(request, plan, owner)
    made = made or evaluation_of(plan)
    job = OwnersJob(
        request, Here(out=folder), 0.0, plan=made, owner=owner, stage=StageJob(EVALUATION, plan, lambda *_: None)
    )
    with own_records(job, made, lambda event, **fields: None) as found:
        (vector,) = vectors_of(job, made, found.table)
    return np.column_stack([data.train.X, data.train.y]), vector[0]


KINDS: dict[str, tuple[tuple[int, ...], dict[str, Any], bool]] = {
    "persons": ((12, 12), {"neighbours": "person", "person": "who", "person_rows": 2}, False),
    "capacity": ((7, 7), {"capacity": (7, 7)}, True),
    "persons up to a capacity": (
        (14, 14),
        {"neighbours": "person", "person": "who", "person_rows": 2, "capacity": (7, 7)},
        True,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("quiet")
def test_a_neighbour_moves_one_part_alone_and_no_further_than_the_promise_says(kind: str, tmp_path: Path) -> None:
    """Records, or persons at both owners, are replaced by others, and where numbers are private there or not, so that
    places of a part become full: a new one and three at least, and more until both parts were moved, which takes all
    45 with probability .6^44 < 2e-10. What is found reaches the claim."""
    sizes, asked, private = KINDS[kind]
    plan, person = planned(sizes, **asked), "person" in asked
    rows = asked.get("person_rows", 1)
    made = evaluation_of(plan)
    known = made.source.levels(made.neighbours, made.sizes, made.weights, made.dimension, made.persons, made.capacity)
    claimed = known[made.neighbours].l2
    assert claimed <= made.derived.sensitivity.l2  # which has the rounding of the owners' means too
    possible = [[], [(-1.0, "0")] * rows, [(1.0, "1")] * rows, [(-1.0, "1")] * (rows + 1), [(1.0, "0")]]
    everyone = [f"p{k}" for k in range(6)]
    before: dict[str, Any] = {who: [(0.1, "1")] for who in everyone}
    owners = [0, 1] if person else [0]  # a record is at one
    furthest, moved = 0.0, set[str]()
    for tried, who in enumerate(f"p{k}" for k in (6, *range(6), *range(7, 45)) if private or k < 6):
        if tried >= (4 if private else 3) and moved == {"training", "held out"}:
            break
        seen = []
        for some in possible if private else possible[1:]:
            records = {**before, who: some} if some or not private else {k: v for k, v in before.items() if k != who}
            if not person:
                records = {k: v[:1] for k, v in records.items()}
            seen.append([vectors(tmp_path, plan, j, records, None if person else "who", made) for j in owners])
        for one, other in product(seen, seen):
            trained = any(
                not np.array_equal(np.sort(a[0], axis=0), np.sort(b[0], axis=0))
                for a, b in zip(one, other, strict=True)
            )
            gap = [np.linalg.norm(a[1] - b[1]) for a, b in zip(one, other, strict=True)]
            assert not (trained and any(gap)), who
            moved |= {"training"} if trained else {"held out"} if any(gap) else set()
            weight = np.array(made.sizes) / sum(made.sizes)
            mean = sum(weight[j] * (one[j][1] - other[j][1]) for j in owners)
            furthest = max(furthest, float(np.linalg.norm(mean)))
    assert moved == {"training", "held out"}
    assert 0.999 <= furthest / claimed <= 1.0, (furthest, claimed)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind][2]])
@pytest.mark.usefixtures("quiet")
def test_an_owner_of_whom_one_part_is_empty_takes_part(kind: str, tmp_path: Path) -> None:
    """An owner that refused would say how many records it has. One record is in one part: ids are tried until either
    part was empty, of 45 all in one part with probability .6^45 < 2e-10."""
    sizes, asked, _ = KINDS[kind]
    plan = planned(sizes, **asked)
    made = evaluation_of(plan)
    empty = set[str]()
    for k in range(45):
        X, vector = vectors(tmp_path, plan, 0, {f"p{k}": [(0.5, "1")]}, None if "person" in asked else "who", made)
        assert len(X) == plan.sizes[0] and X.any() != bool(vector.any())
        empty.add("held out" if X.any() else "training")
        if len(empty) == 2:
            break
    assert empty == {"training", "held out"}


def test_who_comes_or_goes_moves_one_other_of_its_own_part_at_most() -> None:
    """All subsets of nine ids, with so few places that parts are full."""
    drawn = Assignment((("training", 3), ("held_out", 2)), "record", "ab" * 16)
    every = [f"p{k}" for k in range(9)]
    places = {"training": 3, "held_out": 2}
    whole = dict(zip(every, drawn.parts_of(every), strict=True))

    def parts(ids: Iterable[str]) -> tuple[set[str], set[str]]:
        some = list(ids)
        found = in_places(drawn, some, places)
        assert all(place in (-1, whole[who]) for who, place in zip(some, found, strict=True))
        return tuple({who for who, place in zip(some, found, strict=True) if place == part} for part in (0, 1))  # type: ignore[return-value]

    full = 0
    for chosen in product((False, True), repeat=9):
        there = [who for who, here in zip(every, chosen, strict=True) if here]
        before = parts(there)
        assert parts(reversed(there)) == before and all(len(p) <= n for p, n in zip(before, (3, 2), strict=True))
        for who in there:
            after = parts([each for each in there if each != who])
            other = 1 - int(whole[who])
            assert after[other] == before[other]
            mine = int(whole[who])
            assert before[mine] - after[mine] <= {who} and len(after[mine] - before[mine]) <= 1
            full += bool(after[mine] - before[mine])
    assert full, "places that are full were tried"


@pytest.mark.usefixtures("quiet")
def test_parts_of_places_are_part_of_what_a_plan_may_say() -> None:
    """Persons without their parts, records by persons', a share that is none, sizes that are no persons': refused."""
    plan = planned((12, 12), **KINDS["persons"][1])
    assert isinstance(plan.source, Evaluated) and plan.part.startswith("person:") and plan.source.column == "who"
    for changed in (
        {"column": ""},
        {"column": "x"},
        {"share": 0.0},
        {"share": 0.0, "column": ""},
        {"share": float("nan")},
        {"share": 0.3},
        {"held": (3, 3)},
        {"draw": "other"},
    ):
        with pytest.raises(UsageError):
            replace(plan, source=replace(plan.source, **changed))
    capacity = planned((10, 10), capacity=(10, 10))
    assert isinstance(capacity.source, Evaluated)
    for other in ({"capacity": False}, {"capacity": True, "source": replace(capacity.source, share=0.0)}):
        with pytest.raises(UsageError):
            replace(capacity, **other)
    exact = planned((10, 10))
    assert isinstance(exact.source, Evaluated) and not exact.source.share
    with pytest.raises(UsageError):
        replace(exact, capacity=True)


@pytest.mark.usefixtures("quiet")
def test_where_numbers_are_private_records_are_known_by_ids_alone(tmp_path: Path) -> None:
    plan = planned((7, 7), capacity=(7, 7))
    rows: Rows = {f"p{k}": [(k / 10, "1")] for k in range(6)}
    with refuses("missing", setting="ids"):
        vectors(tmp_path, plan, 0, rows, None)
    vectors(tmp_path, plan, 0, rows, "who")
    for each in (plan, planned((6, 6))):  # another column of ids would put records into other parts
        vectors(tmp_path, each, 0, rows, "who")
        with refuses("missing", setting="ids"):
            vectors(tmp_path, each, 0, rows, "x")
    request = Request(
        schema="s.json", owner_sizes=(900, 900), capacity=(900, 900), evaluate=False, epsilon=4, delta=1e-5
    )
    _, note = plan_of_machines(request, SCHEMA, (900, 900), complete=False)
    assert "no figures" in note and "held out by their ids" in note, (
        "nobody is asked for ids who did not ask for figures"
    )


@pytest.mark.usefixtures("quiet")
def test_a_rehearsals_records_have_ids_where_a_run_needs_them(tmp_path: Path) -> None:
    for plan, column in ((planned((9, 9), capacity=(9, 9)), "id"), (planned((9, 9)), None)):
        assert id_column(plan) == column
        write_records(plan, 9, 1, tmp_path / "made-up.csv")
        request = Request(csv=str(tmp_path / "made-up.csv"), planned=True, evaluate=False, delta=1e-5, ids=column)
        assert load_owner(request, plan, 0).n == plan.sizes[0]
    assert kit_spelling("ids", None) == "`join --id`"


EACH, OWNERS = 300, 3


def files(folder: Path) -> list[Path]:
    """Three owners of 300 persons, a third of whom the next owner has too, with one record or two."""
    rng, found = np.random.default_rng(5), []
    for owner in range(OWNERS):
        found.append(folder / f"owner{owner}.csv")
        lines = ["id,who,x,y"]
        for k in range(EACH):
            for row in range(1 + k % 2):
                x = rng.uniform(-1, 1)
                lines.append(f"{owner}-{k}-{row},p{200 * owner + k},{x:.3f},{int(x + rng.normal(0, 0.3) > 0)}")
        found[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return found


@pytest.mark.parametrize("kind", ["persons", "capacity"])
def test_a_run_says_how_good_its_model_is(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By real parties. Counts lie within 7 deviations of those of the held-out records, which another route finds: once
    in 10^11 they do not."""
    monkeypatch.setattr(forecast, "LOUDEST", 0.5)
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    by_person: dict[str, Any] = {"neighbours": "person", "person": "who", "person_rows": 2}
    size, how = (2 * EACH, by_person) if kind == "persons" else (500, {"capacity": (500,) * 3})
    plan = planned((size,) * OWNERS, epsilon=20.0, **how)
    plan.write(tmp_path / "plan.json")
    records, addresses = files(tmp_path), own_addresses(3)

    def process(index: str, record: Path | None) -> Any:
        ids = "id" if kind == "capacity" else None
        request = None if record is None else Request(csv=str(record), planned=True, evaluate=False, ids=ids)
        where = Placement(
            out=tmp_path / index, index=index, plan_file=tmp_path / "plan.json", addresses=addresses[1::2], wait=60.0
        )
        return lambda: start(request, where, lambda event: None)

    owners = [process(f"owner{j}", record) for j, record in enumerate(records)]
    ends = together([*(process(str(i), None) for i in range(3)), *owners])
    assert ends == [None] * 6, ends
    found = json.loads((tmp_path / "0" / "figures.json").read_text())
    assert found == json.loads((tmp_path / "owner1" / "figures.json").read_text()) and read_lines(tmp_path / "1")
    assert any("places for records" in value for _, value in read_lines(tmp_path / "1"))
    w, theta = np.zeros((2, 2)), np.array(read_model(tmp_path / "0").theta)
    parted = plan.source.parted(plan.data_id)
    assert parted is not None
    for owner, record in enumerate(records):
        key, column = parted.assignment.key, "who"
        if kind == "capacity":
            lines = (tmp_path / "account" / f"{plan.data_id}.jsonl").read_text().splitlines()
            (key,) = {e["key"] for e in map(json.loads, lines) if e.get("name", "").endswith(": key")}
            column = "id"
        with record.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        ids = sorted({row[column] for row in rows})
        hashed = dict(zip(ids, hashes(bytes.fromhex(key), ids).tolist(), strict=True))
        mine = sorted((h, who) for who, h in hashed.items() if h * 5 >= 3 << 64)
        places = parted.sizes[HELD_OUT][owner] // (2 if kind == "persons" else 1)
        kept = {who for _, who in mine[:places]}
        for row in rows:
            if row[column] in kept:
                w[int(row["y"]), int(theta[0] * float(row["x"]) + theta[1] > 0)] += 1
    for a, b in product((0, 1), (0, 1)):
        cell = found["figures"]["confusion"][a][b]
        assert abs(cell["estimate"] - w[a, b]) <= 7 * cell["noise"] + 1 and cell["noise"] < 60, (w, cell)
    entries = merge(read_ledgers(tmp_path / "0"))
    assert 0.9 * 20 < spent(entries, plan.data_id, delta=plan.delta).epsilon <= 20.0 + 1e-9
    assert plan.neighbours == ("person" if kind == "persons" else "record")
