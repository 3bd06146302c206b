"""Records that workers elsewhere read: what leaves them are sums of tiles, which are added up here in the tiles' order.

A task is some tiles of one owner. Its worker reads the rows of these tiles out of the partitions, maps them by the
schema as `records.loading` does, and answers with each tile's sums: so a result is the same to the last bit as that of
a process that holds all records, where processors and libraries are alike, whoever works out which task, and however
often one is lost. What a worker holds is one tile, and what its database may hold. It is stated with every answer, by a
digest with a key, which records it was made of: a pass over other records than the first pass's is refused.
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cache, partial
from importlib.metadata import version
from itertools import pairwise
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.intake.partitions import Partitions, partitions_of, places_of
from dpmpc.intake.ranges import Ranges, ranges_of
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.table import Table
from dpmpc.lazy import dataclass
from dpmpc.learning.matrix import Matrix, matrix_of
from dpmpc.learning.source import PART, Source
from dpmpc.processes.cores import one_thread
from dpmpc.processes.elsewhere import Answer, Workers, answering
from dpmpc.records.blocks import Precision, Records, allocate, in_memory
from dpmpc.records.mapping import NO_ENDS, Ends, Mapping, Unfit, class_values, targets_of
from dpmpc.records.rows import Rows as Maker
from dpmpc.records.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mine = NDArray[np.bool_]
Sums = tuple[NDArray[Any], ...]
Placed = Partitions | Ranges  # rows in one order, any range of which is read alone
TILES = 128  # of a task: 2^25 numbers
COPIED = 16  # of a task whose rows a worker copies out of a database: 2^22 numbers
_DIGEST = 32
_COUNTED = ("rows", "missing", "unknown", "clipped", "unread")


@dataclass(frozen=True)
class Tile:
    """Rows begin ... end - 1, of owners first ... last - 1. `cuts` (owners + 1,) are their borders, from 0."""

    begin: int
    end: int
    first: int
    cuts: Ints

    @property
    def last(self) -> int:
        return self.first + len(self.cuts) - 1


class Work(Protocol):
    """What is added up over records: sums of a tile's rows, as a tuple of arrays. It can be sent to another process,
    and says the shapes of what comes back."""

    def shapes(self, owners: int, d: int) -> tuple[tuple[int, ...], ...]: ...
    def __call__(self, tile: Tile, X: Matrix, y: Floats, weights: Floats | None) -> Sums: ...


class WorkerJob(Protocol):
    """What a worker makes of the rows of a table, of which `mine` are the owner's in this stage; all where None."""

    def __call__(self, table: Table, mine: Mine | None) -> Any: ...


@cache
def versions() -> tuple[str, ...]:
    """Of what decides a sum's last bit."""
    return tuple(f"{name} {version(name)}" for name in ("dpmpc", "numpy", "duckdb"))


@dataclass(frozen=True)
class WorkerTask:
    """A job over a range of rows, as a worker is sent it. `mine`: of these rows, as packed bits."""

    partitions: Placed
    begin: int
    end: int
    mine: bytes | None
    job: WorkerJob
    versions: tuple[str, ...] = field(default_factory=versions)

    def __call__(self) -> Answer:
        return answering(self._done)

    def _done(self) -> Any:
        if versions() != self.versions:
            raise UsageError(
                f"workers have the versions of the owner's process, {', '.join(self.versions)}; one has "
                f"{', '.join(versions())}; install the same"
            )
        mine = None
        if self.mine is not None:
            mine = np.unpackbits(np.frombuffer(self.mine, np.uint8), count=self.end - self.begin).astype(bool)
        with one_thread(), self.partitions.rows(self.begin, self.end) as table:
            return self.job(table, mine)


@dataclass(frozen=True)
class _TableOpening:
    """Names, types and numbers of rows of what a source names, as a worker sees it. `sql`: of a database's URL."""

    source: str
    sql: str | None
    spelling: Spelling
    memory: int | None

    def __call__(self) -> Answer:
        if self.sql is not None:
            return answering(partial(ranges_of, self.source, self.sql, self.spelling, self.memory))
        return answering(partial(partitions_of, self.source, self.spelling, self.memory))


@dataclass(frozen=True)
class _Tiled:
    """The work's sums of each tile, the digest of the tiles' records, and what of them did not fit."""

    schema: Schema
    precision: Precision
    tiles: tuple[Tile, ...]
    work: Work | None
    key: bytes

    def __call__(self, table: Table, mine: Mine | None) -> tuple[list[Sums], bytes, list[tuple[int, ...]]]:
        mapping, digest = Mapping(table, self.schema), hashlib.blake2b(key=self.key, digest_size=_DIGEST)
        made, sums = Maker(mapping), list[Sums]()
        for tile, part in zip(self.tiles, self._filled(made, mine), strict=True):
            digest.update(part.held.tobytes())
            digest.update(b"" if part.factors is None else part.factors.tobytes())
            digest.update(part.y.tobytes())
            if self.work is not None:
                given = self.work(tile, matrix_of(part, 0, part.n), part.y, None)
                sums.append(tuple(np.asarray(found) for found in given))
        counts = [tuple(int(getattr(each, name)) for name in _COUNTED) for each in made.counts.values()]
        counts.append((table.n, mapping.misfits, 0, 0, 0))  # of the target
        return sums, digest.digest(), counts

    def _filled(self, made: Maker, mine: Mine | None) -> Iterator[Records]:
        """The records of each tile, in one buffer."""
        most, design = max(tile.end - tile.begin for tile in self.tiles), self.schema.design
        left, filled, seen = iter(self.tiles), 0, 0
        tile, into = next(left), allocate(most, design.width, self.precision, None, design)
        for block, labels in made.mapping.raw():
            at, n = 0, len(labels)
            while at < n:
                end, room = min(n, at + made.at_once), tile.end - tile.begin - filled
                taken = np.ones(end - at, dtype=bool) if mine is None else mine[seen + at : seen + end]
                many = np.cumsum(taken)  # up to each row: those beyond the tile's end wait
                taken = taken[: int(np.searchsorted(many, room)) + 1]
                many, part = many[: len(taken)], slice(at, at + len(taken))
                to = np.where(taken, filled + many - 1, -1)
                made.into(into, [values[part] for values in block], labels[part], to)
                filled, at = filled + int(many[-1]), part.stop
                if filled == tile.end - tile.begin:
                    yield into.part(0, filled)
                    filled, tile = 0, next(left, tile)
            seen += n


@dataclass(eq=False)
class OwnerRows:
    """One owner's rows of some partitions, and the workers that read them. `mine`: which rows are its in this stage;
    `tiles`: how many a task has."""

    workers: Workers
    partitions: Placed
    mine: Mine | None = None
    tiles: int = TILES

    @property
    def n(self) -> int:
        return self.partitions.n if self.mine is None else int(np.count_nonzero(self.mine))

    def task(self, begin: int, end: int, job: WorkerJob) -> WorkerTask:
        """The job over rows begin ... end - 1 of the partitions."""
        mine = None if self.mine is None else np.packbits(self.mine[begin:end]).tobytes()
        return WorkerTask(self.partitions.part(begin, end), begin, end, mine, job)

    def borders(self, at: list[int]) -> list[int]:
        """Of the partitions' rows, those at which these numbers of the owner's rows begin."""
        return at if self.mine is None else places_of(self.mine, at)


@dataclass(frozen=True)
class _Once:
    """The terms of a source that reads records once, of rows of one owner."""

    source: Source
    rows: int

    def __call__(self, table: Table, mine: Mine | None) -> list[Sums]:
        owner = np.zeros(self.rows, dtype=np.int64) if mine is None else np.where(mine, 0, -1)
        return [(part,) for part in self.source.sums(table, owner, 1)]


@dataclass(frozen=True)
class _Held:
    """How many of the rows have a target that does not fit a schema, and how many are of each of its classes, where all
    else fits a source; else its error."""

    source: Source
    schema: Schema | None

    def __call__(self, table: Table, mine: Mine | None) -> tuple[int, ...]:
        self.source.check_records(table)
        if self.schema is None:
            return (0,)
        bad, classes = targets_of(table, self.schema)
        return (bad, *classes)


def mean_away(owner: OwnerRows, source: Source) -> Floats:
    """(1, dimension) the mean of the vectors of the owner's records, by one pass: the same to the last bit as
    `Source.means` of them. Secret. Errors: as `Source.means`, in public words; as of workers."""
    ranges, width = _ranges(owner), source.coordinates
    assert width is not None

    def check(k: int, value: Any) -> None:
        check_sums([((1, width),)], value if isinstance(value, list) else [])

    total: Any = 0
    for found in owner.workers.results([owner.task(a, b, _Once(source, b - a)) for a, b in ranges], check):
        total = total + found[0][0]
    return source.mean_of(total, (owner.n,))


def _ranges(owner: OwnerRows) -> list[tuple[int, int]]:
    n = owner.partitions.n
    return [(k, min(k + PART, n)) for k in range(0, n, PART)]


def check_away(owner: OwnerRows, source: Source, schema: Schema | None = None) -> tuple[int, Ends]:
    """How many records have a target that does not fit the schema, where there is one, and the ends of the others where
    these are classes: workers give their numbers, and nothing of a quantity. Errors: records do not fit the source, as
    its `check_records` says, or the schema, in public words; as of workers."""
    ranges = _ranges(owner)
    classes = () if schema is None else class_values(schema.target)

    def check(k: int, value: Any) -> None:
        begin, end = ranges[k]
        counts = value if type(value) is tuple and len(value) == 1 + len(classes) else (-1,)
        if not all(type(count) is int and count >= 0 for count in counts) or sum(counts) > end - begin:
            not_sums()

    counts = list(owner.workers.results([owner.task(a, b, _Held(source, schema)) for a, b in ranges], check))
    bad, *found = map(sum, zip(*counts, strict=True))
    there = [value for value, count in zip(classes, found, strict=True) if count]
    return bad, (min(there), max(there)) if there else NO_ENDS


class Away(Records):
    """One owner's records, in their order, of which workers make sums. Nothing else of them can be had here."""

    _owner: OwnerRows
    _schema: Schema
    _precision: Precision
    _key: bytes
    _digests: dict[int, bytes]

    def __init__(self, owner: OwnerRows, schema: Schema, precision: Precision) -> None:
        state = {"_owner": owner, "_schema": schema, "_precision": precision, "resident": True}
        state |= {"_key": secrets.token_bytes(16), "_digests": {}}
        for name, value in state.items():
            object.__setattr__(self, name, value)  # `Records` is frozen

    @property
    def n(self) -> int:
        return self._owner.n

    @property
    def d(self) -> int:
        return len(self._schema.feature_names)

    @property
    def width(self) -> int:
        return self._schema.design.width

    @property
    def held(self) -> NoReturn:
        _held_elsewhere()

    @property
    def y(self) -> NoReturn:
        _held_elsewhere()

    @property
    def weights(self) -> None:
        return None

    def part(self, begin: int, end: int) -> Records:
        """All records, or none of them."""
        if (begin, end) == (0, self.n):
            return self
        if begin == end:
            return in_memory(np.empty((0, self.d)), np.empty(0))
        _held_elsewhere()

    def forget(self, begin: int = 0, end: int | None = None) -> None:
        """Nothing is held."""

    def sums(self, tiles: Sequence[Tile], work: Work) -> Iterator[tuple[Tile, Sums]]:
        """Each tile and its sums, in the tiles' order. Errors: as of workers; a sum that is no finite number; records
        that are not those of the first pass."""
        for part, (sums, _, _) in self._pass(tiles, work):
            yield from zip(part, sums, strict=True)

    def looked_over(self, tiles: Sequence[Tile]) -> tuple[Unfit, ...]:
        """What did not fit into each column's public constants, and last the target's, where it counts as missing: one
        pass. Errors: as of `Mapping`, in public words."""
        counts = [Unfit(column.name) for column in (*self._schema.columns, self._schema.target)]
        for _, (_, _, found) in self._pass(tiles, None):
            for each, numbers in zip(counts, found, strict=True):
                for name, number in zip(_COUNTED, numbers, strict=True):
                    setattr(each, name, getattr(each, name) + number)
        return tuple(counts)

    def _pass(self, tiles: Sequence[Tile], work: Work | None) -> Iterator[tuple[tuple[Tile, ...], Any]]:
        """Each task's tiles and what came of it."""
        parts = [tuple(tiles[k : k + self._owner.tiles]) for k in range(0, len(tiles), self._owner.tiles)]
        at = self._owner.borders([part[0].begin for part in parts] + [tiles[-1].end])
        tasks = [
            self._owner.task(begin, end, _Tiled(self._schema, self._precision, part, work, self._key))
            for part, (begin, end) in zip(parts, pairwise(at), strict=True)
        ]
        yield from zip(parts, self._owner.workers.results(tasks, partial(self._check, parts, work)), strict=True)

    def _check(self, parts: Sequence[tuple[Tile, ...]], work: Work | None, k: int, value: Any) -> None:
        """Errors: what a worker brought are no sums of these tiles, or of other records than in the pass before."""
        match value:
            case (list() as sums, bytes() as digest, list() as counts) if len(digest) == _DIGEST:
                shapes = [() if work is None else work.shapes(len(t.cuts) - 1, self.d) for t in parts[k]]
                check_sums([] if work is None else shapes, sums)
                if len(counts) != len(self._schema.columns) + 1 or not all(map(_are_counts, counts)):
                    not_sums()
            case _:
                not_sums()
        if self._digests.setdefault(parts[k][0].begin, digest) != digest:
            raise UsageError(
                "records must stay as they are while a run reads them; workers read others in a later pass; "
                "run again when nobody writes to them",
                code="file",
            )


def _are_counts(found: Any) -> bool:
    """Whether a worker's counts of one column are such."""
    each = isinstance(found, tuple) and len(found) == len(_COUNTED)
    return each and all(type(number) is int and number >= 0 for number in found)


def check_sums(shapes: Sequence[Sequence[tuple[int, ...]]], sums: Sequence[Any]) -> None:
    """Errors: these are no finite sums of these shapes, tile by tile."""
    if len(sums) != len(shapes):
        not_sums()
    for each, expected in zip(sums, shapes, strict=True):
        if not isinstance(each, tuple) or len(each) != len(expected):
            not_sums()
        for part, shape in zip(each, expected, strict=True):
            if type(part) is not np.ndarray or part.dtype not in (np.float64, np.int64) or part.shape != shape:
                not_sums()
            if not np.isfinite(part).all():
                raise UsageError(
                    "sums of records are finite; a worker's hold NaN or infinity; look at its memory and its libraries",
                    code="worker",
                )


def not_sums() -> NoReturn:
    raise UsageError(
        "a worker answers with the sums that it was asked for; one gave others; mend the executor", code="worker"
    )


def _held_elsewhere() -> NoReturn:
    raise UsageError(
        "workers of an executor bring sums of records and no record; what is asked for needs an owner's records "
        "themselves; use the method gradient, or leave <<executor>> out",
        code="missing",
    )


def owner_of(
    workers: Workers, source: str, spelling: Spelling, memory: int | None, sql: str | None = None
) -> OwnerRows:
    """The rows of what a source names, or of a query to the database that it names, as workers see it. Errors: as
    `partitions_of` or `ranges_of`, and of workers."""

    def check(k: int, value: Any) -> None:
        if not isinstance(value, Partitions if sql is None else Ranges):
            not_sums()

    (found,) = workers.results([_TableOpening(source, sql, spelling, memory)], check)
    return OwnerRows(workers, found, tiles=TILES if sql is None else COPIED)
