"""Straight-line programs: what a circuit does, for whoever executes it.

A program works on *slots*, each of which holds one wire at a time. It is a list of layers. A layer loads inputs into
slots, does XORs in order, and ends with ANDs that do not depend on each other: one round for all of them. Executors do
layers; what is scheduled where, what is constant and which slot is free again is decided here, once.

Every implementation draws the same randomness: the program's k-th random bit is the k-th that a batch draws, whatever
number it had in the circuit, and bits that nothing depends on are not drawn.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import cached_property, dataclass

from .engine import Bundle
from .trace import Graph, Tracer, evaluate, nodes_of

Ints = NDArray[np.int32]


class ProgramEngine(Protocol):
    """One batch of `lanes` evaluations of a program whose number becomes shares in F_p, p = 2^61 - 1."""

    @property
    def lanes(self) -> int:
        """Evaluations side by side."""

    @property
    def masks(self) -> int:
        """k: the masks that a conversion adds."""

    async def to_field(self, program: "Program", less: int = 0) -> NDArray[np.uint64]:
        """Shares in F_p, one a lane, of the number whose masked sum the program gives (`circuits.convert.to_field`),
        less a public number.

        Cost: a round for each layer of ANDs; one opening.
        """


ZERO, ONE = 0, 1  # slots that hold the constants throughout


@dataclass(frozen=True, eq=False)
class Layer:
    """Loads, then XORs, then ANDs. The results of ANDs are in their slots when the next layer begins, not before."""

    random: Ints  # (r,) slots of the next r random bits
    masks: Ints  # (m, 3): slot, mask, number of the bit in the mask
    given: Ints  # (g, 2): slot, number
    xors: Ints  # for each XOR, in order: slot out, how many operands, their slots
    ands: Ints  # (a, 3): slots out, left, right; no slot out is an operand of the layer's; none in the last layer

    @cached_property
    def results(self) -> Ints:
        """Slots of the ANDs' results."""
        return np.ascontiguousarray(self.ands[:, 0])

    @cached_property
    def by_mask(self) -> dict[int, tuple[Ints, Ints]]:
        """Of each mask that is loaded from: the slots, and the numbers of the bits in it."""
        numbers = sorted(set(self.masks[:, 1].tolist()))
        rows = {m: self.masks[self.masks[:, 1] == m] for m in numbers}
        return {m: (np.ascontiguousarray(r[:, 0]), np.ascontiguousarray(r[:, 2])) for m, r in rows.items()}

    @cached_property
    def gates(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The XORs as (slot out, slots of the operands)."""
        found, numbers, i = [], self.xors.tolist(), 0
        while i < len(numbers):
            end = i + 2 + numbers[i + 1]
            found.append((numbers[i], tuple(numbers[i + 2 : end])))
            i = end
        return tuple(found)

    @cached_property
    def xor_groups(self) -> tuple[tuple[Ints, Ints], ...]:
        """The XORs as (slots out (g,), operands (g, r)), in groups that can be done one at a time, each reading before
        it writes.

        For NumPy, which does a group at once. A XOR comes after what wrote its operands, and no earlier than what
        reads or writes its slot before it.
        """
        written: dict[int, int] = {}  # slot -> group that writes it last
        read: dict[int, int] = {}  # slot -> last group that reads it
        groups: dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]] = {}
        for out, operands in self.gates:
            at = max(written.get(slot, -1) + 1 for slot in (out, *operands))
            at = max(at, read.get(out, 0) + 1)  # groups of one number but other lengths are not done at once
            groups.setdefault((at, len(operands)), []).append((out, operands))
            written[out] = at
            for slot in operands:
                read[slot] = max(read.get(slot, 0), at)
        return tuple(
            (_ints([out for out, _ in groups[at]]), _ints([o for _, operands in groups[at] for o in operands], at[1]))
            for at in sorted(groups)
        )


NO_GATES = Layer(*(np.zeros(shape, dtype=np.int32) for shape in ((0,), (0, 3), (0, 2), (0,), (0, 3))))


@dataclass(frozen=True, eq=False)
class Program:
    """A circuit's gates in layers. `slots` suffice for all of it."""

    layers: tuple[Layer, ...]
    outputs: Ints  # slots after the last layer
    slots: int
    drawn: Ints  # the circuit's number of the program's k-th random bit
    masks: int
    mask_bits: int  # of each mask
    given: int

    @property
    def ands(self) -> int:
        """AND gates."""
        return sum(self.widths)

    @property
    def xors(self) -> int:
        """XORs of two wires, NOTs among them."""
        return sum(len(operands) - 1 for layer in self.layers for _, operands in layer.gates)

    @property
    def widths(self) -> list[int]:
        """ANDs of each layer that has some."""
        return [len(layer.ands) for layer in self.layers if len(layer.ands)]

    @property
    def depth(self) -> int:
        """Layers with ANDs: rounds, where an AND takes one."""
        return len(self.widths)

    @property
    def random_bits(self) -> int:
        """Random bits of a lane."""
        return len(self.drawn)


def program_of(circuit: Callable[[Tracer], Coroutine[Any, Any, Bundle]], masks: int = 0) -> Program:
    """The program of a Boolean circuit, written for any engine, for conversions with so many masks. Its outputs are the
    bundle that the circuit returns, flat, in C order."""
    tracer = Tracer(masks)
    return compile_graph(tracer.graph, evaluate(circuit(tracer)), masks)


def compile_graph(graph: Graph, outputs: NDArray[Any], masks: int = 0) -> Program:
    """The program that computes the traced bundle `outputs` (flat, in C order).

    Gates on which no output depends are dropped; a XOR that only another XOR uses becomes part of it; an AND is in the
    first layer that can have it; a XOR, or a load of an input, is in the first layer that needs it.
    """
    results = nodes_of(outputs)
    operands = _operands(graph, results)
    ands: dict[int, list[int]] = {}  # by layer
    level = [0] * len(graph.operation)  # the layer from which on a node can be used
    for node, pair in operands.items():
        first = max([level[operand] for operand in pair]) if pair else 0
        if graph.operation[node] == "and":
            ands.setdefault(first, []).append(node)
            first += 1
        level[node] = first
    last = max((level[node] for node in results), default=0)
    order = _Order(graph, operands)
    steps = []
    for k in range(last):
        roots = [operand for node in ands[k] for operand in operands[node]]
        steps.append((*order.before(roots), ands[k]))
    steps.append((*order.before(results), []))
    program = _Allocation(graph, operands, steps, results).program(masks)
    if not computes(program, graph, results):  # holds under -O too: a wrong gate may be one that hides something
        raise AssertionError("the program does not compute what was traced")
    return program


def computes(program: Program, graph: Graph, results: list[int]) -> bool:
    """Whether the program's outputs are the nodes `results`: it is run on the graph itself, where wires that are equal
    have one form. Every slot, load and gate is used as an executor would; a slot that was never written is an error."""
    inputs = {
        (operation, graph.left[node], graph.right[node]): node
        for node, operation in enumerate(graph.operation)
        if operation in ("random", "mask", "given")
    }
    slots: dict[int, int] = {ZERO: 0, ONE: 1}
    drawn = iter(program.drawn.tolist())
    pending: list[tuple[int, int]] = []
    try:
        for layer in program.layers:
            slots.update(pending)
            slots.update((slot, inputs["random", next(drawn), 0]) for slot in layer.random.tolist())
            slots.update((slot, inputs["mask", bit, mask]) for slot, mask, bit in layer.masks.tolist())
            slots.update((slot, inputs["given", number, 0]) for slot, number in layer.given.tolist())
            for out, operands in layer.gates:
                slots[out] = graph.xor_of([slots[operand] for operand in operands])
            pending = [(out, graph.and_(slots[left], slots[right])) for out, left, right in layer.ands.tolist()]
            if {out for out, _ in pending} & set(layer.ands[:, 1:].reshape(-1).tolist()):
                return False
        found = [slots[slot] for slot in program.outputs.tolist()]
    except (KeyError, StopIteration):
        return False
    fits = max(slots, default=0) < program.slots and not pending and next(drawn, None) is None
    return found == results and slots[ZERO] == 0 and slots[ONE] == 1 and fits


def _operands(graph: Graph, results: list[int]) -> dict[int, tuple[int, ...]]:
    """The operands of every node on which results depend, single XORs drawn together; operands come first."""
    kinds = graph.operation
    pairs = [
        (left, right) if kind in ("xor", "and") else ()
        for kind, left, right in zip(kinds, graph.left, graph.right, strict=True)
    ]
    needed = _needed(results, pairs)
    uses, by_xor = [0] * len(pairs), [0] * len(pairs)
    for result in results:
        uses[result] += 1
    for node in needed:
        for operand in pairs[node]:
            uses[operand] += 1
            if kinds[node] == "xor":
                by_xor[operand] += 1
    flat: list[tuple[int, ...] | dict[int, None]] = [*pairs]
    for node in needed:
        if kinds[node] != "xor":
            continue
        odd: dict[int, None] = {}
        for operand in pairs[node]:
            absorbed = uses[operand] == by_xor[operand] == 1 and kinds[operand] == "xor"
            parts = flat[operand] if absorbed else (operand,)
            if not odd and isinstance(parts, dict):
                odd = parts  # read by this XOR alone: a chain of n takes n steps
                continue
            for part in parts:
                if part in odd:
                    del odd[part]  # twice is not at all
                else:
                    odd[part] = None
        flat[node] = odd
    return {node: tuple(flat[node]) for node in _needed(results, flat)}


def _needed(results: list[int], operands: Sequence[Iterable[int]]) -> list[int]:
    """The nodes on which results depend, in the graph's order."""
    needed = bytearray(len(operands))
    for result in results:
        needed[result] = 1
    for node in range(len(operands) - 1, -1, -1):  # operands come before what they are of
        if needed[node]:
            for operand in operands[node]:
                needed[operand] = 1
    return [node for node, is_needed in enumerate(needed) if is_needed]


class _Order:
    """Loads and XORs in the order in which they are needed."""

    def __init__(self, graph: Graph, operands: dict[int, tuple[int, ...]]) -> None:
        self._graph, self._operands = graph, operands
        self._done = bytearray(kind == "and" for kind in graph.operation)  # results of ANDs are there, or come later
        self._done[:2] = b"\1\1"

    def before(self, roots: list[int]) -> tuple[list[int], list[int]]:
        """(inputs, XORs) that the roots need and that have not been given out yet."""
        kinds, operands, done = self._graph.operation, self._operands, self._done
        inputs: list[int] = []
        xors: list[int] = []
        for root in roots:
            stack = [root]
            while stack:
                node = stack[-1]
                if done[node]:
                    stack.pop()
                    continue
                is_xor = kinds[node] == "xor"
                if is_xor and (missing := [o for o in reversed(operands[node]) if not done[o]]):
                    stack += missing
                else:
                    (xors if is_xor else inputs).append(stack.pop())
                    done[node] = 1
        return inputs, xors


class _Allocation:
    """Slots for nodes: a slot is free again after the last use of what it holds."""

    def __init__(
        self,
        graph: Graph,
        operands: dict[int, tuple[int, ...]],
        steps: list[tuple[list[int], list[int], list[int]]],
        results: list[int],
    ) -> None:
        self._graph, self._operands, self._steps, self._results = graph, operands, steps, results
        self._slot = {0: ZERO, 1: ONE}
        self._free: list[int] = []
        self._slots = 2
        self._uses = Counter(results)
        self._uses.update(o for _, xors, ands in steps for node in (*xors, *ands) for o in operands[node])
        self._uses.update((0, 1))  # never free

    def _take(self, node: int) -> int:
        if self._free:
            slot = self._free.pop()
        else:
            slot, self._slots = self._slots, self._slots + 1
        self._slot[node] = slot
        return slot

    def _read(self, node: int) -> list[int]:
        """The slots of a node's operands, for the last time it may be."""
        operands, uses = self._operands[node], self._uses
        slots = [self._slot[operand] for operand in operands]
        for operand, slot in zip(operands, slots, strict=True):
            uses[operand] -= 1
            if not uses[operand]:
                self._free.append(slot)
        return slots

    def program(self, masks: int) -> Program:
        """All of it, in slots."""
        graph, drawn, layers = self._graph, [], []
        for inputs, xors, ands in self._steps:
            random, from_masks, given = [], [], []
            for node in inputs:
                kind, slot = graph.operation[node], self._take(node)
                if kind == "random":
                    drawn.append(graph.left[node])
                    random.append(slot)
                elif kind == "mask":
                    from_masks.append((slot, graph.right[node], graph.left[node]))
                else:
                    given.append((slot, graph.left[node]))
            done = []
            for node in xors:
                slots = self._read(node)
                done += [self._take(node), len(slots), *slots]
            made = [self._take(node) for node in ands]  # before operands are free: executors write while they read
            joined = [(slot, *self._read(node)) for slot, node in zip(made, ands, strict=True)]
            layers.append(Layer(_ints(random), _ints(from_masks, 3), _ints(given, 2), _ints(done), _ints(joined, 3)))
        return Program(
            tuple(layers),
            _ints([self._slot[node] for node in self._results]),
            self._slots,
            _ints(drawn),
            masks,
            graph.counts["mask"],
            graph.counts["given"],
        )


def _ints(rows: list[Any], width: int = 0) -> Ints:
    array = np.array(rows, dtype=np.int32).reshape(-1, width) if width else np.array(rows, dtype=np.int32)
    array.flags.writeable = False
    return array
