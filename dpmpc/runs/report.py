"""What a run leaves behind: report.json with stable keys, model.npz, and the summary that is printed at the end."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner import PartyCost
from dpmpc.aggregation.plan import Plan
from dpmpc.data import Dataset
from dpmpc.errors import UsageError
from dpmpc.privacy.checks import NEIGHBOURS, delta_warning
from dpmpc.privacy.composition import Cost
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.runs.train import Evaluator, Learner

SCHEMA = "dpmpc.runs.report/1"


@dataclass(frozen=True)
class Costs:
    """What a run took. `seconds`: of each iteration of this attempt, evaluation left out; `compute_s` of all of them
    went into computing the owners' vectors. `replayed`: iterations of earlier attempts."""

    wall_s: float
    seconds: Sequence[float]
    compute_s: float
    parties: Sequence[PartyCost]
    replayed: int


def privacy_section(plan: Plan) -> dict[str, Any]:
    """The guarantee of the whole run and everything it rests on. `epsilon` and `delta` always hold; a formula that
    claims more is named apart."""
    step = plan.grid.step / plan.divisor
    section: dict[str, Any] = {
        "epsilon": None,
        "delta": None,
        "asked": {"epsilon": plan.epsilon, "delta": plan.delta, "calibration": plan.calibration},
        "neighbours": NEIGHBOURS,
        "sensitivity": {
            "l2": plan.sensitivity,
            "parts": plan.sensitivity_parts,
            "l2_grid_steps": plan.sensitivity_steps,
            "l1_grid_steps": plan.sensitivity_l1_steps,
        },
        "noise_law": f"discrete {plan.law.capitalize()}"
        if plan.sampler == "discrete"
        else f"{plan.law} ({plan.sampler})",
        "noise_scale": plan.noise_steps * step,
        "noise_scale_grid_steps": plan.noise_steps,
        "releases": plan.releases,
        "grid": {"bits": plan.grid_bits, "step": plan.grid.step, "divisor": plan.divisor, "step_of_aggregate": step},
        "statistical_security_bits": plan.security_bits if plan.parties else None,
        "masks_of_openings_bits": None if not plan.hiding else -math.log2(plan.hiding),
        "sampler_certificate": plan.certificate,
        "bounds": plan.bounds,
    }
    if not plan.noise_steps:
        section["warning"] = "no noise was added: this run has no privacy guarantee"
        return section
    exact = plan.mechanism()
    if plan.sampler != "discrete":  # its law is close to the exact one, but what is proved of it adds up to too much
        exact = replace(exact, tv=0.0)
        gap = plan.releases * plan.dimension * plan.noise_tv
        section["assumption"] = (
            f"epsilon and delta hold if {plan.sampler} draws from the exact law; it is proved only that one run is "
            f"within {min(1.0, gap):.3g} of it in total variation; use --sampler discrete for a guarantee without "
            "this assumption"
        )
    total = Cost().plus(exact, plan.releases)
    if plan.law == "laplace":
        pure = total.pure
        failures = failure_factor(pure) * total.failure
        section |= {"epsilon": pure, "delta": max(plan.delta, failures)}
        section["delta_parts"] = {"mechanism": 0.0, "sampler_and_mpc": failures}
        true = pure
    else:
        true = total.epsilon(plan.delta)
        section |= {"epsilon": true if math.isfinite(true) else None, "delta": plan.delta}
        failures = failure_factor(true) * total.failure
        section["delta_parts"] = {"mechanism": plan.delta - failures, "sampler_and_mpc": failures}
    if plan.calibration != "paper" and true <= plan.epsilon * (1 + 1e-9):
        section["epsilon"] = plan.epsilon
        section["epsilon_accounted"] = true
    if plan.calibration == "paper":
        section["paper"] = {
            "claims": {"epsilon": plan.epsilon, "delta": plan.delta if plan.law == "gaussian" else 0.0},
            "really": {"epsilon": section["epsilon"], "delta": section["delta"]},
            "why": "Theorem 3.4 drops the term rho"
            if plan.law == "gaussian"
            else "Theorem 3.1 gives i.i.d. Laplace noise the L2 sensitivity",
        }
    return section


def warnings_of(plan: Plan) -> list[str]:
    """What the user should know before trusting the figures."""
    found = []
    if plan.law == "gaussian" and (text := delta_warning(plan.delta, sum(plan.sizes))):
        found.append(text)
    if plan.sampler != "discrete":
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
        found.append("with threshold 0 every single party can read all owners' vectors; use at least 3 parties")
    if not plan.parties:
        found.append("engine clear: one process saw all vectors; this run is for study and comparison")
    return found


def build_report(plan: Plan, learner: Learner, evaluator: Evaluator | None, costs: Costs) -> dict[str, Any]:
    """report.json as a value."""
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "run": plan.run_id,
        "data": plan.data,
        "method": plan.method,
        "sampler": plan.sampler,
        "engine": "mpc" if plan.parties else "clear",
        "calibration": plan.calibration,
        "weights": plan.weights,
        "loss": {"name": plan.loss, "G": plan.G, "L": plan.L, "lam": plan.lam, "clip": plan.clip},
        "learning": {
            "step": plan.step,
            "radius": plan.radius,
            "average": plan.average,
            "solver_tolerance": plan.solver_tolerance,
        },
        "owners": plan.owners,
        "owner_sizes": list(plan.sizes),
        "parties": plan.parties,
        "threshold": plan.threshold,
        "dimension": plan.dimension,
        "iterations": learner.iteration,
        "attempts": plan.attempt + 1,
        "privacy": privacy_section(plan),
        "utility": None if evaluator is None else _utility(learner, evaluator),
        "cost": _cost(plan, costs),
        "warnings": warnings_of(plan),
    }
    return report


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


def write_model(path: Path, plan: Plan, learner: Learner, dataset: Dataset) -> None:
    """Writes model.npz: theta (d,), feature_names (d,), preprocessing and task as JSON text. No pickled objects."""
    with path.open("wb") as file:
        np.savez(
            file,
            theta=learner.model,
            feature_names=np.array(dataset.feature_names),
            preprocessing=np.array(json.dumps(dataset.preprocessing)),
            task=np.array(plan.task),
            run=np.array(plan.run_id),
        )


@dataclass(frozen=True)
class Model:
    """A trained model as `predict` needs it."""

    theta: Any
    feature_names: tuple[str, ...]
    preprocessing: dict[str, Any]
    task: str


def read_model(run: Path) -> Model:
    """The model of a run directory. Errors: there is none, or it is not one."""
    path = run / "model.npz"
    try:
        with np.load(path, allow_pickle=False) as saved:
            return Model(
                saved["theta"],
                tuple(str(name) for name in saved["feature_names"]),
                json.loads(str(saved["preprocessing"])),
                str(saved["task"]),
            )
    except FileNotFoundError:
        raise UsageError(
            f"a finished run has a model.npz; {run} has none; train it, or carry it on with --resume"
        ) from None
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"a model must be what train wrote; {path}: {error}; train again") from None


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


def summary(report: dict[str, Any], run: Path) -> list[tuple[str, str]]:
    """(what, value) pairs of the lines printed at the end of a run."""
    privacy, cost, utility = report["privacy"], report["cost"], report["utility"]
    m, sizes = report["owners"], report["owner_sizes"]
    spread = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)}-{max(sizes)}"
    who = (
        f"{report['parties']} parties, threshold {report['threshold']}"
        if report["engine"] == "mpc"
        else "no MPC (engine clear)"
    )
    lines = [
        (
            "data",
            f"{report['data']}: {sum(sizes)} records of {m} owners ({spread} each), {report['dimension']} features",
        ),
        (
            "computed by",
            f"{who}; {report['iterations']} release{'s' if report['iterations'] != 1 else ''}, method "
            f"{report['method']}",
        ),
    ]
    if privacy["epsilon"] is None:
        lines.append(("guarantee", "none: no noise was added"))
    else:
        lines.append(
            ("guarantee", f"epsilon = {privacy['epsilon']:.6g}, delta = {privacy['delta']:.3g} for the whole run")
        )
        if "paper" in privacy:
            lines.append(
                (
                    "the paper's formula",
                    f"claims epsilon = {privacy['paper']['claims']['epsilon']:g}; the line above is what its scale "
                    "really gives",
                )
            )
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
    lines += [("warning", text) for text in report["warnings"]]
    lines.append(("report", str(run / "report.json")))
    return lines
