"""SQL in which an expression that stands in several places is worked out once a row."""

import re
import secrets
from collections import Counter

from dpmpc.lazy import regex

_SHORT = 100  # characters of an expression that may as well stand there twice
# No text of a schema or a file can hold a mark: it is drawn anew in each process. A text that ended an expression's
# mark early would leave its literal and become SQL.
_SECRET = secrets.token_hex(16)
_BEGIN, _END, _BETWEEN = f"/*{_SECRET}{{*/", f"/*}}{_SECRET}*/", f"/*|{_SECRET}*/"
# Both marks begin with a slash: what is asked at each of a million characters takes longer than the rest.
_INNERMOST = regex(rf"{re.escape(_BEGIN)}((?:[^/]++|(?!{re.escape(_BEGIN)}|{re.escape(_END)})/)*+){re.escape(_END)}")


def once(sql: str) -> str:
    """An expression that `worked_out` names."""
    return f"{_BEGIN}{sql}{_END}"


def worked_out(select: str, relation: str) -> tuple[str, str]:
    """(the same with names in place of what is to be worked out once, the relation with these names): an expression
    that stands in a query for each time that it is asked takes DuckDB longer to plan than to run. What stands there
    once, or is short, stays."""
    select, named = _named(select)
    for names in named:
        more = ", ".join(f"{sql} AS {name}" for name, sql in names.items())
        relation = f"(SELECT *, {more} FROM {relation})"
    return select, relation


def selected(select: str, relation: str) -> str:
    """The relation of what is selected from another, in which `once` holds too."""
    select, relation = worked_out(select, relation)
    return f"(SELECT {select} FROM {relation})"


def asked(select: str, relation: str, tail: str = "") -> str:
    """The query SELECT select FROM relation tail, in which `once` holds: what stands in both is worked out once too."""
    both, relation = worked_out(f"{select}{_BETWEEN}{tail}", relation)
    select, tail = both.split(_BETWEEN)
    return f"SELECT {select} FROM {relation} {tail}"


def bound(sql: str) -> str:
    """The same in one expression, which may stand within a lambda."""
    sql, named = _named(sql)
    for name, value in [item for names in reversed(named) for item in names.items()]:
        sql = let(name, value, sql)
    return sql


def _named(sql: str) -> tuple[str, list[dict[str, str]]]:
    """(the same with names in place of what is to be worked out once, what each stands for: at each level, those before
    it may stand in it)."""
    named = list[dict[str, str]]()
    for level in range(9):
        found = Counter(_INNERMOST.findall(sql))
        often = [each for each in found if found[each] > 1 and len(each) > _SHORT]
        names = {each: f'"(once {level}.{k})"' for k, each in enumerate(often)}
        sql = _INNERMOST.sub(lambda match: names.get(match[1], match[1]), sql)  # noqa: B023  called at once
        if names:
            named.append({name: each for each, name in names.items()})
        if not found:
            break
    return sql, named


def let(name: str, value: str, sql: str) -> str:
    """SQL in which a name stands for a value, which is worked out once, and where it is asked for: what stands
    in a query several times DuckDB plans several times."""
    return f"list_transform([{value}], lambda {name}: {sql})[1]"
