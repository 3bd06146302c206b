"""What a worker says of its records' targets: how many do not fit, how many are of each class; of a quantity nothing
else, as its ends are records' values."""

from pathlib import Path

import pytest

from dpmpc.intake.spelling import Spelling
from dpmpc.records.loading import opened
from dpmpc.records.mapping import targets_of
from dpmpc.records.schema import Classes, Labels, Numeric, Range, Schema, Target

COLUMNS = (Numeric("x", 0.0, 1.0),)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (Labels("y", ("2",), ("1",)), (2, (3, 1))),
        (Classes("y", ("1", "2", "7")), (2, (3, 1, 0))),
        (Range("y", 0.0, 100.0), (1, ())),
    ],
    ids=["labels", "classes", "quantity"],
)
def test_of_targets_numbers_alone_are_said(target: Target, found: tuple[int, tuple[int, ...]], tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("x,y\n" + "".join(f"0.5,{value}\n" for value in ("1", "1", "2", "1", "nobody", "77.25")))
    with opened(path, spelling=Spelling(misfits="zero")) as (table, _):
        assert targets_of(table, Schema(COLUMNS, target)) == found
