"""Secret sharing among three parties of which any one may do anything (`--security active`): the shares of `sharing`,
noise whose ANDs are checked before anything of it is used, openings that no share can change. Security with abort.

docs/active.md has the ideal functionality, the protocol and the argument.
"""

import asyncio
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpmpc.circuits.sampler import Sampler, lanes_for
from dpmpc.circuits.trace import evaluate
from dpmpc.errors import UsageError
from dpmpc.mpc import field
from dpmpc.mpc.backend import Counts, Ints
from dpmpc.mpc.backends.seeded import SeededShares
from dpmpc.mpc.backends.shares import WORD
from dpmpc.mpc.backends.sharing import Sharing, less_offset
from dpmpc.mpc.checked_session import CheckedSession
from dpmpc.mpc.engines.checked import DIGEST, CheckedBatch
from dpmpc.mpc.engines.counting_checked import CountingChecked
from dpmpc.mpc.engines.counting_owners import count_owner_checks
from dpmpc.mpc.engines.owners_checked import CheckedOwners, undetected
from dpmpc.mpc.field import Words
from dpmpc.mpc.link import Observe
from dpmpc.mpc.owner_checks import NORMS, SHARES, Found, OwnerTest, check_possible

PARTIES, THRESHOLD = 3, 1
AT_ONCE = 2  # batches in the making: what they keep for their checks takes memory, and each is a try of a cheat's
MOST_ATTEMPTS = 1 << 10  # of a run: each is a try more
_CHECKS = 2.5  # times as long as without checks; measured 2.3..2.6


class CheckedHolder(SeededShares, CheckedSession):
    """A party's end; a share is an array of field elements (dimension,)."""

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None) -> None:
        super().__init__(party, parties, threshold, run_id, observe)
        self._room = asyncio.Semaphore(AT_ONCE)

    async def here(self, channel: int) -> None:
        await self.open(self.zero(1), channel)

    async def noise(self, sampler: Sampler, channel: int, count: int) -> Words:
        async with self._room:
            self.still_on()
            batch = CheckedBatch(self, channel, lanes_for(sampler, count))
            values = await sampler.circuit(batch, None)
            self.still_on()
            return less_offset(values.reshape(-1)[:count], sampler.offset)

    async def open(self, share: Words, channel: Any) -> Ints:
        return field.to_int64(await self.open_words(share, self.channel(channel)))

    async def inspect(self, rows: list[Words], test: OwnerTest, channel: int) -> Found:
        self.still_on()
        return await CheckedOwners(self, channel, test).run(rows)


class Checked(Sharing):
    """See the module."""

    name = "checked"
    most_attempts = MOST_ATTEMPTS
    # What was opened before is told by parties, one by one: who cheats would make it up. On one machine the one who
    # started all parties reads their files.
    resumes = False

    def threshold(self, parties: int) -> int:
        return THRESHOLD if parties == PARTIES else -1

    def check(self, parties: int, threshold: int) -> None:
        if (parties, threshold) != (PARTIES, THRESHOLD):
            raise UsageError(
                f"--security active is for {PARTIES} parties of which one may cheat; got -M {parties}"
                f"{f' -T {threshold}' if parties == PARTIES else ''}; use -M 3 -T 1, or --security semi-honest"
            )

    def spare(self, parties: int, threshold: int) -> int:
        """None: what a sum opens to is checked by the shares of all."""
        return 0

    def owner_checks(self, parties: int, threshold: int) -> tuple[str, ...]:
        check_possible(threshold)
        return SHARES, NORMS

    def count_owner_checks(self, test: OwnerTest, parties: int, threshold: int) -> tuple[Counts, ...]:
        return count_owner_checks(test, parties, threshold, checked=True)

    def holder(  # type: ignore[override]
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> CheckedHolder:
        return CheckedHolder(party, parties, threshold, run_id, observe)

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        if sampler.uses_fixed:
            raise UsageError(
                f"--security active checks bits, and {sampler.name} computes with fixed-point numbers; use --sampler "
                "discrete, or --security semi-honest"
            )
        return sampler

    def count_noise(self, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
        batch = counted(sampler, count)
        return Counts(
            rounds=batch.rounds,
            bytes_sent=tuple(batch.bytes_sent),
            messages_sent=tuple(batch.messages_sent),
            sample={"ands": batch.ands, "random bits": batch.random_bits},
            distance=batch.lanes * 2.0 ** (-field.BITS * batch.masks),  # as for `sharing`
        )

    def noise_needs(self, sampler: Sampler, count: int, parties: int, threshold: int) -> tuple[float, int] | None:
        needs = super().noise_needs(sampler, count, parties, threshold)
        return None if needs is None else (_CHECKS * needs[0], needs[1])

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        sent = (2 * (WORD * dimension + DIGEST),) * parties
        return Counts(2, sent, (4,) * parties)

    def undetected(self, sampler: Sampler, sizes: Sequence[int]) -> float:
        """How likely a run whose noise is made in batches of these sizes uses a batch with a wrong AND, at most.

        The first failed check ends an attempt: of the batches that are cheated in, the first to be judged, and what was
        in the making beside it, are all that can pass before that; any later one needs an earlier one to have passed
        (docs/active.md). So AT_ONCE tries an attempt, MOST_ATTEMPTS attempts, and the square of it for all later
        batches.
        """
        error = max(
            (stages.error for size in set(sizes) for stages in counted(sampler, size).stages), default=Fraction(0)
        )
        return float(MOST_ATTEMPTS * (AT_ONCE * error + len(sizes) * error**2))

    def undetected_owners(self, test: OwnerTest, releases: int) -> float:
        """How likely a run believes a check of owners in which a party has cheated, at most: as `undetected`, one
        release at a time."""
        error = undetected(test)
        return float(MOST_ATTEMPTS * (error + releases * error**2))


def counted(sampler: Sampler, count: int) -> CountingChecked:
    """One batch of so many samples, counted."""
    batch = CountingChecked(lanes_for(sampler, count), PARTIES, THRESHOLD)
    evaluate(sampler.circuit(batch, None))
    return batch


CHECKED = Checked()
