"""`dpmpc join --dry-run`: all that a site needs on the day is tried before it and said, and nothing is spent."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from machines import together
from runs import dpmpc, own_addresses

from dpmpc.consortium.dry_run import Trial
from dpmpc.consortium.joining import Joining, try_out
from dpmpc.consortium.kit import write_kits
from dpmpc.consortium.toml import read_consortium
from dpmpc.errors import UsageError
from dpmpc.mpc.transport.credentials import make_request, sign_request
from dpmpc.privacy.account import account_folder
from tests.refusals import Rule, breaks, refuses

NAMES = ("akh", "charite", "insel")
TOML = """
[run]
data_id = "tried"
role = "both"
tls = {tls}
{sites}
[records]
target = "ill"
positive = ["yes"]
preprocessing = "records"
[records.bounds]
age = [0, 100]
[learning]
method = "gradient"
iterations = 3
step = 0.1
[privacy]
epsilon = 1
delta = 1e-4
[limits]
budget = "1.0,1e-4"
data_id = "tried"
"""


def kits(folder: Path, tls: bool = False) -> list[Path]:
    """Three sites' kits, with their keys, and records beside them."""
    named = list(zip(NAMES, own_addresses(3)[1::2], strict=True))
    sites = "".join(f'[[parties]]\nname = "{name}"\naddress = "{address}"\n' for name, address in named)
    sites += "".join(f'[[owners]]\nname = "{name}"\nrecords = 40\n' for name in NAMES)
    (folder / "consortium.toml").write_text(TOML.format(sites=sites, tls=str(tls).lower()))
    write_kits(read_consortium(folder / "consortium.toml"), folder / "kits", folder / "authority")
    found = [folder / "kits" / name for name in NAMES]
    for i, kit in enumerate(found):
        if tls:
            keys = kit / "keys"
            sign_request(folder / "authority", make_request(keys, f"site{i}"), f"site{i}", keys)
        lines = ["age,ill", *(f"{20 + k},{'yes' if k % 3 else 'no'}" for k in range(40))]
        (kit / "records.csv").write_text("\n".join(lines) + "\n")
    return found


def trial(kit: Path, said: list[str], wait: float | None = None, **own: Any) -> Callable[[], None]:
    asked = Joining.of(csv=str(kit / "records.csv"), wait=wait, **own)
    return lambda: try_out(kit, asked, lambda event: said.append(event["text"]))


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.mark.parametrize("tls", [False, True])
def test_all_that_the_day_needs_is_tried_and_nothing_is_spent(tmp_path: Path, tls: bool) -> None:
    found = kits(tmp_path, tls)
    before, said = files(tmp_path), [list[str]() for _ in found]
    assert together([trial(kit, lines) for kit, lines in zip(found, said, strict=True)]) == [None] * 3
    for i, lines in enumerate(said):
        others = [f"{name} (party {j})" for j, name in enumerate(NAMES) if j != i]
        text = "\n".join(lines)
        for begin in ("disk: ", "limits: this site takes part", "account: ", "budget: this run fits", "your records: "):
            assert sum(line.startswith(begin) for line in lines) == 1, (begin, text)
        fits = next(line for line in lines if line.startswith("budget: "))  # which delta, and whose neighbours
        assert re.fullmatch(r"budget: this run fits into epsilon \S+ at delta \S+, for neighbours .* one record", fits)
        assert text.count("certificates: key and certificate go together") == tls
        assert f"reached: {', '.join(others)}" in lines and "clocks: agree" in lines
        called = next(line for line in lines if line.startswith("called by: "))
        assert all(other in called and other.replace("party", "owner") in called for other in others)
    assert files(tmp_path) == before
    assert not account_folder().exists() or not list(account_folder().rglob("*.jsonl"))


def test_what_a_run_would_refuse_is_refused_before_anybody_is_met(tmp_path: Path) -> None:
    kit = kits(tmp_path, tls=True)[0]
    plain, records = (kit / "limits.toml").read_text(), (kit / "records.csv").read_text()

    def refused(broken: Rule, **own: Any) -> None:
        said: list[str] = []
        with refuses(broken):
            trial(kit, said, 0.1, **own)()
        assert not any("meeting" in line for line in said)

    (kit / "limits.toml").write_text(plain.replace("epsilon = 1.0\n", "epsilon = 0.5\n"))
    refused(breaks("limits", 0.5))
    (kit / "limits.toml").write_text(plain.replace('"1.0,1e-4"', '"0.5,1e-4"'))
    refused(breaks("budget", "epsilon 0.5", setting="budget"))
    (kit / "limits.toml").write_text(plain)
    (tmp_path / "notes").write_text("mine")
    refused(breaks("path", tmp_path / "notes", setting="account"), account=str(tmp_path / "notes"))
    (kit / "records.csv").write_text(records.rsplit("\n", 2)[0] + "\n")  # one record fewer than the plan has
    refused(breaks("records", "[[owners]]", kind=UsageError))
    head, *rows = records.splitlines()
    at = head.split(",").index("age")
    other = [",".join(f"9{each}0" if k == at else each for k, each in enumerate(row.split(","))) for row in rows]
    (kit / "records.csv").write_text("\n".join([head, *other, ""]))  # in other units
    refused(breaks("records", kind=UsageError))
    (kit / "records.csv").write_text(records)
    (kit / "keys" / "site0.crt").unlink()
    refused(breaks("keys", "site0.crt"))


def test_who_is_not_there_is_named_with_its_address_by_the_command(tmp_path: Path) -> None:
    kit = kits(tmp_path)[0]
    ended = dpmpc("join", kit, "--csv", kit / "records.csv", "--dry-run", "--wait", 0.1)
    assert ended.returncode == 3 and "nothing was spent" not in ended.stdout
    last = ended.stderr.strip().splitlines()[-1]
    for j, name in enumerate(NAMES[1:], 1):
        assert f"{name} (party {j}) (127." in last and f"{name} (party {j}): has not called" in last, last
        assert f"{name} (owner {j}): has not called" in last
    assert "akh" not in last and not (kit / "run").exists()


def test_a_site_that_reaches_all_waits_for_who_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def reached(*_: object) -> None:
        pass

    monkeypatch.setattr(Trial, "_reach", reached)
    with refuses("peer", "charite (party 1)", setting="addresses"):
        trial(kits(tmp_path)[0], [], 0.1)()


def test_a_request_is_signed_by_the_sites_own_name(tmp_path: Path) -> None:
    kit, back = kits(tmp_path, tls=True)[1], tmp_path / "back"
    words = ["keys", "sign", kit / "keys" / "site1.csr", "--authority", tmp_path / "authority", "--out", back, "--for"]
    signed = dpmpc(*words, "charite")
    assert signed.returncode == 0 and "for charite (site1): send both back" in signed.stdout, signed.stderr
    assert {path.name for path in back.iterdir()} == {"ca.crt", "site1.crt"}
    other = dpmpc(*words, "charity")
    assert other.returncode == 2 and "choose from akh, charite, insel" in other.stderr, other.stderr
