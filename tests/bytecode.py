"""Bytecode of the library and of the tests, written by all cores before workers start: on a fresh clone each of them
would rewrite and compile all of it, at the same time as the others."""

import itertools
import os
import py_compile
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ("dpmpc", "circuits", "cli", "benchmarks", "website")
Step = Callable[[], object]


def write(config: pytest.Config, root: Path = ROOT) -> int:
    """How many files had none, or one that is older than its source; now all that can be compiled have it."""
    steps = [*_of_tests(config, root / "tests"), *_of_library(root)]
    if not steps:
        return 0
    cores = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, len(steps))
    children = [_forked(steps[k::cores]) for k in range(1, cores)]
    _done(steps[::cores])
    for pid in children:
        os.waitpid(pid, 0)
    return len(steps)


def _of_library(root: Path) -> Iterator[Step]:
    """Of the library's files and of the tests' helpers."""
    folders = (root / name for name in LIBRARY)
    helpers = (path for path in (root / "tests").rglob("*.py") if not _rewritten(path))
    for path in itertools.chain(*(folder.rglob("*.py") for folder in folders), helpers):
        if not any(part.is_symlink() for part in path.parents) and _stale(path, Path(_cached(path))):
            yield lambda path=path: py_compile.compile(str(path), doraise=True)


def _of_tests(config: pytest.Config, folder: Path) -> Iterator[Step]:
    """Of the files whose assertions pytest rewrites, where this version of it has what it writes them with."""
    try:
        from _pytest.assertion import rewrite
    except ImportError:
        return
    if not all(hasattr(rewrite, name) for name in ("_rewrite_test", "_write_pyc", "PYC_TAIL", "assertstate_key")):
        return
    state = config.stash.get(rewrite.assertstate_key, None)
    for path in folder.rglob("*.py") if state is not None else ():
        cached = Path(_cached(path)).with_name(path.stem + rewrite.PYC_TAIL)
        if _rewritten(path) and _stale(path, cached):

            def step(path: Path = path, cached: Path = cached) -> None:
                said, code = rewrite._rewrite_test(path, config)
                cached.parent.mkdir(exist_ok=True)
                rewrite._write_pyc(state, code, said, cached)  # type: ignore[arg-type]

            yield step


def _rewritten(path: Path) -> bool:
    return path.name.startswith("test_") or path.name == "conftest.py"


def _cached(path: Path) -> str:
    return str(path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc")


def _stale(path: Path, cached: Path) -> bool:
    return not cached.exists() or cached.stat().st_mtime < path.stat().st_mtime


def _forked(steps: Sequence[Step]) -> int:
    if not (pid := os.fork()):
        try:
            _done(steps)
        finally:
            os._exit(0)
    return pid


def _done(steps: Sequence[Step]) -> None:
    for step in steps:
        try:
            step()
        except (SyntaxError, py_compile.PyCompileError, OSError):
            continue  # whoever imports it says so
