"""Questions in a Flower app: `private_answers` for the ClientApp's queries, and `ask` for the ServerApp.

A client's records are read by dpmpc, which computes what the plan says and seals shares of that; the app and the server
see none of it.
"""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.here import Here, ServerKeywords
from dpmpc.aggregation.plan.limits import NO_LIMITS, Limits
from dpmpc.errors import PeerError, UsageError
from dpmpc.flower.courier import Courier
from dpmpc.flower.messages import asking, read_replies
from dpmpc.flower.mod import Sealing
from dpmpc.flower.places import Places
from dpmpc.flower.prepared import Prepared, read_prepared
from dpmpc.flower.tables import asked_in, mean_of
from dpmpc.flower.words import RECORD, needs_flower
from dpmpc.folders import said_path
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.outcome import Level
from dpmpc.records.loading import Source
from dpmpc.settings import keywords
from dpmpc.tables.stats import Statistics

try:
    from flwr.app import Context, Message, RecordDict
    from flwr.serverapp import Grid
except ImportError as error:
    raise needs_flower(error) from None

LOG = logging.getLogger("flwr")
QUERY = "query"  # the type of the messages
_LOOK = 0.5  # seconds between two looks for nodes


def private_answers(
    prepared: Prepared | Path | str,
    records: Source | Callable[[Context], Source],
    *,
    limits: Limits = NO_LIMITS,
    account: Path | str | None = None,
    spelling: Spelling = PLAIN,
    owners: int | Collection[int] | None = None,
) -> "PrivateAnswers":
    """What a ClientApp does with a query: `client.query()(private_answers("flower.json", records))`.

    `records`: a file, a data frame and so on, as of `dpmpc.stats`, or a function of Flower's context that returns one;
    `spelling`: how they are spelled. Where they do not fit the plan zeros are sealed, this process logs what is wrong,
    and nobody else can tell: `check_records` says it before. The rest as of `private_mod`. Errors: UsageError for a
    plan that asks nothing, or does not keep the limits.
    """
    return PrivateAnswers(read_prepared(prepared), records, limits, account, spelling, owners)


class PrivateAnswers(Sealing):
    """See `private_answers`."""

    def __init__(
        self,
        prepared: Prepared,
        records: Source | Callable[[Context], Source],
        limits: Limits,
        account: Path | str | None,
        spelling: Spelling,
        owners: int | Collection[int] | None,
    ) -> None:
        asked_in(prepared)
        limits.check(prepared.plan)
        super().__init__(prepared, limits, None if account is None else said_path(account, "account"), owners)
        self._records, self._spelling = records, spelling

    def __call__(self, message: Message, context: Context) -> Message:
        """Sealed shares of what this client's records come to; zeros' where they come to nothing, and its own log says
        why not."""
        return self.answered(message, context, lambda owner: self._mean(owner, context))

    def _mean(self, owner: int, context: Context) -> Floats:
        source = self._records(context) if callable(self._records) else self._records
        return mean_of(self._prepared.plan, owner, source, self._spelling)


@keywords(Here)
def ask(
    grid: Grid,
    prepared: Prepared | Path | str,
    *,
    addresses: list[str] | None = None,
    keys: Path | str | None = None,
    budget: tuple[float, float] | None = None,
    about: Literal["data", "population"] = "data",
    confidence: float = 0.95,
    timeout: float = 3600.0,
    **own: Unpack[ServerKeywords],
) -> Statistics:
    """The answers to the questions of a plan, of all clients that answer, in a ServerApp's main: as `dpmpc.stats`
    returns them. Which owners those are is in `present`.

    `timeout`: how many seconds to wait for as many nodes as a release needs, and again for answers; `wait`: for the
    parties. `about`, `confidence`: what intervals
    hold. `out`: a new folder for answers, report.json and, of parties here, ledgers and transcripts; the rest as of
    `PrivateStrategy`. With parties elsewhere a run that was interrupted is carried on by the same call: what was opened
    is answered again, and nobody is asked.

    Errors: UsageError; PeerError when too few clients answer, which spends nothing, or a party leaves.
    """
    plan_and_keys = read_prepared(prepared)
    tables, plan = asked_in(plan_and_keys), plan_and_keys.plan
    places = Places.of(prepared, plan_and_keys, keys, budget, addresses, own)
    presence: dict[int, Sequence[int]] = {}
    with places.courier() as courier:
        try:
            past = courier.past
            if not past and courier.next >= plan.releases:
                raise UsageError("a plan's questions are asked once; its release is lost or spent; prepare again")
            mean, release = past[0] if past else _opened(grid, plan_and_keys, courier, timeout)
            who = tuple(release.present or range(plan.owners))
            presence[release.number] = who
        finally:
            about_it: dict[str, Any] = {"queries": [str(query) for query in tables.queries]}
            places.write(places.report(courier, about_it, presence, []))
    total = mean * sum(plan.sizes[j] for j in who)
    found = Statistics(plan, total, Level(confidence, about), promise_of(plan).sentence, present=who)
    if places.out is not None:
        if not (places.out / "plan.json").exists():
            plan.write(places.out / "plan.json")
        found.write(places.out)
    return found


def _opened(grid: Grid, prepared: Prepared, courier: Courier, timeout: float) -> tuple[Floats, Any]:
    """(mean (dimension,), release): of what the clients sealed. Errors: as `ask`."""
    plan, nodes = prepared.plan, _nodes(grid, prepared.plan.fewest, timeout)
    messages = [
        Message(RecordDict({RECORD: asking(prepared, courier, k % plan.owners)}), node, QUERY)
        for k, node in enumerate(nodes)
    ]
    found = read_replies(prepared, grid.send_and_receive(messages, timeout=timeout), courier.next)
    for problem in found.problems:
        LOG.warning("a client's reply is left out: %s", problem)
    if len(found.sealed) < plan.fewest:
        courier.skip()
        raise PeerError(
            f"a release needs {plan.fewest} of {plan.owners} owners; {len(found.sealed)} answered; nothing is spent; "
            "they seal no second time, so prepare again"
        )
    return courier.deliver(found.sealed)


def _nodes(grid: Grid, fewest: int, timeout: float) -> list[int]:
    """All nodes, when there are so many. Errors: PeerError when there are not within `timeout` seconds."""
    end = time.monotonic() + timeout
    while len(nodes := sorted(grid.get_node_ids())) < fewest:
        if time.monotonic() > end:
            raise PeerError(
                f"a release needs {fewest} owners; {len(nodes)} nodes are there after {timeout:g} s; start more"
            )
        time.sleep(_LOOK)
    return nodes
