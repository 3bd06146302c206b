"""What a plan promises: the accounted (epsilon, delta), and what they rest on, in the report's and the API's words."""

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from dpmpc.aggregation.plan.derive import Planned, round_up, spent_before
from dpmpc.aggregation.plan.owner_bounds import what_is_checked
from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.errors import UsageError, number_of
from dpmpc.lazy import dataclass
from dpmpc.learning.adaptive_clipping import ClippingBound
from dpmpc.mpc.contract.owner_checks import NORMS
from dpmpc.privacy.checks import NEIGHBOURS_OF, delta_warning
from dpmpc.privacy.composition import spending_of
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.spending import Spending
from dpmpc.records.origins import assumption
from dpmpc.records.schema import FoundBy
from dpmpc.show.objects import Report, Sheet, Shown

_ROUNDED = 1 + 1e-9  # what the arithmetic of an accounting may be off by
_COMPARED = 60  # sums of an owner that a check of norms compares, about
_DEARER = 1.1  # times the noise: what a choice may cost without a word
_BITS = 180  # random bits of a sample of noise that is shared as numbers, about



@dataclass(frozen=True)
class Promise(Shown):
    """(epsilon, delta) of everything that a run opens; inf and 1 promise nothing.

    `accounted`: the epsilon that this noise comes to; `epsilon` is the one asked for where that is kept. `parts`: what
    delta is the sum of. `assumptions`: what the promise holds under, beyond the honesty of parties. `joined`: what the
    run and the earlier releases `found` of its schemas come to together, by adding up all whose promise is for these
    neighbours: where one is (e, d) and the other (e', d'), both are (e + e', d + d'). None where there is none: of
    whole owners, say, a release that promises records promises nothing that could be added. `beside`: the others.
    """

    epsilon: float
    delta: float
    accounted: float
    neighbours: str
    parts: dict[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    joined: tuple[float, float] | None = None
    found: tuple[FoundBy, ...] = ()
    beside: tuple[FoundBy, ...] = ()

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return (
                "no promise: no noise was added" if self.delta == 1 else "no promise: there is too little noise for any"
            )
        text = f"epsilon = {self.epsilon:.6g}, delta = {self.delta:.3g}; neighbours: {self.neighbours}"
        text += "".join(f"; {each}" for each in self.earlier)
        return f"if {' and '.join(self.assumptions)}: {text}" if self.assumptions else text

    @property
    def earlier(self) -> tuple[str, ...]:
        """What is to be said of the releases that found the schemas, a line each."""
        said = list[str]()
        if self.joined is not None:
            (epsilon, delta), many = self.joined, len(self.found)
            who = "release that found the schema" if many == 1 else f"{many} releases that found the schemas"
            under = list(dict.fromkeys(text for each in self.found for text in each.holds_if))
            said.append(f"with the {who}: epsilon = {epsilon:.6g}, delta = {delta:.3g}{_under(under)}")
        for each in self.beside:
            of = NEIGHBOURS_OF.get(each.neighbours, "which are not said")
            said.append(
                f"the release that found the schema is not in that: it promises epsilon = {each.epsilon:.6g}, delta = "
                f"{each.delta:.3g} for other neighbours ({of}){_under(each.holds_if)}"
            )
        return tuple(said)

    def sheet(self) -> Sheet:
        """The promise, what it compares and rests on, and what its delta is the sum of."""
        facts = [("epsilon", f"{self.epsilon:.6g}"), ("delta", f"{self.delta:.3g}")]
        facts += [("accounted", f"this noise comes to epsilon {self.accounted:.6g}")]
        facts += [("neighbours", self.neighbours), *(("holds if", text) for text in self.assumptions)]
        facts += [("before it", each) for each in self.earlier]
        facts += [(f"delta of {name.replace('_', ' ')}", f"{part:.3g}") for name, part in self.parts.items()]
        return Sheet("Promise", tuple(facts))

    @property
    def sentence(self) -> str:
        """The promise in a line, which begins with what it holds under."""
        return f"guarantee{', ' if self.assumptions else ': '}{self}"


def _under(assumptions: Sequence[str]) -> str:
    return f", if {' and '.join(assumptions)}" if assumptions else ""


def neighbours_of(plan: Planned) -> str:
    """What the promise compares."""
    said = None
    if plan.neighbours in NEIGHBOURS_OF:
        unit, rest = NEIGHBOURS_OF[plan.neighbours].split("; ", 1)
        if plan.capacity:
            unit = unit.replace("replaced", "replaced, added or removed", 1)
            rest = rest.replace("are public", "are private, the numbers of places public")
        if plan.persons is not None and plan.touched < plan.owners:
            unit = unit.replace("at every owner", f"at {number_of(plan.touched, 'owner')}")
        said = f"{unit}; {rest}"
    return plan.source.unit_said(plan.neighbours, said)



def covers(plan: Planned, neighbours: str) -> bool:
    """Whether the plan's promise is one for these neighbours too.

    An owner's is: a record, absent or replaced, is a part of what one owner gives. Else where it is proved that they
    move the sum by no more, in every norm: a record's presence moves no built-in method's vector by more than its
    replacement does; a replacement may move it twice as far as absence, so presence never covers records. A person may
    have records at several owners, so an owner's promise does not cover it.
    """
    if neighbours == plan.neighbours or (plan.neighbours == "owner" and neighbours != "person"):
        return True
    known = plan.levels
    return neighbours in known and known[neighbours] <= known[plan.neighbours]


def ideal(plan: Planned) -> Mechanism:
    """What one release adds; a continuous sampler's law taken for exact, which is assumed and not proved."""
    mechanism = plan.derived.mechanism
    return mechanism if mechanism.discrete else replace(mechanism, tv=0.0)


def assumptions_of(plan: Planned) -> tuple[str, ...]:
    """What the promise holds under, beyond the honesty of parties."""
    assumptions, mechanism = list[str](), plan.derived.mechanism
    if text := assumption(plan.origin.read):
        assumptions.append(text)
    if not mechanism.discrete:  # its law is close to the exact one, but what is proved of it adds up to too much
        gap = plan.releases * plan.drawn * mechanism.tv
        assumptions.append(
            f"{plan.sampler} draws from the exact law; it is proved only that one run is within "
            f"{min(1.0, gap):.3g} of it in total variation (sampler discrete needs no such assumption)"
        )
    if plan.touched < plan.owners and plan.persons is not None:
        assumptions.append(f"no person has records at more than {plan.touched} owner{'s' * (plan.touched > 1)}")
    return tuple(assumptions)


def promise_of(plan: Planned, releases: int | None = None) -> Promise:
    """What the plan promises; with `releases`, what so many of its releases come to."""
    derived, law = plan.derived, LAWS[plan.law]
    mechanism, neighbours = derived.mechanism, neighbours_of(plan)
    if not mechanism.scale:
        return Promise(math.inf, 1.0, math.inf, neighbours)
    assumptions = assumptions_of(plan)
    total = spent_before(plan) + spending_of(ideal(plan), plan.releases if releases is None else releases)
    pure = total.pure + 2 * total.log_ratio  # which needs no delta; an outside law may be calibrated by less, with one
    if law.pure and total.rho == 0 and (not plan.delta or plan.scale is not None or pure <= plan.epsilon * _ROUNDED):
        true = pure
        failures = min(1.0, failure_factor(true) * total.failure)
        delta, parts = max(plan.delta, failures), {"mechanism": 0.0, "sampler_and_mpc": failures}
    else:
        true, delta = total.epsilon(plan.delta), plan.delta
        failures = failure_factor(true) * total.failure
        parts = {"mechanism": delta - failures, "sampler_and_mpc": failures}
    kept = releases is None and plan.scale is None and plan.calibration != "paper" and true <= plan.epsilon * _ROUNDED
    epsilon = plan.epsilon if kept else true
    earlier = tuple(each for each in plan.origin.found if not _own(plan, each))
    found = tuple(each for each in earlier if each.covers(plan.neighbours, bool(plan.capacity)))
    both = epsilon + sum(each.epsilon for each in found), delta + sum(each.delta for each in found)
    beside, joined = tuple(each for each in earlier if each not in found), both if found else None
    return Promise(epsilon, delta, true, neighbours, parts, assumptions, joined, found, beside)


def found_by(plan: Planned, spent: Sequence[Mechanism], last: Planned) -> FoundBy:
    """The stages of a run that found its schema, by these mechanisms, as the schema says it to who uses it again;
    `last`: the plan of the last one. The same on every processor: their epsilon at the plan's delta is rounded up to 24
    binary digits."""
    epsilon = round_up(sum(map(spending_of, spent), start=Spending()).epsilon(plan.delta))
    return FoundBy(plan.run_id, epsilon, plan.delta, plan.neighbours, plan.capacity, assumptions_of(last))


def _own(plan: Planned, found: FoundBy) -> bool:
    """Whether these are stages of the plan's own run, whose whole promise has them."""
    run, _, stage = plan.run_id.partition("+")
    return found.run == run and bool(stage or plan.released)


def privacy_section(plan: Planned) -> dict[str, Any]:
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
            "of_the_law_grid_steps": derived.mechanism.sensitivity.in_norm(LAWS[plan.law].norm),
        },
        "law": plan.law,
        "noise_law": f"discrete {plan.law.capitalize()}"
        if derived.sampler.discrete
        else f"{plan.law} ({plan.sampler})",
        "noise_scale": derived.mechanism.scale * step,
        "noise_scale_grid_steps": derived.mechanism.scale,
        "releases": plan.releases,
        "released_before": [mechanism.to_json() for mechanism in plan.before],
        "questions_share": share_of(plan, *plan.before[: plan.source.asked_first]),
        "survey_share": survey_share(plan),
        "grid": {"bits": plan.grid.bits, "step": plan.grid.step, "divisor": plan.divisor, "step_of_aggregate": step},
        "statistical_security_bits": plan.security_bits if plan.parties else None,
        "masks_of_openings_bits": None if not derived.hiding else -math.log2(derived.hiding),
        "sampler_certificate": derived.certificate,
        "bounds": plan.bounds,
        "read_off_records": list(plan.origin.read),
        "earlier": list(promise.earlier),
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


def units_of(plan: Planned) -> int:
    """How many units the promise is for: records, persons, or owners; at most, where that is private."""
    if plan.persons is not None:
        return max(1, sum(plan.sizes) // plan.persons.rows)
    return sum(plan.sizes) if plan.neighbours in ("record", "presence") else plan.owners


def survey_share(plan: Planned) -> float:
    """The part of the budget, of its squared mu, that surveys before have taken; 0 without a delta."""
    return share_of(plan, *plan.before[plan.source.asked_first :])


def share_of(plan: Planned, *mechanisms: Mechanism) -> float:
    """The part of the budget, of its squared mu, that a release by each of these takes; 0 without a delta."""
    if not mechanisms or not 0 < plan.delta < 1:
        return 0.0
    return math.fsum(spending_of(each).mu2 for each in mechanisms) / mu_of_budget(plan.epsilon, plan.delta) ** 2


def warnings_of(plan: Planned) -> list[str]:
    """What the user should know before trusting the figures."""
    found = []
    of_records = plan.neighbours in ("record", "presence", "person")
    if plan.delta and of_records and (text := delta_warning(plan.delta, units_of(plan))):
        found.append(text)
    if not plan.derived.sampler.discrete:
        found.append(
            f"the guarantee assumes that {plan.sampler} draws from the exact law, which is not proved; sampler "
            "discrete needs no such assumption"
        )
    if "ranges" in plan.origin.read:
        found.append(
            "scaling bounds were read from the records and are not covered by the guarantee; give public ones: put "
            'what is known without the records into the schema and set its bounds = "public", or name a file of bounds'
        )
    found += noise_costs(plan)
    if plan.parties and plan.threshold == 0:
        found.append(
            "with threshold 0 every single party can read all owners' vectors; use at least 3 parties, or 2 with "
            "backend ot"
        )
    if plan.checks_owners and NORMS not in what_is_checked(plan):
        bits = _COMPARED * FIELD_BITS * plan.owners
        found.append(
            f"parties check owners' shares, but not norms, with backend {plan.backend}, where to compare these would "
            f"take about {bits:,} shared random bits a release, as noise of {bits // _BITS:,} coordinates does; use "
            "backend sharing for both"
        )
    if not plan.parties:
        found.append("engine clear: one process saw all vectors; this run is for study and comparison")
    return found


def noise_costs(plan: Planned) -> list[str]:
    """What a plan's choices cost in noise, where that is more than a tenth, for the same promise: a sentence for each,
    of public numbers alone, to be said before anything is spent. Found by planning without the choice."""
    if plan.scale is not None:
        return []
    uneven = len(set(plan.sizes)) > 1
    choices: list[tuple[str, str, dict[str, Any]]] = []
    if uneven and plan.weights == "equal" and plan.neighbours != "owner":
        why = f"the smallest owner, of {min(plan.sizes)}, sets it; leave the weights out, or weigh by size"
        choices.append(("equal weights make", why, {"weights": "size"}))
    if uneven and plan.weights == "size" and plan.neighbours == "owner":
        why = f"the largest owner, of {max(plan.sizes)}, sets it where whole owners are hidden; weigh equally"
        choices.append(("weights by size make", why, {"weights": "equal"}))
    if plan.calibration != "tight":
        why = "tight keeps the same promise"
        choices.append((f"calibration {plan.calibration} makes", why, {"calibration": "tight"}))
    found = []
    for makes, why, usual in choices:
        try:
            ratio = _noise_of(plan) / _noise_of(replace(plan, **usual))
        except UsageError:  # without it there is no such run
            continue
        if ratio > _DEARER:
            found.append(f"{makes} the noise {ratio:.3g} times as large: {why}")
    return found


def _noise_of(plan: Planned) -> float:
    """The scale of its noise, on the mean."""
    return plan.derived.mechanism.scale * plan.grid.step / plan.divisor


def report_of(plan: Planned, bound: ClippingBound | None, made: int, lost: Sequence[int]) -> Report:
    """The promise of a plan and everything it rests on, how many releases were `made`, which parties were lost,
    warnings: JSON values. `bound`: of clipping, if it follows the vectors."""
    return Report({
        "run": plan.run_id,
        "backend": plan.backend if plan.parties else "clear",
        "owners": plan.owners,
        "parties": plan.parties,
        "threshold": plan.threshold,
        "dimension": plan.dimension - (bound is not None),
        "clipping_bound": None if bound is None else bound.value,
        "releases_made": made,
        "parties_lost": list(lost),
        "privacy": privacy_section(plan),
        "warnings": warnings_of(plan),
    })  # fmt: skip
