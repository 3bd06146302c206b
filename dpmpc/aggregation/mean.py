"""One noisy mean, with parties on this machine: the shortest way to a private result."""

from typing import Any

import numpy as np

from dpmpc.aggregation.aggregator import Aggregator
from dpmpc.aggregation.encoding import as_blocks
from dpmpc.aggregation.frames import rows_of_block
from dpmpc.aggregation.grid import Floats
from dpmpc.errors import UsageError


def private_mean(vectors: Any, *, clip: float, epsilon: float, delta: float | None = None, **settings: Any) -> Floats:
    """The noisy mean (d,) of the rows of `vectors` (m, d), each clipped to L2 norm `clip`: one release, local parties.

    Guarantees: (epsilon, delta); by default neighbours differ in one owner's whole row. Without delta: pure epsilon,
    Laplace noise. `settings`: those of `Aggregator`. Errors: as `Aggregator.mean`.
    """
    rows = vectors if hasattr(vectors, "tocsr") else np.asarray(vectors)
    if rows.ndim != 2 or 0 in rows.shape:
        raise UsageError(f"vectors are an array (owners, dimension); got shape {rows.shape}; give one row an owner")
    for _ in as_blocks(rows, rows.shape[0], rows.shape[1], rows_of_block(rows.shape[1])):  # before any process starts
        pass
    with Aggregator(
        owners=rows.shape[0], dimension=rows.shape[1], clip=clip, epsilon=epsilon, delta=delta, releases=1, **settings
    ) as aggregator:
        return aggregator.mean(rows)
