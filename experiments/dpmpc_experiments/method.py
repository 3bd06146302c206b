"""The one interface of all methods: what an owner sends, where the noise goes, what that guarantees, and the models."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.privacy.gaussian import Calibration, gaussian_scale
from dpmpc_experiments.records import Problem

Array = NDArray[np.float64]

# Real parties: the mean over the m owners of vectors (m, d) plus ONE noise vector of the law and scale named, shape
# (d,).
# Laws: "laplace" and "gaussian" (independent coordinates), "norm" (density exp(-|v|_2/scale)); scale 0 is no noise.
Aggregate = Callable[[Array, str, float], Array]


@dataclass(frozen=True)
class Run:
    """One run of a method: its budget, its number of updates T, its step size and the seed of its noise.

    epsilon = inf means no noise. T counts as T releases for methods that release gradients.
    """

    seed: int
    epsilon: float
    delta: float
    iterations: int
    eta: float
    calibration: Calibration = "zcdp"

    @property
    def noiseless(self) -> bool:
        return math.isinf(self.epsilon)


@dataclass(frozen=True)
class Claim:
    """What a method adds and what that guarantees.

    law and scale: of the noise vector in the aggregate (Laplace b, Gaussian sigma), or of one owner's where `law`
    says so.
    claimed, true: (epsilon, delta) as the method's paper says, and as can be proved for this noise.
    """

    law: str
    scale: float
    claimed: tuple[float, float]
    true: tuple[float, float]


class Method(Protocol):
    """A way to train over owners. A new method is one module with these five, and its line in `methods.METHODS`."""

    @property
    def name(self) -> str: ...

    @property
    def sends(self) -> str:
        """What an owner sends."""
        ...

    @property
    def noise(self) -> str:
        """Where the noise is added, by whom."""
        ...

    def claim(self, problem: Problem, run: Run) -> Claim:
        """The noise's law and scale, and the guarantee."""
        ...

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> Array:
        """The released model of each run after each number of updates in `at`: (len(at), len(runs), d).

        `aggregate` None is the clear engine. Given, what the MPC would aggregate goes through it, update by update;
        methods without an MPC refuse it by UsageError. All runs share `iterations`.
        """
        ...


def gaussian(run: Run, sensitivity: float) -> float:
    """The sigma of T = run.iterations releases of this L2 sensitivity, 0 for a run without noise."""
    if run.noiseless:
        return 0.0
    return gaussian_scale(run.epsilon, run.delta, sensitivity, run.iterations, run.calibration)
