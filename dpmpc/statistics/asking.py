"""A question on its way to an answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dpmpc.lazy import dataclass
from dpmpc.outcome import Answer, Level, Line, Number
from dpmpc.statistics.blocks import Block, Part
from dpmpc.statistics.cells import Axis
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.compile import axis_of, parts_of
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.query import Query
from dpmpc.statistics.scores import Model


@dataclass(frozen=True, eq=False)
class Asking:
    """One question on its way to an answer. `answered_by`: the block that holds what a part needs."""

    query: Query
    columns: Columns
    opened: Opened
    level: Level
    answered_by: Mapping[Part, Part]
    models: Mapping[str, Model]

    @property
    def by(self) -> tuple[Axis, ...]:
        return () if self.query.by is None else (axis_of(self.query.by, self.columns),)

    @property
    def blocks(self) -> Iterator[Block]:
        """The blocks of the question, in its order."""
        return (self.answered_by[part].block for part in parts_of(self.query, self.columns, self.models))

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The labels of the groups: one of none, without `by`."""
        return tuple((label,) for label in self.by[0].labels) if self.by else ((),)

    @staticmethod
    def lines(found: Iterable[tuple[tuple[str, ...], str, Number]]) -> tuple[Line, ...]:
        """Lines of labels, names and numbers."""
        return tuple(Line(*each) for each in found)

    def made(self, headers: Sequence[str], lines: Sequence[Line], *notes: str) -> Answer:
        """The answer with these lines."""
        first = () if self.query.by is None else (self.query.by,)
        return Answer(str(self.query), (*first, *headers), tuple(lines), bool(first), notes)
