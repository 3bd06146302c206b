"""An owner of a run over several machines whose records workers read."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_of_machines import plan_of_machines
from dpmpc.consortium.start import start
from dpmpc.errors import UsageError
from dpmpc.intake.spelling import Spelling
from dpmpc.learning.away import Away
from dpmpc.learning.method import Learner
from dpmpc.planning import forecast
from dpmpc.planning.request import Request
from dpmpc.privacy.ledgers import merge, read_ledgers
from tests.machines import process, together
from tests.made_up_sites import EACH, OWNERS, draft, files
from tests.refusals import refuses
from tests.runs import own_addresses


def planned(folder: Path) -> Path:
    """A plan with a survey before and an evaluation after."""
    sizes = (EACH,) * OWNERS
    request = Request(schema="schema.json", owner_sizes=sizes, evaluate=False, epsilon=12.0, delta=1e-5, iterations=4,
                      data_id=folder.name, run_id="r")  # fmt: skip
    plan, _ = plan_of_machines(request, draft(), sizes, complete=True)
    plan.write(folder / "plan.json")
    return folder / "plan.json"


def partitions(file: Path, folder: Path) -> dict[str, Any]:
    """A site's records as a folder of Parquet files."""
    import pyarrow.csv
    import pyarrow.parquet as pq

    table = pyarrow.csv.read_csv(file)
    (folder / "parts").mkdir()
    for k in range(3):
        pq.write_table(table.slice(150 * k, 150), folder / "parts" / f"{k}.parquet")
    return {"records": str(folder / "parts")}


def database(file: Path, folder: Path) -> dict[str, Any]:
    """The same in a table with a key."""
    import pandas as pd

    with contextlib.closing(sqlite3.connect(folder / "bank.db")) as connection:
        pd.read_csv(file).to_sql("records", connection, index_label="row")
    sql = "SELECT * FROM records ORDER BY row"
    return {"database": f"sqlite:///{folder / 'bank.db'}", "sql": sql, "ids": "row"}


@pytest.mark.parametrize("kept", [partitions, database])
def test_an_owner_takes_part_by_its_workers(
    kept: Callable[[Path, Path], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A survey, training and an evaluation on held-out records, each by workers of one owner."""
    monkeypatch.setattr(forecast, "LOUDEST", 0.5)  # with few records, for the test to be quick
    seen, plan = list[bytes](), planned(tmp_path)
    records = files(tmp_path)
    vectors = Learner.vectors

    def noted(self: Learner, at_once: int | None = None) -> Any:
        for block in vectors(self, at_once):
            if isinstance(self._records, Away):
                seen.append(block.tobytes())
            yield block

    monkeypatch.setattr(Learner, "vectors", noted)
    addresses = own_addresses(3)
    request = Request(
        **kept(records[0], tmp_path), executor="tests.learning.test_away:threads", workers=2, planned=True,
        evaluate=False,
    )  # fmt: skip
    parties = [process(plan, tmp_path, str(i), addresses, None) for i in range(3)]
    owners = [process(plan, tmp_path, f"owner{j}", addresses, path) for j, path in enumerate(records)]

    def away() -> None:
        where = Placement(out=tmp_path / "owner0", index="owner0", plan_file=plan, addresses=addresses[1::2], wait=60.0)
        start(request, where, lambda event: None)

    ends = together([*parties, away, *owners[1:]])
    assert ends == [None] * len(ends), ends
    names = [*"012", "owner0", "owner1", "owner2"]
    assert len({(tmp_path / name / "figures.json").read_text() for name in names}) == 1
    assert len({(tmp_path / name / "model.npz").read_bytes() for name in names}) == 1
    assert len(seen) == Plan.read(tmp_path / "owner0" / "plan.json").releases


@pytest.mark.parametrize("misfits", ["zero", "ask"])
def test_an_owner_hears_of_misfits_before_the_survey_is_spent(
    misfits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its workers' look, with the number alone; and they stop the run before anything is spent, if it said so."""
    monkeypatch.setattr(forecast, "LOUDEST", 0.5)
    plan, records, told = planned(tmp_path), files(tmp_path), list[dict[str, Any]]()
    lines = records[0].read_text().splitlines()
    for k in (3, 170, 399):
        lines[k] = lines[k].rpartition(",")[0] + ",canary"
    records[0].write_text("\n".join(lines) + "\n")
    addresses = own_addresses(3)
    request = Request(
        **partitions(records[0], tmp_path), executor="tests.learning.test_away:threads", workers=2, planned=True,
        evaluate=False, spelling=Spelling(misfits=misfits),
    )  # fmt: skip
    wait = 60.0 if misfits == "zero" else 2.0  # for the owner that stops
    parties = [process(plan, tmp_path, str(i), addresses, None, wait) for i in range(3)]
    owners = [process(plan, tmp_path, f"owner{j}", addresses, path, wait) for j, path in enumerate(records)]

    def away() -> None:
        where = Placement(out=tmp_path / "owner0", index="owner0", plan_file=plan, addresses=addresses[1::2], wait=60.0)
        start(request, where, told.append)

    ends = together([*parties, away, *owners[1:]])
    texts = [str(event.get("text")) for event in told]
    if misfits == "zero":
        assert ends == [None] * len(ends), ends
        [warned] = [k for k, text in enumerate(texts) if "of 3 records the target does not fit (of 400)" in text]
        assert warned < texts.index("connecting")
    else:
        assert isinstance(ends[3], UsageError) and "'outcome' is yes or no" in str(ends[3])
        assert not any("canary" in str(end) for end in ends) and all(ends)
        assert not any(merge(read_ledgers(tmp_path / str(i))) for i in range(3))
    for file in tmp_path.glob("[0-9o]*/**/*"):
        assert not file.is_file() or b"canary" not in file.read_bytes(), file


def test_an_owner_hears_of_one_class_before_the_survey_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one whose own process reads its records does."""
    monkeypatch.setattr(forecast, "LOUDEST", 0.5)
    plan, records, told = planned(tmp_path), files(tmp_path), list[dict[str, Any]]()
    first, *lines = records[0].read_text().splitlines()
    records[0].write_text("\n".join([first, *(line.rpartition(",")[0] + ",yes" for line in lines), ""]))
    addresses = own_addresses(3)
    request = Request(
        **partitions(records[0], tmp_path), executor="tests.learning.test_away:threads", workers=2, planned=True,
        evaluate=False,
    )  # fmt: skip
    parties = [process(plan, tmp_path, str(i), addresses, None) for i in range(3)]
    owners = [process(plan, tmp_path, f"owner{j}", addresses, path) for j, path in enumerate(records)]

    def away() -> None:
        where = Placement(out=tmp_path / "owner0", index="owner0", plan_file=plan, addresses=addresses[1::2], wait=60.0)
        start(request, where, told.append)

    ends = together([*parties, away, *owners[1:]])
    assert ends == [None] * len(ends), ends
    texts = [str(event.get("text")) for event in told]
    [warned] = [k for k, text in enumerate(texts) if "'outcome' is 'yes' in 400 records, all that fit" in text]
    assert texts[warned].startswith("warning: ") and warned < texts.index("connecting")


def test_all_owners_in_one_process_have_no_workers(tmp_path: Path) -> None:
    plan, addresses = planned(tmp_path), own_addresses(3)
    request = Request(records="parts", executor="processes", planned=True, evaluate=False)
    where = Placement(out=tmp_path / "owners", index="owners", plan_file=plan, addresses=addresses[1::2], wait=60.0)
    with refuses("together", "index=owners", setting="index"):
        start(request, where, lambda event: None)
