"""An owner that leaves just when a release has been opened: what the parties' transcripts say of it then."""

import asyncio
from pathlib import Path

import numpy as np

from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, plan_path
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import BACKENDS, Holder, Share
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of
from dpmpc.mpc.transport.wire import Peer
from dpmpc.verify.canaries import canary_plan
from dpmpc.verify.structure import check_structure
from tests.runs import HANG

PARTIES = 3


def gone(stage: str, release: int, holder: Holder[Share], gate: OwnerGate) -> None:
    """Its connection has ended, and nobody was told yet."""
    if stage == "open":
        for peer in gate.connections():
            assert isinstance(peer, Peer)
            peer.lost = "connection closed"


async def owner(plan: Plan, where: list[Endpoint]) -> None:
    client = OwnerClient(plan, FIRST_ATTEMPT, 0, plan.owners)
    try:
        await client.connect(where, HANG)
        await client.ready()
        zeros = np.zeros((plan.owners, plan.dimension), dtype=np.int64)
        await client.send(0, 0, BACKENDS[plan.backend].dealer(plan.parties, plan.threshold).deal(zeros))
        await client.opened(0)
    finally:
        client.abandon()


async def attempt(plan: Plan, out: Path) -> list[BaseException | None]:
    """How the parties ended, and the owners."""
    bound = [bound_socket() for _ in range(2 * PARTIES)]
    where = [endpoint_of(s) for s in bound]
    parties = []
    for i in range(PARTIES):
        numbers = bound[i].detach(), bound[PARTIES + i].detach()
        job = PartyJob(plan, i, where[:PARTIES], where[PARTIES:], Here(out=out, wait=HANG), sockets=numbers)
        parties.append(run_party(job, lambda text: None, lambda event, **fields: None, gone))
    async with asyncio.timeout(HANG):
        return await asyncio.gather(*parties, owner(plan, where[PARTIES:]), return_exceptions=True)


def test_an_opening_that_no_owner_hears_of_is_in_the_transcript_whole(tmp_path: Path) -> None:
    """Else a run of honest parties would fail its verification for good: opened without a record of its frames."""
    plan = canary_plan("gaussian", 2, 4, 2, epsilon=2, delta=1e-3, parties=PARTIES, threshold=1)
    plan.write(plan_path(tmp_path))
    ended = asyncio.run(attempt(plan, tmp_path))
    assert all(isinstance(each, PeerError) for each in ended), ended
    structure = check_structure(tmp_path)
    assert structure.holds, structure.failed
    assert "1 of 2 releases were opened" in structure.note
