"""A trained model as a file: model.npz, without pickled objects."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.data import Dataset
from dpmpc.errors import UsageError
from dpmpc.learning.method import Floats


@dataclass(frozen=True)
class Model:
    """A trained model as `predict` needs it."""

    theta: Any
    feature_names: tuple[str, ...]
    preprocessing: dict[str, Any]
    task: str


def write_model(path: Path, theta: Floats, dataset: Dataset, run_id: str) -> None:
    """Writes model.npz: theta (d,), feature_names (d,), preprocessing and task as JSON text."""
    with path.open("wb") as file:
        np.savez(
            file,
            theta=theta,
            feature_names=np.array(dataset.feature_names),
            preprocessing=np.array(json.dumps(dataset.preprocessing)),
            task=np.array(dataset.task),
            run=np.array(run_id),
        )


def read_model(run: Path) -> Model:
    """The model of a run directory. Errors: there is none, or it is not one."""
    path = run / "model.npz"
    try:
        with np.load(path, allow_pickle=False) as saved:
            return Model(
                saved["theta"],
                tuple(str(name) for name in saved["feature_names"]),
                json.loads(str(saved["preprocessing"])),
                str(saved["task"]),
            )
    except FileNotFoundError:
        raise UsageError(
            f"a finished run has a model.npz; {run} has none; train it, or carry it on with --resume"
        ) from None
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"a model must be what train wrote; {path}: {error}; train again") from None
