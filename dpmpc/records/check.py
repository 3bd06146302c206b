"""Records held against a schema, for their owner alone: what is missing, unknown or clipped, and what is refused."""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from dpmpc.errors import UsageError, number_of, some
from dpmpc.intake.batched import COLUMN, SMALL, alike
from dpmpc.intake.giving import giving
from dpmpc.intake.hashing import bucket_sql
from dpmpc.intake.missing import keeping
from dpmpc.intake.once import selected
from dpmpc.intake.reading import count_where, literal, only_where
from dpmpc.intake.spelling import canonical, stating
from dpmpc.intake.staging import as_they_stand
from dpmpc.intake.table import Reads, Table, code_sql, value_sql
from dpmpc.intake.written import checked, text_of, written
from dpmpc.lazy import dataclass
from dpmpc.records.mapping import Unfit, complete
from dpmpc.records.planned import other_sizes
from dpmpc.records.schema import Categorical, Classes, Column, Date, Labels, Numeric, Range, Schema, Surveyed

_MANY_COPIES = 0.1  # of the records: some that are alike by chance are no news
FITTING = 0.5  # of the values that are there: where fewer fit what is public of them, a column is told as unfit
Severity = Literal["refused", "unfit", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One thing about one column, or about all records ("records"). "refused": a run would stop at it. "unfit": it
    would go on, and spend, where hardly anything fits."""

    severity: Severity
    column: str
    text: str


@dataclass(frozen=True)
class Findings:
    """What a dry run says. `counts`: of each of the schema's columns that is there, in the schema's order."""

    rows: int
    counts: tuple[Unfit, ...]
    found: tuple[Finding, ...]

    @classmethod
    def of(cls, rows: int, counts: Sequence[Unfit], found: Sequence[Finding]) -> "Findings":
        """What was found, and the columns fewer than `FITTING` of whose values fit: other units, other codes, another
        column under this name. A survey's own columns have no public constants that could be missed."""
        unfit = []
        for c in counts:
            there, bad = c.rows - c.missing, c.unread + c.unknown + c.clipped
            if not c.surveyed and there - bad < FITTING * there:
                text = (
                    f"{there - bad} of {number_of(there, 'value')} fit what is public of it; look at its unit, its "
                    "codes and its spelling"
                )
                unfit.append(Finding("unfit", c.name, text))
        return cls(rows, tuple(counts), (*found, *unfit))

    @property
    def unfit(self) -> bool:
        """Whether hardly anything of a column, or of the target, fits."""
        return any(finding.severity == "unfit" for finding in self.found)

    @property
    def refused(self) -> bool:
        return any(finding.severity == "refused" for finding in self.found)

    @property
    def said(self) -> tuple[Finding, ...]:
        """What was found, once: columns of which the same is to be said are named together."""
        columns: dict[tuple[Severity, str], list[str]] = {}
        for each in self.found:
            columns.setdefault((each.severity, each.text), []).append(each.column)
        return tuple(
            Finding(severity, some(names) if len(names) > 1 else names[0], text)
            for (severity, text), names in columns.items()
        )

    def lines(self) -> list[str]:
        """What is worth a word, a line each; for the owner's eyes."""
        counted = (("missing", "missing"), ("unread", "not read"), ("unknown", "not listed"), ("clipped", "clipped"))
        found = []
        for c in self.counts:
            said = [f"{count:,} {word}" for name, word in counted if (count := getattr(c, name))]
            found += [f"column '{c.name}': {', '.join(said)} of {self.rows:,}"] if said else []
        return [*found, *(f"{each.severity}: {each.column}: {each.text}" for each in self.said)]


def check(schema: Schema, table: Table, sizes: Sequence[int] = (), also: Sequence[Column] = ()) -> Findings:
    """What would become of a table's records under a schema; nothing is refused here, all is said. `sizes`: of the
    owners in the plan; the records must be as many as one of them has, or as all have together. `also`: columns that
    are read beside those of the schema.

    Errors: the source cannot be read.
    """
    with as_they_stand(keeping(table, schema.listed)) as held:
        result = _checked(schema, held, sizes, also)
    table.unchanged()
    return result


def _checked(schema: Schema, table: Table, sizes: Sequence[int], also: Sequence[Column]) -> Findings:
    found: list[Finding] = []
    rows = table.n
    counts = _columns([*schema.columns, *also], table, rows, found)
    found += [Finding("refused", name, f"not in {table.source}") for name in schema.unknown if name not in table]
    _target(table, schema, rows, found)
    if not any(finding.severity == "refused" for finding in found):
        _number_of_records(table, schema, rows, sizes, found)
    found += copies(table)
    used = (*(column.name for column in (*schema.columns, *also)), *schema.unknown, schema.target.name)
    read = {table[name].name for name in used if name in table}
    if extra := [name for name in table.names if name not in read]:
        found.append(Finding("note", some(extra, 8), "not in the schema; not read"))
    return Findings.of(rows, counts, found)


def given(schema: Schema, table: Table) -> list[Finding]:
    """What is to be said of columns that nearly give the target, each by itself."""
    target, kinds = schema.target, dict[str, str]()
    if target.name not in table or table[target.name].kind in ("date", "other"):
        return []
    for column in schema.columns:
        number = isinstance(column, Numeric) or (isinstance(column, Surveyed) and column.number)
        if column.name in table and table[column.name].kind != "other":
            kinds[column.name] = "number" if number else "date" if isinstance(column, Date) else "text"
    found = giving(table, target.name, kinds, isinstance(target, Range))
    return [Finding("warning", name, text) for name, text in found]


def check_columns(
    columns: Sequence[Column], table: Table, sizes: Sequence[int] = (), open_lists: Sequence[str] = ()
) -> Findings:
    """The same for records that are counted and not learned from: these columns are read, and there is no target.
    `open_lists`: categories of which every value that is not listed counts as a listed one."""
    found: list[Finding] = []
    with as_they_stand(table) as held:
        counts = _columns(columns, held, held.n, found)
    counts = [replace(count, unknown=0) if count.name in open_lists else count for count in counts]
    found = [each for each in found if each.column not in open_lists]
    if sizes and table.n not in (*sizes, sum(sizes)):
        found.append(Finding("refused", "records", other_sizes(sizes, (table.n,))))
    table.unchanged()
    return Findings.of(table.n, counts, found)


def check_reads(names: Sequence[str], table: Table, sizes: Sequence[int] = ()) -> Findings:
    """The same where no more is known of columns than that these are read: whether they are there."""
    found = [Finding("refused", name, f"not in {table.source}") for name in names if name not in table]
    if sizes and table.n not in (*sizes, sum(sizes)):
        found.append(Finding("refused", "records", other_sizes(sizes, (table.n,))))
    return Findings(table.n, (), (*found, *copies(table)))


def _columns(columns: Sequence[Column], table: Table, rows: int, found: list[Finding]) -> list[Unfit]:
    """What becomes of each column's values."""
    counts: list[Unfit] = []
    together = _numbers(table, columns, rows)
    for column in columns:
        if column.name not in table:
            found.append(Finding("refused", column.name, f"not in {table.source}"))
        elif table[column.name].kind == "other" or (
            table[column.name].kind == "date" and not isinstance(column, Date | Surveyed)
        ):
            found.append(Finding("refused", column.name, table.refusal(table[column.name])))
        elif isinstance(column, Numeric | Date):
            counts.append(_number(table, column, rows, found, together.get(column.name)))
        elif isinstance(column, Surveyed):
            counts.append(_surveyed(table, column, rows, found))
        else:
            counts.append(_category(table, column, rows, found))
    for count in counts:
        if count.warning is not None:
            found.append(Finding("warning", count.name, count.warning.partition(": ")[2]))
    return counts


def schema_in(path: Path) -> Schema:
    """The schema in a plan (plan.json, under "schema", or the draft of its survey) or in a schema file. Errors: there
    is none."""
    if path.suffix == ".toml":
        return Schema.read(path)
    try:
        text = text_of(path, "a plan")
    except (OSError, UnicodeDecodeError):
        return Schema.read(path)  # says why it cannot be read
    value: dict[str, Any] = written(text, dict[str, Any], "a plan", path.name)
    if "columns" in value:
        return checked(value, Schema, "a schema", path.name, text)
    source = value.get("source")
    contents = source.values() if isinstance(source, dict) else ()
    surveys: list[Any] = [each.get("survey") for each in contents if isinstance(each, dict)]
    for place in (value, *surveys):
        if isinstance(place, dict) and isinstance(place.get("schema"), dict):
            return Schema.from_json(place["schema"])
    raise UsageError(
        f"a plan carries the schema of the records; {path.name} has none; give the schema with <<schema>>", code="plan"
    )


def _numbers(table: Table, columns: Sequence[Column], rows: int) -> dict[str, tuple[int, int, int]]:
    """(missing, no number, clipped) of each column of numbers of a small table, asked about together."""
    ends = {c.name: (c.low, c.high) for c in columns if isinstance(c, Numeric) and c.name in table}
    names = [name for name in ends if table[name].kind in ("text", "number")] if 0 < rows <= SMALL else []
    found = dict[str, tuple[int, int, int]]()
    for each in alike(table, names, rows):
        low, high = (", ".join(literal(repr(ends[name][end])) for name in each.names) for end in (0, 1))
        within = f"v BETWEEN CAST([{low}][c + 1] AS DOUBLE) AND CAST([{high}][c + 1] AS DOUBLE)"
        tests = ("isnan(v)", "isinf(v)", f"isfinite(v) AND NOT ({within})")
        values = selected(f"{COLUMN} AS c, {value_sql(each.table, each.name)} AS v", each.relation)
        asked = ", ".join(count_where(test) for test in tests)
        for c, missing, bad, clipped in table.rows(f"c, {asked}", "GROUP BY c", values):
            found[each.names[c]] = missing, bad, clipped
    return found


def _number(
    table: Table, column: Numeric | Date, rows: int, found: list[Finding], counted: tuple[int, int, int] | None
) -> Unfit:
    what: Reads = column.reads if isinstance(column, Date) else "number"
    value = value_sql(table, column.name, read=what)
    missing, bad, clipped = counted or table.one(
        count_where(f"isnan({value})"),
        count_where(f"isinf({value})"),
        count_where(f"isfinite({value}) AND NOT ({value} BETWEEN {column.low!r} AND {column.high!r})"),
    )
    if bad:
        shown = _examples(table, column.name, f"isinf({value})")
        one, more = (
            f"field is no {what} as it is spelled, and counts",
            f"fields are no {what} as they are spelled, and count",
        )
        text = f"{number_of(bad, one, more)} as missing: {shown}"
        found.append(Finding("note", column.name, text))
    if clipped:
        ends = (
            f"{column.first} to {column.last}" if isinstance(column, Date) else f"{column.low:.6g} to {column.high:.6g}"
        )
        outside = f"isfinite({value}) AND NOT ({value} BETWEEN {column.low!r} AND {column.high!r})"
        beyond = number_of(clipped, "value lies beyond", "values lie beyond")
        text = f"{beyond} {ends}: {_examples(table, column.name, outside)}"
        found.append(Finding("note", column.name, text))
    return Unfit(column.name, rows, missing, 0, clipped, bad)


def _surveyed(table: Table, column: Surveyed, rows: int, found: list[Finding]) -> Unfit:
    value, place = value_sql(table, column.name, read="either"), bucket_sql(table, column.name, column.buckets)
    if column.kept and table[column.name].kind == "text":
        found.append(Finding("note", column.name, _buckets(table, column, value, place)))
    kept = f"{place} IN ({', '.join(map(str, (-1, *column.kept)))})"
    missing, texts, clipped = table.one(
        count_where(f"isnan({value}) OR (isinf({value}) AND {place} < 0)"),
        count_where(f"isinf({value}) AND NOT {kept}"),
        count_where(f"isfinite({value}) AND NOT ({value} BETWEEN {column.low!r} AND {column.high!r})"),
    )
    unknown, unread = (texts, 0) if column.kept else (0, texts * column.number)
    return Unfit(
        column.name, rows, missing, unknown, clipped * column.number, unread, True, not (column.number or column.kept)
    )


def _buckets(table: Table, column: Surveyed, value: str, place: str) -> str:
    """The texts of these records that are in each kept bucket: a dictionary for their owner, which is in no file."""
    kept = ", ".join(map(str, column.kept))
    where = f"WHERE isinf({value}) AND {place} IN ({kept}) GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2 LIMIT 200"
    held: dict[int, list[str]] = {}
    for bucket, text, count in table.rows(
        f"CAST({place} AS INTEGER) AS b, {table.text(column.name)} AS t, count(*)", where
    ):
        held.setdefault(int(bucket), []).append(f"'{str(text)[:40]}' x {count}")
    return "; ".join(f"{column.name}#{k} is {', '.join(held[k][:6])}" for k in column.kept if k in held)


def _category(table: Table, column: Categorical, rows: int, found: list[Finding]) -> Unfit:
    code = code_sql(table, column.name, {value: k for k, value in enumerate(column.values)})
    missing, unknown = table.one(count_where(f"{code} = -1"), count_where(f"{code} = -2"))
    if unknown:
        are = number_of(unknown, "value is", "values are")
        text = f"{are} not in the list: {_examples(table, column.name, f'{code} = -2', column.values)}"
        found.append(Finding("note", column.name, text))
    return Unfit(column.name, rows, missing, unknown, 0)


def _target(table: Table, schema: Schema, rows: int, found: list[Finding]) -> None:
    target = schema.target
    if target.name not in table:
        found.append(Finding("refused", target.name, f"the target is not in {table.source}"))
        return
    if table[target.name].kind in ("date", "other"):
        found.append(Finding("refused", target.name, table.refusal(table[target.name])))
        return
    if isinstance(target, Labels):
        code = code_sql(table, target.name, target.codes)
        wrong = f"{code} = -1" if target.negative is None else f"{code} < 0"  # without a list all others are negative
        bad, up = table.one(count_where(wrong), count_where(f"{code} = 1"))
        if bad:
            known = tuple(target.codes)
            have = number_of(bad, "record has", "records have")
            text = f"{have} neither class: {_examples(table, target.name, wrong, known)}"
            found.append(_misfits(table, target.name, bad, text))
        text = f"{up} of {rows} records are {target.positive_name} (+1)"
        other = f"{code} NOT IN (1, -1)"
        words = f"count(DISTINCT {only_where(other, table.text(target.name))})"
        if up == 0 and target.negative is None and table.one(words)[0] > 1:
            # whoever has no such record has one other word; with two of them it writes both otherwise
            seen = _examples(table, target.name, other, tuple(target.codes))
            said = f"{text}, all others are the other class: {seen}; look at its codes"
            found.append(Finding("unfit", target.name, said))
            return
        found.append(Finding("note" if 0 < up < rows else "warning", target.name, text))
        return
    if isinstance(target, Classes):
        code = code_sql(table, target.name, target.codes)
        each = [count_where(f"{code} = {k}") for k in range(len(target.names))]
        bad, *counts = table.one(count_where(f"{code} < 0"), *each)
        if bad:
            have = number_of(bad, "record has", "records have")
            text = f"{have} none of the classes: {_examples(table, target.name, f'{code} < 0', target.names)}"
            found.append(_misfits(table, target.name, bad, text))
        text = ", ".join(f"{name} x {count}" for name, count in zip(target.names, counts, strict=True))
        none = [name for name, count in zip(target.names, counts, strict=True) if not count]
        others = f"; of {', '.join(none)} the model learns from other owners' records alone" if none else ""
        found.append(Finding("note" if all(counts) else "warning", target.name, f"records by class: {text}{others}"))
        return
    assert isinstance(target, Range)
    value = value_sql(table, target.name)
    finite = only_where(f"isfinite({value})", value)
    bad, low, high, clipped = table.one(
        count_where(f"NOT isfinite({value})"),
        *(f"{end}({finite})" for end in ("min", "max")),
        count_where(f"isfinite({value}) AND NOT ({value} BETWEEN {target.low!r} AND {target.high!r})"),
    )
    if bad:
        have = number_of(bad, "record has", "records have")
        text = f"{have} no finite number: {_examples(table, target.name, f'NOT isfinite({value})')}"
        found.append(_misfits(table, target.name, bad, text))
    if low is not None and low == high and rows - bad > 1:
        same = f"it is {low:g} in {number_of(rows - bad, 'record')}, all that fit"
        found.append(Finding("warning", target.name, f"{same}; a model learns from targets that differ"))
    if clipped:
        found.append(Finding("note", target.name, f"{clipped} of {rows} values are outside the range"))


def _misfits(table: Table, name: str, bad: int, text: str) -> Finding:
    """A finding on so many records whose target does not fit: they are refused, or count as zero vectors."""
    if table.spelling.misfits == "zero":
        unfit = table.n - bad < FITTING * table.n
        return Finding("unfit" if unfit else "warning", name, zeros_said(bad, table.n, text))
    way = f"correct or remove such records, or let them count as zero vectors: {stating(misfits='zero')}"
    return Finding("refused", name, f"{text}; {way}")


def zeros_said(bad: int, rows: int, text: str) -> str:
    """What the owner of so many of `rows` records whose target does not fit, as `text` says, is told where they count
    as zero vectors: for its eyes alone."""
    stop = f"or stop at such records with {stating(misfits='ask')}"
    if bad == rows:
        return (
            f"NOT ONE of your {number_of(rows, 'record')} fits the target: {text}; NOTHING is learnt of your records, "
            f"which all count as zero vectors; look how the target is spelled, {stop}"
        )
    what = "it counts as the zero vector" if bad == 1 else "each counts as the zero vector"
    return f"{text} (of {rows}); {what}, of which nothing is learnt; correct it, {stop}"


def _number_of_records(table: Table, schema: Schema, rows: int, sizes: Sequence[int], found: list[Finding]) -> None:
    """Those that a run would train on, against the plan's."""
    try:
        training = complete(table, schema).n if schema.missing == "drop" else rows
    except UsageError as error:
        found.append(Finding("refused", "records", error.to_owner))
        return
    if not training:
        found.append(Finding("refused", "records", f"there are none in {table.source}"))
    elif sizes and training not in sizes and training != sum(sizes):
        found.append(Finding("refused", "records", other_sizes(sizes, (training,))))


def copies(table: Table) -> list[Finding]:
    """What is to be said of records that are alike in all columns."""
    rows, columns = table.n, ", ".join(column.sql for column in table.columns)
    different = table.one("count(*)", relation=f"(SELECT DISTINCT {columns} FROM {table.relation})")[0]
    if rows - different <= _MANY_COPIES * rows:
        return []
    text = f"{rows - different} of {rows} are exact copies of others in all columns; the promise is for one of them"
    return [Finding("note", "records", text)]


def _examples(table: Table, name: str, where: str, known: tuple[str, ...] = ()) -> str:
    """Up to three of the values for which a condition holds, the most frequent first, with near known ones."""
    text = table.text(name)
    rows = table.rows(f"{text} AS t, count(*) AS k", f"WHERE {where} GROUP BY 1 ORDER BY k DESC, t LIMIT 3")
    shown = []
    for value, count in rows:
        spelled = "" if value is None else str(value)
        near = next((k for k in known if _letters(k) == _letters(spelled) and k != canonical(spelled)), None)
        shown.append(f"'{spelled[:30]}' x {count}" + (f" (listed as '{near}')" if near else ""))
    return ", ".join(shown)


def _letters(text: str) -> str:
    """A spelling without case, repeated spaces and ways to encode an accent."""
    return " ".join(unicodedata.normalize("NFKC", canonical(text)).casefold().split())
