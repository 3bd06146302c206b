"""From where processes that this one starts import: from where this one's code was installed, not from the folder in
which a command happened to be given, where a `rich.py` or an uncompiled checkout may lie."""

import os
import sys
from pathlib import Path

_HOME = str(Path(__file__).resolve().parents[2])  # the folder that has this package
_SAFE = "PYTHONSAFEPATH"  # CPython 3.11: neither a script's folder nor the current one comes first


def import_paths() -> list[str]:
    """This process's paths of import, as a child gets them: the current folder and that of the script come last, for
    roles of the caller's own. Where one of them has this package it keeps its place, for a child must run the same
    code."""
    paths = [path for path in sys.path if path and "\0" not in path]
    last = {os.path.realpath(path) for path in (os.curdir, *([] if sys.flags.safe_path else paths[:1]))} - {_HOME}
    return sorted(paths, key=lambda path: os.path.realpath(path) in last)


def imports_from_current_folder() -> bool:
    """Whether this process looks for modules in the current folder, as `python -m` does outside of safe paths, where
    that is not the folder of this package."""
    here = os.path.realpath(os.curdir)
    return here != _HOME and here in map(os.path.realpath, sys.path)


def child_environment() -> dict[str, str]:
    """The environment of a process to start."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(import_paths()), _SAFE: "1"}


def keep_children_safe() -> None:
    """Every Python that this process starts by whatever means, and theirs, import so: pools of the standard library and
    of joblib begin with `python -c`, which looks into the current folder first."""
    os.environ[_SAFE] = "1"
