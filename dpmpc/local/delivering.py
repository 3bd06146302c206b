"""What came of a run, in its folder: at every process that opened its sums, by what the source of its plan makes of
them. Post-processing of public numbers; again is the same."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.party.resume import standing
from dpmpc.aggregation.plan.asked import Presence, plan_path
from dpmpc.aggregation.plan.check_figures import owners_section, security_section
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.guarantee import privacy_section, promise_of, warnings_of
from dpmpc.aggregation.plan.opening import opening_of, opening_of_sums
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import noise_of
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.aggregation.wire.paths import opened_path
from dpmpc.aggregation.wire.transcript import read_opened
from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.folders import matching, write_file
from dpmpc.learning.model import with_figures
from dpmpc.learning.source import Opening, Source, Sum
from dpmpc.local.evaluating import section
from dpmpc.local.report import add_figures, read_report, write_report
from dpmpc.local.surveyed_away import draft_in
from dpmpc.outcome import Outcome
from dpmpc.processes.provenance import software
from dpmpc.run.files import FIGURES, PRESENT, WHOLE
from dpmpc.run.once import OPENED
from dpmpc.run.owners import Ended
from dpmpc.run.resume import opened_anywhere, presence_anywhere
from dpmpc.show.files import write_outcome
from dpmpc.show.forms import values
from dpmpc.statistics.study import QUESTIONS
from dpmpc.statistics.tables import KNOWN
from dpmpc.tables.stats import reopened
from dpmpc.tables.synth_made import made_from


def deliver_outcome(plan: Plan, opened: Opening, out: Path) -> Outcome:
    """What the releases of a plan mean that opened this, after its files are in `out`; that which says that all of them
    are there comes last."""
    found = plan.source.outcome(opened)
    write_outcome(found, out)
    if plan.source.RESULT == Source.RESULT and found.section:
        said = {"run": plan.run_id, "source": plan.source.KIND, "owners": list(opened.owners), **found.section}
        write_file(out / Source.RESULT, json.dumps(said, indent=1, allow_nan=False) + "\n")
    return found


def deliver(
    plan: Plan, total: Ints, present: Presence | None, out: Path, seconds: float, costs: Sequence[PartyCost] | None
) -> None:
    """Writes what came of a plan of one release that opened this into `out`, and last the report. `costs`: of the
    parties, where they are known; else there is no report."""
    found = deliver_outcome(plan, opening_of(plan, {0: total}, _one(present)), out)
    if costs is None:
        return
    report: dict[str, Any] = {
        "schema": plan.source.REPORT,
        "run": plan.run_id,
        "data": plan.data,
        "source": plan.source.KIND,
        "queries": [answer.question for answer in found.answers],
        "owners": plan.owners,
        "owner_names": None if plan.names is None else list(plan.names.owners),
        "sizes": list(plan.sizes),
        "parties": plan.parties,
        "threshold": plan.threshold,
        "backend": plan.backend,
        "security": security_section(plan),
        "coordinates": plan.dimension,
        "privacy": privacy_section(plan),
        "outcome": {**found.section, **values(found)},
        "warnings": [*warnings_of(plan), *found.warnings],
        "cost": {"seconds": seconds, "bytes_sent_by_a_party": max((c.bytes_to_parties for c in costs), default=0)},
        "software": software(),
    }
    if plan.checks_owners:
        report["owner_checks"] = owners_section(plan)
    write_file(out / "report.json", json.dumps(report, indent=1) + "\n")


def deliver_ended(plan: Plan, asked: Plan, ended: Ended, out: Path, seconds: float) -> None:
    """`deliver` of a release that was made now, and the rows that are drawn of it. `asked`: the plan that the run began
    with."""
    deliver(plan, ended.last.total, ended.last.present, out, seconds, ended.costs)
    if asked.source.DRAWS:
        made_from(out).write_rows(out)


def deliver_here(plan: Plan, out: Path, index: int) -> bool:
    """Whether `out`, the folder of party `index`, has got what came of a finished run: it opened every sum itself, so
    it makes of them what every owner does. A party without which the others finished has not opened all of it, and
    gets nothing."""
    if not standing(plan, out, index).over:
        return False
    opened = read_opened(opened_path(out, index), plan.dimension)
    if not opened:
        return False
    present = presence_anywhere(out, plan) if plan.names_owners else {}
    found = deliver_outcome(plan, opening_of(plan, opened, present, draft_in(out)), out)
    return bool(found.told or found.files or found.section)


def deliver_stage(plan: Plan, total: Ints, folder: Path) -> None:
    """Writes what a stage before a plan's own releases has opened into its folder, where people asked for it."""
    (stage, *_) = Plan.read(folder / WHOLE).source.schedule.before
    if stage.asks:
        alone = f"{promise_of(plan).sentence}; of this release alone, which is a part of what the run keeps in all"
        deliver_outcome(plan, opening_of(plan, {0: total}, guarantee=alone), folder)


def deliver_after(plan: Plan, out: Path) -> None:
    """Writes into `out` what the stages after a plan's releases mean for these: figures.json, the model's file, and the
    report where there is one."""
    after = plan.source.schedule.after
    if not after:
        return
    plans = {stage.name: Plan.read(plan_path(out / stage.name)) for stage in after}
    stages = {name: (made.source, _opened(made, out / name)) for name, made in plans.items()}
    outcome = plan.source.concluded(stages)
    if not outcome.section:
        return
    sections = {name: section(made) for name, made in plans.items()}
    found = {
        "run": plan.run_id, "owner_sizes": list(plan.sizes), **outcome.section, **sections,
        "warnings": list(outcome.warnings),
    }  # fmt: skip
    write_file(out / FIGURES, json.dumps(found, indent=2, allow_nan=False) + "\n")
    figures = outcome.section.get("figures")
    if figures is not None and (out / "model.npz").exists():
        with_figures(out / "model.npz", figures)
    if (out / "report.json").exists():
        report = read_report(out)
        if figures is not None and report["figures"] is None:
            add_figures(report, figures, outcome.warnings)
        write_report(out / "report.json", report | sections)


def outcome_in(folder: Path) -> Outcome:
    """What was delivered into a run's folder, or into that of its questions, made again of what was opened; nothing is
    spent. Errors: UsageError where there is nothing."""
    if any((place / KNOWN).is_file() for place in (folder, folder / QUESTIONS)):
        return reopened(folder).outcome
    plans = [path for path in (plan_path(folder), *matching(folder, "plan_*.json")) if path.is_file()]
    plan = Plan.read(plans[0] if plans else plan_path(folder))
    opened = opened_anywhere(folder, plan)
    if not opened:
        raise UsageError(f"a finished run has what it opened; {folder} has nothing; name another folder")
    present = presence_anywhere(folder, plan) if plan.names_owners else {}
    return plan.source.outcome(opening_of(plan, opened, present, draft_in(folder)))


def _opened(made: Plan, folder: Path) -> Opening:
    """What a stage after a plan's releases opened, from its folder."""
    present = loads((folder / PRESENT).read_text(encoding="utf-8"))
    total = np.load(folder / OPENED, allow_pickle=False)
    return opening_of_sums(made, (Sum(total, made.divisor_of(tuple(present)), noise_of(made)),), tuple(present))


def _one(present: Presence | None) -> dict[int, Presence]:
    return {} if present is None else {0: present}
