"""Circuits to graphs: an engine whose wires record what is done to them.

A bundle is an array of `Wire`s, without lanes. Running a circuit on a `Tracer` once gives every gate that it will ever
use; `circuits.program` makes a program of them.

Each wire knows its *form*: the set of leaves (inputs, outputs of ANDs and the constant 1) whose XOR it is, as the bits
of an integer. Forms are canonical: two wires are equal as functions of their leaves exactly when their forms are. So
constants fold, and common subexpressions are found however they are written.
"""

import functools
import math
from collections.abc import Coroutine
from dataclasses import field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass

from .engine import Bundle

T = TypeVar("T")
Kind = Literal["random", "mask", "given"]


@dataclass
class Graph:
    """Gates in an order in which operands come first. Node 0 is the constant 0, node 1 the constant 1."""

    operation: list[str] = field(default_factory=lambda: ["zero", "one"])  # or "xor", "and", or a kind of input
    left: list[int] = field(default_factory=lambda: [0, 0])  # an operand, or the number of an input of this kind
    right: list[int] = field(default_factory=lambda: [0, 0])  # an operand, or the number of a mask
    form: list[int] = field(default_factory=lambda: [0, 1])
    leaves: int = 1
    counts: dict[Kind, int] = field(default_factory=lambda: {"random": 0, "mask": 0, "given": 0})
    _by_form: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 1})
    _by_factors: dict[tuple[int, int], int] = field(default_factory=dict)

    def _new(self, operation: str, left: int, right: int, form: int | None = None) -> int:
        if form is None:
            form = 1 << self.leaves
            self.leaves += 1
        self.operation.append(operation)
        self.left.append(left)
        self.right.append(right)
        self.form.append(form)
        node = len(self.form) - 1
        self._by_form[form] = node
        return node

    def input(self, kind: Kind, number: int, mask: int = 0) -> int:
        """The node of an input."""
        return self._new(kind, number, mask)

    def xor(self, a: int, b: int) -> int:
        """The node of a XOR b: one that is there already, if any has this form."""
        form = self.form[a] ^ self.form[b]
        found = self._by_form.get(form)
        return self._new("xor", a, b, form) if found is None else found

    def xor_of(self, nodes: list[int]) -> int:
        """The node of the XOR of all, by their forms alone: as `xor` of one after the other gives it."""
        form = 0
        for node in nodes:
            form ^= self.form[node]
        found = self._by_form.get(form)
        return functools.reduce(self.xor, nodes) if found is None else found

    def and_(self, a: int, b: int) -> int:
        """The node of a AND b, without a gate where an operand is constant, or the other one or its complement."""
        if a > b:
            a, b = b, a  # one node a form, so nodes stand for forms
        if a == 0 or self.form[a] ^ self.form[b] == 1:
            return 0
        if a == 1 or a == b:
            return b
        found = self._by_factors.get((a, b))
        if found is None:
            found = self._by_factors[a, b] = self._new("and", a, b)
        return found


class Wire:
    """One bit of a traced circuit, alike in every lane."""

    __slots__ = ("graph", "node")

    def __init__(self, graph: Graph, node: int) -> None:
        self.graph, self.node = graph, node

    def __xor__(self, other: "Wire | int") -> "Wire":
        if other.__class__ is Wire:  # nearly always
            return Wire(self.graph, self.graph.xor(self.node, other.node))
        if isinstance(other, np.ndarray):
            return NotImplemented  # the array goes through its elements
        return Wire(self.graph, self.graph.xor(self.node, node_of(other)))

    __rxor__ = __xor__

    def __getitem__(self, key: Any) -> Bundle:
        """As of a bundle without axes: wire[None] is a bundle of one wire."""
        bundle = np.empty((), dtype=object)
        bundle[()] = self
        return np.asarray(bundle[key], dtype=object)


def node_of(wire: "Wire | int") -> int:
    """The node of a wire; the number 0, with which object arrays begin, is the constant 0."""
    if isinstance(wire, Wire):
        return wire.node
    assert wire == 0
    return 0


class Tracer:
    """An engine (`circuits.engine`) that records. `masks`: how many masks a conversion adds."""

    tail: tuple[int, ...] = ()

    def __init__(self, masks: int = 0) -> None:
        self.graph = Graph()
        self._masks = masks

    def _wires(self, nodes: list[int], shape: tuple[int, ...]) -> Bundle:
        out = np.empty(len(nodes), dtype=object)
        for i, node in enumerate(nodes):
            out[i] = Wire(self.graph, node)
        return out.reshape(shape)

    def constant(self, bits: Any) -> Bundle:
        wires = np.asarray(bits, dtype=bool)
        return self._wires([int(b) for b in wires.reshape(-1)], wires.shape)

    def not_(self, x: Bundle) -> Bundle:
        return np.asarray(x ^ Wire(self.graph, 1), dtype=object)

    def random_bits(self, *wires: int) -> Bundle:
        return self._inputs("random", wires)

    def given(self, *wires: int) -> Bundle:
        """Bits that whoever runs the program supplies, numbered in the order of the calls."""
        return self._inputs("given", wires)

    def _inputs(self, kind: Kind, wires: tuple[int, ...]) -> Bundle:
        first, count = self.graph.counts[kind], math.prod(wires)
        self.graph.counts[kind] += count
        return self._wires([self.graph.input(kind, first + i) for i in range(count)], wires)

    def mask_bits(self, *planes: int) -> Bundle:
        first, count = self.graph.counts["mask"], math.prod(planes)
        self.graph.counts["mask"] += count
        nodes = [self.graph.input("mask", first + i, m) for m in range(self._masks) for i in range(count)]
        return self._wires(nodes, (self._masks, *planes))

    async def and_(self, x: Bundle, y: Bundle) -> Bundle:
        x, y = np.broadcast_arrays(x, y)
        pairs = zip(x.reshape(-1), y.reshape(-1), strict=True)
        return self._wires([self.graph.and_(node_of(a), node_of(b)) for a, b in pairs], x.shape)


def evaluate(circuit: Coroutine[Any, Any, T]) -> T:
    """What the circuit returns; it must not wait for anything, as none does on an engine that has no network."""
    try:
        circuit.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("a circuit waited outside an event loop")


def nodes_of(outputs: NDArray[Any]) -> list[int]:
    """The nodes of a traced bundle, or of a single wire, flat."""
    return [node_of(wire) for wire in np.asarray(outputs, dtype=object).reshape(-1)]
