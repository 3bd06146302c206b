"""Shamir sharing among many parties of which any t may do anything (`--security active`): the shares and the noise of
`shamir`, each batch checked before anything of it is used, openings that no t shares can change. Security with abort.

docs/active.md has the ideal functionality, the protocol and the argument.
"""

import asyncio
from collections.abc import Sequence
from fractions import Fraction

from dpmpc.circuits.field_sampler import FieldSampler
from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.mpc.checked.backend import AT_ONCE, MOST_ATTEMPTS, exact, undetected_in
from dpmpc.mpc.contract.backend import Counts, Holder, Ints
from dpmpc.mpc.contract.owner_checks import FailedOwners, OwnerTest
from dpmpc.mpc.contract.security import Verdict
from dpmpc.mpc.contract.shares import WORD
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.owner_checks.compared import ComparedShares
from dpmpc.mpc.owner_checks.counts import count_shares
from dpmpc.mpc.parties.checked_mesh import CheckedMesh
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.shamir.backend import BATCH, ManyHolder, Shamir, batch_sizes, field_sampler
from dpmpc.mpc.shamir.layout import MOST_PARTIES
from dpmpc.mpc.shamir.pair_keys import BatchStreams
from dpmpc.mpc.shamir_checked.counts import CountingCheckedArithmetic, count_checked_circuit
from dpmpc.mpc.shamir_checked.engine import DIGEST, ManyCheckedEngine
from dpmpc.mpc.transport.link import Observe

_CHECKS = 1.4  # times as long as without checks; measured 1.38..1.41
_TESTS = 3  # of random weights: the claim, the roots, the degrees


def count_checked(sampler: FieldSampler, samples: int, parties: int, threshold: int) -> CountingCheckedArithmetic:
    """What one batch costs, exactly."""
    lanes = sampler.lanes(samples)
    return count_checked_circuit(lambda engine: sampler.circuit(engine, samples), lanes, parties, threshold)


def batch_error(cost: CountingCheckedArithmetic) -> Fraction:
    """How likely a wrong batch passes, at most."""
    return Fraction(_TESTS, field.P) + cost.stages.error()


class ShamirCheckedHolder(ManyHolder, CheckedMesh):
    """A party's end."""

    kind = "active"

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None) -> None:
        super().__init__(party, parties, threshold, run_id, observe)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._held: dict[int, list[tuple[int, str]]] = {}  # by channel: elements and digest of each batch
        self._sharings: dict[tuple[Sampler, int], int] = {}

    async def noise(self, sampler: Sampler, channel: int, count: int) -> Words:
        async with self._room:
            self.still_on()
            self._held[channel] = []
            share = await self.draw(sampler, channel, count)
            self.still_on()
            held = self._held.pop(channel)
            each = "".join(digest for _, digest in held).encode()
            digest = domains.VERDICTS.digest(self.run_id, channel, value=each)
            self.judged(Verdict(channel, sum(elements for elements, _ in held), digest.hex()))
            return share

    async def batch(
        self, sampler: FieldSampler, samples: int, channel: Channel, number: int, streams: BatchStreams
    ) -> Words:
        """See `ManyHolder.batch`; all have said that its check held."""
        self.still_on()
        lanes, sharings = sampler.lanes(samples), self._planned(sampler, samples)
        engine = ManyCheckedEngine(self, channel, self.layout, streams, lanes, sharings, number=number)
        values: Words = await sampler.circuit(engine, samples)
        self._held[channel.ident].append(await engine.check())
        return values

    def _planned(self, sampler: FieldSampler, samples: int) -> int:
        """Random sharings of a batch besides its bits."""
        key = sampler.sampler, samples
        if key not in self._sharings:
            self._sharings[key] = count_checked(sampler, samples, self.parties, self.threshold).sharings
        return self._sharings[key]

    async def open(self, share: Words, channel: int) -> Ints:
        return field.to_int64(await self.open_words(share, self.channel(channel)))

    async def inspect(self, rows: list[Words], test: OwnerTest, channel: int) -> FailedOwners:
        self.still_on()
        return await ComparedShares(self, channel, test).run(rows)


class ShamirChecked(Shamir):
    """See the module."""

    name = "shamir-checked"
    most_attempts = MOST_ATTEMPTS
    resumes = False  # as `checked`: what was opened before is told by parties, one by one

    def check(self, parties: int, threshold: int) -> None:
        if not (3 <= parties <= MOST_PARTIES and 1 <= threshold and 2 * threshold < parties):
            raise UsageError(
                f"<<security=active>> is for 3 to {MOST_PARTIES} parties of whom t may cheat, 1 <= t and 2t < n; got "
                f"<<parties={parties}>>{f' <<threshold={threshold}>>' if threshold >= 0 else ''}; mend them, or "
                f"use <<security=semi-honest>>",
                code="range",
            )

    def spare(self, parties: int, threshold: int) -> int:
        """None: what a sum opens to is checked by the shares of all."""
        return 0

    def count_owner_checks(self, test: OwnerTest, parties: int, threshold: int) -> tuple[Counts, ...]:
        return (count_shares(test, parties, threshold, dealt=True, digest=DIGEST).counts(),)

    def holder(
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> Holder[Words]:
        return ShamirCheckedHolder(party, parties, threshold, run_id, observe)

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        return exact(sampler)

    def counted(self, sampler: FieldSampler, samples: int, parties: int, threshold: int) -> CountingCheckedArithmetic:
        return count_checked(sampler, samples, parties, threshold)

    def noise_seconds(self, sampler: Sampler, count: int, parties: int, threshold: int, cost: Counts) -> float:
        return _CHECKS * super().noise_seconds(sampler, count, parties, threshold, cost)

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        others = parties - 1
        return Counts(2, (others * (WORD * dimension + DIGEST),) * parties, (2 * others,) * parties)

    def undetected(self, sampler: Sampler, sizes: Sequence[int], parties: int, threshold: int) -> float:
        """See `Checks`; as for `checked`, and a larger batch errs no less."""
        batches = sum(len(batch_sizes(each)) for each in sizes)
        if not batches:
            return 0.0
        cost = count_checked(field_sampler(sampler), min(sum(sizes), BATCH), 3, 1)
        return undetected_in(batch_error(cost), batches)

    def undetected_owners(self, test: OwnerTest, releases: int, parties: int, threshold: int) -> float:
        """None: a check of shares alone is believed by nobody who has not seen all of them."""
        return 0.0


SHAMIR_CHECKED = ShamirChecked()
