"""An accounting question with one unknown, and everything there is to say about its answer, ready for JSON.

The unknown is whichever of epsilon, delta, scale and number of releases is not given.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from dpmpc.errors import UsageError
from dpmpc.privacy.cape import epsilon_table, most_colluding
from dpmpc.privacy.checks import NEIGHBOURS, check_count, check_delta, check_epsilon, delta_warning
from dpmpc.privacy.discrete import (
    discrete_gaussian_guarantee,
    discrete_gaussian_scale,
    discrete_laplace_guarantee,
    l1_steps_of,
)
from dpmpc.privacy.gaussian import (
    Calibration,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_releases,
    gaussian_scale,
    mu_of_budget,
)
from dpmpc.privacy.laplace import laplace_epsilon, laplace_releases, laplace_scale
from dpmpc.privacy.literature import Setting, literature
from dpmpc.privacy.risk import bounds, spent_at
from dpmpc.privacy.sensitivity import (
    Sensitivity,
    Weights,
    gradient_sensitivity,
    output_sensitivity,
    rounding_bound,
)

Row = dict[str, object]


@dataclass(frozen=True)
class Question:
    """What is known of a run. Lengths in units of the released vector; None where unknown or left at its default."""

    method: Literal["gradient", "output"]
    owners: int
    smallest: int
    records: int | None = None
    weights: Weights = "equal"
    dimension: int = 122
    G: float = 1.0
    lam: float = 0.01
    epsilon: float | None = None
    delta: float | None = None
    scale: float | None = None
    iterations: int | None = None
    law: Literal["gaussian", "laplace"] | None = None
    solver_tolerance: float = 0.0
    grid_bits: int | None = None
    security_bits: float | None = None
    sampler_tv: float = 0.0

    def sizes(self) -> list[int]:
        """Owner sizes with the given number of owners, smallest size and total (the rest spread evenly)."""
        m, smallest = (
            check_count("the number of owners", self.owners),
            check_count("the smallest owner's size", self.smallest),
        )
        total = m * smallest if self.records is None else check_count("the total number of records", self.records)
        if total < m * smallest or (m == 1 and total != smallest):
            raise UsageError(
                f"{m} owners with at least {smallest} records each hold at least {m * smallest} (one owner: exactly); "
                f"got a total of {total}; change the total or the smallest size"
            )
        if m == 1:
            return [smallest]
        base, extra = divmod(total - smallest, m - 1)
        return [smallest] + [base + (i < extra) for i in range(m - 1)]


def answer(question: Question, with_literature: bool = True) -> dict[str, object]:
    """The solved question as a JSON-able dict.

    Keys: `neighbours`, `question`, `law`, `solved_for`, `epsilon`, `delta`, `scale`, `iterations`,
    `sensitivity` {l2, l1, parts}, `calibrations` (one row each; the first is the answer), `grid` (with grid_bits: the
    discrete law and its total guarantee), `warnings`, and when a delta is known `literature`, `progress` (epsilon
    after a part of the iterations), `collusion` (epsilon by where the same noise is made) and `risk` (the papers'
    bounds).
    """
    q = question
    law = q.law or ("gaussian" if q.method == "gradient" or q.delta is not None else "laplace")
    sizes = q.sizes()
    sensitivity = _sensitivity(q, sizes)
    if law == "gaussian":
        solved_for, rows = _gaussian_rows(q, sensitivity.l2)
    else:
        solved_for, rows = _laplace_rows(q, sensitivity)
    best = rows[0]
    result: dict[str, object] = {
        "neighbours": NEIGHBOURS,
        "question": asdict(q) | {"records": sum(sizes)},
        "law": law,
        "solved_for": solved_for,
        **{key: best[key] for key in ("epsilon", "delta", "scale", "iterations")},
        "sensitivity": {"l2": sensitivity.l2, "l1": sensitivity.l1(q.dimension), "parts": sensitivity.parts},
        "calibrations": rows,
    }
    if q.grid_bits is not None:
        result["grid"] = _grid(q, law, solved_for, best, sensitivity, sum(sizes))
    if with_literature and (q.delta is not None or law == "gaussian"):
        setting = _setting(q, best, sum(sizes))
        result["literature"] = [asdict(row) for row in literature(setting)] if setting else []
        if setting:
            result["progress"] = _progress(setting)
            result["collusion"] = _collusion(setting)
            result["risk"] = [asdict(bound) for bound in bounds(setting)]
    result["warnings"] = _warnings(q, best, sum(sizes))
    return result


def _sensitivity(q: Question, sizes: list[int]) -> Sensitivity:
    rounding = 0.0
    if q.grid_bits is not None:
        rounding = rounding_bound(q.dimension, 2.0**-q.grid_bits, _divisor(q, sum(sizes)))
    if q.method == "gradient":
        return gradient_sensitivity(G=q.G, sizes=sizes, weights=q.weights, rounding=rounding)
    return output_sensitivity(
        G=q.G,
        lam=q.lam,
        sizes=sizes,
        weights=q.weights,
        rounding=rounding,
        solver_gradient_norm=q.solver_tolerance,
    )


def _divisor(q: Question, records: int) -> int:
    return q.owners if q.weights == "equal" else records


def _unknown(known: Mapping[str, float | None]) -> str:
    missing = [name for name, value in known.items() if value is None]
    if len(missing) != 1:
        given = ", ".join(name for name, value in known.items() if value is not None) or "none"
        raise UsageError(
            f"give all but one of {', '.join(known)}, the one left out is solved for; got {given}; "
            + (f"add {' or '.join(missing)}" if missing else "leave one out")
        )
    return missing[0]


def _gaussian_rows(q: Question, l2: float) -> tuple[str, list[Row]]:
    iterations = q.iterations
    if q.method == "output" and iterations is None and None in (q.epsilon, q.delta, q.scale):
        iterations = 1
    known = {"epsilon": q.epsilon, "delta": q.delta, "sigma": q.scale, "iterations": iterations}
    unknown = _unknown(known)
    rows: list[Row] = []
    for calibration in get_args(Calibration):
        e, d, s, t = q.epsilon, q.delta, q.scale, iterations
        if s is None:
            assert e is not None and d is not None and t is not None
            s = gaussian_scale(e, d, l2, t, calibration)
        elif e is None:
            assert d is not None and t is not None
            e = gaussian_epsilon(s, d, l2, t, calibration)
        elif d is None:
            assert t is not None
            d = gaussian_delta(s, check_epsilon(e), l2, t, calibration)
        elif t is None:
            t = gaussian_releases(s, e, d, l2, calibration)
        assert e is not None and d is not None and t is not None
        rows.append(_gaussian_row(calibration, e, d, s, t, l2))
    return unknown, rows


def _gaussian_row(name: str, epsilon: float, delta: float, scale: float, iterations: int, l2: float) -> Row:
    true_epsilon = true_delta = zcdp = None
    if iterations > 0 and 0 < delta < 1:
        true_epsilon = gaussian_epsilon(scale, delta, l2, iterations)
        zcdp = gaussian_epsilon(scale, delta, l2, iterations, "zcdp")
    if iterations > 0 and epsilon > 0:
        true_delta = gaussian_delta(scale, epsilon, l2, iterations)
    return {
        "calibration": name,
        "epsilon": epsilon,
        "delta": delta,
        "scale": scale,
        "iterations": iterations,
        "deviation": scale,
        "true_epsilon": true_epsilon,
        "true_delta": true_delta,
        "zcdp_epsilon": zcdp,
        "holds": true_epsilon is None or true_epsilon <= epsilon * (1 + 1e-9),
    }


def _laplace_rows(q: Question, sensitivity: Sensitivity) -> tuple[str, list[Row]]:
    iterations = 1 if q.iterations is None and None in (q.epsilon, q.scale) else q.iterations
    unknown = _unknown({"epsilon": q.epsilon, "scale": q.scale, "iterations": iterations})
    l1 = sensitivity.l1(q.dimension)
    if q.delta is not None:
        check_delta(q.delta)
    rows: list[Row] = []
    for name, claimed, true in (
        ("l1", l1, l1),
        ("paper", sensitivity.l2, l1),
        ("l2-density", sensitivity.l2, sensitivity.l2),
    ):
        e, b, t = q.epsilon, q.scale, iterations
        if b is None:
            assert e is not None and t is not None
            b = laplace_scale(e, claimed, t)
        elif e is None:
            assert t is not None
            e = laplace_epsilon(b, claimed, t)
        elif t is None:
            t = laplace_releases(b, e, claimed)
        assert e is not None and t is not None
        truth = laplace_epsilon(b, true, t) if t > 0 else None
        spread = math.sqrt(q.dimension + 1) if name == "l2-density" else math.sqrt(2)
        rows.append(
            {
                "calibration": name,
                "epsilon": e,
                "delta": 0.0,
                "scale": b,
                "iterations": t,
                "deviation": spread * b,
                "true_epsilon": truth,
                "true_delta": 0.0,
                "zcdp_epsilon": laplace_epsilon(b, true, t, q.delta) if q.delta is not None and t > 0 else None,
                "holds": truth is None or truth <= e * (1 + 1e-9),
            }
        )
    return unknown, rows


def _grid(q: Question, law: str, solved_for: str, best: Row, sensitivity: Sensitivity, records: int) -> Row:
    assert q.grid_bits is not None
    step = 2.0**-q.grid_bits / _divisor(q, records)
    steps = sensitivity.steps(step)
    epsilon, delta, scale, iterations = (best[key] for key in ("epsilon", "delta", "scale", "iterations"))
    assert isinstance(epsilon, float) and isinstance(delta, float) and isinstance(scale, float)
    assert isinstance(iterations, int)
    if iterations == 0:
        return {}
    sigma = scale / step
    if law == "laplace":
        guarantee = discrete_laplace_guarantee(
            sigma,
            l1_steps_of(steps, q.dimension),
            iterations,
            q.dimension,
            tv_per_coordinate=q.sampler_tv,
            security_bits=q.security_bits,
        )
    else:
        if solved_for == "sigma":
            sigma = discrete_gaussian_scale(
                epsilon,
                delta,
                steps,
                iterations,
                q.dimension,
                tv_per_coordinate=q.sampler_tv,
                security_bits=q.security_bits,
            )
        guarantee = discrete_gaussian_guarantee(
            sigma,
            steps,
            iterations,
            q.dimension,
            epsilon=None if solved_for == "epsilon" else epsilon,
            delta=delta if solved_for == "epsilon" else None,
            tv_per_coordinate=q.sampler_tv,
            security_bits=q.security_bits,
        )
    return {
        "step": step,
        "sensitivity_steps": steps,
        "scale_steps": sigma,
        "scale": sigma * step,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "delta_parts": guarantee.parts,
    }


def _setting(q: Question, best: Row, records: int) -> Setting | None:
    """The question as the papers' formulas take it; None where they have no meaning."""
    epsilon, delta, iterations = best["epsilon"], q.delta or best["delta"], best["iterations"]
    assert isinstance(epsilon, float) and isinstance(delta, float) and isinstance(iterations, int)
    if not (epsilon > 0 and 0 < delta < 1 and iterations > 0):
        return None
    return Setting(
        owners=q.owners,
        smallest=q.smallest,
        epsilon=epsilon,
        delta=delta,
        iterations=iterations,
        dimension=q.dimension,
        lam=q.lam,
        G=q.G,
        records=records,
    )


def _progress(s: Setting) -> list[Row]:
    """Corollary 3.5 of Jayaraman et al. and the exact epsilon after a quarter, a half and all of the iterations."""
    rows: list[Row] = []
    for part in (4, 2, 1):
        t = max(1, s.iterations // part)
        printed, exact = spent_at(t, s.iterations, s.epsilon, s.delta)
        rows.append({"iteration": t, "printed": printed, "exact": exact})
    return rows


def _collusion(s: Setting) -> Row:
    """epsilon towards ceil(m/3) - 1 colluding owners, of noise whose total is the tight one, by where it is made."""
    colluding = most_colluding(s.owners)
    table = epsilon_table(mu_of_budget(s.epsilon, s.delta), s.delta, s.owners, s.owners - colluding)
    return {"colluding": colluding, **table}


def _warnings(q: Question, best: Row, records: int) -> list[str]:
    warnings: list[str] = []
    delta = best["delta"]
    assert isinstance(delta, float)
    text = delta_warning(delta, records)
    if text:
        warnings.append(text)
    if best["iterations"] == 0:
        warnings.append("not even one release fits into this budget at this scale; add noise or raise the budget")
    return warnings
