"""SQL in which an expression that stands in several places is worked out once a row."""

import re
import secrets
from collections import Counter

_SHORT = 100  # characters of an expression that may as well stand there twice
# No text of a schema or a file can hold a mark: it is drawn anew in each process. A text that ended an expression's
# mark early would leave its literal and become SQL.
_SECRET = secrets.token_hex(16)
_BEGIN, _END = f"/*{_SECRET}{{*/", f"/*}}{_SECRET}*/"
_INNERMOST = re.compile(
    rf"{re.escape(_BEGIN)}((?:(?!{re.escape(_BEGIN)}|{re.escape(_END)}).)*){re.escape(_END)}", re.DOTALL
)


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
