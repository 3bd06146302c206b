"""A training run as a function call: `dpmpc.train`."""

import contextlib
import os
from pathlib import Path
from typing import Any, Unpack

from dpmpc.errors import spelt
from dpmpc.folders import said_path
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.lazy import dataclass
from dpmpc.learning.model import Model, read_model
from dpmpc.local.launcher import train as launch
from dpmpc.local.owner_process import Progress
from dpmpc.local.report import read_report
from dpmpc.planning.keywords import TrainKeywords
from dpmpc.planning.request import Request
from dpmpc.settings import keywords, said
from dpmpc.show.curve_charts import plot
from dpmpc.show.figures import notebook_part
from dpmpc.show.summary import summary


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


@keywords(Request, records=None)
def train(
    out: Path | str,
    *,
    overwrite: bool = False,
    progress: Progress = lambda event: None,
    spelling: Spelling = PLAIN,
    **given: Unpack[TrainKeywords],
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
    asked, records = dict(given), given.get("records")
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
