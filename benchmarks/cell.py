"""One cell of the cost tables: public parameters of a release, and the plan of the run that measures it."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from dpmpc.aggregation.plan import Facts, Plan, make_plan
from dpmpc.runs.request import Law, Method, Options, SamplerName

RECORDS = 500  # of every owner; sizes enter the noise scale only
ITERATIONS = 100  # that the budget is spread over; they enter the noise scale only
EPSILON, DELTA = 1.0, 1e-6


@dataclass(frozen=True)
class Cell:
    """What is released, by whom, over which network."""

    dimension: int = 122
    owners: int = 100
    parties: int = 3
    method: Method = "gradient"
    law: Law = "gaussian"
    sampler: SamplerName = "discrete"
    pool: bool = True
    network: str = "loopback"

    @property
    def threshold(self) -> int:
        return (self.parties - 1) // 2

    @property
    def values(self) -> int:
        """Numbers that enter a party in one release."""
        return self.dimension * self.owners

    def key(self) -> dict[str, Any]:
        """What tells this cell from others, JSON-able."""
        return asdict(self)

    def __str__(self) -> str:
        pool = "pool" if self.pool else "no pool"
        size = f"d={self.dimension:,} m={self.owners:,} n={self.parties}"
        return f"{size} {self.method} {self.law}/{self.sampler} {pool} {self.network}"


def plan_of(cell: Cell, releases: int) -> Plan:
    """The plan of a run of `releases` releases of this cell, with the noise scale of a realistic budget.

    Errors: parameters that `dpmpc train` would refuse too.
    """
    options = Options(
        data="bench",
        owners=cell.owners,
        method=cell.method,
        noise=cell.law,
        sampler=cell.sampler,
        parties=cell.parties,
        epsilon=EPSILON,
        delta=DELTA,
        iterations=ITERATIONS if cell.method == "gradient" else None,
        evaluate=False,
    )
    facts = Facts("bench", "logistic", cell.dimension, (RECORDS,) * cell.owners, "public")
    return replace(make_plan(options, facts), releases=releases, pool=cell.pool)
