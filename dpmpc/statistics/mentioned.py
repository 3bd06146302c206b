"""What questions name, before anything is known of the columns but their names and whether they are of numbers: what a
survey has to find first, and whether the questions can be asked of what it may find."""

from collections.abc import Mapping, Sequence
from itertools import islice, product
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.intake.spelling import composed
from dpmpc.statistics.columns import Bucketed, Column, Columns, Quantity
from dpmpc.statistics.query import parse
from dpmpc.statistics.syntax import WrittenQuestion, one_line, read, text_of

Asked = str | Mapping[str, Any]
_WIDE = 1e30  # of a number of which no bound is known yet
_TRIED = 1 << 10  # ways in which the columns of a question may turn out, at most


def mentioned(asked: Sequence[Asked], names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` that questions are about, in their order. Errors: what is no question."""
    found = {composed(token) for item in asked for token in _words(read(_line(item)))}
    return tuple(name for name in names if composed(name) in found)


def check_may_be_asked(asked: Sequence[Asked], numbers: Sequence[str], texts: Sequence[str]) -> None:
    """Errors: UsageError for a question that cannot be asked whatever a survey finds. `texts`: columns that may turn
    out to be of numbers or of categories; of categories no value is known yet."""
    as_numbers(asked, numbers, texts)


def as_numbers(asked: Sequence[Asked], numbers: Sequence[str], texts: Sequence[str]) -> tuple[str, ...]:
    """Those of `texts` that a question needs to be of numbers, in their order. Errors: as `check_may_be_asked`."""
    needed = {name for item in asked for name in _needed(_line(item), mentioned((item,), texts), numbers, texts)}
    return tuple(name for name in texts if name in needed)


def _needed(line: str, open_ones: Sequence[str], numbers: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Those of the open columns that are of numbers where a question can be asked; as few as may be."""
    closest: UsageError | None = None
    for kinds in islice(product((_hashed, _wide), repeat=len(open_ones)), _TRIED):
        made = dict(zip(open_ones, kinds, strict=True))
        columns = Columns(tuple(
            made.get(name, _wide if name in numbers else _hashed)(name) for name in (*numbers, *texts)
        ))  # fmt: skip
        try:
            parse(line, columns)
        except UsageError as error:
            closest = error if closest is None or _read(error) > _read(closest) else closest
        else:
            return [name for name, kind in made.items() if kind is _wide]
    assert closest is not None
    if closest.code == "choice":  # of levels
        raise UsageError(
            "which values a column has that a survey is to find is not known before it; got "
            f"{one_line(line)}; state them in <<bounds>>, or ask 'by' the column",
            code="column",
        ) from None
    raise closest


def askable(asked: Sequence[Asked], columns: Columns) -> tuple[list[Asked], list[str]]:
    """The questions that can be asked of these columns, and why the others cannot, a line each. Public."""
    kept, left = list[Asked](), list[str]()
    for item in asked:
        try:
            parse(_line(item), columns)
            kept.append(item)
        except UsageError as error:
            left.append(f"not asked: {_line(item)}: {error.message.partition(chr(10))[0]}")
    return kept, left


def _line(item: Asked) -> str:
    return item if isinstance(item, str) else text_of(item)


def _read(error: UsageError) -> int:
    """How much of a question was read before it was refused: where the caret stands."""
    return error.message.rpartition("\n")[2].find("^")


def _words(question: WrittenQuestion) -> list[str]:
    by = () if question.by is None else (question.by,)
    return [token.text for token in (*question.parts, *by, *(each[0] for each in question.conditions))]


def _hashed(name: str) -> Column:
    return Bucketed(name, 2, (0, 1))


def _wide(name: str) -> Column:
    return Quantity(name, -_WIDE, _WIDE)
