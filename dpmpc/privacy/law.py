"""A law of noise: what the command line, plans, ledgers, accounting and tests need of it, in one entry of `LAWS`.

A new law is a circuit with a certificate (`circuits.sampler.Sampler`), a subclass of `Law`, and a line in `LAWS` or an
entry point of another package in the group dpmpc.laws. The registry stands here and not beside the samplers' use,
because a ledger must be able to price a law that it reads by name.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.privacy.checks import check_delta, check_epsilon
from dpmpc.privacy.discrete import whole
from dpmpc.privacy.exact import ExactLaw, Integers, Reals
from dpmpc.privacy.guarantee import Guarantee, combine
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.question import Question, Row, unknown_of
from dpmpc.privacy.sensitivity import Sensitivity
from dpmpc.privacy.spending import NOTHING_SPENT, Spending
from dpmpc.privacy.unit import FINE, bits_for
from dpmpc.registry import Registry

MakeSampler = Callable[[float], Sampler]
_ROOT = 1e-10  # relative width at which a bisection stops, on the private side
_ROUNDING = 1e-9  # relative; what the arithmetic of an accounting may be off by


@dataclass(frozen=True)
class Need:
    """What a run asks of its noise: a promise over `releases` releases of `dimension` coordinates.

    `sensitivity`: of the integer sum, in grid steps, rounding included; all three norms (`within`). `tv`: of one
    coordinate's sampler. `mpc_failure`: of the whole run. `before`: what was released before, for which the promise is
    too.
    """

    epsilon: float
    delta: float
    sensitivity: Sensitivity
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


def _crossing(excess: Callable[[float], float], below: tuple[float, float], above: tuple[float, float]) -> float:
    """A scale where `excess`, which falls, was found to be at most 0, at most the part _ROOT above one where it was
    not; `below` and `above`: such scales, and what was found there. A quarter of the evaluations of halving.

    Source: regula falsi with Illinois' correction (Dowell, Jarratt 1971); it halves where that does not shrink.
    """
    (low, under), (high, over) = below, above
    last = tries = 0
    while high - low > _ROOT * high:
        tries += 1
        middle = (low + high) / 2
        if math.isfinite(under) and under > over and tries <= 60:
            guess = (low * over - high * under) / (over - under)
            guess -= last * _ROOT / 4 * guess  # to the side that did not move, or it would stay far away
            middle = guess if low < guess < high else middle
        found = excess(middle)
        if found <= 0:
            high, over, under = middle, found, under / 2 if last > 0 else under
            last = 1
        else:
            low, under, over = middle, found, over / 2 if last < 0 else over
            last = -1
    return high


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
                "law to fit",
                code="choice",
            )
        try:
            return self.samplers[name](scale)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def moved(self, steps: Sensitivity) -> Sensitivity:
        """The sensitivity of integer vectors that move by `steps`, as a mechanism of this law has it."""
        return (whole(steps) if self.norm == 1 else steps).bare

    def mechanism(self, scale: float, discrete: bool, need: Need) -> Mechanism:
        """One of the need's releases with noise of this scale."""
        return Mechanism(
            law=self.name,
            discrete=discrete,
            scale=scale,
            sensitivity=self.moved(need.sensitivity),
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

        def excess(scale: float) -> float:
            total = need.before + self.spending(mechanism(scale)).times(need.releases)
            return total.promised(need.delta) - need.epsilon

        if need.before.releases and (before := need.before.promised(need.delta)) >= need.epsilon:
            raise UsageError(
                f"what was released before alone comes to epsilon {before:.4g}; the promise is {need.epsilon:g}; raise "
                "<<epsilon>>"
            )
        high = need.sensitivity.in_norm(self.norm)
        while (over := excess(high)) > 0:
            high *= 2
            if high > need.sensitivity.in_norm(self.norm) * 2.0**100:
                raise UsageError(
                    f"no scale of {self.name} noise keeps epsilon {need.epsilon:g} at delta {need.delta:g}; raise "
                    "delta, or choose another law"
                )
        low = high / 2
        while (under := excess(low)) <= 0 and low > 1e-300:
            low, high, over = low / 2, low, under
        return _crossing(excess, (low, under), (high, over))

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

    def magnitudes(self, noise: Integers, scale: float, discrete: bool) -> tuple[Reals, int, int]:
        """(statistics, degrees, power) of the noise's sizes: for noise of this scale each statistic is chi-square with
        so many degrees and independent of the others, so that sums of them are too; they grow with the variance to the
        power 1/`power`.

        By normal scores; laws with an exact statistic override it.
        """
        from scipy.special import ndtri

        law = self.exact(scale, discrete)
        scores = ndtri(np.clip((law.cdf(noise) + law.cdf(noise - 1)) / 2, 1e-15, 1 - 1e-15))
        return np.asarray(scores**2, dtype=np.float64), 1, 1

    def check_calibration(self, calibration: str) -> None:
        """Errors: UsageError for a calibration that this law does not have."""
        if calibration not in self.calibrations:
            raise UsageError(
                f"{self.name} noise is calibrated by {', '.join(self.calibrations)}; got {calibration!r}; use "
                f"{self.calibrations[0]}",
                code="choice",
            )

    def check_delta(self, delta: float) -> None:
        """Errors: UsageError without a delta, unless the law has pure promises."""
        if not self.pure and not delta:
            raise UsageError(
                f"{self.name.capitalize()} noise needs a delta in (0, 1); none was given; add <<delta>>, for example "
                f"<<delta=1e-5>>, or use <<law={PURE_LAW}>>",
                code="missing",
            )

    def solve(self, question: Question, sensitivity: Sensitivity) -> tuple[str, list[Row]]:
        """(what was solved for, one row a calibration) of an accounting question; lengths in its own units.

        By bisection over `spending`, which is asked in grid steps of the discrete law, as a run asks it: a law need not
        be the same at another scale. Laws that are, with closed forms, override it.
        """
        q = question
        delta = q.delta if q.delta is not None or not self.pure else 0.0
        iterations = 1 if q.iterations is None and None in (q.epsilon, delta, q.scale) else q.iterations
        unknown = unknown_of({"epsilon": q.epsilon, "delta": delta, "scale": q.scale, "iterations": iterations})
        moved = sensitivity.within(q.dimension)
        need = Need(q.epsilon or 1.0, delta or 0.0, moved, q.dimension, iterations or 1)
        unit = q.step or self._unit(q, need)
        steps = moved.steps(unit)

        def one(scale: float) -> Mechanism:
            return Mechanism(self.name, True, scale, steps, q.dimension)

        def epsilon_of(scale: float, delta: float, releases: int) -> float:
            return self.spending(one(scale)).times(releases).epsilon(delta)

        e, d, t = q.epsilon, delta, iterations
        if q.scale is None:
            s = self._bisect(one, replace(need, sensitivity=steps))
        else:
            s = q.scale / unit
        if e is None:
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
                kept = self.spending(one(s)).times(middle_t).promised(d) <= e * (1 + _ROUNDING)
                t, most = (middle_t, most) if kept else (t, middle_t)
        assert e is not None and d is not None and t is not None
        truth = epsilon_of(s, d, t) if t else None
        row: Row = {
            "calibration": "tight",
            "epsilon": float(e),
            "delta": float(d),
            "scale": float(s * unit),
            "iterations": t,
            "deviation": math.sqrt(self.exact(s, True).variance) * unit,
            "true_epsilon": truth,
            "true_delta": float(d),
            "zcdp_epsilon": None,
            "holds": truth is None or truth <= e * (1 + 1e-9),
        }
        return unknown, [row]

    def _unit(self, question: Question, need: Need) -> float:
        """The step of the grid that a run with this noise would choose, in units of the mean."""
        moved = need.sensitivity.in_norm(self.norm)
        noise = question.scale
        if noise is None:
            fine = replace(need, sensitivity=need.sensitivity * (FINE / moved))
            noise = self._bisect(lambda steps: self.mechanism(steps, True, fine), fine) * (moved / FINE)
        whole = moved * question.divisor
        return math.ldexp(1.0, -bits_for(whole, noise / moved, question.dimension, self.norm)) / question.divisor


LAWS: Registry[Law] = Registry(
    "law of noise",
    "dpmpc.laws",
    {"gaussian": "dpmpc.privacy.gaussian_law:GAUSSIAN", "laplace": "dpmpc.privacy.laplace_law:LAPLACE"},
    lambda thing: isinstance(thing, Law),
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
