"""A thousand joint cells of a model through three parties: what is sent, under every check, and what an owner cannot do
to them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.encoding import decode
from dpmpc.benchmarks.studies.stats_timing import cells_of
from dpmpc.mpc.contract.owner_checks import FailedOwners
from dpmpc.records.loading import opened
from dpmpc.statistics.tables import STEP, Tables
from dpmpc.tables.questions import asked_of
from dpmpc.tables.stats import noise_of, owned, plan_of_tables
from tests.statistics.test_checked_blocks import found, sent

ASKED = ["logit(died, a, b, c, d)"]
MODES: dict[str, dict[str, Any]] = {
    "semi-honest": {},
    "active": {"security": "active"},
    "checked": {"check_owners": "stop"},
    "active and checked": {"security": "active", "check_owners": "stop"},
}


@pytest.mark.parametrize("mode", MODES)
def test_a_thousand_cells_come_through_three_parties(mode: str, tmp_path: Path) -> None:
    """1,001 cells of 4,000 records: every one is that of the records but for one copy of noise (mean square 1, within 8
    deviations of it), and no party sends more than 200 bytes a cell."""
    path = tmp_path / "records.parquet"
    tables = asked_of(ASKED, None, cells_of(4000, path), None)
    assert tables.layout.dimension == 1001 and len(tables.layout.blocks) == 1
    with opened(path) as (table, _):
        kept, number, sizes = owned(table, tables.reads, "site")
        promise = {"epsilon": 1.0, "delta": 1e-5, **MODES[mode]}
        plan = plan_of_tables(tables, sizes, kept.source, None, promise)
        with Aggregator.of_plan(plan) as aggregator:
            total = decode(plan, aggregator.open(tables.means(kept, number, sizes)).total)
            costs = aggregator.finish()
        exact = tables.encode(kept).sum(axis=0)
    sigma = noise_of(plan) / STEP
    errors = (total * sum(sizes) / STEP - exact) / sigma
    assert abs(float(np.mean(errors**2)) - 1) < 8 * math.sqrt(2 / len(errors))
    assert exact.sum() == 4000 * tables.layout.scales[0]
    assert len(costs) == 3 and all(0 < cost.bytes_to_parties + cost.bytes_to_owners < 200 * 1001 for cost in costs)


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_an_owner_that_counts_a_record_twice_is_named(security: str) -> None:
    """All of its records in one cell are within its bound; one record more is not, nor is its number taken off another
    cell and put into it."""
    levels = {name: [f"{name}{k}" for k in range(many)] for name, many in zip("abcd", (5, 5, 4, 5), strict=True)}
    tables: Tables = asked_of(ASKED, None, {**levels, "died": ["no", "yes"]}, None)
    sizes = (400, 90, 30)
    plan = plan_of_tables(
        tables, sizes, "records", None, {"epsilon": 1.0, "delta": 1e-5, "check_owners": "stop", "security": security}
    )
    test = plan.derived.owner_test
    assert test is not None
    total = np.zeros((3, 1001))
    total[:, 7] = np.array(sizes) * tables.layout.scales[0]
    honest = sent(plan, total)
    record = int(honest[1, 7]) // 90
    assert record * 90 == honest[1, 7] and record > 1000
    twice, moved = honest.copy(), honest.copy()
    twice[1, 7] += record
    moved[1, [7, 8]] += np.array([record, -record])
    assert found(honest, test) == FailedOwners()
    assert found(twice, test) == FailedOwners((), (1,))
    assert found(moved, test) == FailedOwners((), (1,))
