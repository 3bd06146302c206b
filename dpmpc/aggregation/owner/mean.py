"""One noisy mean, with parties on this machine: the shortest way to a private result."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.encoding import as_blocks
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.wire.frames import rows_of_block
from dpmpc.errors import UsageError


def private_mean(
    vectors: Any,
    *,
    clip: float,
    # settings: mean
    sensitivity: float | None = None,
    weights: Literal["equal", "size"] | Sequence[int] | None = None,
    records: Sequence[int] | None = None,
    data_id: str = "vectors",
    epsilon: float,
    delta: float | None = None,
    neighbours: str | None = None,
    person_rows: int = 1,
    person_owners: int | None = None,
    calibration: str = "tight",
    law: str | None = None,
    sampler: str | None = None,
    scale: float | None = None,
    grid_bits: int | None = None,
    engine: Literal["mpc", "clear"] = "mpc",
    security: str = "semi-honest",
    link: str | float | None = None,
    parties: int = 3,
    threshold: int | None = None,
    backend: str | None = None,
    check_owners: Literal["no", "zero", "stop"] = "no",
    pool: bool | None = None,
    security_bits: float = 40.0,
    min_owners: int | None = None,
    release_wait: float = 10.0,
    budget: str | None = None,
    account: str | None = None,
    # settings: end
) -> Floats:
    """The noisy mean (d,) of the rows of `vectors` (m, d), each clipped to L2 norm `clip`: one release, local parties.

    Guarantees: (epsilon, delta); by default neighbours differ in one owner's whole row. Without delta: pure epsilon,
    Laplace noise. Settings: those of `Aggregator`. Errors: as `Aggregator.mean`.
    """
    settings = {name: value for name, value in locals().items() if name != "vectors"}
    rows = vectors if hasattr(vectors, "tocsr") else np.asarray(vectors)
    if rows.ndim != 2 or 0 in rows.shape:
        raise UsageError(f"vectors are an array (owners, dimension); got shape {rows.shape}; give one row an owner")
    for _ in as_blocks(rows, rows.shape[0], rows.shape[1], rows_of_block(rows.shape[1])):  # before any process starts
        pass
    with Aggregator(owners=rows.shape[0], dimension=rows.shape[1], **settings) as aggregator:
        return aggregator.mean(rows)
