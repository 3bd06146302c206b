"""KDDCup99 with the other usual label: an attack of any kind, or normal.

Jayaraman et al. 2018 say "a denial-of-service attack or not"; their poster's accuracies fit this label only (see the
convergence experiment), so both are run.
"""

from dataclasses import replace
from pathlib import Path

from dpmpc.records.dataset import Dataset
from dpmpc.records.schema import Labels
from dpmpc.records.schemas import FILE_SETS
from dpmpc.records.sets import from_files

LABELS = Labels("attack", ("normal.", "normal"), None, "normal", "attack")


def load(data_dir: Path | None, seed: int, max_rows: int | None, test_fraction: float) -> Dataset:
    """The records that `load_dataset("kddcup99", ...)` has for the same arguments, without intercept, labelled by
    LABELS."""
    files = replace(FILE_SETS["kddcup99"], target=LABELS)
    return from_files("kddcup99", files, data_dir, seed, test_fraction, False, max_rows)
