"""Files that people write, JSON or TOML, checked against a class: types, ranges, unknown keys, and the place at fault.

msgspec does the checking, and makes the JSON schema for editors from the same classes.
"""

import contextlib
import difflib
import json
import re
import stat
from datetime import date, time
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from dpmpc.errors import UsageError, sayable
from dpmpc.lazy import regex

Value = TypeVar("Value")
_PLACE = regex(r" - at `(?:key in )?\$?(.*)`$")
_KEYS = r"""(?:[\w-]+|"[^"\\]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"\\]*"|'[^']*'))*"""
_STATES = regex(rf"\s*(\[+\s*{_KEYS}\s*\]+|{_KEYS}(?=\s*=))")  # a line of TOML: a table, or the key of a value
_BACK = 1000  # lines that a value is looked for to have
_LARGEST = 64 << 20  # bytes; a schema of a million columns has as many
_STEP = regex(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def read_written(path: Path, kind: type[Value], what: str) -> Value:
    """The value in a file that a person wrote: TOML if its name ends so, else JSON. `what` names it: "a schema".

    Errors: it cannot be read; it is not of this kind, with the line and the nearest known key.
    """
    try:
        text = text_of(path, what)
    except OSError as error:
        raise UsageError(
            f"{sayable(what)} file must be readable; {sayable(path)}: {error.strerror}; check the path", code="path"
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{sayable(what)} file is UTF-8; {path.name} is not at byte {sayable(error.start)}; save it as UTF-8",
            code="file",
        ) from None
    return written(text, kind, what, path.name, toml=path.suffix == ".toml")


def no_pipe(path: Path, what: str) -> Path:
    """The path. Errors: it is a pipe or a device; whoever opens a pipe that nobody writes to waits for ever. OSError
    where there is nothing."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a folder says so itself
        raise UsageError(
            f"{sayable(what)} file is read more than once; {sayable(path)} is a pipe or a device; save it as a file",
            code="path",
        )
    return path


def text_of(path: Path, what: str, encoding: str = "utf-8-sig") -> str:
    """The text of a file that is read in one piece. Errors: as `no_pipe`; it is larger than any of its kind;
    UnicodeDecodeError."""
    size = no_pipe(path, what).stat().st_size
    if size > _LARGEST:
        raise UsageError(
            f"{sayable(what)} file has up to {_LARGEST >> 20} MB; {sayable(path)} has {sayable(size):,} bytes; name "
            "the right file",
            code="file",
        )
    return path.read_text(encoding=encoding)


def written(text: str, kind: type[Value], what: str, name: str, *, toml: bool = False) -> Value:
    """The value in a text that a person wrote. Errors: as `read_written`."""
    try:
        read = _of_toml(text) if toml else json.loads(text, object_pairs_hook=_once, parse_constant=_finite)
        value = _plain(read)
    except (ValueError, RecursionError) as error:
        language = "TOML" if toml else "JSON"
        said = "it is nested too deep" if isinstance(error, RecursionError) else _twice(str(error), text)
        raise UsageError(
            f"{sayable(what)} file is {sayable(language)}; {sayable(name)}: {sayable(said)}; correct it", code="file"
        ) from None
    return checked(value, kind, what, name, text)


def _of_toml(text: str) -> dict[str, Any]:
    """Errors: ValueError."""
    import tomllib  # a plan and a schema are JSON

    return tomllib.loads(text)


def _twice(said: str, text: str) -> str:
    """What tomllib says of a key that is stated twice, with the key; all else as it is."""
    found = re.match(r"Cannot (?:overwrite a value|declare .* twice)( \(at (?:line (\d+)|end).*)", said)
    if found is None:
        return said
    place, at, lines = found[1], found[2], text.rstrip().split("\n")
    end = int(at) if at else len(lines)
    for first in range(end - 1, max(-1, end - 1 - _BACK), -1):
        if (states := _STATES.match(lines[first])) is not None:
            with contextlib.suppress(ValueError):  # a line inside of a value
                _of_toml("\n".join(lines[first:end]))
                return f"{states[1]} is there twice{place}"
    return said


_LONGEST = 4000  # characters of a text; an error may quote it


def _plain(value: Any, at: str = "the file") -> Any:
    """The same with dates of TOML as the texts that JSON would have. Errors: ValueError for a number or a text that is
    larger than any use of it, with its place."""
    if isinstance(value, dict):
        return {key: _plain(part, f"{at}.{key}" if at != "the file" else key) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, f"{at}[{k}]") for k, part in enumerate(value)]
    if type(value) is int and value.bit_length() > 63:
        raise ValueError(f"whole numbers have 64 bits; {sayable(at)} has {sayable(value.bit_length() + 1)}")
    if isinstance(value, str) and len(value) > _LONGEST:
        raise ValueError(f"a text has up to {_LONGEST} characters; {sayable(at)} has {len(value)}")
    return value.isoformat() if isinstance(value, date | time) else value


def checked(value: Any, kind: type[Value], what: str, name: str, text: str = "") -> Value:
    """`value` as a `kind`. Errors: it is none, with the place in `text` where that can be found."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message = str(error)
        found = _PLACE.search(message)
        place = _keyed(value, kind, found[1]) if found else ""
        message = message[: found.start()] if found else message
        raise UsageError(
            f"{sayable(what)} is checked when it is read; {sayable(_where(name, place, text))}: "
            f"{sayable(_said(message, kind))}",
            code="file",
        ) from None


def _keyed(value: Any, kind: Any, place: str) -> str:
    """The place with the key of a table's part that msgspec calls [...]: the first that is no better alone."""
    before, mark, after = place.partition("[...]")
    steps = [key or int(index) for key, index in _STEP.findall(before)]
    part = value
    for step in steps:
        part = part[step]
    if not mark or not isinstance(part, dict):
        return place
    for key, each in part.items():
        trial: Any = {key: each}
        for k in reversed(range(len(steps))):
            outer: Any = value
            for step in steps[:k]:
                outer = outer[step]
            if isinstance(outer, list):
                trial = [*outer[: steps[k]], trial, *outer[int(steps[k]) + 1 :]]
            else:
                trial = {**outer, steps[k]: trial}
        try:
            msgspec.convert(trial, kind)
        except msgspec.ValidationError as error:
            if str(error).endswith(f"{place}`"):
                return f"{before}.{key}{after}"
    return place


def json_schema(kind: Any) -> dict[str, Any]:
    """The JSON schema (2020-12) of a class, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(kind)}


def _said(message: str, kind: Any) -> str:
    """msgspec's words as rule; value; way out."""
    unknown = re.search(r"Object contains unknown field `(.*)`", message)
    if unknown:
        near = difflib.get_close_matches(unknown[1], known_keys(kind), 1, 0.5)
        if near == [unknown[1]]:
            return f"'{unknown[1]}' is no key of this section; move it to one that has it"
        return f"'{unknown[1]}' is no known key; " + (f"did you mean '{near[0]}'?" if near else "leave it out")
    missing = re.search(r"Object missing required field `(.*)`", message)
    if missing:
        return f"'{missing[1]}' is missing; add it"
    return message[:1].lower() + message[1:].replace("`", "") + ("" if ";" in message else "; correct it")


def known_keys(kind: Any) -> list[str]:
    """The keys that a class, and the classes inside it, know."""

    def keys(part: Any) -> set[str]:
        if isinstance(part, list):
            return set().union(*map(keys, part))
        if not isinstance(part, dict):
            return set()
        return set(part.get("properties", ())).union(*(keys(value) for value in part.values()))

    return sorted(keys(msgspec.json.schema(kind)))


def _where(name: str, place: str, text: str) -> str:
    """The file, the line if it can be found, and the path of keys."""
    steps = [key or index for key, index in _STEP.findall(place)]
    line = _line(text, steps)
    path = "".join(f"[{step}]" if step.isdigit() or step == "..." else f".{step}" for step in steps).lstrip(".")
    return name + (f", line {line}" if line else "") + (f", {path}" if path else "")


def _line(text: str, steps: list[str]) -> int | None:
    """The line on which the last step's value starts, in JSON or TOML. None if it cannot be told."""
    position, before = 0, ""
    for step in steps:
        if step == "...":
            break
        if step.isdigit():
            tables = [found.end() for found in re.finditer(rf"^\[\[{re.escape(before)}\]\]", text, re.M)]
            position = tables[int(step)] if len(tables) > int(step) and before else _element(text, position, int(step))
        else:
            key = re.compile(
                rf'(?:"{re.escape(step)}"\s*:|^\s*"?{re.escape(step)}"?\s*=|^\s*\[+{re.escape(step)}\]+)', re.M
            )
            found = key.search(text, position)
            position, before = -1 if found is None else found.end(), step
        if position < 0:
            return None
    return text.count("\n", 0, position) + 1 if text and steps else None


def _element(text: str, position: int, index: int) -> int:
    """Where element `index` of the JSON list that starts after `position` is; -1 if there is none."""
    decoder = json.JSONDecoder()
    at = text.find("[", position) + 1
    try:
        for _ in range(index):
            at = len(text[:at]) + re.match(r"[\s,]*", text[at:]).end()  # type: ignore[union-attr]
            at = decoder.raw_decode(text, at)[1]
        return at + re.match(r"[\s,]*", text[at:]).end()  # type: ignore[union-attr]
    except ValueError:
        return -1


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [key for key, _ in pairs]
        raise ValueError(f"the key '{next(key for key in names if names.count(key) > 1)}' is there twice")
    return value


def _finite(text: str) -> float:
    raise ValueError(f"numbers are finite, got {sayable(text)}")


def toml_value(value: Any) -> str:
    """A text, number, truth or list of these as TOML has it: JSON's, but for one character that TOML escapes too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
