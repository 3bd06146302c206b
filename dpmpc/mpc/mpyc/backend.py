"""MPyC as an entry of the registry of backends: to read, to check, to change. `sharing` is there to run."""

import math

from dpmpc.circuits.fixed_sampler import FixedPointSampler
from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import Counts, count_here
from dpmpc.mpc.mpyc import drawing
from dpmpc.mpc.mpyc.dealer import OwnersDealer
from dpmpc.mpc.mpyc.exchange import COUNTER
from dpmpc.mpc.mpyc.holder import WORD, MpycHolder
from dpmpc.mpc.transport.link import Observe

# Microseconds of a core, measured at n = 1 .. 7 on one machine: a random bit of F_p, and of SecFxp's wider field, to
# which each subset of parties that this one is in adds; a product, for each party.
_BIT, _WIDE_BIT, _BIT_A_SUBSET, _PRODUCT = 1.2, 8.0, 2.1, 1.5


class Mpyc:
    """See the module."""

    name = "mpyc"
    resumes = True
    largest = (drawing.P - 1) // 2

    def threshold(self, parties: int) -> int:
        return (parties - 1) // 2

    def check(self, parties: int, threshold: int) -> None:
        if not 0 <= 2 * threshold < parties:
            raise UsageError(
                f"the threshold t must satisfy 0 <= 2t < n; got t = {threshold}, n = {parties}; mend "
                f"<<threshold>> or <<parties>>",
                code="range",
            )
        if threshold and parties != 2 * threshold + 1:
            raise UsageError(
                "among n > 2t + 1 parties MPyC lets its program counter choose who reshares, so that what a party sends"
                f" cannot be counted ahead; got n = {parties}, t = {threshold}; use an odd <<parties>>, or "
                f"<<backend=sharing>>",
                code="range",
            )

    def dealer(self, parties: int, threshold: int) -> OwnersDealer:
        return OwnersDealer(parties, threshold)

    def payload_bytes(self, parties: int, threshold: int, owners: int, dimension: int) -> tuple[int, ...]:
        return (WORD * owners * dimension,) * parties

    def holder(
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> MpycHolder:
        return MpycHolder(party, parties, threshold, run_id, observe)

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        return drawing.drawn(sampler, parties, threshold, samples, failure)

    def count_noise(self, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
        """Exact but for random bits drawn again, one in 2^61."""
        sizes = drawing.batch_sizes(count)
        tallies = [drawing.count_batch(sampler, size, parties, threshold) for size in sizes]  # type: ignore[arg-type]
        wide = isinstance(sampler, FixedPointSampler)
        bits, products = (sum(getattr(tally, kind) for tally in tallies) for kind in ("random_bits", "products"))
        bit = (_WIDE_BIT if wide else _BIT) + _BIT_A_SUBSET * math.comb(parties - 1, threshold)
        return Counts(
            rounds=sum(tally.rounds for tally in tallies),
            bytes_sent=(sum(tally.bytes_sent + COUNTER * tally.messages for tally in tallies),) * parties,
            messages_sent=(sum(tally.messages for tally in tallies),) * parties,
            sample={"products": products // max(count, 1), "random bits": bits // max(count, 1)},
            distance=drawing.distance(sampler, count, parties, threshold),
            seconds=1e-6 * (bits * bit + products * _PRODUCT * parties),
        )

    def count_barrier(self, said: int, parties: int) -> Counts:
        return count_here(said, parties)

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        sent = (threshold * (COUNTER + WORD * dimension),) * parties
        return Counts(int(threshold > 0), sent, (threshold,) * parties)


MPYC = Mpyc()
