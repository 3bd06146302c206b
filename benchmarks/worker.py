"""One process of a measurement: `python -m dpmpc.benchmarks.worker ROLE`, arguments as JSON on standard input, result
as JSON on standard output.
"""

import importlib
import json
import os
import sys
from typing import Any

from dpmpc.errors import DpmpcError
from dpmpc.processes.memory import keep_freed_blocks

ROLES = {
    "party": ("dpmpc.benchmarks.release", "party"),
    "owners": ("dpmpc.benchmarks.release", "owners"),
    "bare party": ("dpmpc.benchmarks.bare", "party"),
    "bare owners": ("dpmpc.benchmarks.bare", "owners"),
    "relay": ("dpmpc.benchmarks.relay", "relay"),
}


def main() -> int:
    """The exit code. A failure that the user can act on is reported to the parent; a bug leaves its traceback on
    standard error.
    """
    keep_freed_blocks()  # as the processes of a training run do
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints goes to the log

    def report(**answer: Any) -> None:
        json.dump(answer, out)
        out.flush()

    module, name = ROLES[sys.argv[1]]
    role = getattr(importlib.import_module(module), name)
    try:
        report(result=role(**json.load(sys.stdin)))
    except DpmpcError as error:
        report(error=str(error), code=error.exit_code)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
