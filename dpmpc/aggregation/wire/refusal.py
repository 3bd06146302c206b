"""How a process that refuses to take part tells the others before it has met them, so that nobody waits for it.

Limits, a budget, records that do not fit, an account that was put back: such a process ends before a meeting, or in it.
One that was not there yet calls every party at its port for owners, shows its certificate where there is TLS, says who
it is, and leaves. Why stays on its own screen: the reason may be a word of its records. A party that hears it while it
still waits ends, and tells everybody who is there the same; parties that listen later hear nothing. Where owners may be
missing an owner's refusal ends nothing.

Guarantees: with TLS nobody says it for somebody else, and it does no more than to stay away does, only sooner. While a
process of that name is connected it is not heard: then a second one was started by mistake.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dpmpc.aggregation.plan.identities import certificate_name, greeting
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import ASKING, HELLO
from dpmpc.aggregation.wire.news import answer
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.listener import Refused
from dpmpc.mpc.transport.tls import Tls
from dpmpc.processes.background import Background

OWNERS = 3 << 30  # added to the first owner: these refuse to take part
PARTY = ASKING - 1  # in place of the first owner: party `end` refuses


def is_refusal(first: int) -> bool:
    """Whether a greeting that begins so says that its process refuses to take part."""
    return OWNERS <= first < ASKING


def refuser(plan: Plan, first: int, end: int) -> tuple[str, str]:
    """(what others call the process that says so, the name that its certificate must be for). Errors: Refused for one
    that the plan does not have."""
    if first == PARTY and end < plan.parties:
        return f"party {end}", f"party{end}"
    owner = first - OWNERS
    if first == PARTY or not owner < end <= plan.owners:
        raise Refused("a process that refuses to take part is one of the plan; another number came; mend <<index>>")
    return owners_called(owner, end), certificate_name(plan, owner, end)


def owners_called(first: int, end: int) -> str:
    """What the process of these owners is called in messages."""
    return f"owner {first}" if end == first + 1 else f"the owners' process ({first}..{end - 1})"


@contextlib.contextmanager
def refusal_told(
    plan: Callable[[], Plan],
    parties: Callable[[], Sequence[Endpoint]],
    tls: Path | None,
    *,
    party: int | None = None,
    owners: tuple[int, int] | None = None,
) -> Iterator[None]:
    """Tells the others where what is inside raises a UsageError, which goes on. `parties`: where they listen for
    owners; `party` or `owners`: which process this is; `plan`, like `parties`, is called for where somebody is to be
    told."""
    try:
        yield
    except UsageError:
        with contextlib.suppress(DpmpcError, OSError):  # who cannot be told waits, as for one that never comes
            mine = plan()
            if party is None:
                first, end = owners or (0, mine.owners)
                said, name = (first + OWNERS, end), certificate_name(mine, first, end)
            else:
                said, name = (PARTY, party), f"party{party}"
            keys = None if tls is None else Tls.load(tls, name)
            background = Background("dpmpc refusal")
            try:
                background.run(_tell(mine, parties(), keys, said, party))
            finally:
                background.stop()
        raise


async def _tell(plan: Plan, where: Sequence[Endpoint], tls: Tls | None, said: tuple[int, int], me: int | None) -> None:
    """Every party but `me` that listens now has heard it, or does not answer."""
    sites = b"" if tls is None else tls.digest
    run_id, mine = plan.session_id(plan.attempt), greeting(plan, plan.attempt, sites=sites)
    hello = HELLO.pack(*said, mine)
    calls = [answer(j, endpoint, tls, run_id, mine, hello) for j, endpoint in enumerate(where) if j != me]
    await asyncio.gather(*calls)
