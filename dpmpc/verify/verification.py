"""The three lines of evidence together: on a run directory, or on fresh releases."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.folders import write_file
from dpmpc.lazy import dataclass
from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT
from dpmpc.noise.forecast import forecast
from dpmpc.privacy.law import LAWS
from dpmpc.verify.audit import Trials, check_audit
from dpmpc.verify.canaries import Canaries, canary_plan
from dpmpc.verify.claim import Claim, claim_of
from dpmpc.verify.fresh import by_parties, in_the_clear
from dpmpc.verify.run_files import read_records
from dpmpc.verify.scores import Sample
from dpmpc.verify.shipped import about
from dpmpc.verify.statistics import check_statistics
from dpmpc.verify.structure import UNSEEN, check_structure, structure_of
from dpmpc.verify.verdict import Check, Evidence

SCHEMA = "dpmpc.verify/1"
OWNERS = (2, 10, 100)
_MOST_COPIES = 2_000
_SEEN = 1.0  # mu or epsilon that an audit sees well
_AT_MOST, _FEWEST = 15.0, (200, 8)  # seconds of noise of a case; releases and coordinates
_START, _RELEASE, _SLOW = 2.0, 0.004, 1e-4  # seconds: a case's processes, a release, a value of an unpaced circuit
_WIDEST = 128  # coordinates of a fresh release like a run's
Progress = Callable[[dict[str, Any]], None]  # as training tells what it does
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
    about: dict[str, Any] = field(default_factory=dict)  # of a run: which, and whose files were seen

    @property
    def holds(self) -> bool:
        """Whether every line of evidence holds."""
        return all(evidence.holds for evidence in self.evidence)

    def to_json(self) -> dict[str, Any]:
        """verify.json as a value."""
        return {
            "schema": SCHEMA,
            "subject": Path(self.subject).name,  # it may be sent to others: no path of this machine
            **self.about,
            "holds": self.holds,
            "false_alarm": sum(evidence.false_alarm for evidence in self.evidence),
            **{evidence.name: evidence.to_json() for evidence in self.evidence},
        }

    def write(self, path: Path) -> None:
        """Writes verify.json whole or not at all. Errors: UsageError if that fails."""
        try:
            write_file(path, json.dumps(self.to_json(), indent=2) + "\n")
        except OSError as error:
            raise UsageError(
                f"the verdict must be written; {path}: {error.strerror}; name another with <<json>>", code="path"
            ) from None


def default_cases(
    parties: int, threshold: int, laws: tuple[str, ...], backend: str = DEFAULT, sampler: str | None = None
) -> list[Case]:
    """The fresh releases of `dpmpc verify --fresh`."""
    return [
        affordable(
            Case(
                name,
                m,
                LAWS[name].audit.fresh_dimension,
                1000,
                2.0,
                0.0 if LAWS[name].pure else 1e-3,
                parties,
                threshold,
                sampler,
                backend,
            )
        )
        for name in laws
        for m in OWNERS
    ]


def cases_like(plan: Plan) -> list[Case]:
    """Fresh releases with a run's law, sampler, parties, dimension (2 .. _WIDEST), and ratio of noise to sensitivity.
    Where that ratio, one of L2 norms, does not depend on the dimension, they have the largest: a release costs much, a
    value little."""
    law = LAWS[plan.law]
    least = _WIDEST if law.norm == 2 else 2
    dimension = min(max(plan.dimension, least), _WIDEST)
    claim = claim_of(plan)  # of one release; the run's delta is not one release's
    return [
        affordable(
            Case(
                plan.law,
                m,
                dimension,
                min(1500, max(500, 64_000 // dimension)),
                claim.epsilon,
                claim.delta,
                plan.parties,
                plan.threshold,
                plan.sampler,
                plan.backend,
            )
        )
        for m in OWNERS
    ]


def affordable(case: Case) -> Case:
    """The case, or fewer releases and coordinates of it where the backend is slow: what it makes in about 15 s of a
    core, but 200 releases of 8 coordinates at least. The verdict says which deviation they still show."""
    plan = case.plan()
    backend = BACKENDS[plan.backend]
    seconds = backend.count_noise(plan.derived.sampler, plan.dimension, plan.parties, plan.threshold).seconds
    if not seconds or seconds * case.releases <= _AT_MOST:
        return case
    most = max(_FEWEST[0] * _FEWEST[1], int(_AT_MOST * plan.dimension / seconds))  # values
    dimension = min(case.dimension, max(_FEWEST[1], most // _FEWEST[0]))
    return replace(case, dimension=dimension, releases=min(case.releases, max(_FEWEST[0], most // dimension)))


def seconds_of(case: Case) -> tuple[float, float]:
    """(seconds until the noise of the case is there, seconds in all), about, on this machine."""
    plan = case.plan()
    sampler, backend = plan.derived.sampler, BACKENDS[plan.backend]
    found = forecast(backend, sampler, plan.releases, plan.drawn, plan.parties, plan.threshold, here=True)
    noise = found.seconds if found.seconds is not None else plan.releases * plan.dimension * _SLOW
    return noise, noise + _START + plan.releases * _RELEASE


def verify_structure(run: Path) -> Verification:
    """The structure of the run in `run`, from what it left behind."""
    records = read_records(run)
    return Verification(str(run), (structure_of(records),), about(run, records))


def verify_run(run: Path, work: Path, progress: Progress) -> Verification:
    """The structure of the run in `run`, and statistics and audit of fresh releases like its own, kept in `work`."""
    records = read_records(run)
    structure, plan = structure_of(records), records.plan
    if not plan.derived.mechanism.scale:
        return Verification(str(run), (structure,), about(run, records))
    _, samples, trials = _fresh(cases_like(plan), work, progress, structures=False)  # the run's own is what counts
    evidence = structure, check_statistics(samples), check_audit(trials)
    return Verification(str(run), evidence, about(run, records))


def verify_fresh(cases: list[Case], work: Path, progress: Progress, clear: Clear | None = None) -> Verification:
    """All three lines of evidence of fresh releases, which are kept in `work`."""
    checks, samples, trials = _fresh(cases, work, progress, clear)
    structure = Evidence("structure", tuple(checks), 0.0, f"{len(cases)} runs of fresh releases", UNSEEN)
    return Verification("fresh releases", (structure, check_statistics(samples), check_audit(trials)))


def _fresh(
    cases: list[Case], work: Path, progress: Progress, clear: Clear | None = None, *, structures: bool = True
) -> tuple[list[Check], list[Sample], list[Trials]]:
    """The structure checks of the fresh releases, unless nobody asks for them, what was found of them, and trials."""
    checks: list[Check] = []
    samples: list[Sample] = []
    trials: list[Trials] = []
    times = [seconds_of(case) for case in cases]
    laws = len({case.law for case in cases})
    progress({"event": "part", "text": f"about {max(1.0, sum(all_ for _, all_ in times) + 3 * laws):,.0f} s in all"})
    for seed, (case, (noise, _)) in enumerate(zip(cases, times, strict=True)):
        text = f"{case.name}: {case.releases} releases of {case.dimension} values by {case.parties} parties"
        progress(
            {"event": "stage", "text": text + (f"; about {noise:,.0f} s until noise is made" if noise > 2 else "")}
        )
        progress({"event": "plan", "releases": case.releases, "first": 0})
        plan = case.plan()
        out = work / f"{case.law}_{case.owners}"
        outcome = by_parties(plan, Canaries(plan, seed), out, progress=_told(progress))
        if structures:
            checks += [replace(check, name=f"{check.name} ({case.name})") for check in check_structure(out).checks]
        samples.append(outcome.sample())
        trials.append(outcome.trials(f"MPC, {case.name}"))
    for seed, (law, case) in enumerate(_one_of_each_law(cases)):
        dimension, count = (clear or {}).get(law, (LAWS[law].audit.dimension, LAWS[law].audit.trials))
        progress({"event": "part", "text": f"{count:,} trials in the clear: {law}"})
        trials.append(clear_trials(case, dimension, count, 1000 + seed))
    return checks, samples, trials


def _told(progress: Progress) -> Callable[[int, int], None]:
    return lambda done, total: progress({"event": "iteration", "done": done, "total": total})


def clear_trials(case: Case, dimension: int, count: int, seed: int, factor: float = 1.0) -> Trials:
    """`count` guesses about one release of the case, in the clear; with so many records replaced together that they
    cost enough to be seen. `factor`: of the noise, for tests."""
    law, one = LAWS[case.law], claim_of(replace(case, releases=1, dimension=dimension, owners=2).plan())
    copies = copies_of(one)
    diagonal = law.norm == 1
    releases = count if diagonal else count // (dimension - 1)
    plan = replace(case, dimension=dimension, releases=1, owners=2, copies=copies).plan()  # what one release promises
    canaries = Canaries(plan, seed, diagonal=diagonal, copies=copies)
    data_sets = max(20, 4_000_000 // (plan.sizes[0] * dimension))
    sets = min(1_000, data_sets)
    outcome = in_the_clear(plan, canaries, releases, copies=copies, data_sets=sets, factor=factor)
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
