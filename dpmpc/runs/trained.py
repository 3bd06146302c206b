"""A training run as a function call: `dpmpc.train`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmpc.learning.model import Model, read_model
from dpmpc.runs.launcher import Progress
from dpmpc.runs.launcher import train as launch
from dpmpc.runs.report import read_report
from dpmpc.runs.request import Request


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


def train(
    out: Path | str,
    *,
    overwrite: bool = False,
    progress: Progress = lambda event: None,
    **options: Any,
) -> Trained:
    """Trains one private model with parties of this machine, as `dpmpc train` does, and returns it.

    `out`: the run directory. `options`: those of `runs.request.Request`, which are those of the command line:

        dpmpc.train("runs/demo", data="breast-cancer", owners=5, epsilon=1.0, delta=1e-4)

    Errors: as the command's, as exceptions.
    """
    if isinstance(options.get("owner_sizes"), list):
        options["owner_sizes"] = tuple(options["owner_sizes"])
    launch(Request(**options), Path(out), overwrite=overwrite, progress=progress)
    return Trained(Path(out), read_report(Path(out)), read_model(Path(out)))
