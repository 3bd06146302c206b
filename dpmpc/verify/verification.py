"""The three lines of evidence together: on a run directory, or on fresh releases."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.mpc.backend import BACKENDS, DEFAULT
from dpmpc.privacy.law import LAWS
from dpmpc.verify.audit import Trials, check_audit
from dpmpc.verify.canaries import Canaries, canary_plan
from dpmpc.verify.claim import Claim, claim_of
from dpmpc.verify.fresh import by_parties, in_the_clear
from dpmpc.verify.records import plan_in
from dpmpc.verify.statistics import Sample, check_statistics
from dpmpc.verify.structure import check_structure
from dpmpc.verify.verdict import Check, Evidence

SCHEMA = "dpmpc.verify/1"
OWNERS = (2, 10, 100)
_MOST_COPIES = 2_000
_SEEN = 1.0  # mu or epsilon that an audit sees well
_WIDEST = 64  # coordinates of a fresh release
Progress = Callable[[str], None]
Clear = Mapping[str, tuple[int, int]]  # law -> coordinates and trials of the audit in the clear


@dataclass(frozen=True)
class Case:
    """One series of fresh releases; (epsilon, delta) is what each release promises."""

    law: str
    owners: int
    dimension: int
    releases: int
    epsilon: float
    delta: float
    parties: int
    threshold: int
    sampler: str | None = None
    backend: str = DEFAULT
    copies: int = 1

    @property
    def name(self) -> str:
        return f"{self.law}, m = {self.owners}"

    def plan(self) -> Plan:
        """A new run of this case."""
        return canary_plan(
            self.law,
            self.owners,
            self.dimension,
            self.releases,
            epsilon=self.epsilon,
            delta=self.delta,
            parties=self.parties,
            threshold=self.threshold,
            sampler=self.sampler,
            backend=self.backend,
            copies=self.copies,
        )


@dataclass(frozen=True)
class Verification:
    """What was verified, and the verdicts."""

    subject: str
    evidence: tuple[Evidence, ...]

    @property
    def holds(self) -> bool:
        """Whether every line of evidence holds."""
        return all(evidence.holds for evidence in self.evidence)

    def to_json(self) -> dict[str, Any]:
        """verify.json as a value."""
        return {
            "schema": SCHEMA,
            "subject": self.subject,
            "holds": self.holds,
            "false_alarm": sum(evidence.false_alarm for evidence in self.evidence),
            **{evidence.name: evidence.to_json() for evidence in self.evidence},
        }

    def write(self, path: Path) -> None:
        """Writes verify.json whole or not at all. Errors: UsageError if that fails."""
        partial = path.with_suffix(".tmp")
        try:
            partial.write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")
            partial.replace(path)
        except OSError as error:
            raise UsageError(
                f"the verdict must be written; {path}: {error.strerror}; name another with --json"
            ) from None


def default_cases(parties: int, threshold: int, laws: tuple[str, ...], backend: str = DEFAULT) -> list[Case]:
    """The fresh releases of `dpmpc verify --fresh`."""
    return [
        Case(
            name,
            m,
            LAWS[name].audit.fresh_dimension,
            1000,
            2.0,
            0.0 if LAWS[name].pure else 1e-3,
            parties,
            threshold,
            backend=backend,
        )
        for name in laws
        for m in OWNERS
    ]


def cases_like(plan: Plan) -> list[Case]:
    """Fresh releases with a run's law, sampler, parties, dimension (2 .. 64), and ratio of noise to sensitivity."""
    dimension = min(max(plan.dimension, 2), _WIDEST)
    releases = _affordable(plan, dimension, min(1500, max(500, 64_000 // dimension)))
    claim = claim_of(plan)  # of one release; the run's delta is not one release's
    return [
        Case(
            plan.law,
            m,
            dimension,
            releases,
            claim.epsilon,
            claim.delta,
            plan.parties,
            plan.threshold,
            plan.sampler,
            plan.backend,
        )
        for m in OWNERS
    ]


def _affordable(plan: Plan, dimension: int, releases: int) -> int:
    """So many releases, or fewer of a slow backend: what it makes in about 15 s, but 200 at least. The verdict says
    which deviation they still show."""
    seconds = BACKENDS[plan.backend].count_noise(plan.derived.sampler, dimension, plan.parties, plan.threshold).seconds
    return releases if not seconds else min(releases, max(200, int(15 / seconds)))


def verify_structure(run: Path) -> Verification:
    """The structure of the run in `run`, from what it left behind."""
    return Verification(str(run), (check_structure(run),))


def verify_run(run: Path, work: Path, progress: Progress) -> Verification:
    """The structure of the run in `run`, and statistics and audit of fresh releases like its own, kept in `work`."""
    structure = check_structure(run)
    plan = plan_in(run)
    if not plan.derived.mechanism.scale:
        return Verification(str(run), (structure,))
    _, samples, trials = _fresh(cases_like(plan), work, progress)
    return Verification(str(run), (structure, check_statistics(samples), check_audit(trials)))


def verify_fresh(cases: list[Case], work: Path, progress: Progress, clear: Clear | None = None) -> Verification:
    """All three lines of evidence of fresh releases, which are kept in `work`."""
    checks, samples, trials = _fresh(cases, work, progress, clear)
    structure = Evidence("structure", tuple(checks), 0.0, f"{len(cases)} runs of fresh releases")
    return Verification("fresh releases", (structure, check_statistics(samples), check_audit(trials)))


def _fresh(
    cases: list[Case], work: Path, progress: Progress, clear: Clear | None = None
) -> tuple[list[Check], list[Sample], list[Trials]]:
    checks: list[Check] = []
    samples: list[Sample] = []
    trials: list[Trials] = []
    for seed, case in enumerate(cases):
        progress(f"{case.releases} releases by {case.parties} parties: {case.name}")
        plan = case.plan()
        out = work / f"{case.law}_{case.owners}"
        outcome = by_parties(plan, Canaries(plan, seed), out)
        checks += [replace(check, name=f"{check.name} ({case.name})") for check in check_structure(out).checks]
        samples.append(outcome.sample())
        trials.append(outcome.trials(f"MPC, {case.name}"))
    for seed, (law, case) in enumerate(_one_of_each_law(cases)):
        dimension, count = (clear or {}).get(law, (LAWS[law].audit.dimension, LAWS[law].audit.trials))
        progress(f"{count} trials in the clear: {law}")
        trials.append(clear_trials(case, dimension, count, 1000 + seed))
    return checks, samples, trials


def clear_trials(case: Case, dimension: int, count: int, seed: int, factor: float = 1.0) -> Trials:
    """`count` guesses about one release of the case, in the clear; with so many records replaced together that they
    cost enough to be seen. `factor`: of the noise, for tests."""
    law, one = LAWS[case.law], claim_of(replace(case, releases=1, dimension=dimension, owners=2).plan())
    copies = copies_of(one)
    diagonal = law.norm == 1
    releases = count if diagonal else count // (dimension - 1)
    plan = replace(case, dimension=dimension, releases=releases, owners=2, copies=copies).plan()
    canaries = Canaries(plan, seed, diagonal=diagonal, copies=copies)
    data_sets = max(20, 4_000_000 // (plan.sizes[0] * dimension))
    outcome = in_the_clear(plan, canaries, copies=copies, data_sets=min(1_000, data_sets), factor=factor)
    return outcome.trials(f"clear engine, {case.law}")


def copies_of(claim: Claim) -> int:
    """How many records are replaced together, so that an audit sees something of a release that costs little."""
    cost = claim.epsilon if claim.mu is None else claim.mu
    if claim.mu is None and claim.delta:
        return 1
    return min(_MOST_COPIES, max(1, math.ceil(_SEEN / cost)))


def _one_of_each_law(cases: list[Case]) -> Iterator[tuple[str, Case]]:
    seen = set()
    for case in cases:
        if case.law not in seen:
            seen.add(case.law)
            yield case.law, case
