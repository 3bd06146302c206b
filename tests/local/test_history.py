"""history.csv: what is written comes back; a torn row goes, whoever carries on writes it again."""

import contextlib
from pathlib import Path

import pytest

from dpmpc.learning.method import Learning
from dpmpc.local.history import History, columns, read_history
from dpmpc.outcome import Iteration

LEARNING = Learning(method="gradient", task="logistic", lam=0.001)
ROWS = [
    Iteration(1, 0, 0.693147181, 0.25, 0.5, 0.125, 12_345, figure=0.75),
    Iteration(2, 1, 0.5, 1e-05, 0.875, 0.0625, 678),
    Iteration(3, 3, None, None, None, None, None),
]


def write(path: Path, *rows: Iteration) -> bytes:
    """The file with these rows appended."""
    with contextlib.closing(History(path, LEARNING)) as history:
        for row in rows:
            history.append(row)
            assert path.read_bytes().endswith(b"\n"), "a row is with the kernel when append returns"
    return path.read_bytes()


def test_rows_come_back_under_one_header(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    assert read_history(path) == []
    write(path, *ROWS[:1])
    assert write(path, *ROWS[1:]).count(b"iteration") == 1
    assert read_history(path) == ROWS
    assert path.read_text().splitlines()[0] == (
        "iteration,release,loss_outside_guarantee,gap_outside_guarantee,accuracy_outside_guarantee,seconds,bytes,owners,failed,"
        "AUC_outside_guarantee"
    )
    of_numbers = columns(Learning(method="gradient", task="ridge", lam=0.1))
    assert (of_numbers[4], of_numbers[9]) == ("mse_outside_guarantee", "R2_outside_guarantee")


@pytest.mark.parametrize("more", [ROWS[1], ROWS[2]])
def test_a_row_torn_anywhere_is_left_out_and_written_again_whole(tmp_path: Path, more: Iteration) -> None:
    path = tmp_path / "history.csv"
    kept = len(write(path, ROWS[0]))
    whole = write(path, more)
    for cut in range(kept, len(whole)):
        path.write_bytes(whole[:cut])
        assert read_history(path) == ROWS[:1]
        assert write(path, more) == whole
        assert read_history(path) == [ROWS[0], more]


def test_a_torn_header_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    whole = write(path, ROWS[0])
    for cut in range(whole.index(b"\n") + 1):
        path.write_bytes(whole[:cut])
        assert read_history(path) == []
        assert write(path, ROWS[0]) == whole
