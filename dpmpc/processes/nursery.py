"""Several processes that another one started together: `python -m dpmpc.processes.nursery TABLE [MODULE ...]`.

It imports the modules named once and forks a process for each row of TABLE, which goes on as `worker` does: most of
what a process costs that does little is its imports. A row holds descriptors that were inherited: [standard input,
standard output, standard error, [those it keeps under their own numbers]]. All others a process closes.

It says on standard output who lives ([row, process number]) and who ended ([row, process number, exit code], negative
for a signal), and takes their exits when whoever started it has closed its standard input: until then no other process
can have got their numbers. It holds no job, key or record. Where an import has started a thread, a fork is not safe:
each process is then started afresh.
"""

import atexit
import gc
import json
import os
import subprocess
import sys
import threading

from dpmpc.processes import worker

Row = tuple[int, int, int, list[int]]
_OWN = 3  # descriptors from here on are a row's


def main() -> None:
    """Entry point: of this process, and of those that it forks."""
    worker.prepare(sys.argv[2:])
    rows: list[Row] = json.loads(sys.argv[1])
    gc.freeze()  # what all share is looked through by none
    atexit.register(gc.unfreeze)  # but at the end, or modules' objects are left over and extensions say that they leak
    single = len(os.listdir("/proc/self/task")) == 1
    born: list[int] = []
    for k, row in enumerate(rows):
        pid = os.fork() if single else _afresh(row)
        if pid == 0:
            _become(k, rows)
            worker.serve()
        born.append(pid)
        _say(k, pid)
    for descriptor in _descriptors(rows):
        os.close(descriptor)
    watching = [threading.Thread(target=_watch, args=(k, pid)) for k, pid in enumerate(born)]
    for thread in watching:
        thread.start()
    for thread in watching:
        thread.join()
    while os.read(0, 1 << 12):
        pass
    for pid in born:
        os.waitpid(pid, 0)


def _descriptors(rows: list[Row]) -> set[int]:
    """All that were inherited for the rows."""
    return {number for *pipes, kept in rows for number in (*pipes, *kept)}


def _become(k: int, rows: list[Row]) -> None:
    """What the fork of row k starts with: a session, standard streams and descriptors of its own."""
    os.setsid()
    *pipes, kept = rows[k]
    for own, descriptor in enumerate(pipes):
        os.dup2(descriptor, own)
    for descriptor in _descriptors(rows) - set(kept):
        if descriptor >= _OWN:
            os.close(descriptor)


def _afresh(row: Row) -> int:
    """The number of a new process with the same modules, for a row."""
    stdin, stdout, stderr, kept = row
    command = [sys.executable, "-m", "dpmpc.processes.worker", *sys.argv[2:]]
    process = subprocess.Popen(
        command, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=kept, start_new_session=True
    )
    process.returncode = 0  # its exit is taken below
    return process.pid


def _watch(k: int, pid: int) -> None:
    """Say when it ends. Its exit is left to be taken later."""
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert end is not None
    _say(k, pid, end.si_status if end.si_code == os.CLD_EXITED else -end.si_status)


def _say(*numbers: int) -> None:
    try:
        os.write(1, json.dumps(numbers).encode() + b"\n")  # short, and so in one piece
    except OSError:
        pass  # the starter is gone; so will they be


if __name__ == "__main__":
    main()
