"""The sizes that a plan says its owners have, and why other records are refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmpc.intake.written import text_of

OTHER_SIZES = "owners hold as many training records as the plan says; an owner has another number; plan again"


def planned_sizes(path: Path) -> tuple[int, ...]:
    """The owners' numbers of records in a plan.json; () for a schema file, which says none, and for a plan
    whose numbers are of places."""
    value = _value(path)
    sizes, promise = value.get("sizes", ()), value.get("promise")
    for content in _sources(value):
        if isinstance(content.get("records"), list):
            sizes = content["records"]  # those that are held out among them
    if sizes and (value.get("capacity") or (isinstance(promise, dict) and promise.get("neighbours") == "person")):
        return ()
    return tuple(size for size in sizes if type(size) is int) if isinstance(sizes, list) else ()


def asks(path: Path) -> bool:
    """Whether a file is a plan of questions, or of training after some."""
    source = _value(path).get("source")
    return isinstance(source, dict) and not {"tables", "study"}.isdisjoint(source)


def holds_out(path: Path) -> bool:
    """Whether a file is a plan that holds records out."""
    source = _value(path).get("source")
    return isinstance(source, dict) and not {"evaluated", "study"}.isdisjoint(source)


def _value(path: Path) -> dict[str, Any]:
    """What a plan says; nothing where it is a schema file, or none: whoever reads it next says why."""
    try:
        value = {} if path.suffix == ".toml" else json.loads(text_of(path, "a plan"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _sources(value: dict[str, Any]) -> list[dict[str, Any]]:
    source = value.get("source")
    return [each for each in source.values() if isinstance(each, dict)] if isinstance(source, dict) else []


def other_sizes(planned: Sequence[int], sizes: Sequence[int]) -> str:
    """Why a run of so many records stops, in a line."""
    return (
        f"owners hold as many training records as the plan says, {_some(planned)}; these are {_some(sizes)}; check "
        "the file and <<test_fraction>>, or plan again"
    )


def _some(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes[:8])) + (f" and {len(sizes) - 8} more" if len(sizes) > 8 else "")
