"""`Tables`: the public questions of one release, as a source: from columns to what owners send, and to answers.

    tables = Tables.of(columns, ["table1 by sex", "median(age) by sex"])
    totals = tables.encode(table)                   # at every owner: a vector of whole numbers, secret
    answers = tables.answers(total, sigma, sizes)   # of the opened, noisy sum

In a plan, whose weights are by size, an owner sends the mean of its records' vectors (`means`), in records and not in
steps; an opened mean times n is the sum.
"""

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError, number_of
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.of_schema import invented_of
from dpmpc.learning.source import Invented, Opening, Piece, Source, of_means
from dpmpc.outcome import Answer, Level, Outcome
from dpmpc.privacy.sensitivity import Sensitivity, Weights, arithmetic_bound
from dpmpc.records.origins import Origin
from dpmpc.records.schema import Schema
from dpmpc.settings import only_known
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Block, CellCounts, Distance, Part, width
from dpmpc.statistics.cells import Field, Ints, RecordFields, Values
from dpmpc.statistics.columns import OWNER, Bucketed, Category, Column, Columns, Owners, OwnersToCome, Quantity
from dpmpc.statistics.compile import merged
from dpmpc.statistics.joint import Complete, collected, held
from dpmpc.statistics.kind import answer, parts_of
from dpmpc.statistics.layout import FINEST, RECORD, Layout, Unit
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.query import parse_all, to_be_asked
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.scores import ScoreModel

if TYPE_CHECKING:
    from dpmpc.intake.table import Table
    from dpmpc.records.check import Findings

OPENED, KNOWN = "opened.npy", "intervals.json"  # files: the sum that was opened, and what is known of it
STEP = 0.5**FINEST  # of the vectors, in records
_NUMBERS = 1 << 24  # of owners' vectors that are held at once
_SHOWN = 12  # questions that a line of what a run is for has


@dataclass(frozen=True)
class Tables(Source):
    """Columns, questions, and the unit of the promise; all public.

    In plans the unit is a record or an owner, as the plan says; persons and presence are for who adds up sums by other
    means.

    Where a question names `owner` and no column is called so, cells are kept apart by owner: each fills those of its
    own. A record stays with its owner, so it moves from one of that owner's cells to another, and no distance is larger
    than without. What is opened then tells of single organisations, as a meeting does, and each takes part only where
    its own limits say so (`tells_owners`).

    `number`: of the owner that the first of `means` is, in the process that makes them; no part of a plan.
    """

    KIND: ClassVar[str] = "tables"
    RESULT: ClassVar[str] = "answers.html"
    MAKES: ClassVar[str] = "the answers"
    DOES: ClassVar[str] = "asking all questions at once"
    REPORT: ClassVar[str] = "dpmpc.stats/1"
    BEFORE: ClassVar[str] = "those that found cells, and which columns go together"

    columns: Columns
    queries: tuple[AskedQuestion, ...]
    unit: Unit = RECORD
    models: tuple[tuple[str, ScoreModel], ...] = ()
    number: int = 0

    @property
    def origin(self) -> Origin:
        """That of the models."""
        found = Origin()
        for _, model in self.models:
            found |= model.schema.origin
        return found

    @staticmethod
    def of(
        columns: Columns,
        asked: Sequence[str | Mapping[str, Any]],
        unit: Unit | None = None,
        models: Mapping[str, ScoreModel] | None = None,
    ) -> "Tables":
        """The release of these questions; `models`: those that `evaluate` names. Errors: as `query.parse_all`."""
        given = models or {}
        known = to_be_asked(columns, asked)
        queries = parse_all(asked, known, tuple(given))
        found = Tables(known, queries, unit or RECORD, tuple(given.items()))
        return found if known.owners is None or found._asks_owners else replace(found, columns=known.with_owners(None))

    @property
    def _asks_owners(self) -> bool:
        if not any(OWNER in str(query) for query in self.queries):  # quick: blocks are many
            return False
        return any(isinstance(field, Owners) for part, _ in self.parts for field in part.block.fields)

    def among(self, owners: Sequence[str]) -> "Tables":
        """The same questions of these owners, by name. Errors: as `of`; names that are no levels."""
        known = self.columns.owners
        if known is None or (known.levels == tuple(owners) and not isinstance(known, OwnersToCome)):
            return self
        columns = self.columns.with_owners(Owners(tuple(owners)))
        return Tables.of(columns, [str(query) for query in self.queries], self.unit, dict(self.models))

    def of_many(self, owners: int) -> "Tables":
        """The same questions of so many owners, which have numbers for names where they have none."""
        known = self.columns.owners
        if known is None or (len(known.levels) == owners and not isinstance(known, OwnersToCome)):
            return self
        return self.among([f"{OWNER} {j}" for j in range(owners)])

    @property
    def tells_owners(self) -> bool:
        return self.columns.owners is not None

    def sited(self, owner: int) -> "Tables":
        return replace(self, number=owner) if self.tells_owners else self

    def own(self, first: int, end: int) -> NDArray[np.bool_] | None:
        """Of each block that knows whose a record is: the cells that a record of these owners can be in."""
        if (known := self.columns.owners) is None:
            return None
        theirs = np.zeros(len(known.levels), dtype=bool)
        theirs[first:end] = True
        return self.layout.reached_by(theirs)

    @cached_property
    def parts(self) -> tuple[tuple[Part, float], ...]:
        """What the questions need, and their weights."""
        each = ((parts_of(query, self.columns, dict(self.models)), query.weight) for query in self.queries)
        return tuple((part, weight) for parts, weight in each for part in parts)

    @cached_property
    def answered_by(self) -> dict[Part, Part]:
        """The part that answers for each that a question needs."""
        parts = [part for part, _ in self.parts]
        return merged(parts) | collected(parts)

    def blocks_of(self, query: AskedQuestion) -> tuple[Block, ...]:
        """The blocks that answer a question."""
        parts = parts_of(query, self.columns, dict(self.models))
        return tuple(self.answered_by[part].block for part in parts)

    def costs(self, sizes: Sequence[int]) -> tuple[tuple[str, Distance, float], ...]:
        """Each question in its canonical form, by how far one unit moves its blocks at scale 1, and its part of mu^2.
        What several questions share is counted with each."""
        layout, found = self.layout, []
        shares = dict(zip(layout.blocks, layout.shares(sizes), strict=True))
        for query in self.queries:
            blocks = tuple(dict.fromkeys(self.blocks_of(query)))
            each = [self.unit.distance(block.reach(1 << FINEST), sizes) * 0.5**FINEST for block in blocks]
            l1, l2, linf = math.fsum(d.l1 for d in each), math.hypot(*(d.l2 for d in each)), max(d.linf for d in each)
            whole = Distance(l1, l2, linf)
            found.append((str(query), whole, math.fsum(shares[block] for block in blocks)))
        return tuple(found)

    @cached_property
    def layout(self) -> Layout:
        """Blocks, scales and places."""
        return Layout.of(((self.answered_by[part].block, weight) for part, weight in self.parts), self.unit)

    # -- as a source of a plan ------------------------------------------------------------------------------------
    @property
    def coordinates(self) -> int:
        return self.layout.dimension

    @property
    def clip(self) -> float:
        """The largest norm of one record's vector, in records: an owner's mean has no larger one."""
        return self.layout.largest((1,)) * STEP

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Every block; sums over records are exact, and a mean is a quotient, rounded once."""
        found = []
        for block, scale in zip(self.layout.blocks, self.layout.scales, strict=True):
            most = block.reach(scale).absent * (STEP * (1 + 1e-12))
            found.append(Piece(width(block), most.l1, most.l2))
        return tuple(found)

    @property
    def about(self) -> list[str]:
        apart = ["what is opened has counts of every owner by itself, each with the noise"] * self.tells_owners
        return [*(f"asks: {query}" for query in self.queries), *apart]

    @property
    def listed(self) -> Mapping[str, Sequence[str]]:
        return self.columns.listed

    def purpose(self, data: str, schema: Schema | None) -> str:
        asked = [str(query) for query in self.queries]
        more = f" and {len(asked) - _SHOWN} more" if len(asked) > _SHOWN else ""
        return f"answers to {number_of(len(asked), 'question')} ('{data}'): {'; '.join(asked[:_SHOWN])}{more}"

    def expects(self, sizes: Sequence[int], noise: float, counted: bool = True) -> list[str]:
        from dpmpc.statistics.expected import expected, lines

        return lines(expected(self, sizes, noise / STEP, Level(), counted))

    def held_against(self, table: "Table", schema: Schema | None, sizes: Sequence[int] = ()) -> "Findings":
        return of_columns(self.columns, self.reads, table, sizes)

    def invented(self, schema: Schema | None) -> Iterator[tuple[str, Invented]]:
        for _, model in self.models:
            yield from invented_of(model.schema)
        yield from self.columns.invented

    @property
    def spread(self) -> Sensitivity:
        """How far two records' vectors lie apart, in records. Where they never do, because all that is asked is the
        number of records, which is public: as far as one is from none."""
        d = self.layout.distance((1,))
        if not d.l2:
            return Sensitivity(l2=self.clip, linf=self.clip).within(self.coordinates)
        return Sensitivity(d.l1 * STEP, d.l2 * STEP, d.linf * STEP, {"tables": d.l2 * STEP})

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        if (known := self.columns.owners) is not None and len(known.levels) < len(sizes):
            raise UsageError(
                f"questions by owner are of their {len(known.levels)} owners; this plan has {len(sizes)}; plan again",
                code="plan",
            )
        return of_means(self.spread, self.clip, sizes, self._weights(weights), dimension)

    def by_owner(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """All records of an owner replaced: its mean moves by `spread`."""
        moved = self.spread * (max(sizes) / sum(sizes))
        return moved.within(dimension) + arithmetic_bound(self.clip, sizes, self._weights(weights)).within(dimension)

    def by_presence(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """Every block has the zero vector for a record that is not there."""
        layout = self.layout
        each = [block.reach(scale).absent for block, scale in zip(layout.blocks, layout.scales, strict=True)]
        l1, l2, linf = math.fsum(d.l1 for d in each), math.hypot(*(d.l2 for d in each)), max(d.linf for d in each)
        spread = Sensitivity(l1 * STEP, l2 * STEP * (1 + 1e-12), linf * STEP, {"tables": l2 * STEP})
        return of_means(spread, self.clip, sizes, self._weights(weights), dimension)

    def check(self, neighbours: str, dimension: int) -> None:
        super().check(neighbours, dimension)
        if self.unit != RECORD:
            raise UsageError(f"a plan says the unit of its promise; its tables say {self.unit.kind} too; plan again")
        if self.number:
            raise UsageError(
                "a plan is the same at every owner; its tables have the number of one; plan again", code="plan"
            )

    @staticmethod
    def _weights(weights: Weights) -> Weights:
        if weights != "size":
            raise UsageError(f"tables are sums over records; their weights are by size; got {weights!r}; plan again")
        return weights

    def to_json(self) -> dict[str, Any]:
        models = {
            name: {"schema": model.schema.to_json(), "theta": list(model.theta), "weights": list(model.weights)}
            for name, model in self.models
        }
        queries = [str(query) for query in self.queries]
        return {"columns": columns_to_json(self.columns), "queries": queries, "models": json.loads(json.dumps(models))}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Tables":
        only_known(value, ("columns", "queries", "models"), "a plan's tables")
        models = {
            str(name): ScoreModel.of(Schema.from_json(each["schema"]), each["theta"], each["weights"])
            for name, each in value["models"].items()
        }
        return cls.of(columns_from_json(value["columns"]), value["queries"], None, models)

    def means(self, table: "Table", owner: str | Ints, sizes: Sequence[int]) -> Iterator[NDArray[np.float64]]:
        """(owners, dimension) the mean of the vectors of each owner's records, in records, some owners at a time: one
        reading of the table each. Secret. `owner`: (n,) numbers, or SQL for them. Errors: as `encode`."""
        at_once = max(1, _NUMBERS // self.coordinates)
        for first in range(0, len(sizes), at_once):
            part = sizes[first : first + at_once]
            whose = f"({owner}) - {first}" if isinstance(owner, str) else owner - first
            yield self.mean_of(self.encode(table, whose, len(part), first), part)

    def mean_of(self, total: Ints, sizes: Sequence[int]) -> NDArray[np.float64]:
        return total * STEP / np.array(sizes, dtype=np.float64)[:, None]

    def sums(self, table: "Table", owner: Ints, owners: int) -> Iterator[Ints]:
        """As `Source.sums`, in steps: whole numbers, whose sum is the same in any order, so one term for all rows."""
        yield self.encode(table, owner, owners)

    def outcome(self, opened: Opening) -> Outcome:
        """An answer a question, with intervals that know the noise."""
        sums = self.opened(opened.last.total / STEP, opened.last.noise / STEP, opened.sizes, opened.counted)
        missing = None if len(opened.owners) == opened.everybody else opened.owners
        answers, about = self.answers_from(sums), (opened.guarantee, *whose(missing, opened.everybody))
        return told(self, answers, Level(), about, opened.last.total, opened.sizes, missing, sums)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of records that are read."""
        return tuple(dict.fromkeys(field.name for field in self.layout.fields if not isinstance(field, Owners)))

    # -- owners and answers ---------------------------------------------------------------------------------------
    def encode(self, table: "Table", owner: str | Ints | None = None, owners: int = 1, first: int = 0) -> Ints:
        """(owners, dimension) the owners' vectors, from one reading of a table some rows at a time. Secret. `owner`:
        the number of each record's owner (n,), or SQL for it; others than 0 .. owners - 1 are nobody's. `first`: how
        many owners of this process came before these.

        Errors: a column is not there; the source cannot be read; none that depends on a value.
        """
        total = np.zeros((owners, self.layout.dimension), dtype=np.int64)
        fields = [field for field in self.layout.fields if not isinstance(field, Owners)]
        each = [field.sql(table) for field in fields]
        wanted = list(dict.fromkeys(sql for some in each for sql in some)) or ["CAST(0 AS INTEGER)"]
        place = {sql: k for k, sql in enumerate(wanted)}
        seen = 0
        for block in table.blocks([*wanted, *([owner] if isinstance(owner, str) else [])]):
            values: dict[Field, Values] = {
                field: field.read([block[place[sql]] for sql in some])
                for field, some in zip(fields, each, strict=True)
            }
            rows = slice(seen, seen := seen + len(block[0]))
            whose = block[-1].astype(np.int64) if isinstance(owner, str) else None if owner is None else owner[rows]
            if whose is not None:
                whose = np.where(whose < owners, whose, -1)
            if (known := self.columns.owners) is not None:
                mine = np.zeros(len(block[0]), dtype=np.int64) if whose is None else whose
                values[known] = np.where(mine < 0, 0, mine + self.number + first)  # nobody's are counted nowhere
            total += self.layout.encode(RecordFields(len(block[0]), values), whose, owners)
        return total

    def answers(
        self, total: NDArray[Any], sigma: float, sizes: Sequence[int], level: Level | None = None
    ) -> tuple[Answer, ...]:
        """The answers of the opened sum (dimension,) in grid steps, whose noise has deviation `sigma` a coordinate.
        `level`: what intervals hold; its `answers` 0: at once for all numbers of the release."""
        return self.answers_from(self.opened(total, sigma, sizes), level)

    def opened(
        self, total: NDArray[Any], sigma: float, sizes: Sequence[int], counted: bool = True, rows: int = 1
    ) -> Opened:  # fmt: skip
        """The opened sum with what is known of it; as `answers`. `counted`: whether sizes are numbers of records;
        `rows`: of one person there may be so many records."""
        return Opened(self.layout, np.asarray(total, dtype=np.float64), sigma, tuple(sizes), counted, rows)

    def answers_from(
        self, opened: Opened, level: Level | None = None, planned: "Tables | None" = None
    ) -> tuple[Answer, ...]:
        """The answers that a release gives which need not have been asked the same: a table's margins are in it, and
        so are counts. `planned`: the questions that its plan named, by default these. Errors: UsageError for a question
        that it does not answer."""
        asked = level or Level()
        known = opened.layout.blocks
        parts = [part for part, _ in self.parts]
        by = merged(parts, known) | {part: part for part in parts if part.role == "joint"}
        for query in self.queries:
            needed = (by[part].block for part in parts_of(query, self.columns, dict(self.models)))
            if not all(_held(block, known) for block in needed):
                raise UsageError(
                    f"what was opened answers what it holds; it has no numbers for {query.title}; ask for one of its "
                    "tables, or make a release for it",
                    code="unknown",
                )
        if not asked.answers:
            lines = sum(len(found.lines) for found in self._answers(opened, replace(asked, answers=1), by, planned))
            asked = replace(asked, answers=lines)
        return self._answers(opened, asked, by, planned)

    def _answers(
        self, opened: Opened, level: Level, by: Mapping[Part, Part], planned: "Tables | None"
    ) -> tuple[Answer, ...]:
        models, columns = dict(self.models), self.columns
        named = {query.weighing(1.0) for query in (planned or self).queries}
        found = []
        for query in self.queries:
            blocks = tuple(by[part].block for part in parts_of(query, columns, models))
            found.append(answer(Asking(query, columns, opened, level, blocks, models, query.weighing(1.0) in named)))
        return tuple(found)


def told(
    tables: Tables, answers: tuple[Answer, ...], level: Level, about: Sequence[str], total: NDArray[Any],
    sizes: Sequence[int], present: Sequence[int] | None, opened: Opened,
) -> Outcome:  # fmt: skip
    """The outcome of a release of tables, of which other answers may be asked later: what was opened, (dimension,) in
    records, is among its files, and models' cells as CSV. `about`: the guarantee first; `present`: the owners, where
    some were missing."""
    from dpmpc.statistics.joint_cells import CELLS, cells_csv  # kinds are loaded when one is asked for

    files: dict[str, str | bytes] = {}
    if (cells := cells_csv(opened)) is not None:
        files[CELLS] = cells
    whole = io.BytesIO()
    np.save(whole, np.asarray(total, dtype=np.float64))
    known = {"guarantee": about[0]} | ({} if present is None else {"present": list(present)})
    return Outcome(
        answers,
        "Answers to the questions",
        level,
        tuple(about),
        tuple((name, part) for name, _, part in tables.costs(sizes)),
        {"queries": [str(query) for query in tables.queries]},
        {OPENED: whole.getvalue(), KNOWN: json.dumps(known) + "\n", **files},
    )


def whose(present: Sequence[int] | None, everybody: int) -> list[str]:
    """A line on the owners whose records were asked, where some of all were missing."""
    if present is None or len(present) == everybody:
        return []
    return [f"Of {len(present)} of {everybody} owners: {', '.join(map(str, present))}."]


def asked_by(source: Source) -> Tables:
    """The questions that a source asks in its own release. Errors: UsageError where it asks none."""
    if not isinstance(source, Tables):
        raise UsageError(
            f"answers come from a release of tables; this one is of {source.KIND}; name a run of `stats`, or one that "
            "asked questions",
            code="plan",
        )
    return source


def of_columns(columns: Columns, reads: Sequence[str], table: "Table", sizes: Sequence[int] = ()) -> "Findings":
    """As `Source.held_against`, of records of which these columns are counted."""
    from dpmpc.intake.missing import keeping
    from dpmpc.intake.staging import held
    from dpmpc.records.check import check_columns, copies

    names = [name for name in reads if name in table]
    mine = held(keeping(table, columns.listed), names) if names else table
    found = check_columns(columns.as_read(reads), mine, sizes, columns.open_lists)
    return replace(found, found=(*found.found, *copies(table)))


def _held(block: Block, opened: Sequence[Block]) -> bool:
    """Whether an opened block is this one, or a table of which it is a margin."""
    if isinstance(block, CellCounts) and block.axes and isinstance(block.axes[-1], Complete):
        return held(block, opened)
    if not isinstance(block, CellCounts):
        return block in opened
    return any(
        isinstance(other, CellCounts) and other.where == block.where and set(block.axes) <= set(other.axes)
        for other in opened
    )


def columns_to_json(columns: Columns) -> list[dict[str, Any]]:
    """Columns as a plan has them."""
    found = [{"kind": type(column).__name__.lower(), **asdict(column)} for column in columns.columns]
    return list(json.loads(json.dumps(found)))


def columns_from_json(value: Sequence[Mapping[str, Any]]) -> Columns:
    """The columns that `columns_to_json` wrote. Errors: as of columns."""
    return Columns(tuple(_column(dict(each)) for each in value))


def _column(value: dict[str, Any]) -> Column:
    """A column that `Tables.to_json` wrote. Errors: UsageError for another kind, ValueError for what is no such."""
    kinds: dict[str, Any] = {kind.__name__.lower(): kind for kind in (Quantity, Category, Bucketed, Owners)}
    kind = kinds.get(value.pop("kind", ""))
    if kind is None:
        raise UsageError(f"a plan's columns are {', '.join(kinds)}; one is none of them; copy it again")
    made: Column = msgspec.convert(value, kind)
    return made
