"""A party in this process, beside the owner of the same site: one process, two roles, nothing between them on a wire.

The site's owner reaches its own party by a connection in memory, and all other parties as every owner does. What either
role fails with is named as that role's.
"""

import asyncio
import contextlib
import weakref
from collections.abc import Sequence
from typing import Any

from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.party.release import MakeStep, release
from dpmpc.errors import DpmpcError, reworded
from dpmpc.mpc.transport.abort_reason import Told
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.in_memory import InMemory
from dpmpc.processes.background import Background
from dpmpc.processes.supervisor import GRACE
from dpmpc.processes.worker import Emit, Log


class PartyHere:
    """The party of `job` on a loop of its own, for an `Aggregator` of the owner with the same number, whose loop it is
    too. It ends with `end`, with this object, or with this process."""

    def __init__(self, job: PartyJob, log: Log, emit: Emit, make_step: MakeStep = release) -> None:
        """Begins to connect at once."""
        self.index, self.account = job.index, job.account
        self.background = Background("dpmpc site")
        to_party, to_owner = InMemory.pair(f"party {job.index}", f"owner {job.index}")
        self.within = {job.index: to_party}
        self.secret = job.secret
        self.owner_addresses: Sequence[Endpoint] = job.owner_addresses
        self._task: asyncio.Task[None] | None = None
        self.end = weakref.finalize(self, self.background.stop)
        self.background.run(self._start(job, log, emit, make_step, to_owner))

    @property
    def parties(self) -> "PartyHere":
        """What watches the party: this."""
        return self

    async def _start(self, job: PartyJob, log: Log, emit: Emit, make_step: MakeStep, to_owner: InMemory) -> None:
        body = run_party(job, lambda text: log(f"party: {text}"), emit, make_step=make_step, within=to_owner)
        self._task = asyncio.ensure_future(body)
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())  # whoever asks is told

    async def failure(self) -> DpmpcError:
        """Returns the cause when the party fails; waits for ever otherwise."""
        assert self._task is not None
        await asyncio.wait([self._task])
        return self._error() or await asyncio.get_running_loop().create_future()

    async def cause(self, seconds: float = GRACE) -> DpmpcError | None:
        """The cause of a failure that showed elsewhere first; None where the party does not fail."""
        assert self._task is not None
        await asyncio.wait([self._task], timeout=seconds)
        return self._error()

    def _error(self) -> DpmpcError | None:
        """The party's failure, named as its own. A bug propagates."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        error = self._task.exception()
        return named(f"party {self.index}", error) if isinstance(error, DpmpcError) else self._task.result()

    def begin(self, *job: Any, **more: Any) -> None:
        """It has its job already."""

    def wait(self) -> None:
        """Returns when the party's part of the run is over. Errors: its failure."""

        async def done() -> None:
            assert self._task is not None
            with contextlib.suppress(DpmpcError):
                await asyncio.shield(self._task)
            if (error := self._error()) is not None:
                raise error

        self.background.run(done())


def named(role: str, error: DpmpcError) -> DpmpcError:
    """The same error, said to be that role's of this site; errors that say already whose they are stay."""
    if error.message.startswith("as "):
        return error
    if isinstance(error, Told):
        return Told(error.cause, error.teller, role)
    return reworded(error, lambda said: f"as {role}: {said}")
