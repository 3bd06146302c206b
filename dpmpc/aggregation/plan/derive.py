"""What follows from a plan: sensitivity, grid, noise scale, certificate. Every process of a run derives it by itself.

The same numbers must come out on every machine. What passes through elementary functions (the noise scale) is rounded
up to 24 binary digits, so that their last digits do not matter; everything else is exact or correctly rounded.
"""

import hashlib
import math
from dataclasses import asdict
from typing import Any

from dpmpc.aggregation.plan.active import check_active, undetected
from dpmpc.aggregation.plan.asked import Asked
from dpmpc.aggregation.plan.checks import of_usual_size
from dpmpc.aggregation.plan.decided import decision_of, hiding_of, turned
from dpmpc.aggregation.plan.grid import Grid, check_range, check_width, choose_grid
from dpmpc.aggregation.plan.owner_bounds import grid_for_checks, owner_test
from dpmpc.circuits.sampler import Certificate, Sampler
from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property, dataclass
from dpmpc.mpc.contract.backend import BACKENDS, Hides
from dpmpc.mpc.contract.decisions import Decision
from dpmpc.mpc.contract.owner_checks import OwnerTest
from dpmpc.privacy.composition import spending_of
from dpmpc.privacy.law import LAWS, Law, Need
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import (
    Sensitivity,
    rounding_bound,
)
from dpmpc.privacy.spending import Spending
from dpmpc.privacy.unit import FINE, NARROWEST

_DIGITS = 24
_SAMPLER_TV = 2.0**-63  # what the discrete samplers certify a coordinate at worst; others are tried again with theirs
_HIDING = 2.0**-100  # of a run, likewise
_SHARE = 1000  # of delta: where a backend chooses how well openings hide, they take a thousandth of it at most


@dataclass(frozen=True)
class Derived:
    """Lengths that end in `_steps` are grid steps of the opened integer sum; `sensitivity` is of the mean."""

    grid: Grid
    sensitivity: Sensitivity
    sensitivity_steps: float  # L2
    scale_steps: float  # of the noise: what the promise asks for, rounded up; 0 for no noise
    sampler: Sampler
    hiding: float  # statistical distance that the masks of the openings of noise leave over the run; 0: perfect
    mechanism: Mechanism  # what one release adds
    owner_test: OwnerTest | None = None  # what parties check of owners
    undetected: float | None = None  # `active.undetected`
    decision: Decision | None = None  # what parties decide before anything is opened

    @property
    def certificate(self) -> Certificate:
        """What is proved of the sampler; bounds that are finite."""
        return {k: v for k, v in self.sampler.certificate.items() if isinstance(v, str) or math.isfinite(v)}

    def to_json(self) -> dict[str, Any]:
        """What two processes must have derived alike."""
        return {
            "grid_bits": self.grid.bits,
            "sensitivity_steps": self.sensitivity_steps,
            "mechanism_sensitivity": self.mechanism.sensitivity.to_json(),
            "scale_steps": self.scale_steps,
            "sampler": hashlib.sha256(repr(self.sampler).encode()).hexdigest(),
            **({} if self.owner_test is None else {"owner_test": asdict(self.owner_test)}),
            **({} if self.decision is None else {"decision": asdict(self.decision)}),
        }


def derive(plan: Asked) -> Derived:
    """Errors: UsageError for a promise that cannot be kept, noise too wide for the grid, a sum that could overflow."""
    law = LAWS[plan.law]
    exact = _sensitivity(plan)
    moved = exact.in_norm(law.norm)
    if not 0 < moved < math.inf:
        raise UsageError(
            f"one neighbour moves the sum by a number above 0 that a computer can hold; with these settings it is "
            f"{moved:g}; give bounds, penalties and weights of usual size"
        )
    if plan.grid_bits is None:
        # The noise on a grid so fine that rounding does not matter; then the grid, then the real scale on it.
        noise = plan.scale or _scale(plan, law, exact * (FINE / moved)) * (moved / FINE)
        each = moved / plan.touched  # rounding is of each owner's vector
        grid = choose_grid(each * plan.divisor, noise / each, plan.dimension, law.norm)
        grid = grid_for_checks(plan, grid, noise * plan.divisor / grid.step)
    else:
        grid = Grid(plan.grid_bits)
    rounded = exact + rounding_bound(plan.dimension, grid.step, plan.divisor) * plan.touched
    steps = rounded.steps(grid.step / plan.divisor)
    if plan.scale is None:
        asked, sampler, hiding = _asked(plan, law, steps)
    else:  # without noise there still is a sampler, of the narrowest noise, which nobody draws from
        asked = round_up(plan.scale * plan.divisor / grid.step) or NARROWEST
        sampler = _sampler(plan, law, asked)
        hiding = _hiding(plan, sampler) if plan.scale else 0.0
    if asked < NARROWEST / 2 or rounded.parts["rounding"] > 0.5 * rounded.l2:
        raise UsageError(
            f"noise must be at least {NARROWEST / 2:g} grid steps wide and rounding at most half the sensitivity; "
            f"with <<grid_bits={grid.bits}>> it is {asked:.4g} steps and {rounded.parts['rounding'] / rounded.l2:.0%}; "
            "choose a finer grid or leave <<grid_bits>> out"
        )
    check_width(asked)
    check_range(plan.divisor * plan.clip, grid, plan.owners, sampler.largest, BACKENDS[plan.backend].largest)
    if hiding > 2.0**-plan.security_bits:
        raise UsageError(
            f"the openings of {plan.releases * plan.drawn} coordinates by {plan.sampler} must be "
            f"{plan.security_bits:g} bits secure; they are {-math.log2(hiding):.1f}; lower <<security_bits>>, or use "
            "<<sampler=discrete>>"
        )
    check_active(plan)
    test = owner_test(plan, grid)
    decision = decision_of(plan, grid, sampler)
    cheats = undetected(plan, sampler, test, decision)
    if cheats is not None and cheats > 2.0**-plan.security_bits:
        raise UsageError(
            f"the checks of the parties must be {plan.security_bits:g} bits secure over all attempts of the run; they "
            f"are {-math.log2(cheats):.1f}; lower <<security_bits>>, or use <<security=semi-honest>>",
            code="range",
        )
    need = Need(
        plan.epsilon,
        plan.delta,
        steps,
        plan.drawn,
        plan.releases,
        tv=float(sampler.certificate["total_variation"]),
        mpc_failure=hiding + turned(plan),
    )
    noiseless = plan.scale == 0
    mechanism = law.mechanism(0.0 if noiseless else sampler.scale, sampler.discrete, need)
    return Derived(
        grid, rounded, steps.l2, 0.0 if noiseless else asked, sampler, hiding, mechanism, test, cheats,
        decision,
    )  # fmt: skip


def _sensitivity(plan: Asked) -> Sensitivity:
    """Of the mean, before rounding; all norms. Errors: nothing is known for the plan's neighbours."""
    known = plan.levels
    if plan.neighbours not in known:
        raise UsageError(
            f"a promise needs a bound of what it hides; nothing is known of neighbours by {plan.neighbours} here; "
            f"choose {' or '.join(known)}"
        )
    return known[plan.neighbours]


def _asked(plan: Asked, law: Law, steps: Sensitivity) -> tuple[float, Sampler, float]:
    """(noise scale, the sampler of that scale, what its openings fail to hide over the run) for the plan's promise.

    The failures of sampler and openings are paid from delta; they depend on the scale a little, so they are guessed,
    and corrected until the guess holds. Of a continuous law, closeness is assumed, not proved: it pays nothing.
    """
    tv, hiding = _SAMPLER_TV, _HIDING if plan.parties else 0.0
    while True:
        scale = round_up(_scale(plan, law, steps, tv, hiding))
        check_width(scale)
        sampler = _sampler(plan, law, scale)
        found = float(sampler.certificate["total_variation"]) if sampler.discrete else 0.0
        left = _hiding(plan, sampler)
        if found <= tv and left <= hiding:
            return scale, sampler, left
        tv, hiding = max(tv, found * (1 + 2.0**-20)), max(hiding, left * (1 + 2.0**-20))


def _sampler(plan: Asked, law: Law, scale: float) -> Sampler:
    """The law's sampler, as the plan's backend draws it."""
    try:
        sampler = law.sampler(plan.sampler, scale)
    except UsageError as error:
        if plan.grid_bits is None or plan.sampler not in law.samplers:
            raise
        raise UsageError(f"{error.message} than <<grid_bits={plan.grid_bits}>>, or leave it out") from None
    if not plan.parties:
        return sampler
    failure = min((plan.delta or 1.0) / _SHARE, 2.0**-plan.security_bits)
    samples = plan.releases * plan.drawn
    return BACKENDS[plan.backend].drawn(sampler, plan.parties, plan.threshold, samples, failure)


def _scale(plan: Asked, law: Law, steps: Sensitivity, tv: float = _SAMPLER_TV, hiding: float = _HIDING) -> float:
    need = Need(
        plan.epsilon,
        plan.delta,
        steps,
        plan.drawn,
        plan.releases,
        tv=tv,
        mpc_failure=hiding + turned(plan),
        before=spent_before(plan),
    )
    return law.scale(need, plan.calibration)


def spent_before(plan: Asked) -> Spending:
    """What the run had released before this plan's releases."""
    return sum((spending_of(mechanism) for mechanism in plan.before), start=Spending())


def _hiding(plan: Asked, sampler: Sampler) -> float:
    """The statistical distance that the masks of all openings of noise leave, over the run."""
    if not plan.parties:
        return 0.0
    backend, lane = BACKENDS[plan.backend], (sampler, sampler.samples_per_lane, plan.parties, plan.threshold)
    one = backend.hiding(*lane) if isinstance(backend, Hides) else backend.count_noise(*lane).distance
    return one * -(-plan.releases * plan.drawn // sampler.samples_per_lane) + hiding_of(plan)


def round_up(x: float) -> float:
    """The least number of 24 binary digits that is at least `x`."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.ceil(math.ldexp(mantissa, _DIGITS)), exponent - _DIGITS)


class Planned(Asked):
    """What was asked, with what follows from it."""

    @cached_property
    def derived(self) -> Derived:
        """What follows from the plan. Errors: UsageError for a promise that cannot be kept, a sum that could overflow,
        and settings whose noise no computer's numbers hold."""
        with of_usual_size():
            return derive(self)

    @property
    def grid(self) -> Grid:
        """The grid that vectors are rounded on."""
        return self.derived.grid
