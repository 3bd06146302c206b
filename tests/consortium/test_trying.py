"""A trial before the day: everybody is met as in the run, who is missing is named, and nothing is written or spent."""

import asyncio
import math
from pathlib import Path

import pytest
from runs import HANG, own_addresses

from dpmpc.aggregation.plan.fields import differing
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.dry_run import _GREETING, Trial, before_meeting
from dpmpc.errors import NotYetError, PeerError
from dpmpc.mpc.transport.addresses import bound_socket, owner_endpoints, parse_endpoints
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.privacy.account import Account
from tests.refusals import refuses

PLAN = Plan.create(owners=2, dimension=5, clip=1.0, delta=1e-5, run_id="trial")
BOTH = Plan.create(owners=3, dimension=5, clip=1.0, delta=1e-5, run_id="trial", role="both")


def trials(plan: Plan, keys: Path | None = None) -> list[Trial]:
    """One a site."""
    addresses = parse_endpoints(own_addresses(plan.parties)[1::2])
    owners = owner_endpoints(addresses)
    both = plan.role == "both"

    def site(party: int | None, owner: int | None) -> Trial:
        listening = None if party is None else (addresses[party], owners[party])
        return Trial(plan, party, owner, addresses, listening, keys, lambda text: None)

    sites = [site(i, i if both else None) for i in range(plan.parties)]
    return sites if both else [*sites, *(site(None, j) for j in range(plan.owners))]


def met(sites: list[Trial], seconds: float = HANG) -> list[BaseException | None]:
    async def main() -> list[BaseException | None]:
        return await asyncio.gather(*(site.meet(seconds) for site in sites), return_exceptions=True)

    return asyncio.run(main())


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("plan", [PLAN, BOTH])
def test_everybody_meets_everybody(plan: Plan, tls: bool, tmp_path: Path) -> None:
    names = [f"party{i}" for i in range(plan.parties)] + [f"owner{j}" for j in range(plan.owners)]
    if tls:
        make_credentials(tmp_path / "keys", names)
    sites = trials(plan, tmp_path / "keys" if tls else None)
    assert met(sites) == [None] * len(sites)
    for site in sites:
        assert not site.missing and site.lines()[-1] == "clocks: agree"
        assert len(site.called) == (0 if site.party is None else plan.parties - 1 + plan.owners - (plan is BOTH))


def test_who_is_missing_is_named_with_the_reason() -> None:
    sites = trials(PLAN)
    absent, late = sites.pop(1), sites.pop(-1)
    for error in met(sites, 0.7):
        assert isinstance(error, PeerError) and f"party 1 ({absent.addresses[1].host}:" in str(error)
    for site in sites[:2]:
        assert "party 1: has not called" in site.missing and f"{late.name}: has not called" in site.missing
        assert not any("owner 0" in line for line in site.missing)


def test_a_site_with_another_plan_or_certificate_is_refused(tmp_path: Path) -> None:
    sites = trials(PLAN)
    sites[3].plan = Plan.create(owners=2, dimension=6, clip=1.0, delta=1e-5, run_id="trial")
    found = met(sites, 0.7)
    assert all(isinstance(error, PeerError) for error in (found[0], found[3]))
    refusal = "all sites must try the same plan, by their own addresses"
    assert found[4] is None
    assert any(line.startswith(f"owner 0: called, and was refused: {refusal}") for line in sites[0].missing)
    named = [differing(why, sites[3].plan) for why in sites[3].problems.values()]
    assert named and all(f"{refusal} (not as here: " in why for why in named), "also where a party has ended since"
    make_credentials(tmp_path / "keys", ["party0", "party1", "party2", "owner0", "owner1"])
    sites = trials(PLAN, tmp_path / "keys")
    sites[4].owner = 0  # with its own certificate it would be another's site
    (tmp_path / "wrong").mkdir()
    for name, source in (("ca.crt", "ca.crt"), ("owner0.crt", "owner1.crt"), ("owner0.key", "owner1.key")):
        (tmp_path / "wrong" / name).write_bytes((tmp_path / "keys" / source).read_bytes())
    sites[4].tls = tmp_path / "wrong"
    found = met(sites, 1.5)
    assert isinstance(found[4], PeerError) and "must be for the name it claims; it claims owner0" in str(found[4])


def test_clocks_ports_and_disks_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = trials(PLAN)[0]
    site.clocks = {"party 1": 3.0, "owner 1": -7200.0}
    assert site.lines()[-1].startswith("warning: clocks: that of owner 1 is -7200 s away; set them")
    for said in (math.nan, math.inf, -math.inf):  # as a process may greet
        site._learn("party 1", bytearray(_GREETING.pack(False, 1, site._digest, said)))
        assert f"that of party 1 is {said:+.0f} s away" in site.lines()[-1]
    with bound_socket() as taken:
        taken.listen()
        host, port = taken.getsockname()
        site.listening = (parse_endpoints([f"{host}:{port}"])[0], site.addresses[0])
        (error,) = met([site], 0.5)
    assert isinstance(error, NotYetError) and "must listen for parties" in str(error)
    assert "are free at" in before_meeting(PLAN, site.addresses, tmp_path / "run")[-1]
    monkeypatch.setattr("dpmpc.consortium.dry_run._SPARE", 1 << 62)
    with refuses("memory", tmp_path, setting="out"):
        before_meeting(PLAN, site.addresses, tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_on_the_day_is_told_before_it(tmp_path: Path) -> None:
    """A run's folder, or the account's, in which a service under a user of its own has no rights."""
    (tmp_path / "notes").write_text("mine")
    for folder in (tmp_path / "notes", tmp_path / "notes" / "run"):
        with refuses("path", tmp_path / "notes", setting="out"):
            before_meeting(PLAN, trials(PLAN)[0].addresses, folder)
        with refuses("path", tmp_path / "notes", setting="account"):
            Account(folder).check()
    Account(tmp_path / "not" / "yet").check()
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
