"""Run by `emulated` under an emulator, by a bare Python of the processor that is emulated: python emulated_kernels.py
EXTENSION. Calls of kernels come in by standard input, what they return and the memory that they wrote go out.

A call is a name, the memory that its arrays lie in, and arguments, of which an array says where it lies. Standard
library alone, and of that what the smallest Python has.
"""

import importlib.machinery
import importlib.util
import marshal
import sys
from typing import Any

loader = importlib.machinery.ExtensionFileLoader("_kernels", sys.argv[1])
spec = importlib.util.spec_from_loader("_kernels", loader)
assert spec is not None
kernels: Any = importlib.util.module_from_spec(spec)
loader.exec_module(kernels)
came, went = sys.stdin.buffer, sys.stdout.buffer


def argument(said: Any, regions: list[bytearray]) -> Any:
    """What a kernel is given."""
    if not isinstance(said, tuple):
        return said
    if said[0] == "tuple":
        return tuple(argument(each, regions) for each in said[1])
    _, region, begin, size, kind, shape, apart, writable = said
    view = memoryview(regions[region])[begin : begin + size]
    view = view if writable else view.toreadonly()
    return view.cast(kind, shape)[::apart] if size else view.cast(kind)


while length := came.read(8):
    name, memory, arguments = marshal.loads(came.read(int.from_bytes(length, "little")))
    regions = [bytearray(each) for each in memory]
    try:
        found = ("gives", getattr(kernels, name)(*(argument(each, regions) for each in arguments)))
    except (TypeError, ValueError, OverflowError, BufferError) as error:
        found = ("raises", (type(error).__name__, str(error)))
    answer = marshal.dumps((*found, [bytes(each) for each in regions]), 2)
    went.write(len(answer).to_bytes(8, "little") + answer)
    went.flush()
