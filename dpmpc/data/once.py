"""SQL in which an expression that stands in several places is worked out once a row."""

import re
from collections import Counter

_SHORT = 100  # characters of an expression that may as well stand there twice
_BEGIN, _END = "/*once{*/", "/*}once*/"
_INNERMOST = re.compile(rf"{re.escape(_BEGIN)}((?:(?!/\*once\{{|/\*\}}once).)*){re.escape(_END)}", re.DOTALL)


def once(sql: str) -> str:
    """An expression that `worked_out` names."""
    return f"{_BEGIN}{sql}{_END}"


def worked_out(select: str, relation: str) -> tuple[str, str]:
    """(the same with names in place of what is to be worked out once, the relation with these names): an expression
    that stands in a query for each time that it is asked takes DuckDB longer to plan than to run. What stands there
    once, or is short, stays."""
    for level in range(9):
        found = Counter(_INNERMOST.findall(select))
        names = {sql: f'"(once {level}.{k})"' for k, sql in enumerate(found) if found[sql] > 1 and len(sql) > _SHORT}
        select = _INNERMOST.sub(lambda match: names.get(match[1], match[1]), select)  # noqa: B023  called at once
        if names:
            more = ", ".join(f"{sql} AS {name}" for sql, name in names.items())
            relation = f"(SELECT *, {more} FROM {relation})"
        if not found:
            break
    return select, relation
