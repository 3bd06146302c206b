"""What a run leaves behind: report.json, with stable keys."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmpc.aggregation.plan.asked import Attempt, Presence
from dpmpc.aggregation.plan.check_figures import owners_section, security_section
from dpmpc.aggregation.plan.guarantee import privacy_section, warnings_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.codec import loads
from dpmpc.errors import UsageError, python_spelling
from dpmpc.folders import carried_on, write_file
from dpmpc.lazy import dataclass
from dpmpc.learning.method import Learner, Learning, tail_begins
from dpmpc.mpc.contract.levels import transfers_k
from dpmpc.processes.logs import spoken
from dpmpc.processes.provenance import software
from dpmpc.statistics.figures import BALANCING

if TYPE_CHECKING:
    from dpmpc.local.plain import Evaluator
    from dpmpc.planning.adviser import Advice

SCHEMA = "dpmpc.report/1"


@dataclass(frozen=True)
class Costs:
    """What a run took. `seconds`: of each iteration of this attempt, evaluation left out; `compute_s` of all of them
    went into computing the owners' vectors. `replayed`: iterations of earlier attempts."""

    wall_s: float
    seconds: Sequence[float]
    compute_s: float
    parties: Sequence[PartyCost]
    replayed: int
    lost: Sequence[int] = ()  # parties that left after noise was made, without which sums were opened


def build_report(
    plan: Plan,
    attempt: Attempt,
    learner: Learner,
    evaluator: "Evaluator | None",
    costs: Costs,
    advice: "Advice | None" = None,
    presence: Mapping[int, Presence] | None = None,
    names: Sequence[str] = (),
    columns: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """report.json as a value. `advice`: what the plan follows, or what is expected of it. `names`: of the owners, if
    they have any. `columns`: those of the records that are used, and those that are not with their public reason."""
    learning = plan.learning
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "run": plan.run_id,
        "data": plan.data,
        "method": learning.method,
        "sampler": plan.sampler,
        "engine": "mpc" if plan.parties else "clear",
        "backend": plan.backend if plan.parties else None,
        "transfers_k": transfers_k(plan.backend) if plan.parties else None,
        "security": security_section(plan),
        "calibration": plan.calibration,
        "weights": plan.weights,
        **_learning(learning, plan.clip),
        "owners": plan.owners,
        "owner_sizes": list(plan.sizes),
        "owner_names": list(names) or None,
        "parties": plan.parties,
        "threshold": plan.threshold,
        "parties_lost": list(costs.lost),
        "dimension": len(learner.theta),
        "coordinates": plan.dimension,
        "iterations": learner.iteration,
        "attempts": attempt.number + 1,
        "privacy": privacy_section(plan),
        "utility": None if evaluator is None else _utility(learner, evaluator),
        "figures": None,
        "cost": _cost(plan, costs),
        "advice": None if advice is None else _advice(plan, advice),
        "warnings": [
            *warnings_of(plan),
            *([] if advice is None else _new(_warnings(advice), warnings_of(plan))),
            *(plan.called(_lost(party)) for party in costs.lost),
        ],
        "software": software(),
        "columns": columns,
    }
    if evaluator is not None and (found := evaluator.figures(learner.model)) is not None:
        add_figures(report, found.to_json(), found.warnings)
    if plan.dropouts:
        report["presence"] = _presence(plan, presence or {})
    if plan.checks_owners:
        report["owners_checked"] = (owners_section(plan) or {}) | {
            "releases": len(presence or {}),
            "failed": {
                str(r): list(gone) for r, who in sorted((presence or {}).items()) if (gone := plan.missing(who))
            },
        }
    return report


def _learning(learning: Learning, clip: float) -> dict[str, Any]:
    """The loss, and how it was made small."""
    loss = {name: getattr(learning.loss, name) for name in ("name", "G", "L")}
    how = ("momentum", "radius", "average", "solver_tolerance", "spread", "classes")
    return {
        "loss": {**loss, "lam": learning.lam, "clip": clip},
        "learning": {
            "task": learning.task,
            "scores": learning.scores,
            "step": learning.step_length,
            **{name: getattr(learning, name) for name in how},
        },
    }


def averaging_begins(report: dict[str, Any]) -> int | None:
    """The iteration from which the model is an average of iterates; None if it never is, or always."""
    releases = report["privacy"]["releases"]
    return tail_begins(releases) if report["learning"]["average"] == "tail" and releases > 1 else None


def add_figures(report: dict[str, Any], figures: dict[str, Any], warnings: Sequence[str]) -> None:
    """Puts the model's figures, as JSON values, into a report, and what they warn of."""
    report["figures"] = figures
    way = spoken("<<class_weight=balanced>>")
    way = python_spelling("class_weight", '"balanced"') if way == python_spelling("class_weight", "balanced") else way
    report["warnings"] += [text.replace(BALANCING, way) for text in warnings]


def _presence(plan: Plan, presence: Mapping[int, Presence]) -> dict[str, Any]:
    """Who was missing, by release: public, as the plan has it."""
    everybody = set(range(plan.owners))
    return {
        "min_owners": plan.fewest,
        "releases": len(presence),
        "fewest": min(map(len, presence.values()), default=None),
        "missing": {
            str(r): sorted(everybody - set(who)) for r, who in sorted(presence.items()) if len(who) < plan.owners
        },
    }


def _lost(party: int) -> str:
    return f"party {party} left the run after noise was made; the others opened the sums without it"


def _advice(plan: Plan, advice: "Advice") -> dict[str, Any]:
    """`followed`: whether the plan is the adviser's, or only what it expects of one that was asked for."""
    taken = privacy_section(plan)["survey_share"]
    said = {"followed": advice.followed, "survey_share": taken, "warnings": _warnings(advice)}
    return advice.to_json() | said


def _warnings(advice: "Advice") -> list[str]:
    """The adviser's warnings with settings as the surface has them that made the run."""
    return [spoken(text) for text in advice.marked]


def _new(texts: Sequence[str], known: Sequence[str]) -> list[str]:
    return [text for text in texts if text not in known]


def _utility(learner: Learner, evaluator: "Evaluator") -> dict[str, Any]:
    model = learner.model
    loss, score = evaluator.objective(model), f"test_{evaluator.score_name}"
    plain = evaluator.figures(evaluator.optimum)
    return {
        "note": "computed from the plain data of this local run; outside the guarantee",
        "train_loss": loss,
        "optimality_gap": loss - evaluator.best,
        score: evaluator.score(model),
        "test_records": evaluator.data.test.n,
        "nonprivate": {
            "train_loss": evaluator.best,
            score: evaluator.score(evaluator.optimum),
            "figures": None if plain is None else plain.to_json(),
        },
    }


def _within(ordered: Sequence[float], part: float) -> float:
    """What this part of the values is within, of two the weighted mean. NumPy's imports its masked arrays first."""
    low, rest = divmod((len(ordered) - 1) * part, 1)
    high = min(int(low) + 1, len(ordered) - 1)
    return ordered[int(low)] * (1 - rest) + ordered[high] * rest


def _cost(plan: Plan, costs: Costs) -> dict[str, Any]:
    seconds = sorted(costs.seconds) or [math.nan]
    parties = costs.parties
    return {
        "wall_s": costs.wall_s,
        "offline_s": max((p.offline_s for p in parties), default=0.0),
        "online_s": max((p.online_s for p in parties), default=math.fsum(costs.seconds)),
        "per_iteration_s": {"median": _finite(_within(seconds, 0.5)), "p90": _finite(_within(seconds, 0.9))},
        "bytes_sent": [p.bytes_to_parties + p.bytes_to_owners for p in parties],
        "bytes_received": [p.bytes_received for p in parties],
        "owners_compute_s": costs.compute_s,
        "rounds": max((p.offline_rounds + p.online_rounds for p in parties), default=0),
        "rounds_offline": max((p.offline_rounds for p in parties), default=0),
        "rounds_online": max((p.online_rounds for p in parties), default=0),
        "peak_memory": [p.peak_memory for p in parties],
        "iterations_of_earlier_attempts": costs.replayed,
    }


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def write_report(path: Path, report: dict[str, Any]) -> None:
    """Writes report.json whole or not at all."""
    write_file(path, json.dumps(report, indent=2, allow_nan=False) + "\n")


def read_report(run: Path) -> dict[str, Any]:
    """The report of a run directory. Errors: there is none, or it is not one."""
    path = run / "report.json"
    try:
        report: dict[str, Any] = loads(path.read_text(encoding="utf-8"))
    except OSError:
        if not run.exists():
            raise UsageError(f"a run has a folder; {run} is not there; check the path", code="path") from None
        raise UsageError(
            f"a finished run has a report.json; {run} has none; {carried_on(run)} (dpmpc budget tells what it has "
            "spent)",
            code="file",
        ) from None
    except ValueError as error:
        raise UsageError(f"a report must be what train wrote; {path}: {error}; train again") from None
    found = report.get("schema") if isinstance(report, dict) else "none"
    if found != SCHEMA:
        raise UsageError(
            f"a report must have schema {SCHEMA}; {path} has {found}; use the version of dpmpc that wrote it"
        )
    return report
