"""One cell of the cost tables: public parameters of a release, and the plan of the run that measures it."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.method import DEFAULT_METHOD, METHODS, Learning
from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT, Backend
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.law import DEFAULT_LAW, LAWS, law_of_sampler

RECORDS = 500  # of every owner; sizes enter the noise scale only
ITERATIONS = 100  # that the budget is spread over; they enter the noise scale only
EPSILON, DELTA = 1.0, 1e-6


@dataclass(frozen=True)
class BenchCell:
    """What is released, by whom, over which network. Law, sampler, method and backend are names in their registries."""

    dimension: int = 122
    owners: int = 100
    parties: int = 3
    method: str = DEFAULT_METHOD
    law: str = DEFAULT_LAW
    sampler: str = "discrete"
    pool: bool = True
    network: str = "loopback"
    backend: str = DEFAULT

    @property
    def computed_by(self) -> Backend:
        """The backend's entry."""
        return BACKENDS[self.backend]

    @property
    def threshold(self) -> int:
        """t: the largest that the backend allows."""
        return self.computed_by.threshold(self.parties)

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
        return f"{size} {kind(self.key())} {pool} {self.network}"


BASE = {k: v for k, v in BenchCell().key().items() if k not in ("dimension", "owners", "parties")}  # of the main sweeps


def kind(key: dict[str, Any]) -> str:
    """Method, law and sampler of a cell's key, and the backend where it is another than usual."""
    backend = [] if key["backend"] == DEFAULT else [key["backend"]]
    return " ".join([key["method"], f"{key['law']}/{key['sampler']}", *backend])


def law_and_sampler(law: str | None, sampler: str | None) -> tuple[str, str]:
    """As given; else the only law that has the sampler, or Gaussian noise; else the law's first sampler."""
    family = law or (law_of_sampler(sampler) if sampler else None) or BenchCell.law
    return family, sampler or next(iter(LAWS[family].samplers))


def plan_of(cell: BenchCell, releases: int) -> Plan:
    """The plan of a run of `releases` releases of this cell. Its noise scale and grid are those of a run of
    `ITERATIONS` releases at EPSILON and DELTA: realistic, and the same for any number of releases.

    Errors: parameters that `dpmpc train` would refuse too.
    """
    method = METHODS[cell.method]
    budget = Plan(
        run_id="bench",
        data="bench",
        data_id=data_digest("bench"),
        sizes=(RECORDS,) * cell.owners,
        dimension=cell.dimension,
        releases=ITERATIONS if method.repeats else 1,
        source=Learning(method=cell.method, task="logistic", lam=method.lam),
        epsilon=EPSILON,
        delta=DELTA,
        law=cell.law,
        sampler=cell.sampler,
        backend=cell.backend,
        parties=cell.parties,
        threshold=cell.threshold,
        pool=cell.pool,
    )
    steps = budget.derived.scale_steps * (1 - 2.0**-30)  # rounded up to 24 digits it is the same again
    scale = math.ldexp(steps, -budget.grid.bits) / budget.divisor
    return replace(budget, releases=releases, scale=scale, grid_bits=budget.grid.bits)
