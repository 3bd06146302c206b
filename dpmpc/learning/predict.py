"""Predictions of a trained model for new records. The model is public; the records stay on this machine."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError, number_of, some
from dpmpc.intake.missing import keeping
from dpmpc.intake.spelling import PLAIN, Spelling, composed
from dpmpc.intake.staging import held_where_wide
from dpmpc.intake.table import Table
from dpmpc.lazy import dataclass
from dpmpc.learning.class_weights import corrected
from dpmpc.learning.matrix import matrix_of
from dpmpc.learning.model import read_model
from dpmpc.learning.softmax import predicted
from dpmpc.learning.task import TASKS
from dpmpc.outcome import Bars, Line, Number, Shape
from dpmpc.records.blocks import allocate
from dpmpc.records.loading import CsvFile, Source, opened
from dpmpc.records.mapping import Mapping as Mapped
from dpmpc.records.mapping import Unfit
from dpmpc.records.rows import Rows
from dpmpc.records.schema import Classes, Labels
from dpmpc.show.objects import Sheet, Shown
from dpmpc.show.tables import of_columns

Floats = NDArray[np.float64]
_ROWS = 1 << 14


@dataclass(frozen=True)
class Predictions(Shown):
    """What a model says of n records.

    `columns`: name -> n values: the prediction (class, or value in the target's own units), and for classes the
    probability of the positive one, or of each of more than two. `ids`: the columns of the records that were asked for
    beside, as they stand there. Row k is of record k of the source. `score`: (name, value) against the target column,
    if the records have it. `counts`: what of the records did not fit the model's schema.
    """

    columns: dict[str, NDArray[Any]]
    score: tuple[str, float] | None
    counts: tuple[Unfit, ...] = ()
    base: float | None = None  # the share of the commonest class among the records, beside an accuracy
    unused: tuple[str, ...] = ()  # columns of the records that the model does not read
    left_out: tuple[str, ...] = ()  # those of them that were left out as it was trained
    scored: int = 0  # of how many records the score is: those whose target is known
    unfit: str = ""  # the target that the records have, where not one of its values fits
    ids: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def joined(self) -> dict[str, NDArray[Any]]:
        """The predictions beside what tells whose they are: `ids`, or, where none were asked for, the number of each
        record, from 1."""
        if self.ids:
            return {**self.ids, **self.columns}
        name = next(name for name in ("row", "row_number", "number_of_row") if name not in self.columns)
        return {name: np.arange(1, self.n + 1), **self.columns}

    @property
    def line(self) -> str | None:
        """How good the predictions are, with what to hold it against; None where the records have no target."""
        if self.score is None and self.unfit:
            return f"no figure: not one of {number_of(self.n, 'record')} has a '{self.unfit}' that the model knows"
        if self.score is None:
            return None
        name, score = self.score
        where = number_of(self.n, "record") if self.scored == self.n else f"{self.scored} of {self.n} records"
        if name != "accuracy":
            return f"{name} on {where}: {score:.5g}"
        beside = "" if self.base is None else f"; always saying the commonest class has {self.base:.4f}"
        return f"{name} on {where}: {score:.4f}{beside}"

    @property
    def beyond(self) -> str | None:
        """Which columns of the records are not used; None where all are."""
        new = [name for name in self.unused if name not in self.left_out]
        known = [name for name in self.unused if name in self.left_out]
        parts = [f"{some(known)} (left out in training)"] if known else []
        parts += [f"{some(new)} (the model was trained without)"] if new else []
        return f"not used: {'; '.join(parts)}" if parts else None

    def sheet(self) -> Sheet:
        """The first of them, how good they are, and how they are spread."""
        notes = [text for text in (self.line, self.beyond, self.alone and f"every record is '{self.alone}'") if text]
        shown = of_columns({**self.ids, **self.columns}, 10)
        title = f"Predictions of {number_of(self.n, 'record')}"
        beside = {**self.ids, **self.columns}
        return Sheet(title, (), (shown,), self._pictures, lambda: beside, tuple(notes), ".frame() has all")

    def _pictures(self) -> Sequence[Shape]:
        """How often each class is said, or values fall within each tenth of their range."""
        name, values = next(iter(self.columns.items()))
        if values.dtype == object:
            said, counts = np.unique(values.astype(str), return_counts=True)
            labels = said.tolist()
        else:
            counts, edges = np.histogram(values, 10)
            labels = [f"{a:.4g} to {b:.4g}" for a, b in itertools.pairwise(edges)]
        lines = [
            Line((label,), "count", Number(float(count), None, None, None))
            for label, count in zip(labels, counts, strict=True)
        ]
        return (Bars(f"predicted {name}", tuple(lines)),)

    @property
    def alone(self) -> str | None:
        """The class that is said of every record, of several; None where there are two, or a quantity."""
        said = next(iter(self.columns.values()))
        alike = self.n > 1 and said.dtype == object and bool(np.all(said == said[0]))
        return str(said[0]) if alike else None

    @property
    def n(self) -> int:
        return len(next(iter(self.columns.values())))


def predict(
    run: Path | str, source: Source, *, keep: Sequence[str] = (), memory: int | None = None, spelling: Spelling = PLAIN
) -> Predictions:  # fmt: skip
    """The predictions of the model in the run directory `run` for the records of a source, which needs the model's
    feature columns only. A path here is a file of any kind; `CsvFile` is CSV whatever its name. A record whose target
    is missing or does not fit is predicted too, and counts in no figure, unless the spelling says to ask. keep: columns
    of the records that stand beside their predictions, such as an id by which these are joined back.

    Errors: no model, no such source, a missing column, values that are no numbers where numbers are due.
    """
    model = read_model(Path(run))
    schema = model.schema
    target, task = schema.target, TASKS[schema.task]
    with opened(source, memory=memory, spelling=spelling.among_others, names=(*schema.names, *keep)) as (table, _):
        ids = _kept(table, [keep] if isinstance(keep, str) else keep)
        read = {composed(name) for name in (*(column.name for column in schema.columns), target.name)}
        unused = tuple(name for name in table.names if composed(name) not in read and name not in ids)
        there = target.name in table
        known = there and table[target.name].kind in ("number", "text")
        Mapped(table, schema, labels=known)  # refuses what does not fit before anything is read
        names = [column.name for column in schema.columns] + [target.name] * known
        own = held_where_wide(keeping(table, schema.listed), names)
        made = Rows(Mapped(own, schema, labels=known, whole=True), ball=False)
        places, design, scores, truth = np.arange(_ROWS), schema.design, [], []
        into = allocate(_ROWS, design.width, "double", None, design)
        for block, labels in made.mapping.raw():
            for begin in range(0, len(labels), _ROWS):
                part = [values[begin : begin + _ROWS] for values in block]
                n = len(part[0])
                made.into(into, part, np.zeros(n), places[:n])
                scores.append(task.link(matrix_of(into, 0, n).scores(model.theta)))
            truth.append(labels)
    found = _said(
        target, np.concatenate(scores), np.concatenate(truth) if known else None, tuple(made.counts.values()),
        model.weights,
    )  # fmt: skip
    unfit = target.name if there and not known else found.unfit
    if both := [name for name in ids if name in found.columns]:
        raise UsageError(
            f"<<keep>> names columns that have not the name of a prediction; got {some(both)}; leave it out, or name "
            "the column otherwise in the records",
            code="unique",
        )
    return replace(found, unused=unused, left_out=model.left_out, unfit=unfit, ids=ids)


def _kept(table: Table, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Columns as they stand in the source: numbers of a frame as numbers, all else as texts. Errors: no such column."""
    columns = [table[name] for name in dict.fromkeys(names)]
    if not columns:
        return {}
    plain = [each.kind == "number" and not each.type.upper().startswith("DECIMAL") for each in columns]
    asked = (
        each.sql if number else f"CAST({each.sql} AS VARCHAR)" for each, number in zip(columns, plain, strict=True)
    )
    values = list(zip(*table.rows(", ".join(asked)), strict=True)) or [()] * len(columns)
    found = {}
    for each, number, column in zip(columns, plain, values, strict=True):
        found[each.name] = np.array(column, dtype=None if number and None not in column else object)
    return found


def _said(
    target: Any, scores: Floats, truth: Floats | None, counts: tuple[Unfit, ...], weights: tuple[float, ...]
) -> Predictions:
    score, base = None, None
    unfit = ""
    if truth is not None and np.isnan(truth).all():
        truth, unfit = None, target.name
    there = slice(None) if truth is None else ~np.isnan(truth)
    true = np.empty(0) if truth is None else truth[there]
    if isinstance(target, Classes):
        chosen, each = predicted(scores), corrected(target, scores, weights)
        columns: dict[str, NDArray[Any]] = {target.name: np.array(target.names, dtype=object)[chosen]}
        columns |= {f"probability_{name}": each[:, k] for k, name in enumerate(target.names)}
        if truth is not None:
            score, base = ("accuracy", float(np.mean(chosen[there] == true))), _commonest(true)
        return Predictions(columns, score, counts, base, scored=len(true), unfit=unfit)
    if isinstance(target, Labels):
        names = np.array([target.negative_name, target.positive_name], dtype=object)
        columns = {
            target.name: names[(scores > 0).astype(np.int64)],
            f"probability_{target.positive_name}": corrected(target, scores, weights),
        }
        if truth is not None:
            score = "accuracy", float(np.mean(np.where(scores[there] > 0, 1.0, -1.0) == true))
            base = _commonest(true)
    else:
        values = target.original(scores)
        columns = {target.name: values}
        if truth is not None:
            score = "rmse", float(np.sqrt(np.mean((values[there] - target.original(true)) ** 2)))
    return Predictions(columns, score, counts, base, scored=len(true), unfit=unfit)


def _commonest(truth: Floats) -> float:
    """The share of the commonest class."""
    return float(np.unique(truth, return_counts=True)[1].max() / len(truth))


__all__ = ["CsvFile", "Predictions", "predict"]
