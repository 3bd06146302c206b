"""A training run as a function call: `dpmpc.train`."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from dpmpc.aggregation.plan.here import Here
from dpmpc.errors import spelt
from dpmpc.folders import said_path
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.lazy import dataclass
from dpmpc.learning.model import Model, read_model
from dpmpc.learning.predict import Predictions, predict
from dpmpc.local.launcher import train as launch
from dpmpc.local.owner_process import Progress
from dpmpc.local.report import read_report
from dpmpc.outcome import Shape
from dpmpc.planning.keywords import TrainKeywords
from dpmpc.planning.request import Request
from dpmpc.records.loading import Source
from dpmpc.settings import keywords, said
from dpmpc.show.curve_charts import plot
from dpmpc.show.figures import calibrations, figures_table, notebook_part
from dpmpc.show.notebook import progress as notebook
from dpmpc.show.objects import Report, Sheet, Shown
from dpmpc.show.summary import summary


@dataclass(frozen=True)
class Trained(Shown):
    """A finished run: its directory, its report (JSON values), its model."""

    run: Path
    report: Report
    model: Model

    @property
    def guarantee(self) -> str:
        """What the run promises, in a line that begins with what it holds under."""
        return str(self.report["privacy"]["statement"])

    def predict(
        self, records: Source, *, keep: Sequence[str] = (), memory: int | None = None, spelling: Spelling = PLAIN
    ) -> Predictions:  # fmt: skip
        """What its model says of other records: a path, a frame, or what `dpmpc.predict` takes. Errors: as there."""
        return predict(self.run, records, keep=keep, memory=memory, spelling=spelling)

    def sheet(self) -> Sheet:
        """The summary that the command prints; the model's figures with the picture of its calibration, and its curves
        where it is additive."""
        lines, figures = tuple(summary(self.report, self.run)), self.report.get("figures")
        tables = () if not figures else (figures_table(self.report),)
        return Sheet(
            f"Trained on {self.report['data']}", lines, tables, lambda: self._pictures(figures),
            way="print() it for all",
        )  # fmt: skip

    def _pictures(self, figures: dict[str, Any] | None) -> Sequence[Shape]:
        curves = self.model.additive.profiles if self.model.schema.basis == "additive" else ()
        return [*([] if not figures else calibrations(figures)), *curves]

    def _page(self, path: Path) -> Path:
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
    progress: Progress | None = None,
    spelling: Spelling = PLAIN,
    **given: Unpack[TrainKeywords],
) -> Trained:
    """Trains one private model with parties of this machine, as `dpmpc train` does, and returns it.

    `out`: the run directory. The settings are those of the command line (docs/settings.md):

        dpmpc.train("runs/demo", data="breast-cancer", owners=5, epsilon=1.0, delta=1e-4)

    `records` may also be a pandas, Polars or Arrow table, a DuckDB relation, a frame of Dask or Ray or {column: array};
    the owners' process reads it from a private file (of Dask and Ray: a folder that their workers write a file a part
    into), which is gone afterwards. `spelling`: how the records spell numbers and dates, which
    the command line says with --decimal and its like (docs/data.md). `progress`: is told of events; without it a
    notebook shows a bar, where tqdm is installed.

    Errors: as the command's, as exceptions.
    """
    asked, records = dict(given), given.get("records")
    folder = said_path(out, "out")

    with contextlib.ExitStack() as stack:
        tell = stack.enter_context(notebook("train", "iteration")) if progress is None else progress

        def told(event: dict[str, Any]) -> None:
            tell({**event, "text": spelt(event["text"])} if "text" in event else event)

        if not isinstance(records, str | os.PathLike | None):
            from dpmpc.intake.objects import stored  # only frames need DuckDB here
            from dpmpc.intake.scratch import scratch_folder

            asked["records"] = str(stored(records, stack.enter_context(scratch_folder())))
        launch(Request(**said(asked), spelling=spelling), Here(out=folder, overwrite=overwrite), progress=told)
    return Trained(folder, Report(read_report(folder)), read_model(folder))
