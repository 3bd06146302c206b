"""The records that a request names, sorted by owner."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dpmpc.aggregation.plan import Plan
from dpmpc.data import CsvFile, Dataset, Partition, Query, Schema, load_dataset, partition
from dpmpc.data import load as load_source
from dpmpc.data.blocks import arranged
from dpmpc.data.loading import OpenTable, Source
from dpmpc.errors import UsageError
from dpmpc.runs.planning import check_shape
from dpmpc.runs.request import Request


def load_records(
    request: Request, folder: Path | None = None, schema: Schema | None = None, records: OpenTable | None = None
) -> Dataset:
    """The data set that the request names, mapped by `schema` if there is one; `folder` may take temporary files.
    `records`: the source, where it is open already.

    Errors: all that loaders refuse; no data set is named."""
    if request.source is not None:
        dataset = load_source(
            records or source_named(request),
            schema=schema or (None if request.schema_file is None else Schema.read(Path(request.schema_file))),
            target=request.target,
            owners_column=request.owners_column,
            task=request.task,
            seed=request.seed,
            test_fraction=0.2 if request.test_fraction is None else request.test_fraction,
            intercept=request.intercept is not False,
            max_rows=request.max_rows,
            bounds=None if request.bounds_file is None else Path(request.bounds_file),
            missing=request.missing,
            drop=request.drop,
            positive=request.positive,
            memory=request.memory,
            precision=request.precision,
            folder=folder,
        )
    elif request.data is not None:
        dataset = load_dataset(
            request.data,
            data_dir=None if request.data_dir is None else Path(request.data_dir),
            seed=request.seed,
            test_fraction=request.test_fraction,
            intercept=request.intercept,
            max_rows=request.max_rows,
            dimension=request.dimension or 10,
            official_test=request.official_test,
        )
    else:
        raise UsageError("owners need records; none were named; add --data NAME, --csv FILE or --records SOURCE")
    if request.task is not None and request.task != dataset.task:
        raise UsageError(
            f"--task {request.task} does not suit the target of {dataset.name}, which asks for {dataset.task}; leave "
            "--task out"
        )
    return dataset


def source_named(request: Request) -> Source:
    """The source of records that the request names."""
    assert request.source is not None
    if request.database:
        return Query(request.source, request.sql or "")
    return CsvFile(Path(request.source)) if request.csv else request.source


def planned_schema(plan: Plan) -> Schema:
    """The schema that maps every owner's records. Errors: the plan has none."""
    if plan.schema is None:
        raise UsageError("owners map their records by the plan's schema; this plan has none; plan again with --schema")
    return Schema.from_json(plan.schema)


def load(
    request: Request, folder: Path | None = None, plan: Plan | None = None, records: OpenTable | None = None
) -> tuple[Dataset, Partition]:
    """The data set, its training rows sorted by owner, and the partition that says who holds which; with a plan, by its
    schema.

    Errors: as `load_records`; an owner without records.
    """
    dataset = load_records(request, folder, None if plan is None else planned_schema(plan), records)
    owners = request.owners
    if owners is None and request.owner_sizes is None and dataset.groups is None:
        raise UsageError(
            "the owners must be known; add --owners M, --owner-sizes N1,N2,..., or --owners-column for a CSV file"
        )
    split = partition(
        dataset.n, owners=owners, sizes=request.owner_sizes, skew=request.skew, groups=dataset.groups, seed=request.seed
    )
    order = split.order[: split.n]
    if not np.array_equal(order, np.arange(dataset.n)):
        rest = np.arange(dataset.training, dataset.records.n)
        sorted_ = arranged(dataset.records, np.concatenate([order, rest]), folder)
        dataset = replace(dataset, records=sorted_, training=len(order))
    return dataset, split


def load_owner(request: Request, plan: Plan, owner: int, folder: Path | None = None) -> Dataset:
    """The records of one owner that takes part from its own machine; all are for training, unless a test fraction is
    given.

    Errors: as `load_records`; records that the plan's schema does not fit, or not as many as it says.
    """
    if owner >= plan.owners:
        raise UsageError(f"owners are numbered from 0; got owner {owner} of {plan.owners}; mend -I")
    if request.test_fraction is None:
        request = replace(request, test_fraction=0.0)
    dataset = load_records(request, folder, planned_schema(plan))
    check_shape(plan, dataset, (dataset.n,), (plan.sizes[owner],))
    return dataset
