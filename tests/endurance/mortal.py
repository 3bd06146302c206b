"""The role of a party that kills itself at one point of one release. kill_parties.py has parties play it in place of
their own.

KILL = "party:point:release" in the environment says who dies where. A point is one of `POINTS`, or "event K": before
the K-th write, sync or frame that leaves since the party began that release, or with release -1 since its process
began. Before dying at or after an opening, the process notes in its witness file what it had sent and learned by then:
what was really released, told by nobody's ledger.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import dpmpc.processes.durable
from dpmpc.aggregation.party.party import serve as live
from dpmpc.aggregation.party.release import ReleaseSteps
from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.paths import ledger_path
from dpmpc.aggregation.wire.transcript import digest
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.replicated.backend import SharingHolder
from dpmpc.mpc.transport.channels import NOISE, OPENING
from dpmpc.mpc.transport.wire import Peer
from dpmpc.mpc.two_servers.holder import TwoServersHolder
from dpmpc.privacy.ledgers import read_ledgers
from dpmpc.processes.worker import Emit, Log

POINTS = (
    "noise ahead",  # while noise is made
    "before inputs",
    "after inputs",
    "after noise",
    "after add",
    "ledger line torn",  # half of it is written
    "ledger line not synced",
    "after ledger",
    "share sent",  # the others can open, this party never does
    "opened, not kept",
    "kept, not published",
    "published",
)
EVENT = "event "
ROLE = "tests.endurance.mortal:serve"
_NOISE_ROUND = 3  # of the first batch: all parties are in the middle of it


def serve(*, job: dict[str, Any], emit: Emit, log: Log) -> None:
    """The role: a party as ever, but for its death and its witness."""
    party, point, release = os.environ["KILL"].split(":")
    mortal(int(party), point, int(release), Path(os.environ["WITNESS"]))
    if point.startswith(EVENT) and job["index"] == int(party):
        dies_at_event(int(point.removeprefix(EVENT)), int(release))
    live(job=job, emit=emit, log=log)


def die() -> NoReturn:
    """Asks whether another run could have anything of the budget, notes the answer, and ends this process. Before this
    process has reserved anything, another run may have it."""
    from tests.endurance.kill_parties import free_releases

    out, (who, _, release) = Path(os.environ["WITNESS"]), os.environ["KILL"].split(":")
    me, mine = int(who), ledger_path(out, int(who))
    held = int(release) >= 0 or (mine.exists() and any(book.reserved for book in read_ledgers(out, files=[mine])))
    free = free_releases(out, Plan.read(plan_path(out)))
    Witness(out).note(me, "reserved" if free and held else "rival", free)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def dies_at_event(number: int, release: int) -> None:
    """Makes this process die before that write, sync or frame of its; those of one release end with its publication."""
    left, counting = number, release < 0
    inputs, publish = ReleaseSteps.inputs, ReleaseSteps.publish

    async def beginning(self: ReleaseSteps, of: int) -> Any:
        nonlocal counting
        counting = counting or of == release
        return await inputs(self, of)

    def ending(self: ReleaseSteps, of: int, opened: Ints) -> None:
        nonlocal counting
        publish(self, of, opened)
        counting = counting and of != release

    def dying(call: Any) -> Any:
        def one(*arguments: Any) -> Any:
            nonlocal left, counting
            left -= counting
            if counting and not left:
                counting = False  # what it does to die is not counted
                die()
            return call(*arguments)

        return one

    patch.object(ReleaseSteps, "inputs", beginning).start()
    patch.object(ReleaseSteps, "publish", ending).start()
    for where, name in ((os, "write"), (os, "fsync"), (Peer, "send")):
        patch.object(where, name, dying(getattr(where, name))).start()


class Witness:
    """What a party sent and learned, outside all that the product writes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def note(self, party: int, kind: str, release: int, values: Ints | None = None) -> None:
        line = f"{kind} {release} {'-' if values is None else digest(values)}\n"
        with (self._directory / f"witness_{party}.txt").open("ab", buffering=0) as file:
            file.write(line.encode())


def mortal(victim: int, point: str, release: int, directory: Path) -> None:
    """Makes this process note what it releases, and die at `point` of `release` if it is the victim."""
    witness = Witness(directory)

    def reached(party: int, number: int, here: str) -> None:
        if (party, number, here) == (victim, release, point):
            die()

    # around every step of a release, by its tool
    def around(name: str, before: str, after: str) -> None:
        original = getattr(ReleaseSteps, name)

        async def waiting(self: ReleaseSteps, number: int, *rest: Any) -> Any:
            reached(self.holder.party, number, before)
            result = await original(self, number, *rest)
            reached(self.holder.party, number, after)
            return result

        def at_once(self: ReleaseSteps, number: int, *rest: Any) -> Any:
            result = original(self, number, *rest)
            reached(self.holder.party, number, after)
            return result

        patch.object(ReleaseSteps, name, waiting if asyncio.iscoroutinefunction(original) else at_once).start()

    spend = ReleaseSteps.spend

    def mortal_spend(self: ReleaseSteps, number: int) -> None:
        if (self.holder.party, number) == (victim, release):
            if point == "ledger line torn":
                patch.object(dpmpc.processes.durable, "os", _Os(write=_write_half)).start()
            if point == "ledger line not synced":
                patch.object(dpmpc.processes.durable, "os", _Os(fsync=lambda fd: die())).start()
        spend(self, number)

    def around_opening(holder: type[SharingHolder] | type[TwoServersHolder]) -> None:
        opening: Any = holder.open

        async def mortal_open(self: Any, share: Any, channel: int) -> Ints:
            number = channel - OPENING
            witness.note(self.party, "sent", number)
            task = asyncio.ensure_future(opening(self, share, channel))
            await asyncio.sleep(0)  # the task runs until it waits for the others: its own share has left
            reached(self.party, number, "share sent")
            opened: Ints = await task
            witness.note(self.party, "learned", number, opened)
            reached(self.party, number, "opened, not kept")
            return opened

        patch.object(holder, "open", mortal_open).start()

    exchange = Channel.exchange

    def mortal_exchange(
        self: Channel, outgoing: Mapping[int, Any], incoming: Sequence[int]
    ) -> Awaitable[list[bytearray]]:
        if point == "noise ahead" and (self.mesh.party, self.ident, self.rounds) == (victim, NOISE, _NOISE_ROUND):
            die()
        return exchange(self, outgoing, incoming)

    patch.object(ReleaseSteps, "spend", mortal_spend).start()
    around_opening(SharingHolder)
    around_opening(TwoServersHolder)
    patch.object(Channel, "exchange", mortal_exchange).start()
    around("inputs", "before inputs", "after inputs")
    around("noise", "", "after noise")
    around("add", "", "after add")
    around("spend", "", "after ledger")
    around("open", "", "kept, not published")
    around("publish", "", "published")


class _Os:
    """The module os for the ledger, with one call replaced."""

    def __init__(self, **replaced: Any) -> None:
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced.get(name) or getattr(os, name)


def _write_half(fd: int, data: bytes) -> NoReturn:
    os.write(fd, data[: len(data) // 2])
    die()
