"""The survey of a run: one release, before training, of what a schema needs to know of the owners' records.

It has a plan, parties, ledgers and transcripts of its own, in the folder survey/ of the run, and a part of the run's
budget that the adviser chooses from public numbers; the plan of training carries it (`Plan.before`), and promises both.
The classes of a label, and which columns hold texts, are read off the records, by rules that no single record decides:
with one record changed they say the same, or the run ends with an error before anything is released.
"""

import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.aggregator import Aggregator
from dpmpc.aggregation.asked import Vectors, data_digest
from dpmpc.aggregation.encoding import decode
from dpmpc.aggregation.plan import Plan
from dpmpc.data import Schema, partition
from dpmpc.data.dataset import split
from dpmpc.data.derive import Asked, features_of, has_classes, labels_of, texts_of
from dpmpc.data.hashing import bucket_sql
from dpmpc.data.loading import OpenTable
from dpmpc.data.mapping import owner_numbers, owners_of
from dpmpc.data.schema import Labels, Task
from dpmpc.data.table import Floats, Ints, Table, held, value_sql
from dpmpc.errors import UsageError
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_columns import surveyed_schema
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.runs.adviser import Circumstances, survey_noise, survey_share
from dpmpc.runs.planning import Facts, plan_of
from dpmpc.runs.request import Request

FOLDER = "survey"
SUFFIX = "+survey"  # of the run's name
LOUDEST = 0.2  # of the records: with more noise than this in a count a survey finds nothing
_AT_ONCE = 1 << 24  # numbers of owners' vectors that are held at once


@dataclass(frozen=True)
class Surveyed:
    """What a survey led to: the request that names its schema, what its release spent, and the records that it has read
    already, where it was made just now."""

    request: Request
    before: tuple[Mechanism, ...]
    records: OpenTable | None = None


def wanted(request: Request) -> bool:
    """Whether a run that is all here is to be surveyed first: its records have no public schema or bounds, and the
    budget can be shared."""
    if request.preprocessing is not None:
        return request.preprocessing == "survey"
    return (
        request.source is not None
        and request.schema_file is None
        and request.bounds_file is None
        and bool(request.delta)
        and request.missing == "fill"
        and request.scale is None
        and request.calibration == "tight"
        and request.noise_law.by_mu
        and request.neighbours == "record"
        and not request.planned
        and request.task != "softmax"
    )


def survey(
    request: Request,
    records: OpenTable,
    out: Path,
    wait: float,
    check: Callable[[Plan, Plan], None] = lambda survey, training: None,
    budget: Budget | None = None,
) -> Surveyed | None:
    """Surveys the records that the request names and writes out/survey/schema.json.

    None if the budget is too small for it, or the target has more than two classes, and none was asked for by name.
    `check` may refuse its plan and one of the training after it, of a usual number of features.
    Errors: as for records; a target that does not suit the task; options that no run can do; as of releases.
    """
    folder = out / FOLDER
    request = replace(request, run_id=request.run_id or secrets.token_hex(8))
    table = records.table
    asked = Asked(
        request.target or "", request.owners_column, request.drop, request.task, request.positive,
        request.intercept is not False,
    )  # fmt: skip
    features = features_of(table, asked)
    table = held(table, [*features, *(name for name in (asked.target, asked.owners_column) if name is not None)])
    if request.preprocessing is None and has_classes(table, asked):
        return None  # a survey is for labels of two values and for quantities
    target: Labels | str = asked.target if asked.task == "ridge" else labels_of(table, asked)
    names = [*features, asked.target] if isinstance(target, str) else features
    texts = texts_of(table, names)
    questions = Survey(tuple(name for name in names if name not in texts), texts)
    owner_of, sizes = _owners(request, table)
    if _too_loud(request, questions, sizes):
        if request.preprocessing is None:
            return None
        raise UsageError(
            f"a survey of {len(names)} columns finds nothing among {sum(sizes)} records at this budget; give "
            "--bounds, raise --epsilon, or use --preprocessing records"
        )
    plan = survey_plan(request, questions, sizes, table.source)
    task: Task = "ridge" if isinstance(target, str) else "logistic"
    usual = Facts(table.source, task, len(features) + 1, sizes, "survey", before=(plan.derived.mechanism,))
    check(plan, plan_of(request, usual))
    settings: dict[str, Any] = {"out": folder, "budget": budget} if plan.parties else {}
    with Aggregator.of_plan(plan, wait=wait, **settings) as aggregator:
        release = aggregator.open(_vectors(table, questions, owner_of, sizes))
        aggregator.finish()
    n = sum(sizes)
    noise = plan.derived.mechanism.scale * plan.grid.step
    findings = questions.findings(decode(plan, release.total) * n, n, noise)
    schema = surveyed_schema(findings, target, asked.intercept)
    return replace(_with_schema(request, plan, schema, folder), records=replace(records, table=table))


def earlier(request: Request, out: Path) -> Surveyed | None:
    """What the survey of an interrupted run led to; None if it had none. Errors: it was cut short."""
    folder = out / FOLDER
    if not folder.exists():
        return None
    if not (folder / "schema.json").exists():
        raise UsageError(
            f"a resumed run needs what its survey found; {folder} was cut short; start a new run with a budget of its "
            "own"
        )
    plan = Plan.read(folder / "plan.json")
    run_id = plan.run_id.removesuffix(SUFFIX)
    return _with_schema(replace(request, run_id=run_id), plan, Schema.read(folder / "schema.json"), folder)


def survey_plan(request: Request, questions: Survey, sizes: tuple[int, ...], data: str) -> Plan:
    """The plan of the survey's one release: its share of mu^2, whatever the records. Weights are those of records, so
    that an opened mean times n is the sum over all records."""
    assert request.delta
    share = survey_share(_circumstances(request, questions, sizes))
    mu = mu_of_budget(request.epsilon, request.delta) * math.sqrt(share)
    mpc = request.engine == "mpc"
    return Plan(
        run_id=f"{request.run_id}{SUFFIX}",
        data=data,
        data_id=data_digest(request.data_id or data),
        sizes=sizes,
        dimension=questions.coordinates,
        releases=1,
        source=Vectors(clip=questions.norm, spread=questions.spread),
        weights="size",
        epsilon=epsilon_of_mu(mu, request.delta),
        delta=float(request.delta),
        security_bits=float(request.security_bits),
        backend=request.computed_by,
        parties=request.parties if mpc else 0,
        threshold=request.t if mpc else 0,
        pool=False,
    )


def _circumstances(request: Request, questions: Survey, sizes: tuple[int, ...]) -> Circumstances:
    return Circumstances(
        owners=len(sizes),
        smallest=min(sizes),
        records=sum(sizes),
        dimension=len(questions.names) + 1,
        epsilon=request.epsilon,
        delta=request.delta,
        columns=len(questions.names),
    )


def _too_loud(request: Request, questions: Survey, sizes: tuple[int, ...]) -> bool:
    circumstances = _circumstances(request, questions, sizes)
    return survey_noise(circumstances, survey_share(circumstances)) > LOUDEST


def _with_schema(request: Request, plan: Plan, schema: Schema, folder: Path) -> Surveyed:
    path = folder / "schema.json"
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (folder / "plan.json").exists():
            plan.write(folder / "plan.json")
        schema.write(path)
    mapped = replace(
        request, schema_file=str(path), target=None, drop=(), positive=None, bounds_file=None, preprocessing=None,
        task=schema.task,
    )  # fmt: skip
    return Surveyed(mapped, (plan.derived.mechanism,))


def _owners(request: Request, table: Table) -> tuple[Ints, tuple[int, ...]]:
    """(n,) the owner of each record, -1 for those that are held out; and how many each owner has for training. The
    same split as training's."""
    groups = None
    if request.owners_column is not None:
        groups = owners_of(table, owner_numbers(table, request.owners_column)[0])
    elif request.owners is None and request.owner_sizes is None:
        raise UsageError(
            "the owners must be known; add --owners M, --owner-sizes N1,N2,..., or --owners-column for a CSV file"
        )
    fraction = 0.2 if request.test_fraction is None else request.test_fraction
    train, _ = split(table.n, test_fraction=fraction, max_rows=request.max_rows, seed=request.seed, groups=groups)
    shares = partition(
        len(train), owners=request.owners, sizes=request.owner_sizes, skew=request.skew,
        groups=None if groups is None else groups[train], seed=request.seed,
    )  # fmt: skip
    owner_of = np.full(table.n, -1, dtype=np.int64)
    owner_of[train[shares.order[: shares.n]]] = np.repeat(np.arange(len(shares.sizes)), shares.sizes)
    return owner_of, tuple(int(size) for size in shares.sizes)


def _vectors(table: Table, questions: Survey, owner_of: Ints, sizes: tuple[int, ...]) -> Iterator[Floats]:
    """The owners' vectors, each the mean over its records, some owners at a time: one reading of the table each."""
    names = questions.names
    expressions = [
        sql for name in names for sql in (value_sql(table, name), bucket_sql(table, name, questions.buckets))
    ]
    at_once = max(1, _AT_ONCE // questions.coordinates)
    for first in range(0, len(sizes), at_once):
        end = min(first + at_once, len(sizes))
        sums, seen = np.zeros((end - first, questions.coordinates)), 0
        for block in table.blocks(expressions):
            mine = owner_of[seen : seen + len(block[0])]
            seen += len(block[0])
            columns = {name: np.stack(block[2 * k : 2 * k + 2], axis=1) for k, name in enumerate(names)}
            for owner in np.unique(mine[(mine >= first) & (mine < end)]):
                rows = mine == owner
                sums[owner - first] += questions.encode({name: values[rows] for name, values in columns.items()})
        yield sums / np.array(sizes[first:end], dtype=np.float64)[:, None]
