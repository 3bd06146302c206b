"""The plan of releases of a source, from what was said of them."""

import secrets
from collections.abc import Sequence
from typing import Unpack

from dpmpc.aggregation.plan.keywords import SourceKeywords
from dpmpc.aggregation.plan.of_vectors import OfVectors, chosen
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.source import Source
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.sensitivity import Weights
from dpmpc.settings import keywords, said


@keywords(OfVectors)
def plan_of(
    source: Source,
    sizes: Sequence[int],
    *,
    data_id: str,
    dimension: int | None = None,
    releases: int = 1,
    weights: Weights = "size",
    run_id: str | None = None,
    **settings: Unpack[SourceKeywords],
) -> Plan:
    """The plan of `releases` releases of the mean of what owners with so many records send. `dimension`: of the
    vectors, where the source does not say it. `weights`: "size", an owner counts by its records, or "equal".
    `settings`: those of promise, noise, computing and attendance (docs/settings.md). Errors: UsageError for anything
    that no run can do."""
    asked = OfVectors(**said(settings))
    return Plan(
        run_id=run_id or secrets.token_hex(8),
        data=data_id,
        data_id=data_digest(data_id),
        sizes=tuple(sizes),
        dimension=source.coordinates or dimension or 0,
        releases=releases,
        source=source,
        weights=weights,
        **(chosen(asked) | {"pool": releases > 1 if asked.pool is None else asked.pool}),
    )
