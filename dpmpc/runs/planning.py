"""From what was asked and what is public about the records to the plan of a run."""

import secrets
from dataclasses import dataclass

from dpmpc.aggregation.plan import Bounds, Plan, data_digest
from dpmpc.data import Dataset, Partition
from dpmpc.errors import UsageError
from dpmpc.learning.method import Learning, Task
from dpmpc.runs.request import Request


@dataclass(frozen=True)
class Facts:
    """What is public about the data: shape, task, who holds how many records, where the scaling bounds came from."""

    name: str
    task: Task
    dimension: int
    sizes: tuple[int, ...]
    bounds: Bounds
    classes: int = 2


def facts_of(dataset: Dataset, split: Partition) -> Facts:
    """What the plan needs to know of the data."""
    return Facts(
        dataset.name, dataset.task, dataset.d, tuple(int(size) for size in split.sizes), dataset.bounds, dataset.classes
    )


def facts_without_records(request: Request) -> Facts:
    """The public shape that the request states, where it names no records."""
    assert request.task is not None and request.dimension is not None and request.owner_sizes is not None
    return Facts(
        request.data_id or "records",
        request.task,
        request.dimension,
        request.owner_sizes,
        "public",
        request.classes or 2,
    )


def plan_of(request: Request, facts: Facts) -> Plan:
    """The plan. Errors: as `Plan`, and where its promise cannot be kept."""
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
        classes=facts.classes,
    )
    plan = Plan(
        run_id=request.run_id or secrets.token_hex(8),
        data=facts.name,
        data_id=data_digest(request.data_id or facts.name),
        sizes=facts.sizes,
        dimension=facts.dimension * learning.scores,
        releases=request.releases,
        source=learning,
        weights=request.weights,
        bounds=facts.bounds,
        epsilon=float(request.epsilon),
        delta=float(request.delta or 0.0),
        calibration=request.calibration,
        law=request.noise_law.name,
        sampler=request.noise_sampler,
        scale=None if request.scale is None else float(request.scale),
        grid_bits=request.grid_bits,
        security_bits=float(request.security_bits),
        backend=request.backend,
        parties=request.parties if mpc else 0,
        threshold=request.t if mpc else 0,
        pool=request.learning_method.repeats if request.pool is None else request.pool,
    )
    _ = plan.derived
    return plan


def check_shape(plan: Plan, dataset: Dataset, sizes: tuple[int, ...], planned: tuple[int, ...]) -> None:
    """Errors: the records are not those that the plan was made for, as far as public figures tell."""
    learning = plan.learning
    task, features = learning.task, plan.dimension // learning.scores
    if (dataset.task, dataset.d, sizes, dataset.classes) != (task, features, planned, learning.classes):
        raise UsageError(
            f"records must have the shape in the plan: {task}, {features} features, {sum(planned)} training "
            f"records, {learning.classes} classes; these have {dataset.task}, {dataset.d}, {sum(sizes)}, "
            f"{dataset.classes}; check the file, --bounds and "
            "--test-fraction, or plan again"
        )
