"""What the fits of an estimator and of its clones spend together.

`cross_val_score`, grid searches and pipelines fit clones. A clone shares the account of what it was cloned from, so
that the second fit on the same records can say what both come to.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

from dpmpc.privacy.composition import spent
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.ledgers import merge, read_ledgers


class PrivacyWarning(UserWarning):
    """Something that the guarantee does not cover, or that costs more of it than one fit."""


class Account:
    """The releases that fits in this process made. A copy in another process counts on its own."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.fits = 0
        self.elsewhere = False  # whether this is a copy: fits of the original are not counted after it was made

    def add(self, entries: Sequence[Entry]) -> None:
        """Count one fit."""
        self.entries.extend(entries)
        self.fits += 1

    def warn(self, data_id: str, epsilon: float) -> None:
        """Warns what all fits so far have spent, if there were several."""
        if self.fits < 2 or not self.entries:
            return
        total = spent(self.entries, data_id)
        others = "; fits in other processes are not counted here" if self.elsewhere else ""
        warnings.warn(
            f"{self.fits} fits of this estimator and its clones have spent epsilon = {total.epsilon:.4g}, delta = "
            f"{total.delta:.3g} together (each alone: epsilon = {epsilon:.4g}), if they saw the same records; scores "
            f"on held-out records are outside the guarantee{others}",
            PrivacyWarning,
            stacklevel=4,
        )

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "elsewhere": True}


def ledger_of(run: Path) -> tuple[Entry, ...]:
    """The releases that the parties' ledgers in a run directory hold, each counted once."""
    return merge(read_ledgers(run))
