"""KDDCup99 with the other usual label: an attack of any kind, or normal.

Jayaraman et al. 2018 say "a denial-of-service attack or not"; their poster's accuracies fit this label only (see the
convergence experiment), so both are run.
"""

from pathlib import Path

import numpy as np

from dpmpc.data.dataset import Dataset, build, split
from dpmpc.data.preprocess import Labels, Preprocessing
from dpmpc.data.schemas import FILE_SETS
from dpmpc.data.sets import find_file
from dpmpc.data.table import read_table

LABELS = Labels("attack", ("normal.", "normal"), None, "normal", "attack")


def load(data_dir: Path | None, seed: int, max_rows: int | None, test_fraction: float) -> Dataset:
    """The records that `load_dataset("kddcup99", ...)` has for the same arguments, without intercept, labelled by
    LABELS."""
    schema = FILE_SETS["kddcup99"]
    preprocessing = Preprocessing(schema.columns, LABELS, False, schema.missing, "public")
    path = find_file(f"{schema.folder}/{schema.files[0]}", data_dir)
    table = read_table(path, names=schema.names, separator=schema.separator, comment=schema.comment)
    train, test = split(table.n, test_fraction=test_fraction, max_rows=max_rows, seed=seed)
    return build("kddcup99", preprocessing, table.rows(np.concatenate([train, test])), len(train))
