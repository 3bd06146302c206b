"""What columns of texts read as: of those that have few spellings it is worked out once a spelling, not once a record;
of others in a small table it is planned once for all that are spelled alike."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.intake.coded import CodedColumn, codes_of
from dpmpc.intake.dictionary import few_of, figureless
from dpmpc.intake.once import bound, once
from dpmpc.intake.reading import literal
from dpmpc.intake.table import Block, Table
from dpmpc.lazy import dataclass

_FIELD = '"(v)"'  # a column's, where an expression stands for several columns
_LONG = 500  # characters of an expression that takes longer to plan than a list does
_FEW = 2048  # records, that DuckDB reads at once: of more it takes longer to work out a list's fields than to plan
_SEVERAL, _AT_ONCE = 3, 256  # columns of a list
Asked = Callable[[Table], Sequence[str]]


@dataclass(frozen=True)
class ColumnReader:
    """What is asked of a database about one column, and `read`, which makes of the answers what the column's own
    expressions would have given. `values`: of each expression, by spelling or code, what is missing at an end; () where
    the expressions themselves are asked."""

    expressions: tuple[str, ...]
    values: tuple[NDArray[Any], ...] = ()

    def read(self, block: Block) -> list[NDArray[Any]]:
        """One array (n,) an expression."""
        return [values[block[0]] for values in self.values] if self.values else block

    def codes(self, block: Block) -> CodedColumn | None:
        """What was read of a column that is asked for one number, by codes; None where it is otherwise."""
        return CodedColumn(block[0], self.values[0]) if len(self.values) == 1 else None


def readers(table: Table, asked: Mapping[str, Asked]) -> dict[str, ColumnReader]:
    """Of each column, a reader of the expressions (as of `Table.blocks`) that `asked` makes over it and nothing else.
    Cost: for texts that lie ready, one reading of the column more. Errors: the source cannot be read."""
    found = few_of(table, list(asked))
    own = {name: [text for text, _ in texts if text is not None] for name, texts in found.items() if texts}
    made = _once_a_spelling(table, own, asked) if own else {}
    made |= _others(table, [name for name in asked if name not in made], asked)
    return {name: made[name] for name in asked}


def _once_a_spelling(table: Table, own: Mapping[str, list[str]], asked: Mapping[str, Asked]) -> dict[str, ColumnReader]:
    """Readers of columns that have these texts. One query has each expression once, for the texts of all columns: what
    it costs is to be parsed."""
    texts = sorted({text for each in own.values() for text in each})
    listed = ", ".join(map(literal, texts))
    plain = figureless(texts)  # then there is far less to parse
    every = replace(
        table,
        columns=tuple(replace(table[name], sql="v", figureless=plain) for name in own),
        relation=f"(SELECT unnest([{listed}, NULL]) AS v)",
        unchanged=lambda: None,
        repair=None,
    )
    wanted = {name: tuple(asked[name](every)) for name in own}
    expressions = tuple(dict.fromkeys(each for some in wanted.values() for each in some))
    places, *answers = _joined(every.blocks([_place("v", listed), *expressions]))
    answered = dict(zip(expressions, answers, strict=True))
    row = {texts[k] if k >= 0 else None: at for at, k in enumerate(places.tolist())}
    made = {}
    for name, mine in own.items():
        rows = np.array([row[text] for text in (*mine, None)])
        place = _place(table[name].sql, ", ".join(map(literal, mine)))
        made[name] = ColumnReader((place,), tuple(answered[each][rows] for each in wanted[name]))
    return made


def _others(table: Table, names: Collection[str], asked: Mapping[str, Asked]) -> dict[str, ColumnReader]:
    """Readers of columns that have many spellings. Of few records what all columns' expressions have in common is asked
    once, of a list of their fields: to plan it takes DuckDB longer than to work it out."""
    own = {name: tuple(asked[name](table)) for name in names}
    texts = [name for name in names if table[name].kind == "text" and not table[name].value]
    if len(texts) > 1 and not table.parsed and table.n <= _FEW:
        as_one = {name: asked[name](replace(table, columns=(replace(table[name], sql=_FIELD),))) for name in texts}
        alike = defaultdict[object, list[tuple[str, int]]](list)
        for name in texts:
            for place, each in enumerate(as_one[name]):
                if len(each) > _LONG:
                    alike[table[name].type, each].append((name, place))
        for some in alike.values():
            for first in range(0, len(some), _AT_ONCE):
                at_once = some[first : first + _AT_ONCE]
                said = as_one[at_once[0][0]][at_once[0][1]]
                fields = ", ".join(table[name].sql for name, _ in at_once)
                listed = once(f"list_transform([{fields}], lambda {_FIELD}: {bound(said)})")
                for k, (name, place) in enumerate(at_once if len(at_once) >= _SEVERAL else ()):
                    own[name] = (*own[name][:place], f"{listed}[{k + 1}]", *own[name][place + 1 :])
    return {name: _kept(table, own[name]) or ColumnReader(own[name]) for name in names}


def _kept(table: Table, expressions: Sequence[str]) -> ColumnReader | None:
    """A reader by codes of what one expression gave, where the table keeps that."""
    found = [table.kept.of(table.relation, expression) for expression in expressions]
    if len(found) != 1 or found[0] is None or found[0].values is None:
        return None
    return ColumnReader((codes_of(expressions[0]),), (found[0].values,))


def read_columns(
    table: Table, readers: Sequence[ColumnReader], rows: int, quick: bool = False
) -> Iterator[list[list[NDArray[Any]]]]:
    """What each reader is to read (`ColumnReader.read`), for so many rows of a table at a time, in order; the last are
    fewer. `quick`: as of `Table.blocks`."""
    expressions = [expression for each in readers for expression in each.expressions]
    for block in _in_blocks(table.blocks(expressions, quick=quick), rows):
        each = iter(block)
        yield [[next(each) for _ in reader.expressions] for reader in readers]


def _in_blocks(blocks: Iterator[Block], rows: int) -> Iterator[Block]:
    """The same rows, so many at a time, however they came; the last are fewer."""
    held_back, many = list[Block](), 0
    for block in blocks:
        begin = 0
        while len(block[0]) - begin >= rows - many:
            part = [values[begin : begin + rows - many] for values in block]
            yield [np.concatenate(each) for each in zip(*held_back, part, strict=True)] if held_back else part
            begin, many, held_back = begin + rows - many, 0, []
        if begin < len(block[0]):
            held_back.append([values[begin:] for values in block])
            many += len(block[0]) - begin
    if held_back:
        yield [np.concatenate(each) for each in zip(*held_back, strict=True)] if len(held_back) > 1 else held_back[0]


def _joined(blocks: Iterable[Block]) -> list[NDArray[Any]]:
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


def _place(text: str, listed: str) -> str:
    """SQL for which of the listed spellings a text is; -1 for none."""
    return f"CAST(coalesce(enum_code(TRY_CAST({text} AS ENUM({listed}))), -1) AS INTEGER)"
