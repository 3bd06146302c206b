"""history.csv: one row an iteration, written and flushed as soon as the iteration is over.

Losses and scores are figures of plain records, outside the guarantee; their columns' names say so.
"""

import csv
from dataclasses import astuple
from pathlib import Path

from dpmpc.aggregation.wire.transcript import whole_lines
from dpmpc.errors import as_written
from dpmpc.learning.method import Learning
from dpmpc.learning.task import TASKS
from dpmpc.outcome import Iteration


def figure_name(learning: Learning) -> str:
    """The figure that is looked at while a model is learned, which says more than a score does."""
    return TASKS[learning.task].figure


def score_name(learning: Learning) -> str:
    """What a test score is: accuracy, or mse of the target scaled to [-1, 1]."""
    return TASKS[learning.task].score


OUTSIDE = "_outside_guarantee"  # what the names of such columns end in


def columns(learning: Learning) -> list[str]:
    """The names in the header; the score is accuracy or mse, the figure AUC, balanced accuracy or R2, on the test
    rows."""
    plain = [name + OUTSIDE for name in ("loss", "gap", score_name(learning))]
    return [
        "iteration",
        "release",
        *plain,
        "seconds",
        "bytes",
        "owners",
        "failed",
        figure_name(learning).replace(" ", "_") + OUTSIDE,
    ]


class History:
    """An open history file."""

    def __init__(self, path: Path, learning: Learning) -> None:
        """Appends to an interrupted run's; a torn last row of that one is cut off."""
        self._file = path.open("a", encoding="utf-8", newline="")
        whole = whole_lines(path)
        self._file.truncate(whole)
        self._writer = csv.writer(self._file)
        if not whole:
            self._writer.writerow(columns(learning))
            self._file.flush()

    def append(self, row: Iteration) -> None:
        """Write one row, and flush it."""
        self._writer.writerow(
            ["" if value is None else f"{value:.9g}" if isinstance(value, float) else value for value in astuple(row)]
        )
        self._file.flush()

    def close(self) -> None:
        self._file.close()


@as_written("history.csv", "restore it, or take it away")
def read_history(path: Path) -> list[Iteration]:
    """The rows of a history file; a torn last row is left out."""
    if not path.exists():
        return []
    text = path.read_bytes()[: whole_lines(path)].decode("utf-8")
    lines = list(csv.reader(text.splitlines()))[1:]

    def number(cell: str) -> float | None:
        return float(cell) if cell else None

    def whole(cell: str) -> int | None:
        return int(cell) if cell else None

    return [
        Iteration(
            int(c[0]),
            int(c[1]),
            number(c[2]),
            number(c[3]),
            number(c[4]),
            number(c[5]),
            whole(c[6]),
            whole(c[7]) if len(c) > 7 else None,  # earlier versions had no column of owners, or of failed ones
            c[8] if len(c) > 8 else "",
            number(c[9]) if len(c) > 9 else None,
        )
        for c in lines
        if len(c) in (7, 8, 9, 10)
    ]
