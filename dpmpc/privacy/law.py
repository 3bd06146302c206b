"""A law of noise: what the command line, plans, ledgers, accounting and tests need of it, in one entry of `LAWS`.

A new law is a circuit with a certificate (`circuits.sampler.Sampler`), a subclass of `Law`, and a line in `LAWS` or an
entry point of another package in the group dpmpc.laws. The registry stands here and not beside the samplers' use,
because a ledger must be able to price a law that it reads by name.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_delta, check_epsilon
from dpmpc.privacy.discrete import l1_steps_of
from dpmpc.privacy.exact import ExactLaw, Integers
from dpmpc.privacy.guarantee import Guarantee, combine
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.question import Question, Row, unknown_of
from dpmpc.privacy.sensitivity import Sensitivity
from dpmpc.privacy.spending import NOTHING_SPENT, Spending
from dpmpc.registry import Registry

MakeSampler = Callable[[float], Sampler]
_ROOT = 1e-10  # relative width at which a bisection stops, on the private side


@dataclass(frozen=True)
class Need:
    """What a run asks of its noise: a promise over `releases` releases of `dimension` coordinates.

    `l2_steps`: L2 sensitivity of the integer sum, in grid steps, rounding included. `tv`: of one coordinate's sampler.
    `mpc_failure`: of the whole run. `before`: what was released before, for which the promise is too.
    """

    epsilon: float
    delta: float
    l2_steps: float
    dimension: int
    releases: int
    tv: float = 0.0
    mpc_failure: float = 0.0
    before: Spending = NOTHING_SPENT


@dataclass(frozen=True)
class AuditPlan:
    """How `dpmpc verify` looks at the law: coordinates and trials in the clear, coordinates of a fresh release."""

    dimension: int
    trials: int
    fresh_dimension: int


class Law(ABC):
    """One law of noise. Subclasses set the attributes and the two abstract methods; the rest follows from them, or is
    overridden where a closed form is better."""

    name: ClassVar[str]  # on the command line, in plans and ledgers
    norm: ClassVar[int]  # of the sensitivity that it is calibrated by: 1 or 2
    pure: ClassVar[bool]  # whether delta = 0 can be kept
    by_mu: ClassVar[bool] = False  # whether a release is mu-GDP at mu = L2 sensitivity / scale: mu^2 adds up
    samplers: ClassVar[Mapping[str, MakeSampler]]  # the first is the default; they refuse a scale by ValueError
    calibrations: ClassVar[tuple[str, ...]] = ("tight",)
    accounts: ClassVar[tuple[str, ...]] = ("tight",)  # the rows of `dpmpc account`; the first is the answer
    audit: ClassVar[AuditPlan] = AuditPlan(64, 1_000_000, 64)
    why_paper_fails: ClassVar[str] = ""  # for a law with the calibration "paper"

    @abstractmethod
    def spending(self, mechanism: Mechanism) -> Spending:
        """What one release costs. Guarantees: for the neighbours of the mechanism's sensitivity, failures included."""

    @abstractmethod
    def exact(self, scale: float, discrete: bool) -> ExactLaw:
        """The law of a sampler of this scale: on the integers, or the continuous one rounded to them."""

    def __str__(self) -> str:
        return self.name

    def sampler(self, name: str, scale: float) -> Sampler:
        """The sampler called `name` at `scale` grid steps. Errors: UsageError for another law's sampler, or a scale out
        of its range."""
        if name not in self.samplers:
            raise UsageError(
                f"{self.name} noise is drawn by {' or '.join(self.samplers)}; got {name!r}; choose the sampler or the "
                "law to fit"
            )
        try:
            return self.samplers[name](scale)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def sensitivity(self, l2_steps: float, dimension: int) -> float:
        """The sensitivity in the law's norm of integer vectors whose L2 sensitivity is `l2_steps`."""
        return l2_steps if self.norm == 2 else float(l1_steps_of(l2_steps, dimension))

    def mechanism(self, scale: float, discrete: bool, need: Need) -> Mechanism:
        """One of the need's releases with noise of this scale."""
        return Mechanism(
            law=self.name,
            discrete=discrete,
            scale=scale,
            sensitivity=self.sensitivity(need.l2_steps, need.dimension),
            dimension=need.dimension,
            tv=need.tv,
            mpc_failure=need.mpc_failure / need.releases,
        )

    def scale(self, need: Need, calibration: str = "tight") -> float:
        """The noise scale, in grid steps, with which all releases together keep (epsilon, delta) in total.

        The failures of sampler and MPC are paid from delta. Errors: UsageError when they alone exceed it, or for an
        unknown calibration.
        """
        self.check_calibration(calibration)
        check_epsilon(need.epsilon)
        if need.delta != 0:
            check_delta(need.delta)
        if need.delta == 0:  # pure: the failures are what delta will be
            need = replace(need, tv=0.0, mpc_failure=0.0)
        return self._bisect(lambda scale: self.mechanism(scale, True, need), need)

    def _bisect(self, mechanism: Callable[[float], Mechanism], need: Need) -> float:
        """The least scale whose releases cost at most the need's epsilon at its delta."""

        def kept(scale: float) -> bool:
            total = need.before + self.spending(mechanism(scale)).times(need.releases)
            return total.epsilon(need.delta) <= need.epsilon

        if need.before.releases and need.before.epsilon(need.delta) >= need.epsilon:
            raise UsageError(
                f"what was released before alone comes to epsilon {need.before.epsilon(need.delta):.4g}; the promise "
                f"is {need.epsilon:g}; raise --epsilon"
            )
        high = need.l2_steps
        while not kept(high):
            high *= 2
            if high > need.l2_steps * 2.0**100:
                raise UsageError(
                    f"no scale of {self.name} noise keeps epsilon {need.epsilon:g} at delta {need.delta:g}; raise "
                    "delta, or choose another law"
                )
        low = high / 2
        while kept(low) and low > 1e-300:
            low, high = low / 2, low
        while high - low > _ROOT * high:
            middle = (low + high) / 2
            low, high = (low, middle) if kept(middle) else (middle, high)
        return high

    def guarantee(
        self, mechanism: Mechanism, releases: int, *, epsilon: float | None = None, delta: float | None = None
    ) -> Guarantee:
        """The guarantee of so many releases, and the parts of its delta. Give exactly one of `epsilon` and `delta` (of
        the ideal noise: the failures are added)."""
        coordinates = releases * mechanism.dimension
        ideal = self.spending(without_failures(mechanism)).times(releases)
        t = coordinates * mechanism.log_ratio
        if delta is None:
            assert epsilon is not None
            delta = _least_delta(ideal, epsilon - 2 * t)
        else:
            epsilon = ideal.epsilon(delta) + 2 * t
        return combine(
            epsilon - 2 * t,
            delta,
            log_ratio=t,
            sampler_failure=coordinates * mechanism.tv,
            mpc_failure=releases * mechanism.mpc_failure,
        )

    def scale_statistic(self, noise: Integers, scale: float, discrete: bool) -> tuple[float, int, int]:
        """(statistic, degrees, power) of a test of the scale: for noise of this scale the statistic is chi-square with
        so many degrees, and it grows with the variance to the power 1/`power`.

        By normal scores; laws with an exact statistic override it.
        """
        from scipy.special import ndtri

        law, x = self.exact(scale, discrete), noise.reshape(-1)
        scores = ndtri(np.clip((law.cdf(x) + law.cdf(x - 1)) / 2, 1e-15, 1 - 1e-15))
        return float(scores @ scores), x.size, 1

    def check_calibration(self, calibration: str) -> None:
        """Errors: UsageError for a calibration that this law does not have."""
        if calibration not in self.calibrations:
            raise UsageError(
                f"{self.name} noise is calibrated by {', '.join(self.calibrations)}; got {calibration!r}; use "
                f"{self.calibrations[0]}"
            )

    def solve(self, question: Question, sensitivity: Sensitivity) -> tuple[str, list[Row]]:
        """(what was solved for, one row a calibration) of an accounting question; lengths in its own units.

        By bisection over `spending`; laws with closed forms override it.
        """
        q = question
        delta = q.delta if q.delta is not None or not self.pure else 0.0
        iterations = 1 if q.iterations is None and None in (q.epsilon, delta, q.scale) else q.iterations
        unknown = unknown_of({"epsilon": q.epsilon, "delta": delta, "scale": q.scale, "iterations": iterations})
        need = Need(q.epsilon or 1.0, delta or 0.0, sensitivity.l2, q.dimension, iterations or 1)
        norm = sensitivity.l2 if self.norm == 2 else sensitivity.l1(q.dimension)

        def one(scale: float) -> Mechanism:
            return Mechanism(self.name, False, scale, norm, q.dimension)

        def epsilon_of(scale: float, delta: float, releases: int) -> float:
            return self.spending(one(scale)).times(releases).epsilon(delta)

        e, d, s, t = q.epsilon, delta, q.scale, iterations
        if s is None:
            s = self._bisect(one, need)
        elif e is None:
            assert d is not None and t is not None
            e = epsilon_of(s, d, t)
        elif d is None:
            assert t is not None
            d = _least_delta(self.spending(one(s)).times(t), e)
        elif t is None:
            assert d is not None
            t, most = 0, 1 << 40
            while most - t > 1:
                middle_t = (t + most) // 2
                t, most = (middle_t, most) if epsilon_of(s, d, middle_t) <= e else (t, middle_t)
        assert e is not None and d is not None and t is not None
        truth = epsilon_of(s, d, t) if t else None
        row: Row = {
            "calibration": "tight",
            "epsilon": float(e),
            "delta": float(d),
            "scale": float(s),
            "iterations": t,
            "deviation": math.sqrt(self.exact(1e6, False).variance) / 1e6 * s,
            "true_epsilon": truth,
            "true_delta": float(d),
            "zcdp_epsilon": None,
            "holds": truth is None or truth <= e * (1 + 1e-9),
        }
        return unknown, [row]


LAWS: Registry[Law] = Registry(
    "law of noise",
    "dpmpc.laws",
    {"gaussian": "dpmpc.privacy.gaussian_law:GAUSSIAN", "laplace": "dpmpc.privacy.laplace_law:LAPLACE"},
)
DEFAULT_LAW = "gaussian"  # `by_mu`: the adviser and surveys share its budget out
PURE_LAW = "laplace"


def law_for(delta: float | None) -> str:
    """The law's name where nobody asks for one: with a delta, or for delta = 0."""
    return DEFAULT_LAW if delta else PURE_LAW


def _least_delta(spending: Spending, epsilon: float) -> float:
    """The least delta at which the releases keep `epsilon`, by bisection; 1 where none does."""
    if spending.epsilon(0.0) <= epsilon:
        return 0.0
    low, high = 1e-300, 1 - 1e-12
    if spending.epsilon(high) > epsilon:
        return 1.0
    while high / low > 1 + _ROOT:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spending.epsilon(middle) <= epsilon else (middle, high)
    return high


def law_of_sampler(sampler: str) -> str | None:
    """The only law that has a sampler of this name; None where several or none do."""
    found = [name for name, law in LAWS.items() if sampler in law.samplers]
    return found[0] if len(found) == 1 else None


def sampler_names() -> tuple[str, ...]:
    """The samplers of all laws."""
    return tuple(dict.fromkeys(name for _, law in LAWS.items() for name in law.samplers))


def calibration_names() -> tuple[str, ...]:
    """The calibrations of all laws."""
    return tuple(dict.fromkeys(name for _, law in LAWS.items() for name in law.calibrations))


def without_failures(mechanism: Mechanism) -> Mechanism:
    """The mechanism as if sampler and MPC were perfect."""
    return replace(mechanism, tv=0.0, log_ratio=0.0, mpc_failure=0.0)
