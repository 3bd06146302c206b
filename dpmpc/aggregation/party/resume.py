"""Where a run goes on: the parties compare what each knows of it and agree on the attempt, its first release, and what
was opened before.

The next attempt's number is above every number that a party has begun; it is agreed on as soon as all have met, before
any key is made, so no stream of randomness of an earlier attempt can come again. Its first release is the one after the
last of which any ledger has a line: a party's, whose line was on disk before its share left, or an owner's, whose line
was there before its vector's; of a run of one release an owner's line follows when it is opened (`owner.own_ledger`),
so that it can be made again where no party has a line. An opened release has t + 1 parties' lines; noise is made by all
parties, so all come together before anything else can be opened, and one of them knows it. What was opened is told to
those that lack it.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path

from dpmpc.aggregation.plan.asked import Asked, Attempt, Presence
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import COUNT, exact, pack_result, result_size
from dpmpc.aggregation.wire.paths import ledger_path, opened_path, transcript_path
from dpmpc.aggregation.wire.transcript import ABORT, read_opened, read_transcript
from dpmpc.errors import PeerError, UsageError
from dpmpc.lazy import dataclass
from dpmpc.mpc.contract.backend import BACKENDS, Holder, Share
from dpmpc.mpc.contract.security import Checks
from dpmpc.mpc.transport.abort_reason import public_reason
from dpmpc.mpc.transport.channels import MOST_RELEASES, NUMBER, PAST, STANDING
from dpmpc.mpc.transport.link import Connection, Hello, Link, Observe, OnLost, part
from dpmpc.privacy.ledger import Ledger

_DIGEST = 16  # bytes of a vector's digest; zeros: not here
Past = dict[int, bytes]  # release -> what owners are sent of it


@dataclass(frozen=True)
class FolderStanding:
    """What a party's folder tells of a run. `attempts`: that were begun. `spent`: one more than the last release with a
    ledger line. `past`: what was opened. `over`: whether the last release was. `delivered`: the owners that have got
    everything."""

    attempts: int = 0
    spent: int = 0
    past: Past = field(default_factory=dict)
    over: bool = False
    delivered: frozenset[int] = frozenset()


def check_attempt(plan: Asked, attempt: Attempt, transcript: Path) -> None:
    """Errors: UsageError for an attempt of a run in which this party saw a check fail, or one too many."""
    backend = BACKENDS[plan.backend]
    if isinstance(backend, Checks) and attempt.number >= backend.most_attempts:
        raise UsageError(
            f"a run with <<security=active>> has at most {backend.most_attempts:,} attempts, for each is a try for a "
            f"cheat; this is number {attempt.number + 1:,}; start a new run",
            code="range",
        )
    if transcript.exists() and any(event.get("event") == ABORT for event in read_transcript(transcript)):
        raise UsageError(
            f"a run in which a check of the parties failed is over for good; {transcript} tells which; find out who "
            "cheated, then start a new run",
            code="over",
        )


def spent_releases(ledger: Path, run_id: str) -> int:
    """One more than the number of the run's last release that this ledger counts, 0 without one: it has a line, torn or
    not, or an attempt began here after it, so others have spent it."""
    if not ledger.exists():
        return 0
    book = Ledger.read(ledger)
    known = [entry.release + 1 for entry in book.entries if entry.run == run_id]
    known += [gap.end for gap in book.gaps if gap.entry.run == run_id]
    return max(known, default=book.unknown)


def check_new(ledgers: Iterable[Path], run_id: str) -> None:
    """Errors: UsageError where one of these ledgers has releases of this run, which is about to be replaced."""
    for ledger in ledgers:
        if spent := spent_releases(ledger, run_id):
            raise UsageError(
                f"a run spends each release once, so <<overwrite>> needs a new <<run_id>>; {ledger} has {spent} of run "
                f"{run_id}; give another <<run_id>>, or plan again",
                code="over",
            )


def standing(plan: Plan, out: Path, party: int) -> FolderStanding:
    """What is in a party's folder. Errors: UsageError for files that are not as they were written."""
    transcript = transcript_path(out, party)
    events = read_transcript(transcript) if transcript.exists() else []
    ledger = ledger_path(out, party)
    present: dict[int, Presence] = {}
    if plan.names_owners:
        entries = Ledger.read(ledger).entries if ledger.exists() else ()
        present = {e.release: e.present for e in entries if e.run == plan.run_id and e.present is not None}
        present |= {event["of"]: tuple(event["owners"]) for event in events if event["event"] == "told"}
    past = {
        release: pack_result(plan, total, 0, present.get(release))
        for release, total in read_opened(opened_path(out, party), plan.dimension).items()
        if release in present or not plan.names_owners
    }
    starts = [event["attempt"] for event in events if event["event"] == "start"]
    ends = [k for k, event in enumerate(events) if event["event"] == "end"]
    delivered = {j for event in events if event["event"] == "delivered" for j in range(*event["owners"])}
    spent = min(spent_releases(ledger, plan.run_id), plan.releases)
    return FolderStanding(max(starts, default=-1) + 1, spent, past, bool(ends), frozenset(delivered))


class NumberedLink:
    """A link whose parties agree on the attempt's number before anything else is said."""

    def __init__(self, link: Link, attempts: int, agreed: Callable[[int], None]) -> None:
        """`attempts`: those that this party has begun. `agreed` is told the number."""
        self._link, self._attempts, self._agreed = link, attempts, agreed

    async def connect(
        self, hello: Hello, run_id: bytes, seconds: float, on_lost: OnLost, observe: Observe | None
    ) -> Mapping[int, Connection]:
        """As `Link.connect`."""
        peers = await self._link.connect(hello, run_id, seconds, on_lost, observe)
        try:
            self._agreed(await self._number(peers))
        except BaseException as error:  # nobody else has these connections yet
            await part(peers.values(), public_reason(f"party {hello.party}", error))
            raise
        return peers

    async def _number(self, peers: Mapping[int, Connection]) -> int:
        for peer in peers.values():
            peer.send(NUMBER, COUNT.pack(self._attempts))
        coming = [(peer, peer.receive(NUMBER)) for peer in peers.values()]
        numbers = [int(COUNT.unpack(exact(peer, await each, COUNT.size))[0]) for peer, each in coming]
        number = max([self._attempts, *numbers])
        if number >= MOST_RELEASES:
            raise PeerError(f"a run has fewer than {MOST_RELEASES} attempts; got number {number}; start a new run")
        return number

    def abandon(self) -> None:
        """As `Link.abandon`."""
        self._link.abandon()


async def settle(plan: Plan, holder: Holder[Share], number: int, spent: int, past: Past) -> tuple[Attempt, Past]:
    """(the attempt, all that was opened before it). `spent`: as this party and the owners know it; `past`: what this
    party has. Two exchanges. Errors: PeerError where two parties have opened different vectors of one release."""
    if spent > plan.releases:
        raise PeerError(f"an owner says that {spent} of {plan.releases} releases are spent; copy plan.json again")
    me = holder.party
    peers = {party: peer for peer, party in holder.connections().items()}
    mine = [_short(past.get(release)) for release in range(max(past, default=-1) + 1)]
    for peer in peers.values():
        peer.send(STANDING, COUNT.pack(spent) + b"".join(mine))
    coming = {j: peer.receive(STANDING) for j, peer in peers.items()}
    known = {me: mine}
    for j, each in coming.items():
        theirs, known[j] = _unpack(plan, peers[j], await each)
        spent = max(spent, theirs)
    attempt = Attempt(number, max(spent, *(len(digests) for digests in known.values())))
    have = {j: {r: digest for r, digest in enumerate(digests) if any(digest)} for j, digests in known.items()}
    everything = dict[int, bytes]()
    for j, digests in have.items():
        for release, digest in digests.items():
            if everything.setdefault(release, digest) != digest:
                raise PeerError(
                    f"all parties must hold the same opened vectors; release {release} differs at party {j}; restore "
                    "its folder"
                )
    teller = {release: min(j for j in have if release in have[j]) for release in everything}
    for j, peer in peers.items():
        lacking = [r for r in sorted(everything) if teller[r] == me and r not in have[j]]
        if lacking:
            peer.send(PAST, b"".join(past[r] for r in lacking))
    found = dict(past)
    size = result_size(plan)
    for j, peer in peers.items():
        lacking = [r for r in sorted(everything) if teller[r] == j and r not in have[me]]
        if not lacking:
            continue
        payload = bytes(exact(peer, await peer.receive(PAST), size * len(lacking)))
        for k, release in enumerate(lacking):
            found[release] = payload[k * size : (k + 1) * size]
            if _short(found[release]) != everything[release]:
                raise PeerError(f"party {j} told another vector of release {release} than it has; start all again")
    return attempt, dict(sorted(found.items()))


def _short(payload: bytes | None) -> bytes:
    return bytes(_DIGEST) if payload is None else hashlib.sha256(payload).digest()[:_DIGEST]


def _unpack(plan: Plan, peer: Connection, payload: bytearray) -> tuple[int, list[bytes]]:
    length = len(payload) - COUNT.size
    if length < 0 or length % _DIGEST or length // _DIGEST > plan.releases:
        raise PeerError(f"{peer.name} sent {len(payload)} bytes of what it knows; are all parties of one version?")
    spent = COUNT.unpack(payload[: COUNT.size])[0]
    if spent > plan.releases:
        raise PeerError(f"{peer.name} has spent {spent} of {plan.releases} releases; copy plan.json again")
    return spent, [bytes(payload[at : at + _DIGEST]) for at in range(COUNT.size, len(payload), _DIGEST)]
