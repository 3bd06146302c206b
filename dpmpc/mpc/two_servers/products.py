"""Which transfers the ANDs of a program take: products of a shared bit with shared vectors.

x AND y for shared bits needs x_0 y_1 and x_1 y_0: for each a transfer, in which the owner of x's part chooses. A
transfer's strings are as long as one likes, so all ANDs of one x share one transfer each way, whatever their layers:
the fewest x that take part in all ANDs are looked for (a vertex cover, greedily). And a random bit that is *born* in
a transfer costs no message: as its choice, or as the XOR of its two strings; each is born once at most.
"""

import functools
import heapq
from collections import Counter, defaultdict
from dataclasses import field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.program import ONE, ZERO, Program
from dpmpc.lazy import dataclass

Ints = NDArray[np.int64]

MOST_BITS = 64  # of a string


@dataclass(frozen=True)
class Birth:
    """Where a party's share of a random bit comes from: its choice in transfer `number`, or the XOR of the two strings
    that it offers at element `number`, or, for "lift", either, in one transfer alone. `flipped`: NOT of it."""

    kind: Literal["own", "choice", "element", "lift"] = "own"
    number: int = 0
    flipped: bool = False


@dataclass(frozen=True, eq=False)
class LayerProducts:
    """The ANDs of a layer, in its order."""

    transfers: Ints  # of each AND
    elements: Ints  # of each AND, numbered over the program
    choices: Ints  # slot of the operand that chooses
    vectors: Ints  # slot of the other
    told: Ints  # transfers whose choice is told in this layer
    told_slots: Ints  # and where it is
    sent: Ints  # the ANDs whose other operand is sent: all but those born


@dataclass(frozen=True, eq=False)
class ProductTransfers:
    """A program's transfers, as many in each direction. `widths`: elements of each; they are numbered through."""

    widths: tuple[int, ...]
    layers: tuple[LayerProducts, ...]
    births: tuple[Birth, ...]  # of the program's random bits, in the order in which they are drawn

    @property
    def transfers(self) -> int:
        """In each direction."""
        return len(self.widths)

    @property
    def elements(self) -> int:
        """Bits of all strings."""
        return sum(self.widths)


@dataclass
class _Edge:
    """An AND."""

    layer: int
    slots: tuple[int, int]
    forms: tuple[int, int]
    transfer: int = -1
    element: int = 0  # within the transfer
    choice: int = 0  # which operand chooses
    born: bool = False


@dataclass
class _Forms:
    """A program as XORs of leaves: bit 0 of a form is the constant 1, every other bit an input or an AND."""

    program: Program
    leaves: int = 1
    random: dict[int, int] = field(default_factory=dict)  # leaf's form -> number of the random bit
    edges: list[_Edge] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def leaf(self) -> int:
        """A new leaf's form."""
        self.leaves += 1
        return 1 << (self.leaves - 1)

    def read(self) -> "_Forms":
        """Follows the program."""
        slots: dict[int, int] = {ZERO: 0, ONE: 1}
        pending: list[tuple[int, int]] = []
        for number, layer in enumerate(self.program.layers):
            slots.update(pending)
            for slot in layer.random.tolist():
                slots[slot] = self.leaf()
                self.random[slots[slot]] = len(self.random)
            for slot in (*layer.masks[:, 0].tolist(), *layer.given[:, 0].tolist()):
                slots[slot] = self.leaf()
            for out, operands in layer.gates:
                slots[out] = functools.reduce(lambda a, b: a ^ b, [slots[operand] for operand in operands])
            pending = []
            for out, left, right in layer.ands.tolist():
                self.edges.append(_Edge(number, (left, right), (slots[left], slots[right])))
                pending.append((out, self.leaf()))
        self.outputs = [slots[slot] for slot in self.program.outputs.tolist()]
        return self


def products_of(program: Program) -> ProductTransfers:
    """The transfers of the program's ANDs."""
    return _products(program)[0]


@functools.lru_cache(maxsize=64)
def _products(program: Program) -> tuple[ProductTransfers, tuple[Birth | None, ...]]:
    """(the transfers, for each output that is a random bit which no transfer has given birth to its number there)."""
    forms = _Forms(program).read()
    births: dict[int, Birth] = {}
    covered = _cover(forms)
    widths: list[int] = []
    fresh: list[bool] = []
    for choice, edges in covered:
        for start in range(0, len(edges), MOST_BITS):
            transfer, part = len(widths), edges[start : start + MOST_BITS]
            number = forms.random.get(choice & ~1)
            fresh.append(number is not None and number not in births)
            if number is not None and number not in births:
                births[number] = Birth("choice", transfer, bool(choice & 1))
            for element, edge in enumerate(part):
                edge.transfer, edge.element, edge.choice = transfer, element, edge.forms.index(choice)
            widths.append(len(part))
    first = np.concatenate([[0], np.cumsum(widths)]).astype(int).tolist()
    for edge in forms.edges:
        other = edge.forms[1 - edge.choice]
        number = forms.random.get(other & ~1)
        if number is not None and number not in births:
            births[number] = Birth("element", first[edge.transfer] + edge.element, bool(other & 1))
            edge.born = True
    unborn = [
        Birth("lift", number, bool(form & 1)) if number is not None and number not in births else None
        for form in forms.outputs
        for number in [forms.random.get(form & ~1)]
    ]
    layers = _layers(program, forms.edges, first, fresh)
    every = tuple(births.get(number, Birth()) for number in range(program.random_bits))
    return ProductTransfers(tuple(widths), layers, every), tuple(unborn)


def unborn_outputs(program: Program) -> dict[int, tuple[int, bool]]:
    """output -> (number, flipped): the outputs that are a random bit, or NOT of it, which no product has given birth
    to; each bit once."""
    found: dict[int, tuple[int, bool]] = {}
    for output, birth in enumerate(_products(program)[1]):
        if birth is not None and birth.number not in {number for number, _ in found.values()}:
            found[output] = birth.number, birth.flipped
    return found


def _cover(forms: _Forms) -> list[tuple[int, list[_Edge]]]:
    """(form that chooses, its ANDs), so that every AND is in one: the form with most ANDs left first; of equal ones a
    random bit before others, then the one that is needed first."""
    left: dict[int, list[_Edge]] = defaultdict(list)
    order: dict[int, int] = {}
    for position, edge in enumerate(forms.edges):
        for form in edge.forms:
            order.setdefault(form, position)
            left[form].append(edge)
    degrees = Counter({form: len(edges) for form, edges in left.items()})

    def rank(form: int) -> tuple[int, bool, int, int]:
        return -degrees[form], (form & ~1) not in forms.random, order[form], form

    queue = [rank(form) for form in degrees]
    heapq.heapify(queue)
    done: set[int] = set()
    result = []
    while len(done) < len(forms.edges):
        entry = heapq.heappop(queue)
        form = entry[-1]
        if entry != rank(form):  # its degree has fallen since
            heapq.heappush(queue, rank(form))
            continue
        edges = [edge for edge in left[form] if id(edge) not in done]
        for edge in edges:
            done.add(id(edge))
            for other in edge.forms:
                degrees[other] -= 1
        result.append((form, edges))
    return sorted(result, key=lambda entry: (entry[1][0].layer, order[entry[0]]))


def _layers(program: Program, edges: list[_Edge], first: list[int], fresh: list[bool]) -> tuple[LayerProducts, ...]:
    told: set[int] = {transfer for transfer, born in enumerate(fresh) if born}
    result = []
    for number in range(len(program.layers)):
        mine = [edge for edge in edges if edge.layer == number]
        new = {}
        for edge in mine:
            if edge.transfer not in told:
                told.add(edge.transfer)
                new[edge.transfer] = edge.slots[edge.choice]
        result.append(
            LayerProducts(
                _ints([edge.transfer for edge in mine]),
                _ints([first[edge.transfer] + edge.element for edge in mine]),
                _ints([edge.slots[edge.choice] for edge in mine]),
                _ints([edge.slots[1 - edge.choice] for edge in mine]),
                _ints(list(new)),
                _ints(list(new.values())),
                _ints([k for k, edge in enumerate(mine) if not edge.born]),
            )
        )
    return tuple(result)


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)
