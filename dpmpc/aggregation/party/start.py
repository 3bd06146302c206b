"""How a party's part of a run begins: with an attempt that whoever started it has fixed, or with one that the parties
agree on, where processes of several machines are started again as they were."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from dpmpc.aggregation.party.archive import Archive
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.owner_gate import FINISH_SECONDS, OwnerGate
from dpmpc.aggregation.party.resume import FolderStanding, NumberedLink, Past, settle, standing
from dpmpc.aggregation.plan.asked import AGREED, Attempt
from dpmpc.aggregation.wire.attempt_token import drawn
from dpmpc.aggregation.wire.frames import OVER, RUNNING, PartyCost, unpack_result
from dpmpc.aggregation.wire.news import PAUSE, News, listen_around, past_of
from dpmpc.aggregation.wire.paths import keep_versions
from dpmpc.aggregation.wire.transcript import OpenedVectors, Transcript
from dpmpc.errors import PeerError
from dpmpc.lazy import dataclass
from dpmpc.mpc.contract.backend import Holder, Renewed, Share
from dpmpc.mpc.native.speed import Kernels, compared, kernels_in_use, versions, versions_line
from dpmpc.mpc.transport.abort_reason import because
from dpmpc.mpc.transport.heartbeat import Heartbeat
from dpmpc.mpc.transport.link import Link
from dpmpc.mpc.transport.tls import Tls
from dpmpc.processes.worker import Log

_TIMES = 8  # that others are asked for what they opened


def standing_of(job: PartyJob) -> FolderStanding:
    """What the job's folder tells; nothing where its attempt is fixed. To be asked while its ledger is locked."""
    return standing(job.plan, job.out, job.index) if job.attempt == AGREED else FolderStanding()


def reserved_for(job: PartyJob, found: FolderStanding) -> Attempt:
    """An attempt that has every release which this party may come to make."""
    return Attempt(found.attempts, found.spent) if job.attempt == AGREED else job.attempt


@dataclass
class PartyStart:
    """What is needed before the first release. `greeting`: the digest that processes compare."""

    job: PartyJob
    holder: Holder[Share]
    gate: OwnerGate
    link: Link
    greeting: bytes
    tls: Tls | None
    log: Log
    heartbeat: Heartbeat
    say: Callable[[str], None] = lambda text: None  # to the log, and to whoever looks on
    goes_on: Callable[[list[int]], None] = lambda parties: None  # hears that these have the rest of the run

    async def meet(self, found: FolderStanding, transcript: Transcript, opened: OpenedVectors) -> Attempt | None:
        """The attempt, when parties and owners are there; None where the others say that the run is over."""
        job = self.job
        if job.attempt != AGREED:
            self._note(transcript, job.attempt)
            await self.holder.connect(self.link, self.greeting, seconds=job.here.patience)
            self.log("connected with the other parties")
            await self.gate.admit(job.here.patience)
            await self.gate.see_accounts()
            self.gate.token, _ = await drawn(self.holder)
            return job.attempt
        numbers: list[int] = []
        link = NumberedLink(self.link, found.attempts, partial(self._number, numbers))
        try:
            if not await self._connected(self.holder.connect(link, self.greeting, seconds=job.here.patience)):
                return None
        except PeerError as error:
            raise error if job.plan.dropouts else self.gate.beside(error) from None
        self.gate.state = RUNNING
        number = numbers[0] if numbers else found.attempts
        self.log(f"connected with the other parties: attempt {number}")
        await self.gate.admit(job.here.patience)
        await self.gate.see_accounts()
        spent = max(found.spent, await self.gate.spent())
        attempt, past = await settle(job.plan, self.holder, number, spent, found.past)
        await self._draw()
        self._note(transcript, attempt)
        self.keep(past, found, transcript, opened)
        if attempt.first_release:
            self.log(f"the run goes on with release {attempt.first_release}; {len(past)} were opened before")
        self.gate.begin(attempt, past)
        return attempt

    def keep(self, past: Past, found: FolderStanding, transcript: Transcript, opened: OpenedVectors) -> None:
        """Has on disk what others have told of releases that this party did not open."""
        for release in sorted(past.keys() - found.past.keys()):
            total, _, present = unpack_result(self.job.plan, past[release])
            if present is not None:
                transcript.note("told", of=release, owners=list(present))
                transcript.flush()
            opened.append(release, total)

    async def ended_without(self, found: FolderStanding, transcript: Transcript, opened: OpenedVectors) -> None:
        """The others have finished without this party. Where another stage follows it takes part in that, and has what
        they opened."""
        if self.job.followed:
            self.keep(await self.told(), found, transcript, opened)
            self.say("the others finished this stage without this party, which has what they opened, and goes on")
        else:
            self.say("the run is over: the others finished it without this party; the owners have the model")

    async def told(self) -> Past:
        """What the others opened in a run that is over, as all tell it that answer. Errors: PeerError where they
        differ."""
        job, told = self.job, list[Past]()
        for again in range(_TIMES):  # between two stages nobody listens for a moment
            await asyncio.sleep(PAUSE if again else 0)
            for j, endpoint in enumerate(job.owner_addresses):
                if j != job.index:
                    past = await past_of(j, endpoint, self.tls, job.plan, self.greeting, job.index)
                    told += [] if past is None else [past]
            if told:
                break
        everything = {release: payload for past in told for release, payload in past.items()}
        if any(past[release] != everything[release] for past in told for release in past):
            raise PeerError("all parties must hold the same opened vectors; they tell different ones; restore folders")
        return everything

    async def _draw(self) -> None:
        """The attempt's token; and a word on the kernels of all processes, once a run, where those are on several
        machines."""
        mine = await asyncio.to_thread(kernels_in_use)
        self.gate.token, said = await drawn(self.holder, mine.pack())
        parties = {f"party {party}": Kernels.unpack(payload) for party, payload in sorted(said.items())}
        owners = {name: Kernels.unpack(payload) for name, payload in self.gate.kernels.items()}
        everybody = dict(sorted({f"party {self.job.index}": mine, **parties}.items())) | owners
        if self.job.begins:
            found = versions(everybody)
            self.log(versions_line(found))
            keep_versions(self.job.out, self.job.index, found)
            if line := compared(everybody):
                self.say(line)

    def _number(self, numbers: list[int], number: int) -> None:
        """The attempt's number is agreed on, and everything is bound to it from now on."""
        numbers.append(number)
        holder = self.holder
        if not isinstance(holder, Renewed):  # holds under -O too: streams would come again
            raise AssertionError(f"the backend {self.job.plan.backend} resumes, but its holder has no run_id")
        holder.run_id = self.job.plan.session_id(Attempt(number))

    async def _connected(self, connect: Coroutine[Any, Any, None]) -> bool:
        """Whether all parties have come; False as soon as one says that the run is over. Where the run goes on without
        this party, it does not matter that others do not come, or leave again, as long as one of them says so."""
        job, said, heard = self.job, set[int](), set[int]()

        def hear(party: int, news: News) -> bool:
            state, gone = news
            if state == OVER or (state == RUNNING and job.index in gone):
                if not said:
                    self.goes_on([j for j in range(job.plan.parties) if j != job.index and j not in gone])
                    self.heartbeat.instead = "the end of the run, which goes on without this party"
                said.add(party)
                heard.add(party)
            return state == OVER

        connecting = asyncio.ensure_future(connect)
        run_id = job.plan.session_id(AGREED)
        around = listen_around(job.owner_addresses, self.tls, run_id, self.greeting, job.index, hear)
        asking, why = asyncio.ensure_future(around), None
        try:
            await asyncio.wait([connecting, asking], return_when=asyncio.FIRST_COMPLETED)
            while heard and connecting.done() and isinstance(connecting.exception(), PeerError) and not asking.done():
                heard.clear()
                await asyncio.wait([asking], timeout=job.here.patience)
            if asking.done() and not (connecting.done() and connecting.exception() is None):
                return False
            connecting.result()
            return True
        except asyncio.CancelledError as error:
            why = because(error)
            raise
        finally:
            self.heartbeat.instead = ""
            connecting.cancel(why)
            asking.cancel()
            await asyncio.gather(connecting, asking, return_exceptions=True)

    def _note(self, transcript: Transcript, attempt: Attempt) -> None:
        plan = self.job.plan
        transcript.note(
            "start",
            run=plan.run_id,
            attempt=attempt.number,
            party=self.job.index,
            plan=plan.digest(attempt).hex(),
            first_release=attempt.first_release,
        )
        transcript.flush()

    async def attend(self, number: int, cost: PartyCost, delivered: set[int], transcript: Transcript) -> None:
        """The run is over; owners that missed the end get it, for a while."""
        job = self.job

        def note(first: int, end: int) -> None:
            transcript.note("delivered", owners=[first, end])
            transcript.flush()

        archive = Archive(job.plan, number, lambda: standing(job.plan, job.out, job.index).past, cost, delivered, note)
        await self.gate.linger(archive, cost, min(job.here.patience, FINISH_SECONDS), followed=job.followed)
