"""An account is one owner of a plan, whoever says it: kits, indexes, a program's keyword. Every case also without the
rule, where it would be two."""

import math
from pathlib import Path

import pytest

import dpmpc
from dpmpc.aggregation.owner import session
from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.owner.standing import Standing, meets
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.transport.addresses import parse_endpoints
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.privacy.account import Account
from dpmpc.privacy.unnamed import process_folder
from tests.refusals import refuses

AWAY = ["192.0.2.1:11365", "192.0.2.2:11365", "192.0.2.3:11365"]
HERE = ["127.0.0.1:11365", "127.0.0.2:11365", "[::1]:11365"]


def planned(**changes: object) -> Plan:
    given = {"owners": 3, "dimension": 2, "clip": 1.0, "epsilon": 1.0, "delta": 1e-5, "data_id": "wards", "parties": 3}
    return Plan.create(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("mend", [True, False])
def test_an_owner_that_is_told_another_number_takes_no_part(
    tmp_path: Path, mend: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of its second part would merge with the first one's: one release, two copies of its records."""

    async def nobody(self: OwnerClient, *arguments: object) -> None:
        raise PeerError("nobody is there")

    monkeypatch.setattr(OwnerClient, "connect", nobody)
    if not mend:
        monkeypatch.setattr(session, "meets", lambda *arguments: None)
    make_credentials(tmp_path / "keys", [f"owner{j}" for j in range(3)])
    plan = planned()

    def owner(index: int, account: str) -> None:
        dpmpc.Owner(
            plan, index=index, addresses=AWAY, tls=tmp_path / "keys", account=tmp_path / account,
            limits=dpmpc.Limits(epsilon=math.inf),
        )  # fmt: skip

    for index, account in ((1, "mine"), (1, "mine"), (2, "another's")):
        with refuses("peer", "nobody is there"):
            owner(index, account)
    with pytest.raises(UsageError if mend else PeerError) as caught:
        owner(2, "mine")
    assert ("this one is owner 1, and would be owner 2" in str(caught.value)) == mend
    owner_file = tmp_path / "mine" / "seals" / f"{plan.digest(FIRST_ATTEMPT).hex()[:32]}.owner"
    assert owner_file.exists() == mend


def test_who_stands_for_whom(tmp_path: Path) -> None:
    plan, account = planned(), Account(tmp_path)
    meets(plan, (0, 3), parse_endpoints(AWAY), account)  # a process that plays them all, by its own word
    meets(plan, (2, 3), parse_endpoints(HERE), account)  # a trial: nobody elsewhere has a sum of it, but by a tunnel
    assert not list(tmp_path.iterdir())
    meets(plan, (2, 3), parse_endpoints([*HERE[:2], AWAY[2]]), account)
    with refuses("unique", 2, 0, setting="account"):
        meets(plan, (0, 1), parse_endpoints(AWAY), account)
    meets(planned(epsilon=0.5), (0, 1), parse_endpoints(AWAY), account)  # another plan
    assert Standing(tmp_path, plan.digest(FIRST_ATTEMPT)).known() == {2}


def test_of_records_without_a_name_the_users_account_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their account ends with the process; who it is under a plan does not."""
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path))
    plan = planned(data_id="vectors")
    meets(plan, (1, 2), parse_endpoints(AWAY), Account(process_folder()))
    assert Standing(tmp_path, plan.digest(FIRST_ATTEMPT)).known() == {1}
