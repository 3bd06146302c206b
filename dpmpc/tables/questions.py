"""Questions and models that stand in files."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import RecordError, UsageError
from dpmpc.intake.missing import keeping
from dpmpc.intake.staging import held
from dpmpc.intake.table import Table
from dpmpc.intake.written import read_written
from dpmpc.learning.model import read_model
from dpmpc.records.check import check_columns
from dpmpc.records.schema import Schema, checked_bounds, read_bounds
from dpmpc.run.folder import run_folder
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.tables import Tables


def read_queries(path: Path) -> list[str | Mapping[str, Any]]:
    """The questions in a TOML file, `queries = [...]` at its top or under [stats]. Errors: there are none."""
    value = read_written(path, Any, "a questions")
    part = value.get("stats", value) if isinstance(value, dict) else None
    found = part.get("queries") if isinstance(part, dict) else None
    if not isinstance(found, list) or not found or not all(isinstance(item, str | dict) for item in found):
        raise UsageError(f'questions are a list of lines or tables; {path.name} has none; write queries = ["count"]')
    return found


def check_read(table: Table, tables: Tables) -> None:
    """Errors: RecordError where columns that are asked for numbers hold texts that are spelled otherwise than was
    stated, before anything is spent: they would count as missing."""
    asked = [each.name for each in tables.columns.columns if isinstance(each, Quantity) and each.name in tables.reads]
    check_spelled(table, asked, "ask nothing about them")


def check_spelled(table: Table, asked: Sequence[str], way: str) -> None:
    """Errors: as of `check_read`, for these columns; `way`: what else to do."""
    from dpmpc.intake.profile import look
    from dpmpc.records.derive import spelled_otherwise  # which look at records; parties have none

    texts = [name for name in asked if name in table and table[name].kind == "text"]
    if not texts:
        return
    found = look(held(table, texts))[0]
    if odd := spelled_otherwise(replace(found, columns=tuple(c for c in found.columns if c.name in texts))):
        raise RecordError(f"{odd}, or {way}", "an owner's records are spelled otherwise than it stated")


def tell_of(table: Table, tables: Tables, tell: Callable[[str], None] | None = None) -> None:
    """Tells what becomes of the values that questions are about, a line each, for the eyes of the records' owner: in
    nothing that is published. Without `tell`: a Python warning of each column nearly none of whose values fit.

    Errors: RecordError as of `check_read`."""
    check_read(table, tables)
    reads = [name for name in tables.reads if name in table]
    mine = held(keeping(table, tables.columns.listed), reads)
    found = check_columns(tables.columns.as_read(reads), mine, (), tables.columns.open_lists)
    if tell is not None:
        for line in found.lines():
            tell(f"your records: {line}")
        return
    for each in found.found:
        if each.severity == "warning":
            warnings.warn(f"column '{each.column}': {each.text}", stacklevel=3)


def flattered(models: Mapping[str, Path | str | ScoreModel] | None, data_id: str) -> list[str]:
    """What is to be said of models that were trained on the data of this digest, a line each. `models`: NAME and run's
    folder; of a model without a folder nothing is known."""
    plans = [
        (name, plan_path(run_folder(Path(run))))
        for name, run in (models or {}).items()
        if not isinstance(run, ScoreModel)
    ]
    return [
        f"evaluate({name}) is about records that the model may have been trained on: its run has the same data id, so "
        "figures flatter it; those of its own held-out records are in its report"
        for name, path in plans
        if path.is_file() and Plan.read(path).data_id == data_id
    ]


def warn_of(models: Mapping[str, Path | str | ScoreModel] | None, data_id: str) -> None:
    """Python warnings of the same."""
    for text in flattered(models, data_id):
        warnings.warn(text, stacklevel=3)


def model_of(run: Path) -> ScoreModel:
    """The model of a run, for questions about it. Errors: as `read_model`."""
    read = read_model(run)
    return ScoreModel.of(read.schema, read.theta, read.weights)


def asked_of(
    queries: Sequence[str | Mapping[str, Any]],
    schema: Schema | Path | str | None,
    bounds: Mapping[str, Any] | Path | str | None,
    models: Mapping[str, Path | str | ScoreModel] | None,
) -> Tables:
    """The public questions. Errors: neither schema nor bounds, or both; what cannot be asked."""
    if (schema is None) == (bounds is None):
        raise UsageError(
            "what may be asked follows from <<schema>> or <<bounds>>, one of them; give public ones", code="together"
        )
    if schema is not None:
        columns = Columns.of_schema(schema if isinstance(schema, Schema) else Schema.read(Path(schema)))
    else:
        assert bounds is not None
        given = checked_bounds(dict(bounds), "bounds") if isinstance(bounds, Mapping) else read_bounds(Path(bounds))
        columns = Columns.of_bounds(given)
    given_models = (models or {}).items()
    found = {name: model if isinstance(model, ScoreModel) else model_of(Path(model)) for name, model in given_models}
    return Tables.of(columns, queries, None, found)
