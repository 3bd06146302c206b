"""One noisy mean, with parties on this machine: the shortest way to a private result."""

from typing import Any, Unpack

import numpy as np

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.encoding import as_blocks
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.keywords import MeanKeywords
from dpmpc.aggregation.plan.of_vectors import OfVectors
from dpmpc.aggregation.wire.frames import rows_of_block
from dpmpc.errors import UsageError
from dpmpc.settings import keywords


@keywords(OfVectors)
def private_mean(
    vectors: Any,
    *,
    clip: float,
    epsilon: float,
    **given: Unpack[MeanKeywords],
) -> Floats:
    """The noisy mean (d,) of the rows of `vectors` (m, d), each clipped to L2 norm `clip`: one release, local parties.

    Guarantees: (epsilon, delta); by default neighbours differ in one owner's whole row. Without delta: pure epsilon,
    Laplace noise. Settings: those of `Aggregator`. Errors: as `Aggregator.mean`.
    """
    rows = vectors if hasattr(vectors, "tocsr") else np.asarray(vectors)
    if rows.ndim != 2 or 0 in rows.shape:
        raise UsageError(f"vectors are an array (owners, dimension); got shape {rows.shape}; give one row an owner")
    for _ in as_blocks(rows, rows.shape[0], rows.shape[1], rows_of_block(rows.shape[1])):  # before any process starts
        pass
    with Aggregator(owners=rows.shape[0], dimension=rows.shape[1], clip=clip, epsilon=epsilon, **given) as aggregator:
        return aggregator.mean(rows)
