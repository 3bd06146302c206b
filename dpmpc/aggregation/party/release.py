"""One release at one party: inputs -> sum -> + noise -> all have all inputs -> ledger -> open. The order of the whole
method is in `release`.

A step gets its inputs, its noise, its ledger line and its opening from `ReleaseSteps`, and each of them writes to the
transcript what it did: the transcript tells what a step used, not what it says of itself. Frames are counted below
that, by `Traffic`, so that an opening that goes around these tools is in the transcript too.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.plan.asked import Attempt, Presence
from dpmpc.aggregation.plan.barrier import SAID, has_barrier
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.owner_bounds import REJECTED, channel_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of
from dpmpc.aggregation.wire.traffic import Traffic
from dpmpc.aggregation.wire.transcript import CHECKED, SKIPPED, STAND, OpenedVectors, Transcript, digest
from dpmpc.errors import OwnerError
from dpmpc.mpc.contract.backend import Holder, Share
from dpmpc.mpc.contract.decisions import Decides
from dpmpc.mpc.contract.owner_checks import Inspects, OwnerTest
from dpmpc.mpc.contract.security import Judges
from dpmpc.mpc.transport.channels import BARRIER, DECIDED, OPENING
from dpmpc.privacy.ledger import Ledger

Observer = Callable[[str, int, Holder[Share], OwnerGate], None]  # (stage that has just ended, release, ...)


def unobserved(stage: str, release: int, holder: Holder[Share], gate: OwnerGate) -> None:
    """Does nothing."""


class Skipped(Exception):
    """A release that is not made: whoever carries owners' shares has none, and says so to all parties."""


class NoiseSource(Protocol):
    """Shares of noise vectors (d,), each handed out once with its number."""

    made: int  # vectors so far

    async def fill(self) -> None:
        """Make noise ahead."""

    async def take(self) -> tuple[int, Share]:
        """(number, share) of the next vector."""


class ReleaseSteps:
    """What a step may use; every tool notes what it does in the transcript."""

    def __init__(
        self,
        plan: Plan,
        attempt: Attempt,
        holder: Holder[Share],
        gate: OwnerGate,
        noise: NoiseSource,
        ledger: Ledger,
        transcript: Transcript,
        opened: OpenedVectors,
        traffic: Traffic,
        observe: Observer = unobserved,
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`log` hears which owners failed their checks."""
        self.plan, self.attempt, self.holder, self.gate, self.source = plan, attempt, holder, gate, noise
        self._ledger, self._transcript, self._opened, self._traffic = ledger, transcript, opened, traffic
        self._observe, self._log = observe, log
        self._price = entry_of(plan, attempt, attempt.first_release, token=gate.token.hex())
        self._stands = has_barrier(plan)
        self._judge = holder if isinstance(holder, Judges) else None
        self.rounds = 0  # of openings, and of checks of owners
        self._present: dict[int, Presence] = {}  # of releases that are under way, where owners may be missing
        self._next = attempt.first_release  # the release that is not published yet
        self._lost: list[int] = []  # parties
        self._over = False

    async def contributions(self, release: int) -> AsyncIterator[Share]:
        """This party's share (d,) of the sum of each owners' process, as it arrives."""
        if self.plan.dropouts:
            self._present[release] = await self.gate.agree(release)
            self._transcript.note("present", release=release, owners=list(self._present[release]))
        async for first, end, share in self.gate.contributions(release):
            self._transcript.note("input", release=release, owners=[first, end])
            yield share

    async def inputs(self, release: int) -> Share:
        """This party's share (d,) of the sum of all owners' vectors. No message, unless owners are checked."""
        self._observe("begin", release, self.holder, self.gate)
        total: Share | None = None
        if self.plan.derived.owner_test is not None:
            total = await self._checked(release, self.plan.derived.owner_test)
        else:
            async for share in self.contributions(release):
                total = share if total is None else self.holder.add(total, share)
        if total is None:
            total = self.holder.zero(self.plan.dimension)
        self._observe("collect", release, self.holder, self.gate)
        self._transcript.note("sum", release=release)
        return total

    async def _checked(self, release: int, test: OwnerTest) -> Share:
        """This party's share of the sum, with a zero vector in place of each owner that fails. Errors: OwnerError for
        one that fails, where that ends the run; nothing is spent then."""
        rows: list[Share] = []
        async for first, end, shares in self.gate.rows(release):
            self._transcript.note("input", release=release, owners=[first, end])
            rows += shares
        assert isinstance(self.holder, Inspects)
        rounds = self.holder.rounds
        found = await self.holder.inspect(rows, test, channel_of(release))
        self.rounds += self.holder.rounds - rounds
        self._observe("check", release, self.holder, self.gate)
        self._transcript.note(
            REJECTED, release=release, inconsistent=list(found.inconsistent), too_long=list(found.too_long)
        )
        if found.all and self.plan.check_owners == "stop":
            self._transcript.flush()
            raise OwnerError(
                f"an owner that fails its checks ends the run, by <<check_owners=stop>>; release {release}, "
                f"{found.text()}; talk to whoever runs it, or use <<check_owners=zero>>"
            )
        if found.all:
            self._log(f"release {release}: zero vectors in place of {found.text()}")
        self._present[release] = tuple(j for j in range(self.plan.owners) if j not in found.all)
        total: Share = self.holder.sum_without(rows, found.all)
        return total

    async def noise(self, release: int) -> Share:
        """This party's share (d,) of the next noise vector; the transcript has the number that the pool gave it."""
        number, vector = await self.source.take()
        self._note_verdicts()
        self._transcript.note("noise", release=release, index=self.attempt.first_release + number)
        self._observe("noise", release, self.holder, self.gate)
        return vector

    def _note_verdicts(self) -> None:
        """What was checked since this was asked last."""
        if self._judge is not None:
            for v in self._judge.verdicts():
                self._transcript.note(CHECKED, channel=v.channel, words=v.words, digest=v.digest)

    def add(self, release: int, total: Share, vector: Share) -> Share:
        """The share of sum + noise. Local."""
        share = self.holder.add(total, vector)
        self._transcript.note("add", release=release)
        self._observe("add", release, self.holder, self.gate)
        return share

    async def decide(self, release: int, total: Share, vector: Share) -> Share:
        """The share of what is decided of sum and noise: of a plan of votes, in place of `add`, and in the transcript
        as that. Nobody sees a bit of it. Errors: CheatError."""
        assert isinstance(self.holder, Decides) and self.plan.derived.decision is not None
        rounds = self.holder.rounds
        share: Share = await self.holder.decide(total, vector, self.plan.derived.decision, DECIDED)
        self.rounds += self.holder.rounds - rounds
        self._note_verdicts()
        self._transcript.note("add", release=release)
        self._observe("add", release, self.holder, self.gate)
        return share

    async def stand(self, release: int, share: Share) -> None:
        """The barrier: returns when all parties have said, for this attempt and release, that every owner's share is
        there. Nobody has sent a share of the opening before, so no input follows from one. One round, but where
        owners were agreed on or checked, which is as good. Errors: PeerError where parties say different things."""
        if not self._stands:
            return
        rounds = self.holder.rounds
        await self.holder.stand(share, SAID.pack(self.gate.token, release), OPENING + release)
        self.rounds += self.holder.rounds - rounds
        self._transcript.note(STAND, release=release)
        frames = self._traffic.take(self.holder.connections(), BARRIER + OPENING + release)
        if frames["sent"]:  # two servers have theirs on the opening's channel
            self._transcript.note("traffic", **frames)
        self._observe("stand", release, self.holder, self.gate)

    def spend(self, release: int) -> None:
        """Write the ledger line; it is on disk when this returns. Errors: UsageError for one beyond the budget."""
        present, lost = self._present.get(release), tuple(sorted(self._lost))
        line = self._ledger.append(self._price.of(release, present, lost))
        self._transcript.note("ledger", release=release, line=line)
        self._observe("ledger", release, self.holder, self.gate)

    async def open(self, release: int, share: Share) -> Ints:
        """The opened vector (d,). The transcript is with the kernel before the first byte leaves. One round."""
        self._transcript.note("send", release=release, digest=self.holder.fingerprint(share))
        self._transcript.flush()
        channel = OPENING + release
        rounds = self.holder.rounds
        opened = await self.holder.open(share, channel)
        self.rounds += self.holder.rounds - rounds
        self._opened.append(release, opened)
        self._observe("open", release, self.holder, self.gate)
        self._transcript.note("open", release=release, digest=digest(opened))
        self._transcript.note("traffic", **self._traffic.take(self.holder.connections(), channel))
        self._transcript.flush()
        return opened

    def publish(self, release: int, opened: Ints) -> None:
        """Send the opened vector to the owners, with the bytes sent so far. The transcript has all of the opening by
        then: who is killed meanwhile lacks nothing of it, and no owner that has just left keeps its frames out."""
        self._next = release + 1
        self.gate.publish(
            release, opened, self.holder.bytes_sent + self.gate.bytes_sent, self._present.pop(release, None)
        )
        self._observe("publish", release, self.holder, self.gate)

    async def skip(self, release: int) -> None:
        """The release is lost: no line is written and nothing opened, now or later. Its noise vector is thrown away."""
        await self.source.take()
        self._next = release + 1
        self._transcript.note(SKIPPED, of=release)
        self._transcript.flush()

    def note_loss(self, party: int) -> None:
        """Note that a party has left, and that the run goes on without it."""
        if self._over:
            return
        self._lost.append(party)
        self._transcript.note("lost", party=party, next=self._next)
        self._transcript.flush()

    def end(self, releases: int) -> None:
        """Note everything else that went over the wires, and the end."""
        for channel in self._traffic.channels():
            self._transcript.note("traffic", **self._traffic.take(self.holder.connections(), channel))
        self._transcript.note("end", releases=releases)
        self._over = True
        self._transcript.flush()


Step = Callable[[int], Awaitable[Ints]]
MakeStep = Callable[[ReleaseSteps], Step]


def release(steps: ReleaseSteps) -> Step:
    """The step of every release: (its number) -> the opened vector (d,)."""

    async def step(number: int) -> Ints:
        total = await steps.inputs(number)
        vector = await steps.noise(number)
        if steps.plan.derived.decision is None:
            share = steps.add(number, total, vector)
        else:
            share = await steps.decide(number, total, vector)
        del total, vector  # of a long vector both are much memory
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step
