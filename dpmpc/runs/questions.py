"""Questions and models that stand in files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmpc.data.schema import Schema
from dpmpc.data.written import read_written
from dpmpc.errors import UsageError
from dpmpc.learning.model import read_model
from dpmpc.statistics.scores import Model


def read_queries(path: Path) -> list[str | Mapping[str, Any]]:
    """The questions in a TOML file, `queries = [...]` at its top or under [stats]. Errors: there are none."""
    value = read_written(path, Any, "a questions")
    part = value.get("stats", value) if isinstance(value, dict) else None
    found = part.get("queries") if isinstance(part, dict) else None
    if not isinstance(found, list) or not found or not all(isinstance(item, str | dict) for item in found):
        raise UsageError(f'questions are a list of lines or tables; {path.name} has none; write queries = ["count"]')
    return found


def model_of(run: Path) -> Model:
    """The model of a run, for questions about it. Errors: as `read_model`."""
    read = read_model(run)
    return Model.of(Schema.from_json(read.preprocessing), read.theta, read.weights)
