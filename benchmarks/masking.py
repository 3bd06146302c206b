"""The literature's secure aggregation, pairwise masks with recovery of drop-outs, beside a release of ours.

Counts are exact. Seconds are those of one aggregation with all clients in this process, divided by their number, and
of the server; no network. Masks hold a sum alone: noise, which a release of ours has, is not in them.
"""

import time

import numpy as np

from dpmpc.benchmarks import pairwise_masking
from dpmpc.benchmarks.cell import BenchCell
from dpmpc.benchmarks.counts import owner_bytes, release_counts

Row = dict[str, object]
QUICK = ((10, 122, 0), (50, 122, 0), (50, 122, 5), (10, 100_000, 0))
FULL = (*QUICK, (100, 122, 0), (100, 122, 10), (200, 122, 0), (100, 10_000, 0))


def measure(owners: int, dimension: int, gone: int) -> Row:
    """One aggregation by masks, `gone` of the owners vanishing after the keys are shared, and our counts beside it.

    Errors: fewer than two owners are left.
    """
    left = owners - gone
    vectors = list(np.arange(owners * dimension, dtype=np.uint64).reshape(owners, dimension))
    begin = time.perf_counter()
    total, server, clients = pairwise_masking.aggregate(vectors, max(2, left // 2), gone_before_masks=range(gone))
    seconds = time.perf_counter() - begin
    assert (total == np.sum(vectors[gone:], axis=0, dtype=np.uint64)).all()
    sent, work = pairwise_masking.traffic(owners, dimension, left), pairwise_masking.expansions(owners, left)
    assert (clients[-1].expanded, server.expanded) == (work["client"], work["server"])
    cell = BenchCell(owners=owners, dimension=dimension)
    ours = release_counts(cell)
    return {
        "owners": owners,
        "d": dimension,
        "gone": gone,
        "owner sends": sent["client"],
        "into the server": sent["server"],
        "masks, owner": work["client"],
        "masks, server": work["server"],
        "ms an owner": 1000 * seconds / owners,
        "ours: owner sends": owner_bytes(cell),
        "ours: into a party": max(ours.inputs_bytes),
    }


def rows(quick: bool) -> list[Row]:
    """One a setting."""
    return [measure(*setting) for setting in (QUICK if quick else FULL)]
