"""A pytest plugin: the kernels of another processor, under an emulator, in the place of this one's.

`DPMPC_EMULATED` in the environment is the command that serves them (`emulated_kernels`). What is left of the tests are
those that hold kernels against something else, at every level of features. The last lines are the processor's features
and the kernels that were called.
"""

import builtins
import marshal
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

STUB = Path(__file__).parents[2] / "dpmpc/mpc/native/_kernels.pyi"
KINDS = {"uint64": "Q", "int32": "i", "uint8": "B"}
ALSO = (  # without levels
    "test_hashes_of_ids_are_those_of_the_standard_library",
    "test_uniform_words_are_cut_and_those_that_are_p_drawn_again",
)
Array = NDArray[Any]


class Kernels:
    """The kernels of a process that serves them."""

    def __init__(self, command: list[str]) -> None:
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._one = threading.Lock()
        self.called: set[str] = set()

    def call(self, name: str, *arguments: Any) -> Any:
        """What a kernel returns; arrays that it may write to are as it left them. Errors: as of the kernel."""
        self.called.add(name)
        arguments = tuple(map(_prepared, arguments))
        arrays = _arrays(arguments)
        regions = _regions(arrays)
        memory = [bytearray(end - begin) for begin, end in regions]
        for each in arrays:
            k, at = _place(each, regions)
            memory[k][at : at + each.nbytes] = each.tobytes()
        said = (name, [bytes(each) for each in memory], [_said(each, regions) for each in arguments])
        put, got = self._server.stdin, self._server.stdout
        assert put is not None and got is not None
        request = marshal.dumps(said, 2)
        with self._one:
            put.write(len(request).to_bytes(8, "little") + request)
            put.flush()
            how, what, left = marshal.loads(got.read(int.from_bytes(got.read(8), "little")))
        if how == "raises":
            raise getattr(builtins, what[0])(what[1])
        for each in arrays:
            if each.flags.writeable:
                k, at = _place(each, regions)
                each[...] = np.frombuffer(left[k], each.dtype, each.size, at).reshape(each.shape)
        return what


class _Twice(np.ndarray):
    """Rows that do not lie side by side: each of them twice, so that every second one is theirs."""


def _prepared(argument: Any) -> Any:
    """An argument with arrays, each in one piece, in the place of what is memory."""
    if isinstance(argument, tuple):
        return tuple(map(_prepared, argument))
    if isinstance(argument, bytearray):
        return np.frombuffer(argument, dtype=np.uint8)
    if isinstance(argument, np.ndarray) and not argument.flags.c_contiguous:
        twice = np.repeat(argument, 2, axis=0).view(_Twice)
        twice.flags.writeable = False
        return twice
    return argument


def _arrays(arguments: tuple[Any, ...]) -> list[Array]:
    parts = [_arrays(each) if isinstance(each, tuple) else [each] for each in arguments]
    return [each for part in parts for each in part if isinstance(each, np.ndarray)]


def _regions(arrays: list[Array]) -> list[tuple[int, int]]:
    """(begin, end) of the memory that arrays lie in: of those that overlap, one."""
    found: list[tuple[int, int]] = []
    for begin, size in sorted((each.ctypes.data, each.nbytes) for each in arrays):
        if found and begin < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], begin + size))
        else:
            found.append((begin, begin + size))
    return found


def _place(array: Array, regions: list[tuple[int, int]]) -> tuple[int, int]:
    """(region, from which byte of it on)."""
    at = array.ctypes.data
    k = max(k for k, (begin, _) in enumerate(regions) if begin <= at)
    return k, at - regions[k][0]


def _said(argument: Any, regions: list[tuple[int, int]]) -> Any:
    """An argument as it is told to the server."""
    if isinstance(argument, tuple):
        return ("tuple", [_said(each, regions) for each in argument])
    if isinstance(argument, np.ndarray):
        place, apart = _place(argument, regions), 2 if isinstance(argument, _Twice) else 1
        kind, shape, writable = KINDS[argument.dtype.name], list(argument.shape), argument.flags.writeable
        return ("array", *place, argument.nbytes, kind, shape, apart, bool(writable))
    return argument


def _kernel(kernels: Kernels, name: str) -> Callable[..., Any]:
    return lambda *arguments: kernels.call(name, *arguments)


served = Kernels(shlex.split(os.environ["DPMPC_EMULATED"]))
extension = ModuleType("dpmpc.mpc.native._kernels")
for each in re.findall(r"^def (\w+)", STUB.read_text(), re.MULTILINE):
    setattr(extension, each, _kernel(served, each))
extension.blank = bytearray  # type: ignore[attr-defined]  # memory is this process's
sys.modules[extension.__name__] = extension


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests of levels of features, and those that are named."""

    def left(item: pytest.Item) -> bool:
        return "level" in getattr(item, "fixturenames", ()) or item.name.startswith(ALSO)

    config.hook.pytest_deselected(items=[item for item in items if not left(item)])
    items[:] = [item for item in items if left(item)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"features: {' '.join(served.call('features'))}")
    terminalreporter.write_line(f"kernels: {' '.join(sorted(served.called))}")
