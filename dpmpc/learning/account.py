"""An accounting question about a run, and everything there is to say about its answer, ready for JSON.

The unknown is whichever of epsilon, delta, scale and number of releases is not given.
"""

from dataclasses import asdict
from typing import Literal, cast

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.method import METHODS, Learning
from dpmpc.privacy.cape import epsilon_table, most_colluding
from dpmpc.privacy.checks import NEIGHBOURS_OF, check_count, check_nonnegative, delta_warning
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.privacy.law import LAWS, Law, Need
from dpmpc.privacy.literature import PaperSetting, literature
from dpmpc.privacy.persons import Persons
from dpmpc.privacy.question import Question, Row
from dpmpc.privacy.risk import bounds, spent_at
from dpmpc.privacy.sensitivity import Sensitivity, Weights, rounding_bound, weights_for
from dpmpc.settings import keywords


@dataclass(frozen=True)
class RunTerms:
    """What is known of a run. Lengths in units of the released vector; None where unknown or left at its default. Where
    the promise is of persons, sizes are numbers of places: `person_rows` for each person."""

    method: str
    owners: int
    smallest: int
    records: int | None = None
    weights: Weights | None = None
    neighbours: Literal["record", "presence", "person", "owner"] = "record"
    person_rows: int | None = None
    person_owners: int = 0
    dimension: int = 122
    G: float = 1.0
    lam: float = 0.01
    epsilon: float | None = None
    delta: float | None = None
    scale: float | None = None
    iterations: int | None = None
    law: str | None = None
    solver_tolerance: float = 0.0
    grid_bits: int | None = None
    security_bits: float | None = None
    sampler_tv: float = 0.0

    def persons(self) -> Persons | None:
        """What is kept of each person; None where the promise is not of persons. Errors: it is, and nothing is said."""
        if self.neighbours != "person":
            if self.person_rows is not None or self.person_owners:
                raise UsageError(
                    f"places of persons are for a promise of persons; it is for {self.neighbours}; add "
                    "<<neighbours=person>>, or leave <<person_rows>> and <<person_owners>> out"
                )
            return None
        if self.person_rows is None:
            raise UsageError(
                "a promise of persons rests on how many records of each an owner keeps; none is said; add "
                "<<person_rows=K>>: the sizes are then numbers of places, K for each person"
            )
        if self.person_owners > self.owners:
            raise UsageError(
                f"a person has records at most at all owners; got {self.person_owners} of {self.owners}; leave "
                "<<person_owners>> out for all"
            )
        return Persons(self.person_rows, self.person_owners or self.owners)

    @property
    def weighed(self) -> Weights:
        """How owners weigh."""
        return weights_for(self.weights, self.sizes())

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


@keywords()
def account(
    *,
    method: str,
    owners: int,
    smallest: int,
    records: int | None = None,
    weights: Weights | None = None,
    neighbours: Literal["record", "presence", "person", "owner"] = "record",
    person_rows: int | None = None,
    person_owners: int = 0,
    dimension: int = 122,
    G: float = 1.0,
    lam: float = 0.01,
    epsilon: float | None = None,
    delta: float | None = None,
    scale: float | None = None,
    iterations: int | None = None,
    law: str | None = None,
    solver_tolerance: float = 0.0,
    grid_bits: int | None = None,
    security_bits: float | None = None,
    sampler_tv: float = 0.0,
    literature: bool = False,
) -> dict[str, object]:
    """What `dpmpc account` says, as JSON values: leave out one of epsilon, delta, scale and iterations; it is solved
    for. The others are the fields of `RunTerms`. Errors: UsageError where the question is none."""
    question = RunTerms(
        method=method,
        owners=owners,
        smallest=smallest,
        records=records,
        weights=weights,
        neighbours=neighbours,
        person_rows=person_rows,
        person_owners=person_owners,
        dimension=dimension,
        G=G,
        lam=lam,
        epsilon=epsilon,
        delta=delta,
        scale=scale,
        iterations=iterations,
        law=law,
        solver_tolerance=solver_tolerance,
        grid_bits=grid_bits,
        security_bits=security_bits,
        sampler_tv=sampler_tv,
    )
    return answer(question, literature)


def answer(question: RunTerms, with_literature: bool = True) -> dict[str, object]:
    """The solved question as a JSON-able dict.

    Keys: `neighbours`, `question`, `law`, `solved_for`, `epsilon`, `delta`, `scale`, `iterations`,
    `sensitivity` {l2, l1, parts}, `calibrations` (one row each; the first is the answer), `grid` (with grid_bits: the
    discrete law and its total guarantee), `warnings`, and when a delta is known `literature`, `progress` (epsilon
    after a part of the iterations), `collusion` (epsilon by where the same noise is made) and `risk` (the papers'
    bounds).
    """
    q = question
    law = LAWS[q.law or METHODS[q.method].law_for(q.delta)]
    sizes = q.sizes()
    if q.neighbours not in NEIGHBOURS_OF:
        raise UsageError(f"neighbours are {', '.join(NEIGHBOURS_OF)}; got {q.neighbours!r}; choose one")
    sensitivity = _sensitivity(q, sizes)
    divisor = _divisor(q, sum(sizes))
    known = Question(
        dimension=q.dimension,
        epsilon=q.epsilon,
        delta=q.delta,
        scale=q.scale,
        iterations=q.iterations,
        one_release=not METHODS[q.method].repeats,
        step=None if q.grid_bits is None else 2.0**-q.grid_bits / divisor,
        divisor=divisor,
    )
    solved_for, rows = law.solve(known, sensitivity)
    best = rows[0]
    result: dict[str, object] = {
        "neighbours": NEIGHBOURS_OF[q.neighbours],
        "question": asdict(q) | {"records": sum(sizes), "weights": q.weighed},
        "law": law.name,
        "solved_for": solved_for,
        **{key: best[key] for key in ("epsilon", "delta", "scale", "iterations")},
        "sensitivity": {"l2": sensitivity.l2, "l1": sensitivity.l1, "parts": sensitivity.parts},
        "calibrations": rows,
    }
    if q.grid_bits is not None:
        result["grid"] = _grid(q, law, solved_for, best, sensitivity, sum(sizes))
    if with_literature and q.neighbours == "record" and (q.delta is not None or not law.pure):
        setting = _setting(q, best, sum(sizes))
        result["literature"] = [asdict(row) for row in literature(setting)] if setting else []
        if setting:
            result["progress"] = _progress(setting)
            result["collusion"] = _collusion(setting)
            result["risk"] = [asdict(bound) for bound in bounds(setting)]
    result["warnings"] = _warnings(q, best, sum(sizes))
    return result


def _sensitivity(q: RunTerms, sizes: list[int]) -> Sensitivity:
    learning = Learning(
        method=q.method, task="ridge", lam=q.lam, residual_clip=q.G, solver_tolerance=q.solver_tolerance
    )
    found = learning.moved(q.neighbours, sizes, q.weighed, q.dimension, q.persons())
    if q.grid_bits is None:
        return found
    return found + rounding_bound(q.dimension, 2.0**-q.grid_bits, _divisor(q, sum(sizes)))


def _divisor(q: RunTerms, records: int) -> int:
    return q.owners if q.weighed == "equal" else records


def _grid(q: RunTerms, law: Law, solved_for: str, best: Row, sensitivity: Sensitivity, records: int) -> Row:
    assert q.grid_bits is not None
    step = 2.0**-q.grid_bits / _divisor(q, records)
    epsilon, delta, scale = (cast(float, best[key]) for key in ("epsilon", "delta", "scale"))
    iterations = cast(int, best["iterations"])
    if iterations == 0:
        return {}
    bits = q.security_bits
    failure = 0.0 if bits is None else 2.0 ** -check_nonnegative("statistical security in bits", bits)
    steps = sensitivity.steps(step)
    need = Need(epsilon, delta, steps, q.dimension, iterations, tv=q.sampler_tv, mpc_failure=failure)
    scale_steps = scale / step
    if solved_for in ("sigma", "scale"):
        scale_steps = law.scale(need)
    mechanism = law.mechanism(scale_steps, True, need)
    solve_epsilon = solved_for == "epsilon" or law.pure
    guarantee = law.guarantee(
        mechanism, iterations, epsilon=None if solve_epsilon else epsilon, delta=delta if solve_epsilon else None
    )
    return {
        "step": step,
        "sensitivity_steps": steps.l2,
        "scale_steps": scale_steps,
        "scale": scale_steps * step,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "delta_parts": guarantee.parts,
    }


def _setting(q: RunTerms, best: Row, records: int) -> PaperSetting | None:
    """The question as the papers' formulas take it; None where they have no meaning."""
    epsilon, delta, iterations = best["epsilon"], q.delta or best["delta"], best["iterations"]
    assert isinstance(epsilon, float) and isinstance(delta, float) and isinstance(iterations, int)
    if not (epsilon > 0 and 0 < delta < 1 and iterations > 0):
        return None
    return PaperSetting(
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


def _progress(s: PaperSetting) -> list[Row]:
    """Corollary 3.5 of Jayaraman et al. and the exact epsilon after a quarter, a half and all of the iterations."""
    rows: list[Row] = []
    for part in (4, 2, 1):
        t = max(1, s.iterations // part)
        printed, exact = spent_at(t, s.iterations, s.epsilon, s.delta)
        rows.append({"iteration": t, "printed": printed, "exact": exact})
    return rows


def _collusion(s: PaperSetting) -> Row:
    """epsilon towards ceil(m/3) - 1 colluding owners, of noise whose total is the tight one, by where it is made."""
    colluding = most_colluding(s.owners)
    table = epsilon_table(mu_of_budget(s.epsilon, s.delta), s.delta, s.owners, s.owners - colluding)
    return {"colluding": colluding, **table}


def _warnings(q: RunTerms, best: Row, records: int) -> list[str]:
    warnings: list[str] = []
    delta = best["delta"]
    assert isinstance(delta, float)
    text = delta_warning(delta, records)
    if text:
        warnings.append(text)
    if best["iterations"] == 0:
        warnings.append("not even one release fits into this budget at this scale; add noise or raise the budget")
    return warnings
