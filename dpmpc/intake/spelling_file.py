"""A file that says how an owner's source is spelled: what `Spelling` has, as TOML or JSON. It is its owner's, and
private: units, words and names of columns in it may come from records."""

import dataclasses
import json
import typing
from pathlib import Path
from typing import Any

import msgspec

from dpmpc.errors import UsageError, sayable
from dpmpc.folders import write_file
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.written import read_written, toml_value


def read_spelling(path: Path) -> Spelling:
    """The spelling in a file. Errors: it cannot be read, with the line and the nearest known key; as for `Spelling`."""
    kinds, known = typing.get_type_hints(Spelling), dataclasses.fields(Spelling)
    places = [(each.name, kinds[each.name], each.default) for each in known]
    said = read_written(path, msgspec.defstruct("SpellingFile", places, forbid_unknown_fields=True), "a spelling")
    return Spelling(**{each.name: getattr(said, each.name) for each in known})


def write_spelling(path: Path, spelling: Spelling) -> None:
    """Writes what differs from the default, for its owner alone: TOML; JSON if the file's name ends so. Errors: it
    cannot be written."""
    said: dict[str, Any] = {name: _listed(value) for name, value in spelling.options().items()}
    if path.suffix == ".json":
        text = json.dumps(said, ensure_ascii=False, indent=2) + "\n"
    else:
        lines = (f"{name} = {toml_value(value)}" for name, value in said.items())
        text = "\n".join(("# How these records are spelled: for --spelling. It is private, as they are.", *lines, ""))
    try:
        write_file(path, text)
    except OSError as error:
        raise UsageError(f"an output file must be writable; {sayable(path)}: {error.strerror}; name another") from None


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
