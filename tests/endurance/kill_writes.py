"""Kills between two writes, by one generator: of every process of every kind of run, here and over several machines.

    python -m tests.endurance.kill_writes                 # every point of every stage of every kind of run
    python -m tests.endurance.kill_writes --every 10 --kind train --kind train-sites --victim 1

A process dies by itself in place of its K-th write below its folder: a file that is opened to be written (once before,
and once after, when it is empty), a file that takes another's place, a file that goes, a line of a ledger (before, and
half of it), an opened sum. Then the same command is given again, and the files alone say whether the run ended as one
that was never killed, or what of it is lost; `kill_local_writes` and `kill_remote_writes` say what is held of them. A
point at which that does not hold is told, and the next one is tried.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

KILLED, FAILED, FINISHED = 9, 1, 0
PRELOAD = ["tests.endurance.kill_writes_preload"]  # of the server that processes are forked from
FAULT = "FAULT"
_WRITING = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True)
class Kind:
    """A kind of run. `victims`: the processes that are killed, one in each run; `at`: given a folder, a victim and the
    number of its write, kills it there, and says how that ended; None where it makes fewer. Errors: AssertionError for
    what must not be."""

    victims: tuple[str, ...]
    at: Callable[[Path, str, int], str | None]


def kinds() -> dict[str, Kind]:
    """Every kind of run."""
    from tests.endurance import kill_local_writes as local
    from tests.endurance import kill_remote_writes as remote

    here = {name: Kind(local.ENGINES, partial(local.kill_at, name)) for name in local.SOURCES}
    away = {
        f"{source}-{kind}": Kind(remote.VICTIMS[kind], partial(remote.kill_at, source, kind))
        for source in remote.SOURCES for kind in remote.NAMES
    }  # fmt: skip
    return here | away


def doomed(command: Callable[[], object], number: int, out: Path, opened: str | None, said: Any) -> NoReturn:
    """Ends this process with the command, which dies at its write of this number (`dies_at`; a negative one, with no
    stage: at none). `said`: told how many writes it made, or its error."""
    from dpmpc.errors import DpmpcError

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere), contextlib.redirect_stdout(nowhere):
        made = dies_at(number, out, opened) if number >= 0 or opened is not None else lambda: 0
        try:
            command()
        except DpmpcError as error:
            said.send(f"{type(error).__name__}: {error}")
            said.close()
            os._exit(FAILED)
    said.send(made())
    said.close()
    os._exit(FINISHED)


def dies_at(number: int, out: Path, opened: str | None = None) -> Callable[[], int]:
    """Makes this process die in place of its write of this number below `out`; how many it has made. `opened`: in place
    of its first write when a sum of this stage is in a file. Of the heartbeat of the status, which comes by the clock,
    none is counted."""
    from dpmpc.aggregation.wire import transcript
    from dpmpc.processes import durable

    made, mine = 0, os.getpid()

    def die() -> NoReturn:
        os._exit(KILLED)

    def counted() -> bool:
        nonlocal made
        if os.getpid() != mine:
            return False
        made += 1
        sums = [] if opened is None else (out / opened).glob("*.opened.bin")
        return made == number or not all(map(transcript.holds_nothing, sums))

    def below(path: Any) -> bool:
        with contextlib.suppress(TypeError, ValueError):
            found = Path(os.fsdecode(path))
            return found.is_relative_to(out) and not found.name.startswith("status_") and found.suffix != ".log"
        return False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike) and below(arguments[0]):
            path, mode, flags = arguments
            if not (flags & _WRITING if isinstance(flags, int) else any(c in str(mode) for c in "wax+")):
                return
            if counted():
                die()
            if counted():
                if flags & os.O_TRUNC:
                    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
                die()
        elif event in ("os.rename", "os.remove", "os.mkdir") and below(arguments[0]) and counted():
            die()

    write_all, write = durable.write_all, transcript._write

    def half(descriptor: int, payload: bytes) -> None:
        if counted():
            die()
        if counted():
            os.write(descriptor, payload[: len(payload) // 2])
            die()
        write_all(descriptor, payload)

    def record(*arguments: Any) -> None:
        if counted():
            die()
        write(*arguments)

    patch.object(durable, "write_all", half).start()
    patch.object(transcript, "_write", record).start()
    sys.addaudithook(hook)
    return lambda: made


def left_behind(out: Path) -> None:
    """Errors: AssertionError where something is below a folder that is of nobody's use."""
    nobodys = ("dpmpc-", "ledger.stages", "ledger.st")
    left = [str(path) for path in out.rglob("*") if path.suffix == ".tmp" or path.name.startswith(nobodys)]
    assert not left, f"left behind: {left}"


def kill(
    name: str, victim: str, numbers: Sequence[int], folder: Path, tell: Callable[[str], None] = lambda line: None
) -> dict[str, int]:  # fmt: skip
    """How many kills of this process of such a run ended how; `FAULT`: as they must not."""
    result: dict[str, int] = {}
    for number in numbers:
        try:
            became = kinds()[name].at(folder, victim, number)
        except AssertionError as error:
            became, said = FAULT, " ".join(str(error).split())
            tell(f"{name}, {victim}, write {number}: {FAULT}: {said[:300]}")
        else:
            if became is None:
                break
            tell(f"{name}, {victim}, write {number}: {became}")
        result[became] = result.get(became, 0) + 1
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="Of so many points one.")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--kind", choices=kinds(), action="append")
    parser.add_argument("--victim", action="append")
    given, faults = parser.parse_args(), 0
    for name in given.kind or kinds():
        for victim in given.victim or kinds()[name].victims:
            with tempfile.TemporaryDirectory() as folder:
                numbers = range(given.first, 100_000, given.every)
                counts = kill(name, victim, numbers, Path(folder), lambda line: print(line, flush=True))
                print(f"{name}, {victim}: {sum(counts.values())} kills: {counts}", flush=True)
                faults += counts.get(FAULT, 0)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
