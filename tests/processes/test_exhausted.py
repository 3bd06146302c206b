"""Memory that is gone: a line and an exit that need none; no loop spins; what only uses the library is left alone."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpmpc
from dpmpc.cli.main import _no_memory
from dpmpc.cli.settings import spelling
from dpmpc.errors import machine_text, spelt
from dpmpc.processes import exhausted
from dpmpc.processes.background import Background
from dpmpc.processes.messages import loads
from dpmpc.processes.supervisor import run_here
from tests.runs import HANG

LOOPS = re.compile(r"\b(?:asyncio\.(run|new_event_loop|Runner)|\w+\.(set_exception_handler))\(")
LINE = "error: none is left"
READY = f"""
import asyncio, os, resource, sys, threading
from dpmpc.folders import passing_folder
from dpmpc.processes import exhausted
exhausted.make_ready(2, b"{LINE}\\n")
"""
RECORDS = "(folder / 'part').mkdir(); [(folder / 'part' / f'{k}.csv').write_text('a record') for k in range(100)]"
SPINS = """
read, write = os.pipe()
os.write(write, b"x")
def starved():
    raise MemoryError
"""
ENDS = {
    "nothing is left to be had, to the last bytes": """
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, 2 * (pages * resource.getpagesize(),))
kept, size = [], 1 << 20
with exhausted.ending():
    while True:
        try:
            while True:
                kept.append(bytes(size))
        except MemoryError:
            if size < 16:
                raise
            size //= 2
""",
    "a loop's handler has none either": """
from dpmpc.processes.supervisor import run_here
class Loop(asyncio.SelectorEventLoop):
    def default_exception_handler(self, context):
        raise MemoryError
class Policy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = Loop
asyncio.set_event_loop_policy(Policy())
async def body():
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.Event().wait()
run_here(body)
""",
    "a loop reads a pipe for ever, and what runs on it does not end": SPINS
    + """
from dpmpc.processes.supervisor import run_here
async def body():
    asyncio.get_running_loop().add_reader(read, starved)
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
run_here(body)
""",
    "a loop in a thread of its own does": SPINS
    + """
from dpmpc.processes.background import Background
async def body():
    asyncio.get_running_loop().add_reader(read, starved)
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
Background("test").run(body())
""",
    "a thread has none, and another waits for it": """
def starved():
    raise MemoryError
threading.Thread(target=starved).start()
threading.Event().wait()
""",
    "a finalizer has none": """
class Held:
    def __del__(self):
        raise MemoryError
Held()
""",
}


@pytest.mark.parametrize("script", ENDS.values(), ids=[name.replace(" ", "_") for name in ENDS])
@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read from /proc")
def test_a_process_without_memory_says_its_line_and_ends(script: str, tmp_path: Path) -> None:
    """And what was passing is gone, with all that lies in it."""
    lines = [RECORDS, *script.splitlines()]
    script = READY + "with passing_folder() as folder:\n" + "".join(f"    {line}\n" for line in lines)
    ended = _script(script, tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (exhausted.EXIT_CODE, "", f"{LINE}\n")
    assert not [*tmp_path.iterdir()]


def _script(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    place = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=HANG, env=place, check=False
    )


def test_when_all_is_said_it_ends_without_another_word(tmp_path: Path) -> None:
    said = "exhausted.make_ready(2, b'', 3)\nwith exhausted.ending():\n    raise MemoryError\n"
    ended = _script(READY + said, tmp_path)
    assert (ended.returncode, ended.stderr) == (3, "")


def test_a_program_that_uses_the_library_is_not_ended() -> None:
    """A MemoryError is raised; a loop in which steps go on failing ends after so many."""
    steps = []
    with pytest.raises(MemoryError), exhausted.ending():
        raise MemoryError

    async def body() -> None:
        with _starving(steps):
            while True:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()

    for _ in range(2):
        with pytest.raises(MemoryError):
            run_here(body)
    assert exhausted.MOST < len(steps) / 2 <= exhausted.MOST + 4  # the end of a loop looks once more at what runs on it


def test_all_that_runs_in_the_background_fails_with_it() -> None:
    steps: list[int] = []

    async def waits() -> None:
        await asyncio.Event().wait()

    async def reads() -> None:
        with _starving(steps):
            await asyncio.Event().wait()

    background = Background("test")
    pending = [background.submit(waits()), background.submit(reads())]
    for each in pending:
        with pytest.raises(MemoryError):
            each.result()
    with pytest.raises(MemoryError):
        background.run(waits())
    background.stop()
    assert 0 < len(steps) < exhausted.MOST


@contextlib.contextmanager
def _starving(steps: list[int]) -> Iterator[None]:
    """A reader of the running loop that finds no memory, again and again."""
    read, write = os.pipe()
    os.write(write, b"x")

    def starved() -> None:
        steps.append(1)
        raise MemoryError

    loop = asyncio.get_running_loop()
    loop.add_reader(read, starved)
    try:
        yield
    finally:
        loop.remove_reader(read)
        os.close(read)
        os.close(write)


def test_the_line_is_the_one_that_a_command_says_otherwise() -> None:
    said = machine_text(MemoryError())
    assert said is not None
    assert _no_memory(["stats"]) == f"error: {spelt(said, spelling)}\n".encode()
    assert loads(_no_memory(["stats", "--json"]))["text"] == f"error: {spelt(said, spelling)}"


def test_every_loop_is_guarded() -> None:
    """Loops are made by `run_here` and by `Background`, which guard them; MPyC's own import needs one that runs
    nothing, and the handler of its holder hands on to the guard."""
    found = set()
    for path in sorted(Path(dpmpc.__file__).parent.rglob("*.py")):
        for name in LOOPS.findall(path.read_text(encoding="utf-8")):
            found.add((str(path.relative_to(Path(dpmpc.__file__).parent)), name[0] or name[1]))
    assert found == {
        ("processes/supervisor.py", "run"),
        ("processes/background.py", "new_event_loop"),
        ("processes/exhausted.py", "set_exception_handler"),
        ("mpc/mpyc/holder.py", "set_exception_handler"),
        ("mpc/mpyc/runtime.py", "new_event_loop"),
    }
