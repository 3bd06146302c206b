"""`Study`: questions first, then training, then how good the model is: three releases of one plan under one promise.

Guarantees: the questions read all records, and their release comes to `price` alone. What follows keeps the plan's
(epsilon, delta) with it: the noise of training, and of a survey before it, is solved for with the mechanism of the
questions in the plan (`Plan.before`), and so is the noise of the evaluation (`Stage.shared`). A record that is trained
on pays for questions and training, one that is held out for questions and evaluation, both the same promise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.method import Learning
from dpmpc.learning.of_schema import described
from dpmpc.learning.source import ALL, Following, Invented, Schedule, Source, Stage, Sum
from dpmpc.privacy.assignment import Parted
from dpmpc.privacy.checks import check_epsilon
from dpmpc.records.origins import Origin
from dpmpc.statistics.held_out import Evaluated
from dpmpc.statistics.tables import Tables

if TYPE_CHECKING:
    from dpmpc.intake.table import Table
    from dpmpc.records.check import Findings
    from dpmpc.records.schema import Schema

QUESTIONS = "questions"  # the name of the stage


@dataclass(frozen=True, kw_only=True)
class Study(Evaluated):
    """Training with questions before it, `tables` (None once they were opened), which come to `price` alone at the
    plan's delta; and with an evaluation after it where records are held out. `records`: all that each owner has, or
    places for them. Public."""

    KIND: ClassVar[str] = "study"
    UNITS: ClassVar[tuple[str, ...]] = Source.UNITS

    price: float
    tables: Tables | None = None

    def __post_init__(self) -> None:
        if isinstance(self.tables, dict):  # out of a file
            object.__setattr__(self, "tables", Tables.from_json(self.tables))
        if not isinstance(self.tables, Tables | None):
            raise UsageError(f"questions before training are an object; got {self.tables!r}; plan again")
        check_epsilon(self.price)
        super().__post_init__()

    @property
    def origin(self) -> Origin:
        """That of the questions."""
        return super().origin if self.tables is None else super().origin | self.tables.origin

    def _check_parts(self) -> None:
        if self.held:
            super()._check_parts()
        elif not self.records or not all(type(n) is int and n > 0 for n in self.records):
            raise UsageError("a study says how many records each owner has; the plan does not; plan again")

    @staticmethod
    def asking(learning: Learning, tables: Tables, price: float, records: Sequence[int]) -> "Study":
        """The same training, and evaluation where it has one, with questions before it."""
        values = {each.name: getattr(learning, each.name) for each in fields(Learning)}
        parts: dict[str, Any] = {"held": (), "draw": ""}
        if isinstance(learning, Evaluated):
            parts = {name: getattr(learning, name) for name in ("held", "draw", "share", "column", "cells")}
        return Study(**values, **parts, records=tuple(records), price=price, tables=tables)

    @property
    def asked(self) -> Stage | None:
        """The questions, while they are still to be asked."""
        if self.tables is None:
            return None
        lines = tuple(str(query) for query in self.tables.queries)
        return Stage(QUESTIONS, self.tables, self.price, ALL, self.records, asks=lines)

    @property
    def schedule(self) -> Schedule:
        asked = self.asked
        if not self.held:
            rest = Schedule() if self.survey is None else Schedule(self.survey.stages)
        else:
            rest = super().schedule
            rest = Schedule(rest.before, tuple(replace(stage, shared=1) for stage in rest.after))
        return rest if asked is None else Schedule((asked, *rest.before), rest.after)

    @property
    def asked_first(self) -> int:
        return 1

    @property
    def deciding(self) -> int:
        return super().deciding + (0 if self.tables is None else 1)

    def parted(self, data_id: str) -> Parted | None:
        return super().parted(data_id) if self.held else None

    def follows(self, opened: Sum) -> Following:
        return super().follows(opened) if self.tables is None else Following(replace(self, tables=None))

    @property
    def comes_to(self) -> str:
        asked = "" if self.tables is None else f"the answers come to `run/{QUESTIONS}/{self.tables.RESULT}`, and then "
        return f"{asked}{super().comes_to}"

    def held_against(self, table: "Table", schema: "Schema | None", sizes: Sequence[int] = ()) -> "Findings":
        from dpmpc.records.check import check

        known = described(schema)
        mine = {*(column.name for column in known.columns), *known.unknown, known.target.name}
        also = [] if self.tables is None else [name for name in self.tables.reads if name not in mine]
        return check(known, table, sizes, [] if self.tables is None else self.tables.columns.as_read(also))

    def invented(self, schema: "Schema | None") -> Iterator[tuple[str, Invented]]:
        """What both have is made as the schema says."""
        if self.tables is not None:
            yield from self.tables.invented(None)
        yield from super().invented(schema)

    def check_records(self, table: "Table") -> None:
        super().check_records(table)
        for name in () if self.tables is None else self.tables.reads:
            table[name]

    def check(self, neighbours: str, dimension: int) -> None:
        super().check(neighbours, dimension)
        if self.held and neighbours not in Evaluated.UNITS:
            raise UsageError(
                f"held-out records are for neighbours that are {' or '.join(Evaluated.UNITS)}; the plan's are "
                f"{neighbours}; plan again"
            )

    def to_json(self) -> dict[str, Any]:
        values = replace(self, tables=None)
        made = super(Study, values).to_json()
        return {**made, "tables": None if self.tables is None else self.tables.to_json()}
