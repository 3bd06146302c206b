"""Secret sharing with an honest majority: vectors as Shamir shares over F_p, p = 2^61 - 1; noise by Boolean circuits on
replicated shares over F_2, converted. Semi-honest, 2t < n."""

import math

import numpy as np

from dpmpc.circuits.program import Program
from dpmpc.circuits.sampler import Sampler, lanes_for
from dpmpc.circuits.trace import evaluate
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import Counts, Ints, count_here
from dpmpc.mpc.contract.decisions import Decision, check_secret
from dpmpc.mpc.contract.lanes import words_for
from dpmpc.mpc.contract.owner_checks import NORMS, SHARES, FailedOwners, OwnerTest, check_possible
from dpmpc.mpc.contract.seeded import SeededDealer, SeededShares, payload_bytes
from dpmpc.mpc.contract.shares import WORD
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.parties.loss_tolerance import enough
from dpmpc.mpc.parties.robust_opening import RobustSession
from dpmpc.mpc.parties.session import check_threshold
from dpmpc.mpc.replicated.counts import CountingBatch
from dpmpc.mpc.replicated.counts_fixed import CountingFixed
from dpmpc.mpc.replicated.decisions import Deciding, count_decision
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.replicated.fixed import SharedFixed
from dpmpc.mpc.replicated.layout import SharingLayout
from dpmpc.mpc.replicated.owner_counts import count_owner_checks
from dpmpc.mpc.replicated.owner_norms import NormCheck
from dpmpc.mpc.replicated.pace import MESSAGE_SECONDS, Gates, bytes_of, hopeless, seconds_before, seconds_of
from dpmpc.mpc.transport.link import Observe

MOST_PARTS = 500  # the pairs of parts, whose products each AND takes, are listed ahead: with more that takes minutes
FEW_PARTS = 2  # of a share
BATCH, LARGER_BATCH = 3 << 14, 3 << 16  # samples that share their rounds; see `larger_batches`
_TIMES = 10  # that a larger batch is made in a draw: its wires are written to fresh memory at first, which costs
_SMALL, _LARGE = (3, 1), (7, 3)  # (n, t) at which gates are counted for larger ones, where they grow with the masks


class SharingHolder(SeededShares, RobustSession):
    """A party's end; a share is an array of field elements (dimension,)."""

    async def noise(self, sampler: Sampler, channel: int, count: int) -> Words:
        with self.needing_all():
            return await self.draw(sampler, channel, count)

    async def draw(self, sampler: Sampler, channel: int, count: int) -> Words:
        """As `noise`, while all parties are there."""
        batch = SharingBatch(self, channel, lanes_for(sampler, count))
        values = await sampler.circuit(batch, SharedFixed(batch) if sampler.uses_fixed else None)
        return less_offset(values.reshape(-1)[:count], sampler.offset)

    def batch_samples(self, sampler: Sampler, count: int) -> int:
        return SHARING.batch_samples(sampler, count, self.parties, self.threshold)

    async def open(self, share: Words, channel: int) -> Ints:
        return field.to_int64(await self.open_from_left(share, channel))

    async def inspect(self, rows: list[Words], test: OwnerTest, channel: int) -> FailedOwners:
        with self.needing_all():
            return await NormCheck(self, channel, test).run(rows)

    async def decide(self, total: Words, noise: Words, decision: Decision, channel: int) -> Words:
        with self.needing_all():
            return await Deciding(self, channel, decision).run(total, noise)


class Sharing:
    """See the module."""

    name = "sharing"
    resumes = True
    largest = (field.P - 1) // 2

    def threshold(self, parties: int) -> int:
        return (parties - 1) // 2

    def check(self, parties: int, threshold: int) -> None:
        check_threshold(parties, threshold)
        if (parts := math.comb(parties - 1, threshold)) > MOST_PARTS:
            raise UsageError(
                f"a replicated share has comb(n - 1, t) parts, at most {MOST_PARTS}; with n = {parties} and "
                f"t = {threshold} there are {parts:,}, and {hopeless(parties, threshold)}; use "
                "<<backend=shamir>>, or a smaller <<threshold>>",
                code="range",
            )

    def spare(self, parties: int, threshold: int) -> int:
        """All but t + 1 and more than half."""
        return parties - enough(parties, threshold)

    def owner_checks(self, parties: int, threshold: int) -> tuple[str, ...]:
        check_possible(threshold)
        return SHARES, NORMS

    def count_owner_checks(self, test: OwnerTest, parties: int, threshold: int) -> tuple[Counts, ...]:
        return count_owner_checks(test, parties, threshold)

    def check_decisions(self, parties: int, threshold: int) -> None:
        check_secret(threshold)

    def count_decision(self, decision: Decision, parties: int, threshold: int) -> tuple[Counts, ...]:
        senders = SharingLayout.of(parties, threshold).product_senders
        return count_decision(CountingBatch, decision, parties, threshold, senders)[0]

    def hiding_decision(self, dimension: int, parties: int, threshold: int) -> float:
        return _hiding(dimension, math.comb(parties, threshold) - 1)

    def undetected_decision(self, decision: Decision, parties: int, threshold: int) -> float:
        return 0.0

    def dealer(self, parties: int, threshold: int) -> SeededDealer:
        return SeededDealer(parties, threshold)

    def payload_bytes(self, parties: int, threshold: int, owners: int, dimension: int) -> tuple[int, ...]:
        return payload_bytes(parties, threshold, owners * dimension)

    def holder(
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> SharingHolder:
        return SharingHolder(party, parties, threshold, run_id, observe)

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        return sampler

    def batch_samples(self, sampler: Sampler, count: int, parties: int, threshold: int) -> int:
        if not larger_batches(sampler, parties, threshold):
            return BATCH
        return min(LARGER_BATCH, max(BATCH, count // _TIMES))

    def count_noise(self, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
        batch, fixed = _counted(sampler, count, parties, threshold)
        return Counts(
            rounds=batch.rounds,
            bytes_sent=tuple(batch.bytes_sent),
            messages_sent=tuple(batch.messages_sent),
            sample={
                "ands": batch.ands * batch.lanes // max(count, 1),
                "random bits": batch.random_bits * batch.lanes // max(count, 1),
            },
            distance=batch.lanes * fixed.distance if fixed is not None else _hiding(batch.lanes, batch.masks),
        )

    def hiding(self, sampler: Sampler, count: int, parties: int, threshold: int) -> float:
        if sampler.uses_fixed:
            return self.count_noise(sampler, count, parties, threshold).distance
        return _hiding(lanes_for(sampler, count), math.comb(parties, threshold) - 1)

    def noise_seconds(self, sampler: Sampler, count: int, parties: int, threshold: int, cost: Counts) -> float | None:
        """Words at this machine's pace, messages, and what is listed ahead."""
        needs = self.noise_needs(sampler, count, parties, threshold)
        return None if needs is None else needs[0] + max(cost.messages_sent, default=0) * MESSAGE_SECONDS

    def noise_needs(self, sampler: Sampler, count: int, parties: int, threshold: int) -> tuple[float, int] | None:
        """By gates counted for few parties; None for fixed-point samplers, whose work is not in gates."""
        if sampler.uses_fixed:
            return None
        words, gates = words_for(lanes_for(sampler, count)), _gates(sampler, parties, threshold)
        seconds = seconds_of(gates, words, parties, threshold) + seconds_before(parties, threshold)
        return seconds, bytes_of(gates, words, parties, threshold)

    def count_barrier(self, said: int, parties: int) -> Counts:
        return count_here(said, parties)

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        sent = (threshold * WORD * dimension,) * parties
        return Counts(int(parties > 1), sent, (threshold,) * parties)


def _hiding(lanes: int, masks: int) -> float:
    """What the one conversion a lane leaves unhidden, see circuits.convert."""
    return lanes * 2.0 ** (-field.BITS * masks) if masks else 0.0


def larger_batches(sampler: Sampler, parties: int, threshold: int) -> bool:
    """Whether larger batches pay. Messages, and what a program's layer costs before its first word, are paid once a
    batch: by processor time a sample takes 0.85 of what it takes in a quarter of the batch among three parties, and no
    less among five, whose work on a word is more. A batch's memory is that of its lanes, parts and slots."""
    return math.comb(parties - 1, threshold) <= FEW_PARTS and not sampler.uses_fixed


def _gates(sampler: Sampler, parties: int, threshold: int) -> Gates:
    """Of one sample; for more parts than at `_LARGE`, as they grow up to there."""
    masks = math.comb(parties, threshold) - 1
    if masks <= math.comb(*_LARGE) - 1:
        return _counted_gates(sampler, parties, threshold)
    few, many = math.comb(*_SMALL) - 1, math.comb(*_LARGE) - 1
    return _counted_gates(sampler, *_SMALL).grown(few, _counted_gates(sampler, *_LARGE), many, masks)


def _counted_gates(sampler: Sampler, parties: int, threshold: int) -> Gates:
    batch, _ = _counted(sampler, 1, parties, threshold)
    return Gates(batch.ands, max((program.slots for program in batch.programs), default=0))


def _counted(sampler: Sampler, count: int, parties: int, threshold: int) -> tuple[CountingBatch, CountingFixed | None]:
    batch = CountingBatch(lanes_for(sampler, count), parties, threshold)
    fixed = CountingFixed(batch) if sampler.uses_fixed else None
    evaluate(sampler.circuit(batch, fixed))
    return batch, fixed


def programs_of(sampler: Sampler, count: int, parties: int, threshold: int) -> list[Program]:
    """The programs that the parties run to draw `count` samples, in order."""
    return _counted(sampler, count, parties, threshold)[0].programs


def less_offset(values: Words, offset: int) -> Words:
    """Shares of value - offset: a public constant is its own share at every party."""
    return field.sub(values, np.full(1, offset % field.P, dtype=np.uint64)) if offset else values


SHARING = Sharing()
