"""Records of a database whose plan holds some out: who names no column of ids hears it before the day, and in a meeting
nobody waits for it."""

import socket
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.joining import Joining, join, try_out
from dpmpc.consortium.kit import write_kits
from dpmpc.consortium.toml import read_consortium
from dpmpc.errors import DpmpcError, PeerError, owner_text
from dpmpc.local.holdout import ids_wanted
from dpmpc.planning import forecast
from tests.refusals import refuses
from tests.runs import HANG, dpmpc, own_addresses

TOML = """
[run]
data_id = "registry"
tls = false
{sites}
[records]
target = "ill"
positive = ["yes"]
negative = ["no"]
unknown = ["ward"]
test_fraction = 0.2
[records.bounds]
age = [18, 90]
[learning]
iterations = 2
[privacy]
epsilon = 12
delta = 1e-4
"""
EACH = 400
UNNAMED = "held-out records are known again by an id; rows of a database have no place; name the column of their ids "


@pytest.fixture
def kits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of three owners and three parties; with few records, for the tests to be quick."""
    monkeypatch.setattr(forecast, "LOUDEST", 0.5)
    addresses = own_addresses(3)[1::2]
    sites = "".join(f'[[parties]]\nname = "p{i}"\naddress = "{a}"\n' for i, a in enumerate(addresses))
    sites += "".join(f'[[owners]]\nname = "o{j}"\nrecords = {EACH}\n' for j in range(3))
    (tmp_path / "consortium.toml").write_text(TOML.format(sites=sites))
    write_kits(read_consortium(tmp_path / "consortium.toml"), tmp_path / "kits", tmp_path / "authority")
    return tmp_path / "kits"


def source(folder: Path, ids: int = EACH) -> dict[str, Any]:
    """A database of EACH records that have so many different ids."""
    with closing(sqlite3.connect(folder / "ward.db")) as base, base:
        base.execute("CREATE TABLE t (number TEXT, age INTEGER, ward TEXT, ill TEXT)")
        rows = [(f"n{k % ids}", 20 + k % 60, "ab"[k % 2], ("yes", "no")[k % 3 > 0]) for k in range(EACH)]
        base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    return {"database": f"sqlite:///{folder / 'ward.db'}", "sql": "SELECT * FROM t"}


def test_who_names_no_ids_hears_it_before_the_day(kits: Path, tmp_path: Path) -> None:
    database, plan = source(tmp_path), kits / "o0" / "plan.json"
    assert ids_wanted(Plan.read(plan)) == "database"
    assert "--id COLUMN" in (kits / "o0" / "README.md").read_text()
    assert "--id COLUMN" not in (kits / "p0" / "README.md").read_text()
    said: list[dict[str, Any]] = []
    with refuses("missing", "--id", setting="ids"):
        try_out(kits / "o0", Joining.of(**database, account=str(tmp_path / "a")), said.append)
    assert not said, "before anybody is met"
    command = ["check", "--plan", str(plan), "--database", database["database"], "--sql", database["sql"]]
    bad = dpmpc(*command)
    assert bad.returncode == 1 and f"refused: records: {UNNAMED}with --id" in bad.stdout.replace("\n", " ")
    good = dpmpc(*command, "--id", "number")
    assert good.returncode == 0 and "refused" not in good.stdout


def test_ids_that_a_run_refuses_are_told_before_the_day(kits: Path, tmp_path: Path) -> None:
    database = source(tmp_path, ids=EACH - 1)
    own = Joining.of(**database, account=str(tmp_path / "a"), ids="number")
    with refuses("unique", "number", "--id", setting="ids"):
        try_out(kits / "o0", own, lambda event: None)
    with refuses("column", "numbre", "number"):
        try_out(kits / "o0", Joining.of(**database, account=str(tmp_path / "a"), ids="numbre"), lambda event: None)


def test_in_a_meeting_nobody_waits_for_who_names_no_ids(kits: Path, tmp_path: Path) -> None:
    ends: dict[str, DpmpcError | None] = {}

    def party(name: str) -> None:
        try:
            join(kits / name, Joining.of(account=str(tmp_path / name), wait=10 * HANG), lambda event: None)
            ends[name] = None
        except DpmpcError as error:
            ends[name] = error

    threads = [threading.Thread(target=party, args=(f"p{i}",), daemon=True) for i in range(3)]
    for thread in threads:
        thread.start()
    for i, address in enumerate(read_consortium(tmp_path / "consortium.toml").addresses):
        while threads[i].is_alive():
            with closing(socket.socket()) as caller:
                if caller.connect_ex((address.host, address.port + 3)) == 0:
                    break
    with refuses("missing", "--id", setting="ids"):
        join(kits / "o1", Joining.of(**source(tmp_path), account=str(tmp_path / "a")), lambda event: None)
    for thread in threads:
        thread.join(HANG)
        assert not thread.is_alive()
    assert len(ends) == 3
    for error in ends.values():
        assert (
            isinstance(error, PeerError) and "o1" in owner_text(error) and "refuses to take part" in owner_text(error)
        ), error
