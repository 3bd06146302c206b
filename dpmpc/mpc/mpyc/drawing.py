"""How each sampler is drawn with MPyC, in which batches, and at what cost. Public; no MPyC runtime is needed."""

import functools
import math
from collections.abc import Coroutine
from typing import Any

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.field_sampler import FieldSampler
from dpmpc.circuits.fixed_sampler import FixedPointSampler
from dpmpc.circuits.sampler import Sampler, is_over_field
from dpmpc.errors import UsageError
from dpmpc.mpc.mpyc import fixed
from dpmpc.mpc.mpyc.cost import CountingMpyc, SentTally

P = (1 << FIELD_BITS) - 1
BATCH = 1 << 10  # samples whose products share a message; MPyC holds every number as a Python object
_WORD = 8


def drawn_exactly(sampler: Sampler) -> FieldSampler:
    """The exact law's circuit over F_p. Errors: UsageError for a sampler that has none."""
    if not is_over_field(sampler):
        raise UsageError(
            "the backend mpyc draws box-muller, log-laplace and samplers that have an arithmetic circuit, as those of "
            f"tables have; got the sampler {sampler.name}; choose another <<sampler>> of the law, or "
            "<<backend=sharing>>",
            code="choice",
        )
    return FieldSampler(sampler)


def drawn(sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
    """The sampler as MPyC draws it in a run of so many samples: a fixed-point one on SecFxp, with a certificate of its
    own and a security parameter with which all openings together fail by `failure` at most."""
    if isinstance(sampler, FixedPointSampler) and not isinstance(sampler, fixed.SecFxpSampler):
        subsets = math.comb(parties, threshold)
        k = fixed.sec_param_for(sampler.law, sampler.scale, samples + 1, subsets, failure)
        return fixed.SecFxpSampler(sampler.law, sampler.scale, k)
    return sampler


def batch_sizes(samples: int) -> list[int]:
    """The samples of each batch of a draw: as equal as can be."""
    number = -(-samples // BATCH)
    return [(k + 1) * samples // number - k * samples // number for k in range(number)]


@functools.lru_cache(maxsize=64)
def count_batch(sampler: Any, samples: int, parties: int, threshold: int) -> SentTally:
    """What one batch of a sampler costs, exactly."""
    tally = SentTally(parties, threshold)
    if isinstance(sampler, fixed.SecFxpSampler):
        bits = fixed.LENGTH + fixed.FRACTION + sampler.sec_param + 2
        fixed.count_draw(tally, sampler, samples, -(-bits // 8))
        return tally
    chosen = drawn_exactly(sampler)
    _evaluate(chosen.circuit(CountingMpyc(tally, chosen.lanes(samples), _WORD), samples))
    return tally


def distance(sampler: Sampler, count: int, parties: int, threshold: int) -> float:
    """What the masks of openings leave, and what shared deep bits may cost the joint law of all samples."""
    if isinstance(sampler, fixed.SecFxpSampler):
        samples = -(-count // sampler.samples_per_lane) * sampler.samples_per_lane
        return samples * sampler.hiding(math.comb(parties, threshold)) if threshold else 0.0
    return count * drawn_exactly(sampler).group


def _evaluate(circuit: Coroutine[Any, Any, Any]) -> None:
    """Runs a circuit that waits for nothing."""
    try:
        circuit.send(None)
    except StopIteration:
        return
    raise AssertionError("a counted circuit waited")
