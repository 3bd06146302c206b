"""One codec for what processes hand each other and run folders keep: frozen dataclasses as JSON values, by msgspec."""

from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec

T = TypeVar("T")


def to_json(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON values: lists for tuples, texts for paths; what has a text of its own
    (`to_text`: a plan, whose spelling is hashed) as that."""
    return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}


def of_json(kind: type[T], value: dict[str, Any]) -> T:
    """The `kind` that `to_json` made these JSON values of; fields that are left out have their defaults.

    Errors: msgspec.ValidationError, a ValueError, for values of other types; what `kind` itself refuses."""
    hints = get_type_hints(kind)
    return kind(**{name: _made(hints[name], part) for name, part in value.items()})


def _plain(value: Any) -> Any:
    return value.to_text() if hasattr(value, "to_text") else msgspec.to_builtins(value, enc_hook=str)


def _made(kind: Any, value: Any) -> Any:
    return kind.from_text(value) if hasattr(kind, "from_text") else msgspec.convert(value, kind, dec_hook=_path)


def _path(kind: type[Any], value: Any) -> Any:
    assert issubclass(kind, Path), kind  # all else is msgspec's
    return kind(value)
