"""Runs in which every owner is a party: one process a site. All sites of a run on this machine, and what each does.

The command's own process splits the records, starts the sites, and follows what they open; it takes no part in the
protocol. A site gets its own records only, on its standard input.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner.accounts import NO_BOOKS, Books
from dpmpc.aggregation.owner.imports import PRELOAD
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.party.beside_owner import PartyHere, named
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.plan.asked import Attempt, plan_path
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.errors import DpmpcError
from dpmpc.lazy import dataclass
from dpmpc.learning.method import Learner
from dpmpc.local.learns import Learns
from dpmpc.processes.closing import Closing
from dpmpc.processes.supervisor import Event, Process
from dpmpc.processes.worker import Emit, Log
from dpmpc.records.blocks import Records, in_memory
from dpmpc.run.owners import Made, nobody
from dpmpc.run.resume import Since
from dpmpc.run.run import release
from dpmpc.run.seat import Seat
from dpmpc.run.stages import StagePart

ROLE = "dpmpc.local.sites:serve"
_TELLS = 0  # the site whose owner tells the command what was opened: all owners see the same


def serve(
    *, job: dict[str, Any], X: Any, y: Any, known: Mapping[str, Ints], emit: Emit, log: Log
) -> list[bytes] | None:
    """The role of one site's process: owner and party with the number of `job`. `known`: what was opened before, by
    release. Returns the parties' costs at the site that tells, as `PartyCost.pack` has them."""
    mine = PartyJob.from_json(job)
    tell: Emit = emit if mine.index == _TELLS else nobody
    party = PartyHere(mine, log, nobody)

    def say(text: str) -> None:
        log(f"owner: {text}")
        tell("waiting", text=text)

    seat = Seat(
        mine.here.but(out=None), parties=party, addresses=mine.owner_addresses, owners=(mine.index, mine.index + 1),
        say=say,
    )  # fmt: skip
    since = Since(mine.attempt, {int(number): total for number, total in known.items()})
    with contextlib.ExitStack() as stack:  # failures are said to be the owner's, unless they are the party's
        stack.callback(party.end)
        try:
            owner = _Owner(mine, in_memory(X, y), tell, log)
            ended = release(StagePart(mine.plan, mine.plan), owner, seat, since=since).ended
        except DpmpcError as error:
            raise named(f"owner {mine.index}", error) from None
    assert ended is not None
    return [cost.pack() for cost in ended.costs] if mine.index == _TELLS else None


class _Owner(Learns):
    """The owner of a site whose records are here; the command writes down what comes of them."""

    def __init__(self, job: PartyJob, records: Records, tell: Emit, log: Log) -> None:
        plan, own = job.plan, job.plan.sizes[job.index : job.index + 1]
        super().__init__(plan, Learner(plan.learning, plan.releases, records, own), self._hears)
        self._tell, self._log = tell, log

    def takes(self, release: Release, made: Made | None) -> None:
        super().takes(release, made)
        if made is not None:
            present = None if release.present is None else list(release.present)
            self._tell("opened", release=release.number, total=release.total, sent=release.bytes_sent, present=present)

    def _hears(self, event: str, **fields: Any) -> None:
        if event == "connections":
            self._log("owner: connected with all parties")
        if event == "ready":
            self._tell(event, **fields)


class SitesHere:
    """The sites of a run on this machine. They import what they need while records are loaded; `of` gives them their
    jobs and is followed as an `Aggregator` is."""

    def __init__(self, sites: int, here: Here, books: Books = NO_BOOKS) -> None:
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._say: Callable[[str], None] = lambda text: None
        self._here = PartiesHere(
            sites,
            here,
            books,
            role=ROLE,
            name="site",
            on_event=self._hear,
            preload=("dpmpc.local.sites", *PRELOAD),
        )
        self.end = self._here.end

    def _hear(self, process: Process, event: Event) -> None:
        self._events.put_nowait(event)

    def of(
        self,
        plan: Plan,
        attempt: Attempt,
        out: Path,
        records: Records,
        known: Mapping[int, Ints],
        *,
        say: Callable[[str], None] = lambda text: None,
    ) -> "SitesRun":
        """Begin. `records`: of all owners, sorted by owner; each site is given its own. `say` gets the lines on who is
        waited for."""
        self._say = say
        plan.write(plan_path(out))
        ends = np.cumsum(plan.sizes)
        own = []
        for end, size in zip(ends.tolist(), plan.sizes, strict=True):
            part = records.part(end - size, end)
            opened = {str(release): total for release, total in known.items()}
            own.append({"X": np.ascontiguousarray(part.X), "y": part.y, "known": opened})
        self._here.begin(plan, attempt, own)
        return SitesRun(attempt, self)

    def next(self, kind: str) -> Event:
        """The next event, of this kind; who is waited for meanwhile is said. Errors: the cause, where a site fails
        first."""

        async def wait() -> Event:
            event = asyncio.ensure_future(self._events.get())
            failure = asyncio.ensure_future(self._here.parties.failure())
            try:
                await asyncio.wait([event, failure], return_when=asyncio.FIRST_COMPLETED)
                if event.done():
                    return event.result()
                raise failure.result()
            finally:
                for task in (event, failure):
                    task.cancel()
                await asyncio.gather(event, failure, return_exceptions=True)

        while (found := self._here.background.run(wait()))["event"] == "waiting":
            self._say(found["text"])
        assert found["event"] == kind
        return found

    def wait(self) -> Sequence[Any]:
        """What every site's role returned."""
        return self._here.wait()


@dataclass
class _Followed:
    """How far the sites have come (`Progress`)."""

    attempt: Attempt
    next: int
    bytes_before: int = 0
    parties_lost: list[int] = field(default_factory=list)  # of sites none may leave


class SitesRun(Closing):
    """What the sites open, as it comes (`OpensSums`), as a context."""

    def __init__(self, attempt: Attempt, sites: SitesHere) -> None:
        self.session, self._sites = _Followed(attempt, attempt.first_release), sites
        self._costs: list[PartyCost] = []

    def wait_for_noise(self) -> None:
        """See `OpensSums`."""
        self.session.bytes_before = int(self._sites.next("ready")["sent"])

    def catch_up(self) -> list[Release]:
        """None: the command is there from the beginning."""
        return []

    def open(self, vectors: object) -> Release:
        """The next release; the sites' own vectors go in, not `vectors`."""
        event = self._sites.next("opened")
        total = np.asarray(event["total"], dtype=np.int64)
        present = event["present"]
        self.session.next += 1
        return Release(int(event["release"]), total, int(event["sent"]), None if present is None else tuple(present))

    def costs(self) -> list[PartyCost]:
        """Every party's costs, when all sites have ended."""
        if not self._costs:
            self._costs = [PartyCost.unpack(cost) for cost in self._sites.wait()[_TELLS]]
        return self._costs

    def finish(self) -> list[PartyCost]:
        """See `OpensSums`."""
        return self.costs()

    def close(self) -> None:
        self._sites.end()
