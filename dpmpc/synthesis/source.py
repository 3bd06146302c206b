"""A synthetic table as a source of a plan: a stage of all tables of one and two columns, then the tables of the tree
that it leads to.

    Synthesis(columns, target="died", epsilon=0.47)

Which tables are asked in the second release follows from what the first opened, at every process by itself; its price
does not. The plan's length is that of the tree with most cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from dpmpc.learning.source import Following, Schedule, Source, Stage, Sum
from dpmpc.privacy.sensitivity import Sensitivity, Weights
from dpmpc.settings import only_known
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.tables import STEP, Tables, columns_from_json, columns_to_json
from dpmpc.synthesis import asking
from dpmpc.synthesis.constraints import Constraints
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.table import structure

FIRST = "first"  # the stage's name, and its folder's


@dataclass(frozen=True)
class Synthesis(Source):
    """Columns with public cells, the column that rows are to tell about, impossible combinations, and what the first
    release comes to alone; all public."""

    KIND: ClassVar[str] = "synthesis"

    columns: Columns
    target: str | None = None
    constraints: tuple[str, ...] = ()
    epsilon: float = 0.5

    def __post_init__(self) -> None:
        asking.check_columns(self.columns, self.target)
        Constraints.of(self.constraints, self.columns)

    @property
    def schedule(self) -> Schedule:
        return Schedule((Stage(FIRST, asking.first(self.columns), self.epsilon),))

    def follows(self, opened: Sum) -> Following:
        """The tables of the tree of greatest dependence. Sums of doubles may differ in the last bits between
        processors, so two could choose differently where two trees are equally good to 1e-12; their plans' digests then
        differ, and the run ends before the second release."""
        tables = asking.first(self.columns)
        first = tables.opened(opened.total / STEP, opened.noise / STEP, (opened.count,))
        shape = structure(self.noisy(first), self.target)
        found = asking.second(self.columns, shape.edges)
        return Following(found, found.coordinates)

    def noisy(self, opened: Opened) -> Noisy:
        """What was opened, with what is impossible."""
        return Noisy(self.columns, opened, Constraints.of(self.constraints, self.columns))

    @cached_property
    def widest(self) -> Tables:
        """The second release's tables, if the tree is the one with most cells."""
        return asking.second(self.columns, asking.widest(self.columns, self.target))

    @property
    def coordinates(self) -> int:
        return self.widest.coordinates

    @property
    def clip(self) -> float:
        return self.widest.clip

    @property
    def about(self) -> list[str]:
        whose = f", with the target {self.target}" if self.target else ""
        return [
            f"asks for a synthetic table: all tables of one and two of the columns {', '.join(self.columns.names)}",
            f"then the tables of a tree of them{whose}, which the first ones lead to",
        ]

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns.names

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return self.widest.by_record(sizes, weights, dimension)

    def by_owner(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return self.widest.by_owner(sizes, weights, dimension)

    def by_presence(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return self.widest.by_presence(sizes, weights, dimension)

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": columns_to_json(self.columns),
            "target": self.target,
            "constraints": list(self.constraints),
            "epsilon": self.epsilon,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Synthesis":
        only_known(value, ("columns", "target", "constraints", "epsilon"), "a plan's synthesis")
        columns = columns_from_json(value["columns"])
        return cls(columns, value["target"], tuple(value["constraints"]), float(value["epsilon"]))
