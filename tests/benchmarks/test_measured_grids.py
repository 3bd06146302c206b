"""Grids by any executor: the order of cells, what is known is not measured again, refusals."""

from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dpmpc.benchmarks import result_file as records
from dpmpc.benchmarks import suite
from dpmpc.benchmarks.cell import BenchCell
from dpmpc.benchmarks.grid import Answer, known_records, run_grid
from dpmpc.benchmarks.result_file import Record
from tests.refusals import refuses
from tests.runs import dpmpc

CELLS = suite.cross([10, 122, 31], [3], [3])


def threads() -> Executor:
    """What MODULE:FUNCTION names."""
    return ThreadPoolExecutor(2)


def measured(cell: BenchCell, quick: bool, link: Any) -> Answer:
    if cell.dimension == 31:
        return "this cell is refused"
    return Record("iteration", cell.key(), {"rounds": cell.dimension})


def run(**settings: Any) -> list[Record]:
    said: list[str] = []
    given = {"work": measured, **settings}
    found = run_grid(CELLS, True, said.append, f"{__name__}:threads", 2, **given)
    assert len(said) == len(CELLS)
    return found


def test_cells_come_in_the_order_asked_for_without_those_that_were_refused() -> None:
    kept: list[int] = []
    found = run(keep=lambda records: kept.append(len(records)))
    assert [record.key["dimension"] for record in found] == [10, 122] and kept == [1, 2]


def test_what_a_file_has_is_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "grid.json"
    first = Record("iteration", CELLS[1].key(), {"rounds": 7})
    records.write_json(suite.results(True, lambda: [first, Record("noise", {"backend": "sharing"})]), path)
    asked: list[int] = []

    def work(cell: BenchCell, quick: bool, link: Any) -> Answer:
        asked.append(cell.dimension)
        return measured(cell, quick, link)

    found = run(known=known_records(path, True), work=work)
    assert sorted(asked) == [10, 31] and [record.counts["rounds"] for record in found] == [10, 7]
    with refuses("file"):
        known_records(path, False)
    assert known_records(tmp_path / "none.json", True) == ()


def test_a_grid_of_which_every_cell_is_refused_says_why() -> None:
    with refuses("usage", "this cell is refused"):
        run_grid(CELLS[2:], True, lambda text: None, f"{__name__}:threads", 1, work=measured)


def test_the_command_knows_its_executors() -> None:
    result = dpmpc("bench", "iteration", "-d", "10", "-m", "2", "--executor", "nowhere")
    assert result.returncode == 2 and "--executor is processes, joblib" in result.stderr, result.stderr
