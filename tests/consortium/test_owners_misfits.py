"""Records of an owner among others that do not fit the plan: its values stop no run but by its word, it alone is told,
and what it sends is that of the zero vector in their place."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_of_machines import plan_of_machines
from dpmpc.consortium.start import start
from dpmpc.errors import RecordError, number_of, public_text
from dpmpc.intake.spelling import Spelling
from dpmpc.learning.model import read_model
from dpmpc.local.holdout import rows_of
from dpmpc.local.job import OwnersJob
from dpmpc.local.named_records import as_planned, held_against, load_owner
from dpmpc.local.own_records import own_records
from dpmpc.local.owner_process import run_owners
from dpmpc.planning.request import Request
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from dpmpc.records.ownership import KeptOwners
from dpmpc.records.persons import kept, without_person
from dpmpc.records.schema import Classes, Labels, Numeric, Range, Schema, Target
from tests.machines import together
from tests.refusals import refuses
from tests.runs import own_addresses

CANARY = "Zwischenfall"
COLUMNS = (Numeric("x", -1.0, 1.0),)
LABELS = Labels("y", ("1",), ("0",))
TARGETS: dict[str, tuple[Target, list[str]]] = {
    "labels": (LABELS, ["0", "1"]),
    "classes": (Classes("y", ("a", "b", "c")), ["a", "b", "c"]),
    "number": (Range("y", 0.0, 10.0), ["1.5", "7", "9"]),
}


def planned(sizes: tuple[int, ...], target: Target = LABELS, **asked: Any) -> Plan:
    """A plan made without any record."""
    how: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "iterations": 2, "data_id": "ward", "run_id": "r"} | asked
    how = {"test_fraction": 0.0} | how
    request = Request(schema="schema.json", owner_sizes=sizes, evaluate=False, preprocessing="records", **how)
    names = [f"o{j}" for j in range(len(sizes))]
    return plan_of_machines(request, Schema(COLUMNS, target), sizes, complete=False, owners=names)[0]


def written(path: Path, targets: list[str], seed: int = 1) -> Path:
    """Records with these targets."""
    x = np.random.default_rng(seed).uniform(-1, 1, len(targets))
    path.write_text("x,y\n" + "".join(f"{a:.3f},{y}\n" for a, y in zip(x, targets, strict=True)), encoding="utf-8")
    return path


def asked(path: Path, **spelling: Any) -> Request:
    """What an owner that joins says."""
    return Request(csv=str(path), planned=True, evaluate=False, delta=1e-5, spelling=Spelling(**spelling))


def test_values_stop_no_run_and_their_owner_alone_hears_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By real parties: one owner has no record that fits, one has some, and one states that it would rather stop."""
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    plan = planned((40, 40, 40), epsilon=20.0)
    plan.write(tmp_path / "plan.json")
    targets = [["0", "1"] * 20, [CANARY] * 40, ["0", "1", "1", CANARY] * 10]
    paths = [written(tmp_path / f"{j}.csv", some, j) for j, some in enumerate(targets)]
    addresses, told = own_addresses(3), [list[str]() for _ in range(6)]

    def process(index: str, place: int, record: Path | None) -> Any:
        where = Placement(
            out=tmp_path / index, index=index, plan_file=tmp_path / "plan.json", addresses=addresses[1::2], wait=60.0
        )
        request = None if record is None else asked(record)
        return lambda: start(request, where, lambda event: told[place].append(json.dumps(event, default=str)))

    owners = [process(f"owner{j}", 3 + j, path) for j, path in enumerate(paths)]
    ends = together([*(process(str(i), i, None) for i in range(3)), *owners])
    assert ends == [None] * 6, ends
    [loud] = [line for line in told[4] if "NOT ONE of your 40 records" in line]
    assert "NOTHING is learnt" in loud and "40 records have neither class" in loud and "--misfits" not in loud
    [said] = [line for line in told[5] if "each counts as the zero vector" in line]
    assert "10 records have neither class" in said and "(of 40)" in said and "NOT ONE" not in said
    for place, lines in enumerate(told):
        assert place in (4, 5) or not any("zero vector" in line or CANARY in line for line in lines)
    for file in tmp_path.rglob("*"):
        if file.is_file() and file not in paths:
            content = file.read_bytes()
            assert CANARY.encode() not in content and b"zero vector" not in content, file
    models = {read_model(tmp_path / index).theta.tobytes() for index in ("0", "owner0", "owner1", "owner2")}
    assert len(models) == 1  # that owners with misfits learn what the others do
    with refuses("records", "40 of 40") as stopped:
        load_owner(asked(paths[1], misfits="ask").among_others, plan, 1)
    assert CANARY not in public_text(stopped.value) and "40" not in public_text(stopped.value)


@pytest.mark.parametrize("kind", TARGETS)
def test_a_record_that_fits_nothing_is_the_zero_vector(kind: str, tmp_path: Path) -> None:
    target, values = TARGETS[kind]
    plan, rng = planned((30,), target), np.random.default_rng(3)
    targets = [str(value) for value in rng.choice(values, 30)]
    clean = load_owner(asked(written(tmp_path / "clean.csv", targets)).among_others, plan, 0)
    for odd in ("", "?", CANARY, "1,5", "nan", "inf", '"a b"', "2 kg", "\x01"):
        some = [odd if k in (4, 17) else value for k, value in enumerate(targets)]
        path = written(tmp_path / "odd.csv", some)
        if kind == "number" and odd == "1,5":
            some = path.read_text().replace("1,5", '"1,5"')  # type: ignore[assignment]
            path.write_text(str(some))
        elif odd == "1,5":
            path.write_text(path.read_text().replace("1,5", '"1,5"'))
        data = load_owner(asked(path).among_others, plan, 0)
        gone = np.zeros(30, dtype=bool)
        gone[[4, 17]] = True
        assert data.misfits == 2 and not data.X[gone].any() and not data.y[gone].any()
        assert np.array_equal(data.X[~gone], clean.X[~gone]) and np.array_equal(data.y[~gone], clean.y[~gone])
        with opened(CsvFile(path), spelling=Spelling().among_others) as (table, _):
            found = held_against(plan, table, (30,))
        assert not found.refused and any("2 records have" in each.text for each in found.found), found.found
        with pytest.raises(RecordError):
            load_owner(asked(path), plan, 0)  # where one process has all records, its user is asked


def test_a_process_of_one_owner_takes_it_so_and_one_of_all_owners_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmpc.local import owner_process

    seen = []
    monkeypatch.setattr(owner_process, "_any", lambda job, *_: seen.append(job.request.spelling.misfits))
    for owner in (None, 0):
        for word in ("", "ask", "zero"):
            request = Request(csv="x.csv", planned=True, evaluate=False, delta=1e-5, spelling=Spelling(misfits=word))
            job = OwnersJob(request, Here(out=Path("/dev/null")), 0.0, owner=owner)
            run_owners(job, Path("/dev/null"), lambda _: None)
    assert seen == ["", "ask", "zero", "zero", "ask", "zero"]


def test_records_without_person_have_no_place(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("who,x,y\na,0.1,1\n,0.2,1\nb,0.3,0\n?,0.4,0\na,0.5,1\na,0.6,1\n")
    of = KeptOwners("who", 2)
    with opened(CsvFile(path), spelling=Spelling(misfits="zero")) as (table, _):
        first = kept(table, of)
        assert without_person(table, of) == 2 and first.beyond == 1
        assert [row[0] for row in first.rows(first.text("x"))] == ["0.1", "0.3", "0.5"]
    with opened(CsvFile(path)) as (table, _), refuses("records", "who", "p.csv"):
        kept(table, of)


PERSONS: dict[str, Any] = {"neighbours": "person", "person": "who", "person_rows": 2}


@pytest.mark.parametrize("how", [{"capacity": (40, 40)}, PERSONS], ids=["capacity", "persons"])
def test_an_owner_alone_is_told_who_finds_no_place(
    how: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of persons the draw is public, and so the same in every run of the test; here some find no place."""
    from dpmpc.planning import forecast

    monkeypatch.setattr(forecast, "LOUDEST", 1e9)
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    persons = how is PERSONS
    plan = planned((80, 80) if persons else (40, 40), test_fraction=0.4, data_id="full", **how)
    parted = plan.source.parted(plan.data_id)
    assert parted is not None and parted.places
    path = tmp_path / "r.csv"
    path.write_text("who,x,y\n" + "".join(f"p{k},0.1,{k % 2}\n" for k in range(40)))
    request = Request(csv=str(path), planned=True, evaluate=False, delta=1e-5, ids=None if persons else "who")
    lines: list[str] = []
    job = OwnersJob(request, Here(out=tmp_path), 0.0, plan=plan, owner=0, begins=True)
    with own_records(job, plan, lambda event, **fields: lines.append(str(fields.get("text")))) as own:
        request = as_planned(request, plan)
        used = [
            int(rows_of(request, plan, parted, parted.assignment.label(name), 0, own.table).sum())
            for name in parted.assignment.names
        ]
    said = [line for line in lines if "places are full" in line]
    assert len(said) == (sum(used) < 40) and (said or not persons)
    for line in said:
        what = "person" if persons else "record"
        assert line.startswith(f"your records: {number_of(40 - sum(used), what)} of 40 (")
        for name, n in zip(parted.assignment.names, used, strict=True):
            assert (f" of the {name} part" in line) <= (n == parted.sizes[name][0] // (2 if persons else 1))


def test_errors_of_ids_are_their_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmpc.planning import forecast

    monkeypatch.setattr(forecast, "LOUDEST", 1e9)
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    path = tmp_path / "r.csv"
    for ids, rule in ((["a", "a", "b", "c"], "two rows have the same"), (["a", "", "b", "c"], "is empty in some")):
        path.write_text("who,x,y\n" + "".join(f"{each},0.1,1\n" for each in ids))
        for plan in (planned((4, 4), test_fraction=0.5), planned((4, 4), capacity=(4, 4), test_fraction=0.5)):
            request = Request(csv=str(path), planned=True, evaluate=False, delta=1e-5, ids="who")
            with refuses("records") as error:
                load_owner(request, plan, 0)
            assert rule not in public_text(error.value) and "r.csv" not in public_text(error.value)


def test_a_flower_client_answers_whatever_its_numbers_look_like(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from dpmpc.flower.tables import mean_of
    from dpmpc.statistics.columns import Columns
    from dpmpc.statistics.tables import Tables
    from dpmpc.tables.stats import plan_of_tables

    path = tmp_path / "t.csv"
    path.write_text("x;y\n" + "".join(f"{k},5;{k % 2}\n" for k in range(50)))
    tables = Tables.of(Columns.of_bounds({"x": [0.0, 60.0]}), ["mean(x)"])
    plan = plan_of_tables(tables, [50], "d", "d", {"epsilon": 1.0, "delta": 1e-5})
    with caplog.at_level(logging.WARNING, logger="flwr"):
        found = mean_of(plan, 0, CsvFile(path))
    assert found.shape == (plan.dimension,) and "decimal" in caplog.text
    with refuses("records", "(x)", "t.csv", "decimal=','"):
        mean_of(plan, 0, CsvFile(path), Spelling(misfits="ask"))
