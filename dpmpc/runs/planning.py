"""From what was asked and what is public about the records to the plan of a run."""

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dpmpc.aggregation.asked import Bounds, CheckOwners, data_digest
from dpmpc.aggregation.plan import Plan
from dpmpc.data import Dataset, Partition, Schema
from dpmpc.data.planned import other_sizes
from dpmpc.errors import UsageError
from dpmpc.learning.method import DEFAULT_METHOD, METHODS, Learning, Task
from dpmpc.privacy.composition import spending_of
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.runs.request import Request

if TYPE_CHECKING:
    from dpmpc.runs.adviser import Advice, Circumstances


@dataclass(frozen=True)
class Facts:
    """What is public about the data: shape, task, who holds how many records, where the scaling bounds came from.

    `schema`: what maps the records, from which all but the sizes follow; None for made-up facts.
    """

    name: str
    task: Task
    dimension: int
    sizes: tuple[int, ...]
    bounds: Bounds
    schema: dict[str, Any] | None = None
    before: tuple[Mechanism, ...] = ()  # what the run has released already
    classes: int = 2


def facts_of(dataset: Dataset, split: Partition) -> Facts:
    """What the plan needs to know of the data."""
    return facts_of_schema(dataset.name, dataset.schema, tuple(int(size) for size in split.sizes))


def facts_without_records(request: Request) -> Facts:
    """What the request's schema and sizes say, where it names no records. Errors: it is no schema."""
    assert request.schema_file is not None and request.owner_sizes is not None
    return facts_of_schema(request.data_id or "records", Schema.read(Path(request.schema_file)), request.owner_sizes)


def facts_of_schema(name: str, schema: Schema, sizes: tuple[int, ...]) -> Facts:
    """What a schema and the owners' sizes say."""
    return Facts(
        name, schema.task, len(schema.feature_names), sizes, schema.bounds, schema.to_json(), classes=schema.classes
    )


def settled(request: Request, facts: Facts) -> tuple[Request, "Advice | None"]:
    """The request with everything chosen that a plan needs, and the advice that was taken, if any. A function of the
    request and of public facts. Softmax regression is not advised: nothing rehearses it."""
    if not request.advised or facts.task == "softmax":
        return replace(
            request,
            method=request.method or DEFAULT_METHOD,
            average=request.average or "tail",
            weights=request.weights or "equal",
        ), None
    from dpmpc.runs.adviser import advise  # which rehearses, with SciPy

    advice = advise(replace(_circumstances(request, facts), method=request.method))
    choice = advice.choice
    return replace(
        request,
        method=choice.method,
        iterations=choice.iterations,
        step=choice.step,
        average=request.average or choice.average,
        weights=advice.weights,
    ), advice


def expectation(request: Request, facts: Facts) -> "Advice | None":
    """What the adviser expects of a run of one release that was asked for, with its warnings; the plan is as without.
    None where nothing rehearses it: softmax regression, many features (functional), noise that no budget set."""
    method, law = request.learning_method, request.noise_law
    if (
        method.repeats
        or not (method.may_be_pure or law.by_mu)
        or facts.task == "softmax"
        or request.scale is not None
        or request.calibration != "tight"
    ):
        return None
    from dpmpc.learning.rehearsal import Rehearsed
    from dpmpc.runs.adviser import rehearsed

    if not isinstance(method, Rehearsed):
        return None
    known = _circumstances(request, facts)
    advice = rehearsed(replace(known, method=method.name, noise=law.name, weights=request.weights or "equal"))
    return None if advice is None else replace(advice, followed=False)


def _circumstances(request: Request, facts: Facts) -> "Circumstances":
    from dpmpc.runs.adviser import Circumstances

    return Circumstances(
        owners=len(facts.sizes),
        smallest=min(facts.sizes),
        records=sum(facts.sizes),
        dimension=facts.dimension,
        epsilon=request.epsilon,
        delta=request.delta or None,
        task="ridge" if facts.task == "ridge" else "logistic",
        lam=request.lam,
        residual_clip=request.residual_clip,
        weights=request.weights,
        neighbours=request.neighbours,
        spent=sum(spending_of(mechanism).mu2 for mechanism in facts.before),
    )


def plan_of(request: Request, facts: Facts) -> Plan:
    """The plan. Errors: as `Plan`, and where its promise cannot be kept."""
    request, _ = settled(request, facts)
    assert request.method is not None and request.average is not None and request.weights is not None
    mpc = request.engine == "mpc"
    learning = Learning(
        method=request.method,
        task=facts.task,
        lam=request.regularisation,
        residual_clip=request.residual_clip,
        step=request.step,
        radius=request.radius,
        average=request.average,
        solver_tolerance=request.solver_tolerance,
        spread=request.spread,
        classes=facts.classes,
    )
    plan = Plan(
        run_id=request.run_id or secrets.token_hex(8),
        data=request.data_id or facts.name,
        data_id=data_digest(request.data_id or facts.name),
        sizes=facts.sizes,
        dimension=METHODS[request.method].coordinates(facts.dimension) * learning.scores,
        releases=request.releases,
        source=learning,
        weights=request.weights,
        neighbours=request.neighbours,
        schema=facts.schema,
        bounds=facts.bounds,
        before=facts.before,
        epsilon=float(request.epsilon),
        delta=float(request.delta or 0.0),
        calibration=request.calibration,
        law=request.noise_law.name,
        sampler=request.noise_sampler,
        scale=None if request.scale is None else float(request.scale),
        grid_bits=request.grid_bits,
        security_bits=float(request.security_bits),
        backend=request.computed_by,
        parties=request.parties if mpc else 0,
        threshold=request.t if mpc else 0,
        pool=request.learning_method.repeats if request.pool is None else request.pool,
        min_owners=request.min_owners or 0,
        release_wait=float(request.release_wait),
        check_owners=cast(CheckOwners, request.check_owners or "no"),
        role=request.role,
    )
    _ = plan.derived
    return plan


def check_shape(plan: Plan, dataset: Dataset, sizes: tuple[int, ...], planned: tuple[int, ...]) -> None:
    """Errors: the records were not mapped by the plan's schema, or are not as many as it says."""
    if dataset.schema.digest != plan.schema_digest:
        raise UsageError(
            f"records are mapped by the plan's schema, {(plan.schema_digest or 'none')[:16]}; those of {dataset.name} "
            f"have {dataset.schema.digest[:16]}; use the same data set and options as the plan, or plan again"
        )
    if sizes != planned:
        raise UsageError(other_sizes(planned, sizes))
