"""All sites of a consortium on one machine: kits as they are, records made up by the public schema, nothing spent."""

import csv
import random
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import dpmpc, own_addresses

from dpmpc.consortium.kit import write_kits
from dpmpc.consortium.rehearsing import _bound_alone, _free, kits_in, write_records
from dpmpc.consortium.toml import read_consortium
from dpmpc.local.named_records import held_against
from dpmpc.records.loading import CsvFile, opened
from tests.refusals import refuses

TRAINING = """
[learning]
method = "gradient"
iterations = 2
step = 0.1
"""
SURVEYED = TRAINING.replace("method =", "# a survey comes first\nmethod =")
ASKING = '[stats]\nqueries = ["table(sex)", "mean(age)"]\nhopeless = "allow"\n'
SYNTHESIS = '[synth]\ntarget = "ill, or well"\ncells = 3\nhopeless = "allow"\n'
TOML = """
[run]
data_id = "rehearsed"
tls = {tls}
{run}
{sites}
[records]
target = "ill, or well"
positive = ["yes"]
{open}
[records.bounds]
age = [18, 90]
sex = ["f", "m", "not, said"]
{what}
[privacy]
epsilon = 1
delta = 1e-4
[limits]
budget = "1.0,1e-4"
data_id = "rehearsed"
"""


def kits(folder: Path, what: str, *, both: bool = False, tls: bool = False) -> Path:
    addresses = own_addresses(3)[1::2]
    parties = "".join(f'[[parties]]\nname = "p{i}"\naddress = "{a}"\n' for i, a in enumerate(addresses))
    size = 500 if what == SURVEYED else 50
    owners = "".join(f'[[owners]]\nname = "{"p" if both else "o"}{j}"\nrecords = {size + j}\n' for j in range(3))
    run = 'role = "both"' if both else ""
    text = TOML.format(tls=str(tls).lower(), run=run, sites=parties + owners, what=what,
                       open='unknown = ["ward"]' if what == SURVEYED else "")  # fmt: skip
    (folder / "consortium.toml").write_text(text)
    write_kits(read_consortium(folder / "consortium.toml"), folder / "kits", folder / "authority")
    return folder / "kits"


@pytest.mark.parametrize(
    ("what", "both", "tls"),
    [(TRAINING, False, True), (SURVEYED, True, True), (ASKING, False, False), (SYNTHESIS, True, False)],
)
def test_all_sites_are_rehearsed_and_nothing_is_spent(
    what: str, both: bool, tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = tmp_path / "account"
    monkeypatch.setenv("DPMPC_ACCOUNT", str(account))
    folder = kits(tmp_path, what, both=both, tls=tls)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = dpmpc("rehearse", folder)
    assert done.returncode == 0, done.stderr
    sites, releases = (3 if both else 6), {ASKING: 1, SYNTHESIS: 2}.get(what, 3)
    assert (
        f"{sites} sites on this machine, with made-up records: {1503 if what == SURVEYED else 153:,} of 3 owners"
        in done.stdout
    )
    assert f"all {sites} sites made all {releases} releases in " in done.stdout and "nothing was spent" in done.stdout
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_made_up_records_are_what_the_plan_reads(tmp_path: Path) -> None:
    for what in (TRAINING, SURVEYED, ASKING, SYNTHESIS):
        folder = tmp_path / f"of{len(what)}"
        folder.mkdir()
        plan = kits_in(kits(folder, what))[0].plan
        write_records(plan, 200, 1, folder / "made-up.csv")
        with opened(CsvFile(folder / "made-up.csv")) as (table, _):
            found = held_against(plan, table)
        assert not found.refused and found.rows == 200
        assert not any(count.missing or count.unread or count.unknown or count.clipped for count in found.counts)
        rows = list(csv.DictReader((folder / "made-up.csv").read_text().splitlines()))
        assert {row["sex"] for row in rows} == {"f", "m", "not, said"}


def test_a_rehearsal_has_all_kits_of_one_plan(tmp_path: Path) -> None:
    folder = kits(tmp_path, TRAINING)
    with refuses("path", folder / "p0"):
        kits_in(folder / "p0")
    gone = random.Random(1).choice(["p1", "o2"])
    (folder / gone).rename(tmp_path / gone)
    with refuses("missing", "party1" if gone == "p1" else "owner2"):
        kits_in(folder)


def test_a_rehearsal_listens_where_no_other_program_is_given_ports() -> None:
    """Its sites listen a moment after their ports were found free."""

    class Usual(socket.socket):
        def bind(self, address: Any) -> None:
            if address[0] != "127.0.0.1":
                raise OSError("no such address here")
            super().bind(address)

    (host,) = {address.partition(":")[0] for address in _free(3)}
    assert host.startswith("127.") and (host == "127.0.0.1") == (sys.platform != "linux")
    with Usual() as first:
        assert _bound_alone(first) == first.getsockname()[0] == "127.0.0.1"
