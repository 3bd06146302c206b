"""A synthetic table of all owners' records as a function call: `dpmpc.synth`. Two releases, or three with a survey,
under one promise; all else is post-processing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.keywords import SourceKeywords
from dpmpc.errors import UsageError, some
from dpmpc.folders import OUT, make_folder, replaced, said_path, write_file
from dpmpc.intake.missing import keeping
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.written import read_written
from dpmpc.lazy import dataclass
from dpmpc.learning.naming import STAGE as WORDS
from dpmpc.mpc.transport.heartbeat import WAIT
from dpmpc.outcome import Heat, Line, Number, Shape
from dpmpc.processes.room import free_memory
from dpmpc.records.loading import Source, opened
from dpmpc.records.persons import touched_at_most
from dpmpc.records.schema import Schema
from dpmpc.run.once import unfinished
from dpmpc.run.run import run
from dpmpc.run.seat import Seat
from dpmpc.settings import keywords
from dpmpc.show.objects import Sheet, Shown
from dpmpc.show.tables import of_columns, pandas
from dpmpc.statistics.columns import Bucketed
from dpmpc.synthesis import pgm
from dpmpc.synthesis.caveats import first_lines
from dpmpc.synthesis.constraints import Constraints, from_file
from dpmpc.synthesis.files import write_csv, write_parquet
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.report import as_json, as_markdown
from dpmpc.synthesis.source import FIRST, SURVEY
from dpmpc.synthesis.table import (
    Drawn,
    Fit,
    PairError,
    Structure,
    draw,
    expected_errors,
    model_of,
    structure,
)
from dpmpc.synthesis.values import written
from dpmpc.tables.of_table import OfTable
from dpmpc.tables.questions import check_spelled
from dpmpc.tables.stats import OfTables, Statistics, kept_of, opened_tables, owned
from dpmpc.tables.synth_columns import digits_of_columns, names_read, public_columns
from dpmpc.tables.synth_plan import planned, refusing

LAST = "synthetic.json"  # of the files of a run that is over
_LEFT_OUT = "name their levels in <<bounds>>, or leave them out with <<drop>>"
FITS: dict[str, Fit] = {"tree": lambda noisy, _, shape: model_of(noisy, shape), "mbi": pgm.fitted}
_OF_A_VALUE = 36  # bytes of memory, while rows are drawn and written


@dataclass(frozen=True, eq=False)
class Synthetic(Shown):
    """A synthetic table, public, with what it was made of. `values`: name to (rows,) numbers, NaN where missing, or
    texts, None where missing; `releases`: what was opened, for questions; `errors`: what is expected of each pair."""

    values: dict[str, NDArray[Any]] = field(repr=False)
    structure: Structure
    model: Drawn = field(repr=False)
    releases: tuple[Statistics, ...] = field(repr=False)
    errors: tuple[PairError, ...] = field(repr=False)
    digits: dict[str, int]
    guarantee: str
    bytes_of_parties: int = 0
    left_out: tuple[str, ...] = ()  # columns of which a survey found nothing

    @property
    def statistics(self) -> Statistics:
        """The noisy tables, for answers with intervals that know the noise: `asked([...])`, at no cost."""
        return replace(self.releases[-1], earlier=self.releases[:-1])

    @property
    def lines(self) -> list[str]:
        """What stands before the rows in every output."""
        mean = float(np.mean([error.whole for error in self.errors]))
        columns = self.releases[-1].tables.columns.columns
        buckets = [column.name for column in columns if isinstance(column, Bucketed)]
        left = [f"Left out, as nothing of it stood out of the survey's noise: {name}." for name in self.left_out]
        hashed = (
            f"Texts of {', '.join(buckets)} were hashed: 'bucket k' stands for all texts of one hash, and so does "
            "'WORD [#k]', where most of them are that word."
        )
        return first_lines(self.guarantee, [
            f"Tables of two columns are expected to be off by {mean:.3f} in total variation in the mean; each pair's "
            "own figure is in synthetic.md.",
            *([hashed] if buckets else []),
            *alone(self.values),
            *left,
        ], self.structure.target)  # fmt: skip

    def sheet(self) -> Sheet:
        """The first rows, what is to be said of all, and how far each pair's table is expected to be off."""
        return Sheet(
            "Synthetic table", (), (of_columns(self.values, 10),), self._pictures, lambda: self.values,
            tuple(self.lines), ".frame() has all",
        )  # fmt: skip

    def _pictures(self) -> Sequence[Shape]:
        lines = [Line(error.pair, "off", Number(error.whole, None, None, None)) for error in self.errors]
        return (Heat("expected error of each pair's table, in total variation", tuple(lines)),)

    def frame(self) -> Any:
        """A pandas data frame with the rows; what is to be said of them is in its `attrs`."""
        made = pandas().DataFrame(dict(self.values))
        made.attrs["dpmpc"] = "\n".join(self.lines)
        return made

    def report(self) -> str:
        """What the table is good for, and how far every pair's table will be off."""
        return as_markdown(self.lines, self.structure, self.errors)

    def write(self, out: Path | str) -> None:
        """Writes rows, columns, noisy tables and the report into a folder."""
        out = Path(out)
        for folder, release in zip((out / FIRST, out), self.releases, strict=True):
            release.write(folder)
        self.write_rows(out)

    def write_rows(self, out: Path | str) -> None:
        """Writes rows, columns and what is said of them into a folder that has the noisy tables, or needs none."""
        out = Path(out)
        make_folder(out, OUT, private=True)
        for name, write in (("synthetic.parquet", write_parquet), ("synthetic.csv", write_csv)):
            with replaced(out / name) as beside:
                write(beside, self.values, self.lines, self.digits)
        columns = self.releases[-1].tables.to_json()["columns"]
        write_file(out / "columns.json", json.dumps({"about": self.lines, "columns": columns}, indent=1) + "\n")
        write_file(out / "synthetic.md", self.report())
        write_file(out / LAST, as_json(self.lines, self.structure, self.errors))


def alone(values: Mapping[str, NDArray[Any]]) -> list[str]:
    """A line on the columns that have one value in every drawn row: rarer ones may have been lost in noise."""
    found = []
    for name, drawn in values.items():
        there = drawn[~np.isnan(drawn)] if drawn.dtype.kind == "f" else [text for text in drawn if text is not None]
        if len(drawn) > 1 and len({*there}) < 2:
            found.append(name)
    if not found:
        return []
    return [
        f"One value alone in all rows: {some(found, 12)}. What else real rows have there, such as a rare 1 among 0, is "
        "rarer than the noise shows, or is not there; public bounds for such a column keep more of it."
    ]


@keywords(OfTables)
def synth(
    records: Source,
    *,
    owners: str | None = None,
    schema: Schema | Path | str | None = None,
    bounds: Mapping[str, Any] | Path | str | None = None,
    cuts: Mapping[str, Any] | Path | str | None = None,
    cells: int | None = None,
    drop: Sequence[str] = (),
    named: Sequence[str] = (),
    words: Sequence[str] = (),
    spell: Sequence[str] = (),
    target: str | None = None,
    rows: int | None = None,
    constraints: Sequence[str] | Path | str | None = None,
    digits: Mapping[str, int] | None = None,
    model: Literal["tree", "mbi"] = "tree",
    hopeless: Literal["refuse", "allow"] = "refuse",
    seed: int | None = None,
    capacity: Sequence[int] | None = None,
    data_id: str | None = None,
    budget: str | None = None,
    account: Path | str | None = None,
    memory: int | None = None,
    spelling: Spelling = PLAIN,
    out: Path | str | None = None,
    wait: float = WAIT,
    **settings: Unpack[SourceKeywords],
) -> Synthetic:
    """A synthetic table of several owners' records, from two releases of noisy tables with one copy of noise each.

        dpmpc.synth(frame, owners="hospital", bounds={...}, target="outcome", epsilon=1, delta=1e-5).frame()

    owners: the column that says whose each record is. schema, bounds: public columns; without, a private survey finds
    them. cuts: edges of the cells of numbers, or how many, by column, or a file of them; cells: how many for all;
    without either, a survey finds them. named: columns whose values a survey finds and names, where public lists have
    their words: those that everybody knows, and `words`; spell: those whose words are opened before it, of those that
    enough records of all owners have. target: the column that the rows are to tell about. rows: as many as there are
    records. model: of a tree of columns, or `mbi`, which fits more pairs by Private-PGM where that package is
    installed. constraints: impossible combinations, or a file of them. digits: decimals of a column. seed: of drawing
    rows, which is public; never of noise. capacity: of each owner, places for its records or persons, whose numbers are
    then private. settings: epsilon, delta, parties and so on, as of `dpmpc.Plan`. out: a new folder for rows, noisy
    tables, plans, ledgers and the report.
    Errors: UsageError for what cannot be; for noise that would drown the tables (`hopeless`); as of releases.
    """
    folder = None if out is None else said_path(out, "out")
    if folder is not None:
        unfinished(folder, LAST, WORDS, SURVEY, FIRST, "")
    check_drawing(rows, model, seed, digits)
    if hopeless not in ("refuse", "allow"):
        raise UsageError(f"<<hopeless>> is refuse or allow; got {hopeless!r}; choose one", code="choice")
    lines = lines_of(constraints)
    drop = (*drop, *named_columns(settings))
    read, of = names_read(schema, bounds, owners, drop), kept_of(settings, owners)
    with opened(records, memory=memory, spelling=spelling, person=of, names=read) as (table, _):
        touched = touched_at_most(table, of)
        public = public_columns(
            table, owners, schema, bounds, cuts_of(cuts), cells, drop, digits, touched, named, words, spell
        )
        public.check(target, lines, digits or {})
        check_room(rows, len(public.names))
        check_spelled(table, public.of_numbers, _LEFT_OUT)
        table = table if public.columns is None else keeping(table, public.columns.listed)
        here = Here(out=folder, wait=wait, budget=budget, account=None if account is None else str(account))
        own, number, sizes = owned(table, public.names, owners, settings, capacity)
        plan = planned(public, target, lines, sizes, table.source, data_id, settings, capacity, digits)
        mine = OfTable("synth", own, number, *([refusing(plan)] if hopeless == "refuse" else []))
        done = run(plan, mine, Seat(here, Books.of(here)))
    both = opened_tables(done.stages[-1]), opened_tables(done.own)
    columns = both[0].tables.columns
    places = digits_of_columns(columns, {**public.places, **(digits or {})})
    found = made_of(both, target, lines, rows=rows, model=model, places=places, seed=seed)
    left_out = tuple(name for name in public.names if name not in columns.names)
    found = replace(found, bytes_of_parties=done.bytes_sent, left_out=left_out)
    if folder is not None:
        found.write(folder)
    return found


def check_drawing(rows: int | None, model: str, seed: int | None, digits: Mapping[str, int] | None) -> None:
    """Errors: rows that cannot be drawn; a model that is none, or whose package is not there; a seed or decimals that
    are none."""
    if digits is not None and not isinstance(digits, Mapping):
        raise UsageError(f"<<digits>> map columns to decimals; got {digits!r}; say age = 1 so", code="type")
    if model not in FITS:
        raise UsageError(f"<<model>> is one of {', '.join(FITS)}; got {model}; choose one")
    if model == "mbi":
        pgm.check_installed()
    for name, given, least in (("rows", rows, 1), ("seed", seed, 0)):
        if given is not None and (isinstance(given, bool) or not isinstance(given, Integral) or given < least):
            raise UsageError(
                f"<<{name}>> is a whole number, {least} or more; got {given!r}; give another", code="range"
            )


def check_room(rows: int | None, columns: int) -> None:
    """Errors: UsageError for so many rows that were asked for that they do not fit into the memory that is free."""
    need, free = _OF_A_VALUE * (rows or 0) * columns, free_memory()
    if need > free:
        raise UsageError(
            f"rows must fit into the memory that is free, {free / 1e6:,.0f} MB; {rows:,} of {columns} columns take "
            f"about {need / 1e6:,.0f} MB; ask for fewer <<rows>>",
            code="memory",
            setting="rows",
        )


def named_columns(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The column of persons, which is no column of the synthetic table."""
    return () if settings.get("person") is None else (str(settings["person"]),)


def made_of(
    releases: tuple[Statistics, Statistics], target: str | None, constraints: Sequence[str], *, rows: int | None,
    model: str, places: Mapping[str, int], seed: int | None,
) -> Synthetic:  # fmt: skip
    """The synthetic table that two releases lead to: public post-processing. places: the decimals of numbers."""
    first, second = releases
    rng, columns = np.random.default_rng(seed), first.tables.columns
    zeros, raw, fit = Constraints.of(constraints, columns), [each.opened for each in releases], FITS[model]
    shape = structure(Noisy(columns, first.opened, zeros), target)
    noisy = Noisy(columns, replace(second, earlier=(first,)).opened, zeros)
    shape = pgm.widened(noisy, shape) if model == "mbi" else shape
    fitted = fit(noisy, raw, shape)
    drawn = draw(fitted, noisy, rows or round(noisy.n), rng)
    errors = expected_errors(noisy, raw, shape, drawn, rng, fit)
    values = written(columns, drawn, noisy.opened, dict(places), rng)
    return Synthetic(values, shape, fitted, releases, errors, dict(places), second.guarantee)


def lines_of(constraints: Sequence[str] | Path | str | None) -> list[str]:
    if constraints is None:
        return []
    if isinstance(constraints, str | Path):
        return from_file(read_written(Path(constraints), Any, "a constraints"))
    return list(constraints)


def cuts_of(cuts: Mapping[str, Any] | Path | str | None) -> Mapping[str, Any]:
    if cuts is None or isinstance(cuts, Mapping):
        return cuts or {}
    file = isinstance(cuts, str | Path)
    value = read_written(Path(cuts), Any, "a cuts") if file else cuts
    if not isinstance(value, dict):
        said = Path(cuts).name if file else repr(cuts)
        raise UsageError(
            f"<<cuts>> map columns to edges or numbers of cells; {said} does not; write age = 12 so", code="type"
        )
    return value
