"""One process that another one started: `python -m dpmpc.processes.worker [MODULE ...]`.

It imports the modules named, reads its job (one line on standard input: a role "module:function" and arguments), calls
the role, and tells events, result or error on standard output. Standard input stays open until whoever started it ends
or dies; its end makes this process exit, so that none outlives its starter.
"""

import contextlib
import importlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dpmpc.errors import DpmpcError, machine_text, public_message, to_event
from dpmpc.processes import exhausted
from dpmpc.processes.logs import Log as Log
from dpmpc.processes.logs import log_to, wanted
from dpmpc.processes.memory import importing, keep_freed_blocks
from dpmpc.processes.messages import dumps, loads

Emit = Callable[..., None]
GONE = 3  # exit code where the starter has gone


def main() -> None:
    """Entry point."""
    with exhausted.ending():
        ready(1)
        prepare(sys.argv[1:])
        serve()


def ready(descriptor: int) -> None:
    """Has this process end with its last word to who started it, over `descriptor`, where it has no memory left."""
    error = {"message": exhausted.text(), "exit_code": exhausted.EXIT_CODE}
    exhausted.make_ready(descriptor, dumps({"event": "error", **error}) + b"\n")


def prepare(modules: Sequence[str]) -> None:
    """What comes before any job."""
    keep_freed_blocks()
    os.umask(0o077)  # what it writes is for this user alone
    with importing():
        for module in modules:
            importlib.import_module(module)


def serve() -> NoReturn:
    """Does the job. Exits with 0, the error's exit code, or 1 for a bug, whose stack is on standard error."""
    events = os.fdopen(os.dup(1), "wb", buffering=0)
    ready(events.fileno())
    os.dup2(2, 1)  # whatever prints goes to the log
    said = threading.Lock()

    def emit(event: str, **fields: Any) -> None:
        line = memoryview(dumps({"event": event, **fields}) + b"\n")
        try:
            with said:
                while line:
                    line = line[events.write(line) :]
        except OSError:
            os._exit(GONE)

    line = sys.stdin.buffer.readline()
    if not line:
        os._exit(GONE)
    threading.Thread(target=_exit_with_starter, daemon=True).start()
    job = loads(line)
    with exhausted.ending():
        code = run_role(job["role"], job["arguments"], emit, log_to(sys.stderr))
        exhausted.make_ready(events.fileno(), b"", code)  # all is said
        sys.stderr.flush()
    os._exit(code)  # no wait for the thread that watches the starter


def run_role(role: str, arguments: dict[str, Any], emit: Emit, log: Log) -> int:
    """Calls `role` with the arguments, `emit` and `log`; the exit code. What it returns is the event `result`.

    A failure is the event `error`, which goes to who started this process. The log keeps what may be said to anybody:
    of an error its public half, of a bug where it happened and its type, for its message may quote a record.
    """
    module, _, name = role.partition(":")
    try:
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
        emit("result", value=function(**arguments, emit=emit, log=log))
    except DpmpcError as error:
        log(f"error: {public_message(error)}")
        emit("error", **to_event(error))
        return error.exit_code
    except Exception as error:  # noqa: BLE001  (a bug, of any type)
        _log_stack(error)
        if isinstance(error, OSError) or machine_text(error):  # a full disk, no memory: worth a stack, but no bugs
            emit("error", **refused(error))
        return 1
    return 0


def refused(error: Exception) -> dict[str, Any]:
    """What is said of what the machine has refused: the fields of the event."""
    return {"message": machine_text(error) or f"{type(error).__name__}: {error}", "exit_code": 1}


def say_refused(descriptor: int, error: OSError) -> None:
    """Says so for a process that could not be started, at the end of a pipe where it would have said it itself."""
    with contextlib.suppress(OSError):
        os.write(descriptor, dumps({"event": "error", **refused(error)}) + b"\n")


def _log_stack(error: BaseException) -> None:
    """Where it happened, to the log, without what it says: that is logged at the level debug alone, or where it names a
    module."""
    if wanted("debug") or isinstance(error, ImportError):
        traceback.print_exception(error)
        return
    print("Traceback (what was said is left out: it may quote a record; --log-level debug keeps it):", file=sys.stderr)
    print("".join(traceback.format_tb(error.__traceback__)) + type(error).__name__, file=sys.stderr, flush=True)


def _exit_with_starter() -> None:
    while os.read(0, 1 << 12):
        pass
    os._exit(GONE)


if __name__ == "__main__":
    main()
