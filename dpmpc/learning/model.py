"""A trained model as a file: model.npz, without pickled objects."""

import io
import json
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.folders import carried_on, replaced, write_file
from dpmpc.lazy import dataclass
from dpmpc.learning.additive import Additive
from dpmpc.outcome import Bars, Line, Number, Shape
from dpmpc.records import Dataset
from dpmpc.records.blocks import Floats
from dpmpc.records.schema import Schema
from dpmpc.show.objects import Sheet, Shown
from dpmpc.show.tables import ShownTable

MOST_BARS = 40  # coefficients of a picture


@dataclass(frozen=True)
class Model(Shown):
    """A trained model as `predict` needs it."""

    theta: Any
    feature_names: tuple[str, ...]
    preprocessing: dict[str, Any]
    task: str
    weights: tuple[float, ...] = ()  # of the classes' records; odds are too large by them
    left_out: tuple[str, ...] = ()  # columns of the training records that are no features
    figures: dict[str, Any] | None = None  # on held-out records, inside the promise, if it was evaluated so

    def __post_init__(self) -> None:
        d, size = len(self.feature_names), np.size(self.theta)
        if np.ndim(self.theta) != 1 or self.theta.dtype.kind != "f" or not size or not d or size % d:
            raise ValueError(f"its theta is one or more numbers of each of {d} features")
        if not all(map(math.isfinite, (*self.theta, *self.weights))) or any(each < 0 for each in self.weights):
            raise ValueError("its theta and weights are finite numbers")
        if len(self.weights) not in (0, max(2, size // d)):
            raise ValueError(f"its weights are of {max(2, size // d)} classes; it has {len(self.weights)}")

    @property
    def schema(self) -> Schema:
        """How records are read for it. Errors: UsageError where it has other features."""
        schema = Schema.from_json(self.preprocessing)
        if schema.feature_names != self.feature_names:
            raise UsageError("a model has the features of its own schema; this one has others; train again")
        return schema

    @property
    def additive(self) -> Additive:
        """The model as one curve a column. Errors: UsageError for a basis that is not additive."""
        return Additive.of(self.schema, self.theta, self.weights)

    @property
    def coefficients(self) -> dict[str, Any]:
        """`feature`, and `coefficient` (d,), of more than two classes one a class: of the features as the schema scales
        them, whose largest value is about one."""
        table = np.reshape(self.theta, (len(self.feature_names), -1))
        names = ["coefficient"] if table.shape[1] == 1 else list(getattr(self.schema.target, "names", ()))
        return {"feature": list(self.feature_names)} | {name: table[:, k] for k, name in enumerate(names)}

    def sheet(self) -> Sheet:
        """The coefficients, the largest first."""
        schema, found = self.schema, self.coefficients
        names = [name for name in found if name != "feature"]
        order = sorted(range(len(self.feature_names)), key=lambda k: -max(abs(float(found[name][k])) for name in names))
        rows = tuple((self.feature_names[k], *(f"{found[name][k]:+.4g}" for name in names)) for k in order)
        facts = [("target", schema.target.name), ("task", self.task), ("basis", schema.basis)]
        if self.left_out:
            facts.append(("left out in training", ", ".join(self.left_out)))
        notes = ["Coefficients of features as the schema scales them (.schema), not of columns in their own units."]
        if any("#" in name for name in self.feature_names):
            notes.append(
                "Names with # are hashed texts of columns that nobody named levels of; bounds with levels give names."
            )
        return Sheet(
            f"Model of '{schema.target.name}'", tuple(facts), (ShownTable(("feature", *names), rows),),
            shapes=lambda: self._pictures(order), columns=lambda: found, notes=tuple(notes),
        )  # fmt: skip

    def _pictures(self, order: Sequence[int]) -> Sequence[Shape]:
        """Its curves where it is additive, else its largest coefficients."""
        if self.schema.basis == "additive":
            return self.additive.profiles
        found, kept = self.coefficients, order[:MOST_BARS]
        return [
            Bars(name, tuple(
                Line((self.feature_names[k],), name, Number(float(found[name][k]), None, None, None)) for k in kept
            ))
            for name in found if name != "feature"
        ]  # fmt: skip


def write_model(path: Path, theta: Floats, dataset: Dataset, run_id: str, weights: Sequence[float] = ()) -> None:
    """Writes `model_file` whole or not at all."""
    write_file(path, model_file(theta, dataset, run_id, weights))


def model_file(theta: Floats, dataset: Dataset, run_id: str, weights: Sequence[float] = ()) -> bytes:
    """The content of model.npz: theta (d,), feature_names (d,), preprocessing, columns and task as JSON
    text, weights of the classes, if any."""
    file = io.BytesIO()
    np.savez(
        file,
        theta=theta,
        feature_names=np.array(dataset.feature_names),
        preprocessing=np.array(json.dumps(dataset.preprocessing)),
        columns=np.array(json.dumps(dataset.columns)),
        task=np.array(dataset.task),
        run=np.array(run_id),
        weights=np.array(weights, dtype=np.float64),
    )
    return file.getvalue()


def with_figures(path: Path, figures: dict[str, Any]) -> None:
    """Writes the model in a file anew with its figures on held-out records (`Figures.to_json`), which are public."""
    with np.load(path, allow_pickle=False) as saved:
        parts = {name: saved[name] for name in saved.files if name != "figures"}
    with replaced(path) as beside, beside.open("wb") as file:
        np.savez(file, **parts, figures=np.array(json.dumps(figures, sort_keys=True)))


def read_model(run: Path) -> Model:
    """The model of a run directory. Errors: there is none, or it is not one."""
    path = run / "model.npz"
    try:
        with np.load(path, allow_pickle=False) as saved:
            return Model(
                saved["theta"],
                tuple(str(name) for name in saved["feature_names"]),
                loads(str(saved["preprocessing"])),
                str(saved["task"]),
                tuple(map(float, saved["weights"])) if "weights" in saved else (),
                tuple(loads(str(saved["columns"]))["left_out"]) if "columns" in saved else (),
                loads(str(saved["figures"])) if "figures" in saved else None,
            )
    except FileNotFoundError:
        if not run.exists():
            raise UsageError(f"a run has a folder; {run} is not there; check the path", code="path") from None
        raise UsageError(f"a finished run has a model.npz; {run} has none; {carried_on(run)}") from None
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, zipfile.BadZipFile) as error:
        raise UsageError(f"a model must be what train wrote; {path}: {error}; train again") from None
