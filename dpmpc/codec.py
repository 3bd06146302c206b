"""One codec for what processes hand each other and run folders keep: frozen dataclasses as JSON values, by msgspec.

What a file holds is of exactly these fields, each of exactly its type: another one is refused by its name. A class that
is spelt in a way of its own says so: `to_text` and `from_text` (a plan, whose spelling is hashed), or `to_json` and
`from_json`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T")
_SHOWN = 40  # characters of what was found, in an error
_AS_THEY_ARE = frozenset((bool, int, float, str, type(None)))  # a plan has a number for each of its owners


class MisfitError(ValueError):
    """What is no such value: whose field, and the rule that it breaks, as the middle of a line. `way`: out of it, where
    it is not to get the value again."""

    def __init__(self, text: str, way: str = "") -> None:
        super().__init__(text)
        self.way = way


def loads(text: str | bytes) -> Any:
    """The value of a JSON text. Errors: ValueError, also of what is nested deeper than it can be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def to_json(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON values: lists for tuples, texts for paths."""
    return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}


def of_json(kind: type[T], value: Any, what: str | None = None, *, whole: bool = False, **made: Any) -> T:
    """The `kind` that `to_json` made these JSON values of; fields that are left out have their defaults, or, of what
    must be `whole`, are missed. `what`: what to call it in an error. `made`: fields that the caller has read.

    Errors: MisfitError with the field's name; what `kind` itself refuses."""
    what = what or f"a {kind.__name__}"
    if not isinstance(value, Mapping):
        raise MisfitError(f"{what} is an object; got {_shown(value)}")
    known = {each.name: each for each in fields(cast(Any, kind)) if each.name not in made}
    only_keys(value, known, what)
    needed = [name for name, each in known.items() if whole or each.default is each.default_factory is MISSING]
    if missing := set(needed) - value.keys():
        raise MisfitError(f"{what} has no {min(missing)}")
    hints = _hints(cast(Any, kind))
    return kind(**{name: _made(hints[name], part, what, name, whole) for name, part in value.items()}, **made)


def only_keys(value: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    """Errors: MisfitError for the first key that is none of `known`, with the nearest one."""
    names = list(known)
    for key in sorted(value.keys() - set(names)):
        near = get_close_matches(key, names, 1)
        way = f"did you mean '{near[0]}'" if near else "take it out"
        raise MisfitError(f"{what} has no key {key[:_SHOWN]!r}", way)


def _plain(value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:
        return value
    if hasattr(value, "to_text"):
        return value.to_text()
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return to_json(value)
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return msgspec.to_builtins(value, enc_hook=str)


def _made(kind: Any, value: Any, what: str, name: str, whole: bool) -> Any:
    inner = _without_none(kind)
    if value is None and inner is not kind:
        return None
    if hasattr(inner, "from_text"):
        return inner.from_text(value)
    if hasattr(inner, "from_json"):
        return inner.from_json(value)
    if is_dataclass(inner):
        return of_json(cast(Any, inner), value, f"{what}'s {name}", whole=whole)
    each, *others = get_args(inner) or (None,)
    if others in ([], [...]) and isinstance(value, list) and (hasattr(each, "from_json") or is_dataclass(each)):
        found = [_made(each, one, what, name, whole) for one in value]
        return tuple(found) if get_origin(inner) is tuple else found
    if get_origin(inner) is Literal and value not in get_args(inner):
        raise MisfitError(f"{what} has {name} {_shown(value)}, which is one of {', '.join(map(str, get_args(inner)))}")
    try:
        return msgspec.convert(value, kind, dec_hook=_path)
    except msgspec.ValidationError as error:
        text = str(error)
        raise MisfitError(f"{what} has {name} {_shown(value)}: {text[:1].lower()}{text[1:]}") from None


def _path(kind: type[Any], value: Any) -> Any:
    assert issubclass(kind, Path), kind  # all else is msgspec's
    return kind(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@lru_cache(maxsize=64)
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _without_none(kind: Any) -> Any:
    """The type without None, where it is of one type beside it."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    inner = [each for each in get_args(kind) if each is not type(None)]
    return inner[0] if len(inner) == 1 else kind
