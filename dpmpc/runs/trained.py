"""A training run as a function call: `dpmpc.train`."""

import contextlib
import os
from pathlib import Path
from typing import Any, Literal

from dpmpc.errors import spelt
from dpmpc.folders import said_path
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.lazy import dataclass
from dpmpc.learning.model import Model, read_model
from dpmpc.runs.curve_charts import plot
from dpmpc.runs.figure_page import notebook_part
from dpmpc.runs.launcher import train as launch
from dpmpc.runs.owner_process import Progress
from dpmpc.runs.report import read_report
from dpmpc.runs.request import Request
from dpmpc.runs.summary import summary
from dpmpc.settings import nearest, said


@dataclass(frozen=True)
class Trained:
    """A finished run: its directory, its report (JSON values), its model."""

    run: Path
    report: dict[str, Any]
    model: Model

    @property
    def guarantee(self) -> str:
        """What the run promises, in a line that begins with what it holds under."""
        return str(self.report["privacy"]["statement"])

    def plot(self, path: Path | str) -> Path:
        """Writes a page with a picture of each curve of an additive model. Errors: another model."""
        return plot(self.model.additive, path, self.report["data"])

    def __str__(self) -> str:
        """The summary that the command prints."""
        return "\n".join(f"{what}: {value}" for what, value in summary(self.report, self.run))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return notebook_part(self.report, summary(self.report, self.run))


@nearest
def train(
    out: Path | str,
    *,
    overwrite: bool = False,
    progress: Progress = lambda event: None,
    spelling: Spelling = PLAIN,
    # settings: train
    data: str | None = None,
    data_dir: str | None = None,
    csv: str | None = None,
    records: Any = None,
    database: str | None = None,
    sql: str | None = None,
    schema: str | None = None,
    memory: str | None = None,
    precision: Literal["double", "single"] = "double",
    executor: str | None = None,
    workers: int | None = None,
    target: str | None = None,
    owners_column: str | None = None,
    bounds: str | None = None,
    preprocessing: Literal["survey", "records"] | None = None,
    basis: Literal["linear", "additive"] | None = None,
    missing: Literal["fill", "drop"] = "fill",
    drop: tuple[str, ...] = (),
    positive: str | None = None,
    classes: tuple[str, ...] = (),
    task: str | None = None,
    test_fraction: float | None = None,
    official_test: bool = False,
    max_rows: int | None = None,
    dimension: int | None = None,
    intercept: bool | None = None,
    seed: int = 1,
    evaluate: bool = True,
    figures: Literal["inside", "plain", "both"] | None = None,
    baseline: bool = False,
    ids: str | None = None,
    owners: int | None = None,
    owner_sizes: tuple[int, ...] | None = None,
    capacity: tuple[int, ...] | None = None,
    skew: float | None = None,
    method: str | None = None,
    iterations: int | None = None,
    lam: float | None = None,
    average: Literal["none", "tail", "all"] | None = None,
    class_weight: str | None = None,
    weights: Literal["equal", "size"] | None = None,
    step: float | None = None,
    momentum: float | None = None,
    radius: float | None = None,
    residual_clip: float = 0.25,
    solver_tolerance: float = 1e-08,
    spread: Literal["theta", "fixed"] = "theta",
    epsilon: float = 1.0,
    delta: float | None = None,
    neighbours: str | None = None,
    person: str | None = None,
    person_rows: int = 1,
    person_owners: int | None = None,
    calibration: str = "tight",
    law: str | None = None,
    sampler: str | None = None,
    scale: float | None = None,
    grid_bits: int | None = None,
    engine: Literal["mpc", "clear"] = "mpc",
    security: str = "semi-honest",
    link: str | float | None = None,
    parties: int = 3,
    threshold: int | None = None,
    backend: str | None = None,
    check_owners: Literal["no", "zero", "stop"] = "no",
    pool: bool | None = None,
    security_bits: float = 40.0,
    role: Literal["apart", "both"] = "apart",
    min_owners: int | None = None,
    release_wait: float = 10.0,
    data_id: str | None = None,
    run_id: str | None = None,
    ledgers: str | None = None,
    budget: str | None = None,
    account: str | None = None,
    # settings: end
) -> Trained:
    """Trains one private model with parties of this machine, as `dpmpc train` does, and returns it.

    `out`: the run directory. The settings are those of the command line (docs/settings.md):

        dpmpc.train("runs/demo", data="breast-cancer", owners=5, epsilon=1.0, delta=1e-4)

    `records` may also be a pandas, Polars or Arrow table, a DuckDB relation, a frame of Dask or Ray or {column: array};
    the owners' process reads it from a private file (of Dask and Ray: a folder that their workers write a file a part
    into), which is gone afterwards. `spelling`: how the records spell numbers and dates, which
    the command line says with --decimal and its like (docs/data.md).

    Errors: as the command's, as exceptions.
    """
    asked = {
        name: value for name, value in locals().items() if name not in ("out", "overwrite", "progress", "spelling")
    }

    folder = said_path(out, "out")

    def told(event: dict[str, Any]) -> None:
        progress({**event, "text": spelt(event["text"])} if "text" in event else event)

    with contextlib.ExitStack() as stack:
        if not isinstance(records, str | os.PathLike | None):
            from dpmpc.intake.objects import stored  # only frames need DuckDB here
            from dpmpc.intake.scratch import scratch_folder

            asked["records"] = str(stored(records, stack.enter_context(scratch_folder())))
        launch(Request(**said(asked), spelling=spelling), folder, overwrite=overwrite, progress=told)
    return Trained(folder, read_report(folder), read_model(folder))
