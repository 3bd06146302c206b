"""What a run leaves behind: report.json with stable keys, and the summary that is printed at the end."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.asked import Attempt, Presence
from dpmpc.aggregation.checks import owners_section, security_section
from dpmpc.aggregation.frames import PartyCost
from dpmpc.aggregation.guarantee import privacy_section, warnings_of
from dpmpc.aggregation.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.learning.evaluate import Evaluator
from dpmpc.learning.learner import Learner
from dpmpc.mpc.levels import transfers_k
from dpmpc.processes.provenance import software
from dpmpc.runs.adviser import Advice

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
    evaluator: Evaluator | None,
    costs: Costs,
    advice: Advice | None = None,
    presence: Mapping[int, Presence] | None = None,
    names: Sequence[str] = (),
) -> dict[str, Any]:
    """report.json as a value. `advice`: what the plan follows, if it does. `names`: of the owners, if they have any."""
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
        "loss": {
            "name": learning.loss.name,
            "G": learning.loss.G,
            "L": learning.loss.L,
            "lam": learning.lam,
            "clip": plan.clip,
        },
        "learning": {
            "step": learning.step_length,
            "radius": learning.radius,
            "average": learning.average,
            "solver_tolerance": learning.solver_tolerance,
            "spread": learning.spread,
            "classes": learning.classes,
        },
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
        "cost": _cost(plan, costs),
        "advice": None if advice is None else advice.to_json(),
        "warnings": [
            *warnings_of(plan),
            *([] if advice is None else _new(advice.warnings, warnings_of(plan))),
            *map(_lost, costs.lost),
        ],
        "software": software(),
    }
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


def _new(texts: Sequence[str], known: Sequence[str]) -> list[str]:
    return [text for text in texts if text not in known]


def _utility(learner: Learner, evaluator: Evaluator) -> dict[str, Any]:
    model = learner.model
    loss, score = evaluator.objective(model), f"test_{evaluator.score_name}"
    return {
        "note": "computed from the plain data of this local run; outside the guarantee",
        "train_loss": loss,
        "optimality_gap": loss - evaluator.best,
        score: evaluator.score(model),
        "nonprivate": {"train_loss": evaluator.best, score: evaluator.score(evaluator.optimum)},
    }


def _cost(plan: Plan, costs: Costs) -> dict[str, Any]:
    seconds = np.array(costs.seconds) if len(costs.seconds) else np.full(1, np.nan)
    parties = costs.parties
    return {
        "wall_s": costs.wall_s,
        "offline_s": max((p.offline_s for p in parties), default=0.0),
        "online_s": max((p.online_s for p in parties), default=float(np.sum(costs.seconds))),
        "per_iteration_s": {"median": _finite(np.median(seconds)), "p90": _finite(np.quantile(seconds, 0.9))},
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
    return float(value) if np.isfinite(value) else None


def write_report(path: Path, report: dict[str, Any]) -> None:
    """Writes report.json whole or not at all."""
    partial = path.with_suffix(".tmp")
    partial.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    partial.replace(path)


def read_report(run: Path) -> dict[str, Any]:
    """The report of a run directory. Errors: there is none, or it is not one."""
    path = run / "report.json"
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UsageError(
            f"a finished run has a report.json; {run} has none; train it, or carry it on with --resume"
        ) from None
    except ValueError as error:
        raise UsageError(f"a report must be what train wrote; {path}: {error}; train again") from None
    if report.get("schema") != SCHEMA:
        raise UsageError(
            f"a report must have schema {SCHEMA}; {path} has {report.get('schema')}; use the version of dpmpc that "
            "wrote it"
        )
    return report


def features_of(report: dict[str, Any]) -> str:
    """How many features a record has, and how many classes there are if more than two numbers hang on that."""
    classes = report["learning"]["classes"]
    if report["loss"]["name"] != "softmax":
        return f"{report['dimension']} features"
    return f"{report['dimension'] // classes} features, {classes} classes"


def _named(names: Sequence[str] | None, sizes: Sequence[int]) -> list[tuple[str, str]]:
    """The line that lists owners by name."""
    if not names:
        return []
    shown = [f"{name} ({size})" for name, size in zip(names, sizes, strict=True)][:20]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return [("owners", ", ".join(shown) + more)]


def _security(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Of a run whose parties were checked."""
    section = report.get("security")
    if section is None or section["mode"] != "active":
        return []
    bits = section.get("undetected_bits")
    found = "" if bits is None else f"; a cheat passes with probability 2^-{bits:.1f} at most, all attempts together"
    return [("security", f"parties were checked (active): any one may cheat{found}")]


def _transfers(report: dict[str, Any]) -> str:
    """How two servers compute; nothing for other backends."""
    k = report.get("transfers_k")
    return "" if k is None else f", {report['backend']} with k = {k}"


def _owners_checked(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Of a run whose owners were checked: what, and who failed how often."""
    section = report.get("owners_checked")
    if section is None:
        return []
    names = report.get("owner_names") or [f"owner {j}" for j in range(report["owners"])]
    times = Counter(j for failed in section["failed"].values() for j in failed)
    who = ", ".join(f"{names[j]} in {count}" for j, count in sorted(times.items())) or "none failed"
    what = "shares and norms" if "norms" in section["checks"] else "shares, not norms,"
    return [("owners checked", f"{what} in {section['releases']} releases; failed, and counted as zero: {who}")]


def summary(report: dict[str, Any], run: Path) -> list[tuple[str, str]]:
    """(what, value) pairs of the lines printed at the end of a run."""
    privacy, cost, utility = report["privacy"], report["cost"], report["utility"]
    m, sizes = report["owners"], report["owner_sizes"]
    spread = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)}-{max(sizes)}"
    who = (
        f"{report['parties']} parties, threshold {report['threshold']}{_transfers(report)}"
        if report["engine"] == "mpc"
        else "no MPC (engine clear)"
    )
    lines = [
        (
            "data",
            f"{report['data']}: {sum(sizes)} records of {m} owners ({spread} each), {features_of(report)}",
        ),
        *_named(report.get("owner_names"), sizes),
        (
            "computed by",
            f"{who}; {report['iterations']} release{'s' if report['iterations'] != 1 else ''}, method "
            f"{report['method']}",
        ),
        *_security(report),
    ]
    if report.get("advice") is not None:
        best = report["advice"]["advice"]
        step = "" if best["step"] is None else f", step {best['step']:.3g}"
        lines.append(
            (
                "advised",
                f"method {best['method']}, {best['iterations']} release{'s' if best['iterations'] != 1 else ''}{step}; "
                f"expected to miss {best['left']:.1%} of what there is to learn",
            )
        )
    if privacy["epsilon"] is None:
        lines.append(("guarantee", privacy["statement"].removeprefix("guarantee: ")))
    else:
        known = f"epsilon = {privacy['epsilon']:.6g}, delta = {privacy['delta']:.3g} for the whole run"
        if privacy["assumptions"]:
            lines.append(("guarantee, if", f"{' and '.join(privacy['assumptions'])}: {known}"))
        else:
            lines.append(("guarantee", known))
        if "paper" in privacy:
            lines.append(
                (
                    "the paper's formula",
                    f"claims epsilon = {privacy['paper']['claims']['epsilon']:g}; the line above is what its scale "
                    "really gives",
                )
            )
        if privacy["released_before"]:
            lines.append(("", "the survey that found ranges and categories included"))
        lines.append(("neighbours", privacy["neighbours"]))
        lines.append(
            (
                "noise",
                f"{privacy['noise_law']}, scale {privacy['noise_scale']:.4g} a coordinate of the mean; sensitivity "
                f"{privacy['sensitivity']['l2']:.4g}",
            )
        )
    if utility is not None:
        name = "test_accuracy" if "test_accuracy" in utility else "test_mse"
        unit = "" if name == "test_accuracy" else " on the target scaled to [-1, 1]"
        if utility[name] is not None:
            lines.append(
                (
                    name.replace("_", " "),
                    f"{utility[name]:.4f} (without privacy {utility['nonprivate'][name]:.4f}){unit}; outside the "
                    "guarantee",
                )
            )
        lines.append(
            (
                "training loss",
                f"{utility['train_loss']:.4f} (without privacy {utility['nonprivate']['train_loss']:.4f}); outside "
                "the guarantee",
            )
        )
    median = cost["per_iteration_s"]["median"]
    each = "" if median is None else f", {median:.1f} s" if median >= 1 else f", {1000 * median:.1f} ms"
    each += " an iteration" if each else ""
    lines.append(("time", f"{cost['wall_s']:.1f} s in all; noise ahead {cost['offline_s']:.2f} s{each}"))
    if cost["bytes_sent"]:
        lines.append(("traffic", f"{max(cost['bytes_sent']) / 1e6:.2f} MB sent by a party, {cost['rounds']} rounds"))
    if "presence" in report:
        gone = len(report["presence"]["missing"])
        lines.append(("owners", f"missing in {gone} of {report['presence']['releases']} releases; see the report"))
    lines += _owners_checked(report)
    lines += [("warning", text) for text in report["warnings"]]
    lines.append(("report", str(run / "report.json")))
    return lines
