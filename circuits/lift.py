"""A sample as weighted bits, for those who can add shared bits up without adders.

An engine that turns a shared bit into shares of a number by one message (`LiftEngine.lift`) needs neither adders nor
masks: it is given the heap's bits and their weights. Bits that go into the heap as they were drawn, and nowhere else,
need not be computed at all: only their weights are told.
"""

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass

from .heap import Heap
from .program import Program, compile_graph
from .trace import Graph, Tracer, Wire, evaluate, nodes_of


@dataclass(frozen=True, eq=False)
class HeapProgram:
    """A heap's value is the sum of coefficients[k] times output k of the program, of 2^w for each w of `loose` times a
    fresh random bit, and of `constant`."""

    program: Program
    coefficients: tuple[int, ...]  # of the outputs, which differ and are no complements of each other
    loose: tuple[int, ...]
    constant: int
    largest: int  # the heap's value lies in 0 .. largest

    @property
    def random_bits(self) -> int:
        """Random bits of a lane."""
        return self.program.random_bits + len(self.loose)


@runtime_checkable
class LiftEngine(Protocol):
    """One batch of evaluations of a heap program."""

    async def lift(self, heap: HeapProgram, less: int = 0) -> NDArray[np.uint64]:
        """Shares, one a lane, of the heap's value less a public number, in the group of the engine's shares."""


def heap_program(circuit: Callable[[Tracer], Coroutine[Any, Any, Heap]]) -> HeapProgram:
    """The program of a circuit that ends in a heap."""
    tracer = Tracer()
    heap = evaluate(circuit(tracer))
    graph = tracer.graph
    wires = [(nodes_of(wire)[0], w) for w, column in enumerate(heap.columns) for wire in column]
    times = Counter(node for node, _ in wires)
    inner = _operands(graph, list(times))
    loose: list[int] = []
    constant = 0
    found: dict[int, tuple[int, int]] = {}  # form without the constant 1 -> (a node of it, its coefficient)
    for node, w in wires:
        if graph.operation[node] == "random" and node not in inner and times[node] == 1:
            loose.append(w)
            continue
        form = graph.form[node] & ~1
        first, coefficient = found.get(form, (node, 0))
        same = graph.form[first] == graph.form[node]
        found[form] = first, coefficient + (1 << w if same else -(1 << w))  # 1 - x for NOT x
        constant += 0 if same else 1 << w
    if (ones := found.pop(0, None)) is not None:  # the constants: coefficient times 1 or 0
        constant += ones[1] * (graph.form[ones[0]] & 1)
    outputs = np.empty(len(found), dtype=object)
    outputs[:] = [Wire(graph, node) for node, _ in found.values()]
    coefficients = tuple(coefficient for _, coefficient in found.values())
    largest = sum(1 << w for _, w in wires)
    return HeapProgram(compile_graph(graph, outputs), coefficients, tuple(loose), constant, largest)


def _operands(graph: Graph, nodes: list[int]) -> set[int]:
    """The nodes that others, on which `nodes` depend, are computed from."""
    found: set[int] = set()
    stack, seen = list(nodes), set(nodes)
    while stack:
        node = stack.pop()
        if graph.operation[node] in ("xor", "and"):
            for operand in (graph.left[node], graph.right[node]):
                found.add(operand)
                if operand not in seen:
                    seen.add(operand)
                    stack.append(operand)
    return found
