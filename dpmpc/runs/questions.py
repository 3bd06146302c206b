"""Questions and models that stand in files."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.data.schema import Schema
from dpmpc.data.written import read_written
from dpmpc.errors import UsageError
from dpmpc.learning.model import read_model
from dpmpc.runs.folder import run_folder
from dpmpc.statistics.scores import Model


def read_queries(path: Path) -> list[str | Mapping[str, Any]]:
    """The questions in a TOML file, `queries = [...]` at its top or under [stats]. Errors: there are none."""
    value = read_written(path, Any, "a questions")
    part = value.get("stats", value) if isinstance(value, dict) else None
    found = part.get("queries") if isinstance(part, dict) else None
    if not isinstance(found, list) or not found or not all(isinstance(item, str | dict) for item in found):
        raise UsageError(f'questions are a list of lines or tables; {path.name} has none; write queries = ["count"]')
    return found


def flattered(models: Mapping[str, Path | str | Model] | None, data_id: str) -> list[str]:
    """What is to be said of models that were trained on the data of this digest, a line each. `models`: NAME and run's
    folder; of a model without a folder nothing is known."""
    plans = [
        (name, plan_path(run_folder(Path(run)))) for name, run in (models or {}).items() if not isinstance(run, Model)
    ]
    return [
        f"evaluate({name}) is about records that the model may have been trained on: its run has the same data id, so "
        "figures flatter it; those of its own held-out records are in its report"
        for name, path in plans
        if path.is_file() and Plan.read(path).data_id == data_id
    ]


def warn_of(models: Mapping[str, Path | str | Model] | None, data_id: str) -> None:
    """Python warnings of the same."""
    for text in flattered(models, data_id):
        warnings.warn(text, stacklevel=3)


def model_of(run: Path) -> Model:
    """The model of a run, for questions about it. Errors: as `read_model`."""
    read = read_model(run)
    return Model.of(Schema.from_json(read.preprocessing), read.theta, read.weights)
