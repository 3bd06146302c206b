"""A grid of cells measured by any executor, kept as it grows: what a result file has already is not measured again."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

from dpmpc.benchmarks import result_file as records
from dpmpc.benchmarks import suite
from dpmpc.benchmarks.cell import BenchCell
from dpmpc.benchmarks.counts import NetworkLink
from dpmpc.benchmarks.iteration import measure, repetitions
from dpmpc.benchmarks.network import named
from dpmpc.benchmarks.result_file import Record
from dpmpc.errors import UsageError
from dpmpc.processes.executors import executor_maker

Progress = Callable[[str], None]
Answer = Record | str  # of a cell, or why it was refused


def measured_cell(cell: BenchCell, quick: bool, link: NetworkLink | None) -> Answer:
    """A cell's record; of one that a sampler refuses, the refusal. What a worker does."""
    network = named(cell.network)
    try:
        return suite.iteration_record(measure(cell, network, repetitions(cell, quick)), network, link)
    except UsageError as error:
        return str(error)


def run_grid(
    chosen: Sequence[BenchCell],
    quick: bool,
    progress: Progress,
    executor: str,
    workers: int,
    *,
    link: NetworkLink | None = None,
    known: Sequence[Record] = (),
    keep: Callable[[list[Record]], None] = lambda found: None,
    work: Callable[[BenchCell, bool, NetworkLink | None], Answer] = measured_cell,
) -> list[Record]:
    """The records of all cells, in order: of `known` where they are there, else measured by the executor of this name
    (`processes.executors`), as many at once as it has workers. Cells that share a machine disturb each other's seconds;
    counts are exact. `keep` is called with all records so far whenever one is new.

    Errors: UsageError for an unknown executor, and when no cell can be measured.
    """
    make = executor_maker(executor)
    names = {cell: Record("iteration", cell.key()).name for cell in chosen}
    found = {name: record for name, record in records.by_key(known).items() if name in set(names.values())}
    todo = [cell for cell in chosen if names[cell] not in found]
    refused = ""

    def so_far() -> list[Record]:
        return [found[names[cell]] for cell in chosen if names[cell] in found]

    for cell in chosen:
        if cell not in todo:
            progress(f"{cell}: known")
    if todo:
        pool = make(min(workers, len(todo)))
        cells = {pool.submit(work, cell, quick, link): cell for cell in todo}
        pending: set[Future[Answer]] = set(cells)
        try:
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in finished:
                    progress(str(cells[future]))
                    answer = future.result()
                    if isinstance(answer, str):
                        refused = answer
                    else:
                        found[names[cells[future]]] = answer
                        keep(so_far())
        finally:
            for future in pending:
                future.cancel()
            pool.shutdown()
    if not found:
        raise UsageError(refused)
    return suite.with_predictions(so_far())


def known_records(path: Path | None, quick: bool) -> Sequence[Record]:
    """What is in the result file of an earlier run of the same profile; nothing where there is none. Errors: UsageError
    for another file, or another profile's."""
    if path is None or not path.exists():
        return ()
    earlier, profile = records.read(path), "quick" if quick else "full"
    if earlier.profile != profile:
        raise UsageError(
            f"a grid goes on in a file of the same profile, {profile}; {path} is of {earlier.profile}; name another",
            code="file",
        )
    return earlier.records
