"""Two servers that make noise by oblivious transfer: bits of the sampler are multiplied by transfers and lifted to
numbers by transfers. Semi-honest, either server. docs/two-servers.md has the protocol and its proof."""

from dpmpc.circuits.sampler import Sampler, lanes_for
from dpmpc.circuits.trace import evaluate
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import Counts
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.replicated.backend import less_offset
from dpmpc.mpc.transport.link import Observe
from dpmpc.mpc.two_servers.counts import CountingGarbled, CountingOt
from dpmpc.mpc.two_servers.executor import OtBatch
from dpmpc.mpc.two_servers.garbled import GarbledBatch
from dpmpc.mpc.two_servers.holder import TwoServers, TwoServersHolder

_WIDE = 2.0**-122  # statistical distance of 128 uniform bits mod p from uniform


class OtHolder(TwoServersHolder):
    """A server's end."""

    batch: type[OtBatch] = OtBatch

    async def noise(self, sampler: Sampler, channel: int, count: int) -> Words:
        check_sampler(sampler)
        batch = self.batch(self, channel, lanes_for(sampler, count))
        values = await sampler.circuit(batch, None)
        share = values.reshape(-1)[:count]
        return less_offset(share, sampler.offset) if self.party == 0 else share


class GarbledHolder(OtHolder):
    """A server's end; 0 garbles, 1 evaluates."""

    batch = GarbledBatch


class Ot(TwoServers):
    """Two servers; `k`: levels of the trees, 2^k leaves. More levels send less and compute more."""

    def __init__(
        self,
        name: str,
        k: int,
        made_by: type[OtHolder] = OtHolder,
        counted_by: type[CountingOt] = CountingOt,
    ) -> None:
        self.name, self.k = name, k
        self._made_by, self._counted_by = made_by, counted_by

    def holder(
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> OtHolder:
        self.check(parties, threshold)
        return self._made_by(party, self.k, run_id, observe)

    def count_noise(self, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
        check_sampler(sampler)
        lanes = lanes_for(sampler, count)
        batch = self._counted_by(lanes, self.k)
        evaluate(sampler.circuit(batch, None))
        return Counts(
            rounds=batch.rounds,
            bytes_sent=tuple(batch.bytes_sent),
            messages_sent=tuple(batch.messages_sent),
            sample={
                "transfers": sum(batch.transfers) * lanes // max(count, 1),
                "ands": batch.ands * lanes // max(count, 1),
                "random bits": batch.random_bits * lanes // max(count, 1),
            },
            distance=lanes * (2 * batch.wide * _WIDE) + batch.chance,
        )


def check_sampler(sampler: Sampler) -> None:
    """Errors: UsageError for a sampler that computes with fixed-point numbers."""
    if sampler.uses_fixed:
        raise UsageError(
            f"two servers draw with circuits of bits alone; got <<sampler={sampler.name}>>; use "
            f"<<sampler=discrete>>, or "
            "<<backend=sharing>> with 3 parties",
            code="choice",
        )


OT = Ot("ot", 4)
OT_1 = Ot("ot-k1", 1)
OT_2 = Ot("ot-k2", 2)
OT_8 = Ot("ot-k8", 8)
GARBLED = Ot("garbled", 4, GarbledHolder, CountingGarbled)
