"""Samples of the arithmetic circuits in the clear, in batches like the parties'."""

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.deep import Deep
from dpmpc.circuits.field_sampler import FieldSampler
from dpmpc.circuits.sampler import DiscreteSampler, discrete_gaussian, discrete_laplace
from dpmpc.circuits.trace import evaluate
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.shamir.backend import BATCH
from tests.clear_arithmetic import ClearArithmetic


def discrete(law: str, scale: float) -> DiscreteSampler:
    """The sampler of a law."""
    return {"gaussian": discrete_gaussian, "laplace": discrete_laplace}[law](scale)


def field_noise(law: str, scale: float, count: int, deep: Deep | None = Deep()) -> NDArray[np.int64]:  # noqa: B008
    """`count` samples, BATCH at a time."""
    sampler, prg = FieldSampler(discrete(law, scale), deep), Prg.from_os()
    result = np.empty(count, dtype=np.int64)
    for start in range(0, count, BATCH):
        part = result[start : start + BATCH]
        values = evaluate(sampler.circuit(ClearArithmetic(sampler.lanes(len(part)), prg), len(part)))
        part[:] = field.to_int64(values.reshape(-1)[: len(part)])
    return result
