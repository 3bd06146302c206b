"""Functions of tests in a program of their own, which has what their module imports and no more.

What forks often is run there: a fork of a worker that has run a thousand tests takes twenty times as long.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.forked_commands import HANG

_BEGIN = """
import importlib, json, pathlib, sys
sys.path[:], module, function, arguments = json.loads(sys.argv[1])
arguments = [pathlib.Path(each[0]) if isinstance(each, list) else each for each in arguments]
getattr(importlib.import_module(module), function)(*arguments)
"""


def alone(function: Callable[..., Any], *arguments: Path | bool | int) -> None:
    """Calls a function of a module there. Errors: AssertionError with what it says, where it fails."""
    said = [[str(each)] if isinstance(each, Path) else each for each in arguments]
    words = json.dumps([sys.path, function.__module__, function.__name__, said])
    done = subprocess.run([sys.executable, "-c", _BEGIN, words], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
