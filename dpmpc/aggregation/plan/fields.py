"""Which fields of two plans differ, where one process has one of them: a refusal carries a mark of each field of the
refuser's plan, and whoever reads it holds the fields of its own against them.

A plan is public among those that are to follow it. A mark is 18 bits of a digest, so a field that differs goes unnamed
once in some 4,000 plans; the processes compare whole digests, and marks decide nothing.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from dpmpc.aggregation.plan.asked import Asked
from dpmpc.aggregation.plan.derivation import derivation

_MARKED = re.compile(r" \[marks? ?([\w-]*)\]?")  # a long reason is cut, and who told it may stand behind
_FOLLOW = ("run_id", "stage_of", "dimension", "part")  # from others: named where nothing else differs
_MOST = 4  # that are named
_WIDE = 3  # characters of a mark


def marks(plan: Asked) -> str:
    """What a refusal says of the plan, for `differing`; it goes into the text as it is."""
    return f" [marks {''.join(sorted({mark for _, mark in _fields(plan)}))}]"


def differing(text: str, plan: Asked) -> str:
    """The text with the names of the fields that this plan has otherwise, in place of another's marks."""

    def named(found: re.Match[str]) -> str:
        if not found[0].endswith("]"):
            return ""
        theirs = {found[1][k : k + _WIDE] for k in range(0, len(found[1]), _WIDE)}
        names = list(dict.fromkeys(name for name, mark in _fields(plan) if mark not in theirs))
        told = [name for name in names if name not in _FOLLOW] or names
        more = f" and {len(told) - _MOST} more" if len(told) > _MOST else ""
        return f" (not as here: {', '.join(told[:_MOST])}{more})" if told else ""

    return _MARKED.sub(named, text)


def _fields(plan: Asked) -> Iterator[tuple[str, str]]:
    """The name and the mark of every field, and of the sources that derive: dpmpc's own, where plans are alike."""
    yield f"the sources that derive, here those of dpmpc {version('dpmpc')}", _mark(derivation(plan))
    whole: dict[str, Any] = json.loads(plan.to_text())
    ((kind, source),) = whole.pop("source").items()
    parts = {**{name: each for name, each in whole.items() if isinstance(each, dict)}, kind: source}
    alone = {name: each for name, each in whole.items() if name not in parts}
    for section, part in (("", alone | {"source": kind}), *parts.items()):
        for name, value in part.items():
            said = json.dumps([section, name, value], sort_keys=True)
            yield name, _mark(said.encode())


def _mark(said: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(said).digest())[:_WIDE].decode()
