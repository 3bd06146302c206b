"""What a plan promises: the accounted (epsilon, delta), and what they rest on, in the report's and the API's words."""

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dpmpc.aggregation.asked import Vectors
from dpmpc.aggregation.derive import spent_before
from dpmpc.aggregation.owners import what_is_checked
from dpmpc.aggregation.plan import Plan
from dpmpc.mpc.owner_checks import NORMS
from dpmpc.privacy.checks import NEIGHBOURS, OWNER_NEIGHBOURS, delta_warning
from dpmpc.privacy.composition import spending_of
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.mechanism import Mechanism

# What a unit is, from the weakest promise to the strongest: stated by a caller, one record, all of an owner's records.
NEIGHBOURS_BY_STRENGTH = {"stated": 0, "record": 1, "owner": 2}
VECTOR_NEIGHBOURS = "one owner's whole vector replaced; the number of owners is public"
FIXED_BEFORE = (
    "ranges, categories, kinds and names of columns had been fixed without the records (they were read off them)"
)


@dataclass(frozen=True)
class Promise:
    """(epsilon, delta) of everything that a run opens; inf and 1 promise nothing.

    `accounted`: the epsilon that this noise comes to; `epsilon` is the one asked for where that is kept. `parts`: what
    delta is the sum of. `assumptions`: what the promise holds under, beyond the honesty of parties.
    """

    epsilon: float
    delta: float
    accounted: float
    neighbours: str
    parts: dict[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return (
                "no promise: no noise was added" if self.delta == 1 else "no promise: there is too little noise for any"
            )
        text = f"epsilon = {self.epsilon:.6g}, delta = {self.delta:.3g}; neighbours: {self.neighbours}"
        return f"if {' and '.join(self.assumptions)}: {text}" if self.assumptions else text

    @property
    def sentence(self) -> str:
        """The promise in a line, which begins with what it holds under."""
        return f"guarantee{', ' if self.assumptions else ': '}{self}"


def neighbours_of(plan: Plan) -> str:
    """What the promise compares."""
    if plan.neighbours == "record":
        return NEIGHBOURS
    if plan.neighbours == "owner":
        return VECTOR_NEIGHBOURS if isinstance(plan.source, Vectors) else OWNER_NEIGHBOURS
    assert isinstance(plan.source, Vectors)
    return (
        f"one unit whose change moves its owner's vector by at most {plan.source.sensitivity:g} in L2 norm, as the "
        "caller states"
    )


def ideal(plan: Plan) -> Mechanism:
    """What one release adds; a continuous sampler's law taken for exact, which is assumed and not proved."""
    mechanism = plan.derived.mechanism
    return mechanism if mechanism.discrete else replace(mechanism, tv=0.0)


def promise_of(plan: Plan, releases: int | None = None) -> Promise:
    """What the plan promises; with `releases`, what so many of its releases come to."""
    derived, law = plan.derived, LAWS[plan.law]
    mechanism, neighbours = derived.mechanism, neighbours_of(plan)
    if not mechanism.scale:
        return Promise(math.inf, 1.0, math.inf, neighbours)
    assumptions = []
    if plan.bounds == "data":
        assumptions.append(FIXED_BEFORE)
    if not mechanism.discrete:  # its law is close to the exact one, but what is proved of it adds up to too much
        gap = plan.releases * plan.dimension * mechanism.tv
        assumptions.append(
            f"{plan.sampler} draws from the exact law; it is proved only that one run is within "
            f"{min(1.0, gap):.3g} of it in total variation (--sampler discrete needs no such assumption)"
        )
    total = spent_before(plan) + spending_of(ideal(plan), plan.releases if releases is None else releases)
    if law.pure and total.rho == 0:
        true = total.pure + 2 * total.log_ratio
        delta = max(plan.delta, failure_factor(true) * total.failure)
        parts = {"mechanism": 0.0, "sampler_and_mpc": failure_factor(true) * total.failure}
    else:
        true, delta = total.epsilon(plan.delta), plan.delta
        failures = failure_factor(true) * total.failure
        parts = {"mechanism": delta - failures, "sampler_and_mpc": failures}
    kept = releases is None and plan.scale is None and plan.calibration != "paper" and true <= plan.epsilon * (1 + 1e-9)
    return Promise(plan.epsilon if kept else true, delta, true, neighbours, parts, tuple(assumptions))


def privacy_section(plan: Plan) -> dict[str, Any]:
    """The promise of the whole run and everything it rests on, as the report has it."""
    derived, promise = plan.derived, promise_of(plan)
    step = plan.grid.step / plan.divisor
    finite = math.isfinite(promise.epsilon)
    section: dict[str, Any] = {
        "epsilon": promise.epsilon if finite else None,
        "delta": promise.delta if derived.mechanism.scale else None,
        "epsilon_accounted": promise.accounted if finite else None,
        "delta_parts": promise.parts,
        "statement": promise.sentence,
        "asked": {"epsilon": plan.epsilon, "delta": plan.delta, "calibration": plan.calibration, "scale": plan.scale},
        "neighbours": promise.neighbours,
        "assumptions": list(promise.assumptions),
        "sensitivity": {
            "l2": derived.sensitivity.l2,
            "parts": derived.sensitivity.parts,
            "l2_grid_steps": derived.sensitivity_steps,
            "of_the_law_grid_steps": derived.mechanism.sensitivity,
        },
        "law": plan.law,
        "noise_law": f"discrete {plan.law.capitalize()}"
        if derived.sampler.discrete
        else f"{plan.law} ({plan.sampler})",
        "noise_scale": derived.mechanism.scale * step,
        "noise_scale_grid_steps": derived.mechanism.scale,
        "releases": plan.releases,
        "released_before": [asdict(mechanism) for mechanism in plan.before],
        "survey_share": _share_before(plan),
        "grid": {"bits": plan.grid.bits, "step": plan.grid.step, "divisor": plan.divisor, "step_of_aggregate": step},
        "statistical_security_bits": plan.security_bits if plan.parties else None,
        "masks_of_openings_bits": None if not derived.hiding else -math.log2(derived.hiding),
        "sampler_certificate": derived.certificate,
        "bounds": plan.bounds,
    }
    if not derived.mechanism.scale:
        section["warning"] = "no noise was added: this run has no privacy guarantee"
    elif plan.calibration == "paper":
        section["paper"] = {
            "claims": {"epsilon": plan.epsilon, "delta": plan.delta},
            "really": {"epsilon": section["epsilon"], "delta": section["delta"]},
            "why": LAWS[plan.law].why_paper_fails,
        }
    return section


def _share_before(plan: Plan) -> float:
    """The part of the budget, of its squared mu, that what was released before has taken; 0 without a delta."""
    if not plan.before or not 0 < plan.delta < 1:
        return 0.0
    return spent_before(plan).mu2 / mu_of_budget(plan.epsilon, plan.delta) ** 2


def warnings_of(plan: Plan) -> list[str]:
    """What the user should know before trusting the figures."""
    found = []
    if plan.delta and plan.neighbours == "record" and (text := delta_warning(plan.delta, sum(plan.sizes))):
        found.append(text)
    if not plan.derived.sampler.discrete:
        found.append(
            f"the guarantee assumes that {plan.sampler} draws from the exact law, which is not proved; --sampler "
            "discrete needs no such assumption"
        )
    if plan.bounds == "data":
        found.append(
            "scaling bounds were read from the records and are not covered by the guarantee; give public ones with "
            "--bounds FILE"
        )
    ratio = sum(plan.sizes) / (plan.owners * min(plan.sizes))
    if plan.weights == "equal" and ratio >= 2:
        found.append(
            "with equal weights the smallest owner's size sets the noise; --weights size would need about "
            f"{ratio:.3g} times less"
        )
    if plan.parties and plan.threshold == 0:
        found.append(
            "with threshold 0 every single party can read all owners' vectors; use at least 3 parties, or 2 with "
            "--backend ot"
        )
    if plan.checks_owners and NORMS not in what_is_checked(plan):
        found.append(
            f"parties check owners' shares, but not norms, with --backend {plan.backend}; use --backend sharing for "
            "both"
        )
    if not plan.parties:
        found.append("engine clear: one process saw all vectors; this run is for study and comparison")
    return found
