"""The figures of a model that several machines trained: held-out records, and one release of them after training."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.consortium.plan_of_machines import plan_of_machines
from dpmpc.consortium.status import read_lines, read_status
from dpmpc.errors import UsageError, owner_text
from dpmpc.intake.table import Table
from dpmpc.learning.model import read_model
from dpmpc.learning.task import TASKS
from dpmpc.local.holdout import check_parts, ids_of, rows_of
from dpmpc.planning import forecast
from dpmpc.planning.forecast import LOUDEST, off_by
from dpmpc.planning.request import Request
from dpmpc.privacy.account import account_folder
from dpmpc.privacy.composition import spent
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.ledgers import merge, read_ledgers
from dpmpc.privacy.stored_parts import by_place
from dpmpc.records import CsvFile, Schema, load
from dpmpc.records.loading import opened
from dpmpc.run import stages
from dpmpc.statistics.evaluated import CELLS
from dpmpc.statistics.figures import plain
from dpmpc.statistics.held_out import HELD_OUT, TRAINING, Evaluated
from dpmpc.verify.verification import verify_structure
from tests.machines import apart, sites
from tests.made_up_sites import BOTH, EACH, OWNERS, draft, files
from tests.refusals import refuses

HELD = 80  # of each owner: a fifth of EACH


def planned(folder: Path, what: str = "two classes", **changes: Any) -> Path:
    """A plan made without any record, with a survey before and an evaluation after."""
    asked: dict[str, Any] = {"epsilon": 12.0, "delta": 1e-5, "iterations": 4, "data_id": folder.name, "run_id": "r"}
    sizes = (EACH,) * OWNERS
    request = Request(schema="schema.json", owner_sizes=sizes, evaluate=False, **asked | changes)
    plan, note = plan_of_machines(request, draft(what), sizes, complete=True)
    assert "too few" not in note
    plan.write(folder / "plan.json")
    return folder / "plan.json"


def truth(plan: Plan, model: Path, records: list[Path]) -> Any:
    """The plain figures of the model on the held-out rows of all owners, by another route: rows by what the owner
    keeps, features by the loader."""
    parted = plan.source.parted(plan.data_id)
    assert parted is not None
    schema, rows = Schema.from_json(read_model(model).preprocessing), []
    for owner, path in enumerate(records):
        data = load(CsvFile(path), schema=schema, test_fraction=0.0, splitting=lambda t, g, s: (np.arange(t.n), s[1]))
        request = Request(csv=str(path), planned=True, evaluate=False)
        with opened(CsvFile(path)) as (table, _):
            mine = rows_of(request, plan, parted, parted.assignment.label(HELD_OUT), owner, table)
        assert mine.sum() == HELD
        rows.append((np.asarray(data.train.X)[mine], data.train.y[mine]))
    X, y = (np.concatenate(part) for part in zip(*rows, strict=True))
    scores = X @ np.array(read_model(model).theta).reshape(X.shape[1], -1)
    return plain(schema.target, TASKS[schema.task].link(scores[:, 0] if scores.shape[1] == 1 else scores), y)


@pytest.mark.parametrize(
    ("what", "settings"),
    [
        ("two classes", {"check_owners": "zero"}),
        ("three classes", BOTH),
        ("a quantity", {"security": "active"}),
    ],
)
def test_every_process_learns_how_good_the_model_is(
    what: str, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise moves a count of the confusion table by more than 7 deviations once in 10^11."""
    monkeypatch.setattr(forecast, "LOUDEST", 0.5)  # with few records, for the test to be quick
    plan = planned(tmp_path, what, **settings)
    asked, records = Plan.read(plan), files(tmp_path, what)
    assert isinstance(asked.source, Evaluated) and promise_of(asked).epsilon == 12.0
    assert asked.sizes == (EACH - HELD,) * OWNERS and asked.all_sizes == (EACH,) * OWNERS
    assert any("then evaluation: one release of 240 other records" in line for line in taking_part(asked))
    both = settings == BOTH
    ends = (sites if both else apart)(plan, tmp_path, records)
    assert ends == [None] * len(ends), ends
    names = [*"012", *(() if both else ("owner0", "owner1", "owner2"))]
    assert len({(tmp_path / name / "figures.json").read_text() for name in names}) == 1
    assert len({(tmp_path / name / "model.npz").read_bytes() for name in names}) == 1
    found = json.loads((tmp_path / "0" / "figures.json").read_text())
    figures, exact = found["figures"], truth(asked, tmp_path / "0", records).to_json()
    assert read_model(tmp_path / "0").figures == figures == read_status(tmp_path / "1").figures
    assert read_lines(tmp_path / "1") and figures["inside"] and figures["records"] == OWNERS * HELD
    made = Plan.read(tmp_path / "0" / "evaluation" / "plan.json")
    assert made.part == asked.part.replace(TRAINING, HELD_OUT) and made.epsilon == asked.epsilon
    for row, plainly in zip(figures["confusion"], exact["confusion"], strict=True):
        for cell, count in zip(row, plainly, strict=True):
            assert abs(cell["estimate"] - count["estimate"]) <= 7 * cell["noise"] + 1 and cell["noise"] < 40
    if what == "a quantity":
        assert figures["numbers"]["R2"]["low"] - 0.3 < exact["numbers"]["R2"]["estimate"]
        assert figures["numbers"]["R2"]["high"] + 0.3 > exact["numbers"]["R2"]["estimate"]
    entries = merge(read_ledgers(tmp_path / "0"))
    assert Counter(entry.run for entry in entries) == {"r+survey": 1, "r": asked.releases, "r+evaluation": 1}
    assert 0.9 * 12 < spent(entries, asked.data_id, delta=asked.delta).epsilon <= 12.0 + 1e-9
    assert verify_structure(tmp_path / "0" / "evaluation").evidence[0].holds
    report = json.loads((tmp_path / names[-1] / "report.json").read_text())
    assert report["figures"] == figures and report["evaluation"]["held_out"] == [HELD] * OWNERS


def test_a_death_before_the_evaluation_is_carried_on_and_another_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All sites end between training and evaluation; started again they make it, and train no more. A site whose file
    has changed meanwhile is refused before anything is spent."""
    plan, records = planned(tmp_path, **BOTH), files(tmp_path)

    def dies(*_: Any) -> None:
        raise UsageError("killed here")

    with monkeypatch.context() as patched:
        patched.setattr(stages.RunStages, "after", dies)
        ends = sites(plan, tmp_path, records)
    assert [str(end) for end in ends] == ["killed here"] * 3
    model = (tmp_path / "0" / "model.npz").read_bytes()
    assert sites(plan, tmp_path, records) == [None] * 3
    assert sites(plan, tmp_path, records) == [None] * 3  # once more: all is here
    entries = merge(read_ledgers(tmp_path / "0"))
    assert Counter(e.run for e in entries) == {"r+survey": 1, "r": Plan.read(plan).releases, "r+evaluation": 1}
    assert (tmp_path / "0" / "model.npz").read_bytes() != model  # it has its figures now
    lines = records[1].read_text().splitlines()
    records[1].write_text("\n".join([lines[0], *reversed(lines[1:]), ""]))
    other = Plan.read(plan)
    replace(other, run_id="again").write(tmp_path / "again.json")
    ends = sites(tmp_path / "again.json", tmp_path / "again", records, wait=2.0)  # for the one that is refused
    assert "since an earlier run" in str(ends[1]) and all(ends)
    with opened(CsvFile(records[1])) as (table, _):
        request = Request(csv=str(records[1]), planned=True, evaluate=False)
        assert said_before(request, other, 1, table) == str(ends[1]).removeprefix("as owner 1: ")
    for name in "012":
        assert not [e for e in merge(read_ledgers(tmp_path / "again" / name)) if e.run.startswith("again")]


def with_ids(path: Path, ids: Iterable[int]) -> Path:
    """A CSV file of records that have these ids."""
    path.write_text("id,age\n" + "".join(f"p{k},{20 + k % 60}\n" for k in ids), encoding="utf-8")
    return path


def grown(n: int, share: float = 0.2, names: tuple[str, ...] = ("a", "b"), data: str = "registry") -> Plan:
    """A plan of two owners, of which the first has n records."""
    sizes = (n, 20_000)
    request = Request(
        schema="s", owner_sizes=sizes, epsilon=4.0, delta=1e-5, iterations=2, evaluate=False, data_id=data
    )
    plan, note = plan_of_machines(
        replace(request, test_fraction=share), replace_unknown(draft()), sizes, complete=True, owners=names
    )
    assert not note
    return plan


def parts(plan: Plan, file: Path, ids: str | None = "id", owner: int = 0) -> tuple[set[str], set[str]]:
    """(who of an owner is trained on, who is held out)."""
    parted, request = plan.source.parted(plan.data_id), Request(csv=str(file), ids=ids, planned=True, evaluate=False)
    assert parted is not None
    with opened(CsvFile(file)) as (table, _):
        names, before = np.array(ids_of(table, "id")), said_before(request, plan, owner, table)
        try:
            trained, held = (
                rows_of(request, plan, parted, parted.assignment.label(part), owner, table)
                for part in (TRAINING, HELD_OUT)
            )
        except UsageError as error:
            assert before and before.split(";")[0] == owner_text(error).split(";")[0]
            raise
    assert not before
    assert (trained ^ held).all() and held.sum() == parted.sizes[HELD_OUT][owner]
    return set(names[trained]), set(names[held])


def said_before(request: Request, plan: Plan, owner: int, table: Table) -> str:
    """What a trial before the day says of the parts, without a word to the account."""
    folder = account_folder()
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    try:
        check_parts(request, plan, owner, table)
    except UsageError as error:
        return owner_text(error)
    finally:
        assert kept == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return ""


def test_records_keep_their_part_as_others_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By id, in any order; appended ones are drawn into what the sizes leave. The same parts by another account's key
    come once in 10^200."""
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    plan, file = grown(1000), tmp_path / "mine.csv"
    trained, held = parts(plan, with_ids(file, range(1000)))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], *reversed(lines[1:]), ""]))
    assert parts(plan, file) == (trained, held)
    more = grown(1300)
    assert more.part == plan.part  # prices of parts go on
    later = parts(more, with_ids(file, range(1300)))
    assert later[0] > trained and later[1] > held
    new = len(later[1]) - len(held)
    assert new == 60 and 0 < len(later[1] & {f"p{k}" for k in range(1000, 1150)}) < 60
    assert parts(plan, with_ids(file, range(1000))) == (trained, held)  # those that went keep their part
    lost = tmp_path / "account"
    [kept] = lost.glob("*.npy")
    assert kept.stat().st_mode & 0o77 == 0 and b"p10" not in kept.read_bytes()
    held_first = sorted(range(1300), key=lambda k: f"p{k}" not in later[1])[:1000]  # 260 of them, and room for 200
    with refuses("records", -60):
        parts(plan, with_ids(file, held_first))
    before = kept.read_bytes()
    with refuses("missing", setting="ids"):
        parts(plan, with_ids(file, range(1000)), ids=None)
    with refuses("records"):
        parts(plan, with_ids(file, [*range(999), 5]))
    assert kept.read_bytes() == before
    kept.unlink()
    with refuses("file", tmp_path / "account"):
        parts(plan, with_ids(file, range(1000)))
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "another"))
    assert parts(plan, file) != (trained, held)  # nobody else knows them


def test_a_changed_file_without_ids_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that were appended too; another share is another assignment, whose price adds up. Of 30 rows one is held out
    in about a fifth of 300 draws: 8 deviations away once in 10^14."""
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    file = with_ids(tmp_path / "mine.csv", range(1000))
    found = parts(grown(1000), file, None)
    assert parts(grown(1000), file, None) == found != parts(grown(1000, 0.3), file, None)
    assert grown(1000, 0.3).part != grown(1000).part != grown(1000, names=("b", "a")).part
    with_ids(file, range(1001))
    with refuses("missing", setting="ids"):
        parts(grown(1001), file, None)
    counts = Counter(k for trial in range(300) for k in np.flatnonzero(by_place(f"{trial:032x}", "digest", 30, 6)))
    assert all(abs(counts[k] - 60) < 8 * np.sqrt(300 * 0.2 * 0.8) for k in range(30))


def test_too_few_records_are_said_and_a_stated_share_is_refused() -> None:
    request = Request(schema="s", owner_sizes=(300, 200), epsilon=1.0, delta=1e-5, iterations=4, evaluate=False)
    schema = replace_unknown(draft())
    plan, note = plan_of_machines(request, schema, (300, 200), complete=True)
    assert "too few" in note and not isinstance(plan.source, Evaluated) and plan.sizes == (300, 200)
    with refuses("enough", 100, setting="test_fraction"):
        plan_of_machines(replace(request, test_fraction=0.2), schema, (300, 200), complete=True)
    enough = (20_000, 20_000)
    plan, note = plan_of_machines(replace(request, owner_sizes=enough), schema, enough, complete=True)
    assert not note and plan.sizes == (16_000, 16_000) and off_by(1.0, 1e-5, 8_000) < LOUDEST
    some = (4_000, 4_000)
    plan, note = plan_of_machines(replace(request, owner_sizes=some), schema, some, complete=True)
    assert "of a class that 5% of records have" in note and isinstance(plan.source, Evaluated)
    assert plan.source.cells < max(CELLS) and Plan.from_text(plan.to_text()) == plan
    changed = json.loads(plan.to_text())
    changed["source"]["evaluated"]["cells"] = 13
    with refuses("plan", 13):
        Plan.from_text(json.dumps(changed))
    plan, _ = plan_of_machines(replace(request, owner_sizes=enough), schema, enough, complete=True)
    none = replace(request, owner_sizes=enough, test_fraction=0.0)
    assert plan_of_machines(none, schema, enough, complete=True)[0].sizes == enough
    value = json.loads(plan.to_text())
    for change in ({"part": ""}, {"part": plan.part.replace(TRAINING, HELD_OUT)}, {"sizes": [16_001, 16_000]},
                   {"data_id": data_digest("others")}):  # fmt: skip
        with refuses("plan"):
            Plan.from_text(json.dumps({**value, **change}))
    assert Plan.from_text(plan.to_text()) == plan


def replace_unknown(schema: Schema) -> Schema:
    """The draft without its unknown columns."""
    return Schema(schema.columns, schema.target)
