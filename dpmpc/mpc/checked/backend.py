"""Secret sharing among a few parties of which any t may do anything (`--security active`): the shares of `sharing`,
noise whose ANDs are checked before anything of it is used, openings that no t shares can change. Security with abort.

docs/active.md has the ideal functionality, the protocol and the argument.
"""

import asyncio
import contextlib
import math
from collections.abc import Sequence
from fractions import Fraction

from dpmpc.circuits.sampler import Sampler, lanes_for
from dpmpc.circuits.trace import evaluate
from dpmpc.errors import UsageError
from dpmpc.mpc.checked.counts import CountingChecked
from dpmpc.mpc.checked.decisions import CheckedDeciding
from dpmpc.mpc.checked.executor import CheckedBatch
from dpmpc.mpc.checked.fold import MOST_WORDS
from dpmpc.mpc.checked.owner_counts import count_checked
from dpmpc.mpc.checked.owners import CheckedOwners, undetected
from dpmpc.mpc.checked.rounds import DIGEST
from dpmpc.mpc.checked.session import CheckedSession
from dpmpc.mpc.contract.backend import Counts, Ints
from dpmpc.mpc.contract.decisions import Decision
from dpmpc.mpc.contract.owner_checks import NORMS, SHARES, FailedOwners, OwnerTest, check_possible
from dpmpc.mpc.contract.seeded import SeededShares
from dpmpc.mpc.contract.shares import WORD
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.replicated.backend import BATCH, Sharing, less_offset
from dpmpc.mpc.replicated.decisions import count_decision
from dpmpc.mpc.transport.link import Observe

MOST_PARTS = 10  # of a share: a check keeps the operands of every AND, in all parts
AT_ONCE = 2  # batches in the making: what they keep for their checks takes memory, and each is a try of a cheat's
MOST_ATTEMPTS = 1 << 10  # of a run: each is a try more
_CHECKS = 2.5  # times as long as without checks; measured 2.3..2.6
# Times as many words of ANDs as are kept at a time, in a batch: its rounds are shared by more samples. More would take
# more memory for its wires.
_SEGMENTS = 2.5
_KEPT = 3  # words of each AND, part and lane that are kept: operands and result


class CheckedHolder(SeededShares, CheckedSession):
    """A party's end; a share is an array of field elements (dimension,)."""

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None) -> None:
        super().__init__(party, parties, threshold, run_id, observe)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._turn = asyncio.Lock()  # batches take it in one order at all parties, that of their channels

    async def noise(self, sampler: Sampler, channel: int, count: int) -> Words:
        async with self._room, contextlib.AsyncExitStack() as turn:
            # Until what this batch keeps is used up. Who has more cores checks one batch on one of them while others
            # evaluate the next, in memory of its own.
            await turn.enter_async_context(self._turn if self.threads == 1 else contextlib.nullcontext())
            self.still_on()
            batch = CheckedBatch(self, channel, lanes_for(sampler, count), used_up=turn.aclose)
            values = await sampler.circuit(batch, None)
            self.still_on()
            return less_offset(values.reshape(-1)[:count], sampler.offset)

    def batch_samples(self, sampler: Sampler, count: int) -> int:
        return CHECKED.batch_samples(sampler, count, self.parties, self.threshold)

    async def open(self, share: Words, channel: int) -> Ints:
        return field.to_int64(await self.open_words(share, self.channel(channel)))

    async def inspect(self, rows: list[Words], test: OwnerTest, channel: int) -> FailedOwners:
        self.still_on()
        return await CheckedOwners(self, channel, test).run(rows)

    async def decide(self, total: Words, noise: Words, decision: Decision, channel: int) -> Words:
        self.still_on()
        return await CheckedDeciding(self, channel, decision).run(total, noise)


class Checked(Sharing):
    """See the module."""

    name = "checked"
    most_attempts = MOST_ATTEMPTS
    # What was opened before is told by parties, one by one: who cheats would make it up. On one machine the one who
    # started all parties reads their files.
    resumes = False

    def threshold(self, parties: int) -> int:
        return super().threshold(parties) if parties >= 3 else -1

    def check(self, parties: int, threshold: int) -> None:
        if threshold < 1 or 2 * threshold >= parties:
            raise UsageError(
                "replicated shares are checked among 3 parties or more of which t may cheat, 1 <= t and 2t < n; got "
                f"<<parties={parties}>>{f' <<threshold={threshold}>>' if threshold >= 0 else ''}; mend them, or use "
                "<<security>> semi-honest"
            )
        if (parts := math.comb(parties - 1, threshold)) > MOST_PARTS:
            raise UsageError(
                f"replicated shares are checked where they have comb(n - 1, t) <= {MOST_PARTS} parts; with "
                f"<<parties={parties}>> <<threshold={threshold}>> they have {parts:,}; use <<backend>> shamir, or "
                "<<security>> semi-honest",
                code="range",
            )

    def spare(self, parties: int, threshold: int) -> int:
        """None: what a sum opens to is checked by the shares of all."""
        return 0

    def owner_checks(self, parties: int, threshold: int) -> tuple[str, ...]:
        check_possible(threshold)
        return SHARES, NORMS

    def count_owner_checks(self, test: OwnerTest, parties: int, threshold: int) -> tuple[Counts, ...]:
        return count_checked(test, parties, threshold)

    def count_decision(self, decision: Decision, parties: int, threshold: int) -> tuple[Counts, ...]:
        return count_decision(CountingChecked, decision, parties, threshold, range(parties))[0]

    def undetected_decision(self, decision: Decision, parties: int, threshold: int) -> float:
        """One batch of cells after the other, each of three programs: as `undetected`, with one at a time."""
        batches = count_decision(CountingChecked, decision, parties, threshold, range(parties))[1]
        return float(MOST_ATTEMPTS * sum(batch.error for batch in batches))

    def holder(  # type: ignore[override]
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> CheckedHolder:
        return CheckedHolder(party, parties, threshold, run_id, observe)

    def batch_samples(self, sampler: Sampler, count: int, parties: int, threshold: int) -> int:
        if sampler.uses_fixed:  # it is never drawn here
            return BATCH
        batch = counted(sampler, 1, parties, threshold)
        widest = max(width for program in batch.programs for width in program.widths)
        words = max(1, min(MOST_WORDS // widest, int(_SEGMENTS * MOST_WORDS) // batch.ands))
        return 64 * words * sampler.samples_per_lane

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        return exact(sampler)

    def count_noise(self, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
        batch = counted(sampler, count, parties, threshold)
        return Counts(
            rounds=batch.rounds,
            bytes_sent=tuple(batch.bytes_sent),
            messages_sent=tuple(batch.messages_sent),
            sample={"ands": batch.ands, "random bits": batch.random_bits},
            distance=batch.lanes * 2.0 ** (-field.BITS * batch.masks),  # as for `sharing`
        )

    def noise_needs(self, sampler: Sampler, count: int, parties: int, threshold: int) -> tuple[float, int] | None:
        needs = super().noise_needs(sampler, count, parties, threshold)
        if needs is None:
            return None
        batch = counted(sampler, count, parties, threshold)
        words = max(segment.lengths[0] for check in batch.checks for segment in check.segments)
        kept = _KEPT * WORD * math.comb(parties - 1, threshold) * words
        return _CHECKS * needs[0], needs[1] + kept

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        others = parties - 1
        return Counts(2, (others * (WORD * dimension + DIGEST),) * parties, (2 * others,) * parties)

    def undetected(self, sampler: Sampler, sizes: Sequence[int], parties: int, threshold: int) -> float:
        """How likely a run whose noise is made in batches of these sizes uses a batch with a wrong AND, at most.

        The first failed check ends an attempt, and AT_ONCE batches are under way at most. In the order in which they
        are first cheated in, any later one begins when the verdict on an earlier one has fallen, so the first wrong one
        to pass is among the first AT_ONCE (docs/active.md). The square of it for all later batches is room to spare.
        MOST_ATTEMPTS attempts. One that carries on has fewer samples, and perhaps larger batches: the error is that of
        any batch that some number of samples up to all of them leads to.
        """
        samples = sum(sizes)
        if not samples:
            return 0.0
        largest = min(samples, self.batch_samples(sampler, samples, parties, threshold))
        return undetected_in(counted(sampler, largest, parties, threshold).error, len(sizes))

    def undetected_owners(self, test: OwnerTest, releases: int, parties: int, threshold: int) -> float:
        """How likely a run believes a check of owners in which a party has cheated, at most: as `undetected`, one
        release at a time."""
        error = undetected(test, parties, threshold)
        return float(MOST_ATTEMPTS * (error + releases * error**2))


def undetected_in(error: Fraction, batches: int) -> float:
    """How likely a run of so many batches, of which each passes wrongly with probability `error` at most, uses a wrong
    one, at most, with all its attempts: see `Checked.undetected`."""
    return float(MOST_ATTEMPTS * (AT_ONCE * error + batches * error**2))


def exact(sampler: Sampler) -> Sampler:
    """The sampler. Errors: UsageError for one whose computation is not checked."""
    if sampler.uses_fixed:
        raise UsageError(
            f"<<security=active>> checks bits, and {sampler.name} computes with fixed-point numbers; use <<sampler>> "
            "discrete, or <<security=semi-honest>>"
        )
    return sampler


def counted(sampler: Sampler, count: int, parties: int = 3, threshold: int = 1) -> CountingChecked:
    """One batch of so many samples, counted."""
    batch = CountingChecked(lanes_for(sampler, count), parties, threshold)
    evaluate(sampler.circuit(batch, None))
    return batch


CHECKED = Checked()
