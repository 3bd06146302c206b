"""Samples of a sampler in the clear, by the same arithmetic: for study, tests and runs without parties."""

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.sampler import Sampler, lanes_for
from dpmpc.circuits.trace import evaluate
from dpmpc.mpc.clear.executor import ClearBatch
from dpmpc.mpc.clear.fixed import ClearFixed
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg


def clear_noise(sampler: Sampler, count: int, prg: Prg) -> NDArray[np.int64]:
    """`count` samples, (count,), in grid steps; `prg` is all their randomness."""
    batch = ClearBatch(lanes_for(sampler, count), prg)
    values = evaluate(sampler.circuit(batch, ClearFixed.fresh(batch.lanes, prg) if sampler.uses_fixed else None))
    return field.to_int64(values.reshape(-1)[:count]) - sampler.offset
