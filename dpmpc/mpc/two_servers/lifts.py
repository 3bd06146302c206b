"""From shared bits to additive shares of the number they stand for, a transfer each; no adder.

A bit b = s XOR r, s known to one party and r to the other, is s + r - 2 s r, so all it takes is shares of the product
of two private bits: the party that knows r chooses, the other offers q_0, q_1 and sends q_0 - q_1 + s. Everything is
mod 2^M, with 2^(M-1) above the largest value, until one more product of private bits takes the sum into F_p: whether
two numbers below 2^M with a sum that is below 2^(M-1) mod 2^M wrap around is the OR of their highest bits.

A bit that nothing else has given birth to is born in its lift: the chooser's choice XOR the lowest bit of q_0 XOR q_1,
so that the lowest bit of what is sent is 0, and is not sent. On any other bit that would give wrong values.
"""

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.lift import HeapProgram
from dpmpc.lazy import cached_property, dataclass
from dpmpc.mpc.contract.lanes import from_planes
from dpmpc.mpc.native import lifts as native
from dpmpc.mpc.native.layers import new_words
from dpmpc.mpc.native.lifts import planes_of
from dpmpc.mpc.numbers import field
from dpmpc.mpc.two_servers.products import Birth, ProductTransfers, products_of, unborn_outputs

Words = NDArray[np.uint64]

FIELD_CHOOSER = 0  # of the transfer into F_p
WIDEST = 56  # M at most
_1 = np.uint64(1)


@dataclass(frozen=True)
class Lift:
    """A bit that is lifted. `output`: its place in the program's outputs; None for a loose one. `born`: here."""

    coefficient: int
    output: int | None
    born: bool
    width: int  # bits of its transfer's strings: products matter mod 2^width

    @property
    def sent(self) -> int:
        """The bits that the offerer sends."""
        return self.width - self.born


@dataclass(frozen=True, eq=False)
class Lifts:
    """The lifts of a heap, by who chooses: those that are born there first."""

    bits: int  # M
    by_chooser: tuple[tuple[Lift, ...], tuple[Lift, ...]]
    births: dict[int, Birth]  # of the program's random bits that are born here; `number`: index in by_chooser, times 2,
    # plus the chooser

    @cached_property
    def _told(self) -> tuple[list[int], ...]:
        return tuple([k for k, lift in enumerate(items) if not lift.born] for items in self.by_chooser)

    @cached_property
    def coefficients(self) -> tuple[Words, ...]:
        """Mod 2^64, by who chooses."""
        return tuple(coefficients_of(items) for items in self.by_chooser)

    @cached_property
    def sent(self) -> tuple[NDArray[np.int32], ...]:
        """The planes that are sent of each, by who chooses."""
        return tuple(sent_of(items) for items in self.by_chooser)

    def told(self, chooser: int) -> list[int]:
        """The lifts whose choice is told."""
        return self._told[chooser]

    def rows(self, party: int) -> int:
        """The planes that a party sends: what it offers, then the choices that it tells."""
        return int(self.sent[1 - party].sum()) + len(self.told(party))

    def transfers(self, chooser: int) -> int:
        """With the one into F_p."""
        return len(self.by_chooser[chooser]) + (chooser == FIELD_CHOOSER)


@functools.lru_cache(maxsize=64)
def lifts_of(heap: HeapProgram, *, births: bool = True) -> Lifts:
    """The lifts of a heap, shared out evenly; without `births` the program's bits come from elsewhere, and only loose
    ones are born. Errors: ValueError for a heap that does not fit."""
    bits = heap.largest.bit_length() + 1
    if bits > WIDEST:
        raise ValueError(f"a heap's value must be below 2^{WIDEST - 1}; got {heap.largest.bit_length()} bits")
    unborn = unborn_outputs(heap.program) if births else {}

    def lift(coefficient: int, output: int | None, born: bool) -> Lift:
        valuation = (coefficient & -coefficient).bit_length() - 1
        return Lift(coefficient, output, born, bits - 1 - valuation)

    born = [lift(1 << w, None, True) for w in heap.loose]
    born += [lift(heap.coefficients[output], output, True) for output in unborn]
    general = [lift(c, output, False) for output, c in enumerate(heap.coefficients) if output not in unborn]
    by_chooser = (tuple(born[1::2] + general[::2]), tuple(born[::2] + general[1::2]))
    born_here = {}
    for chooser, mine in enumerate(by_chooser):
        for k, item in enumerate(mine):
            if item.born and item.output is not None:
                number, flipped = unborn[item.output]
                born_here[number] = Birth("lift", 2 * k + chooser, flipped)
    return Lifts(bits, by_chooser, born_here)


def transfers_of(products: ProductTransfers, lifts: Lifts | None, chooser: int) -> int:
    """The slots of a batch in one direction: products, lifts, the one into F_p."""
    return products.transfers + (lifts.transfers(chooser) if lifts is not None else 0)


def products_of_heap(heap: HeapProgram) -> ProductTransfers:
    """The transfers of the heap's program, with the births of its lifts."""
    products, lifts = products_of(heap.program), lifts_of(heap)
    births = tuple(lifts.births.get(number, birth) for number, birth in enumerate(products.births))
    return ProductTransfers(products.widths, products.layers, births)


def coefficients_of(items: Sequence[Lift]) -> Words:
    """Of lifts, mod 2^64."""
    return np.array([item.coefficient % (1 << 64) for item in items], dtype=np.uint64)


def sent_of(items: Sequence[Lift]) -> NDArray[np.int32]:
    """The planes that are sent of each."""
    return np.array([item.sent for item in items], dtype=np.int32)


class OfferedLifts:
    """The offerer's part: strings come in piece by piece, then choices."""

    def __init__(self, lifts: Lifts, chooser: int, words: int) -> None:
        self._items, self._words = lifts.by_chooser[chooser], words
        self._told = lifts.told(chooser)
        self._born = len(self._items) - len(self._told)
        self._coefficients, self._sent = lifts.coefficients[chooser], lifts.sent[chooser]
        self.total = new_words((64 * words,))
        self.total[:] = 0
        self.rows: list[Words] = [np.zeros((0, words), dtype=np.uint64)] * len(self._items)  # what is sent of each
        self.bits: dict[int, Words] = {}  # planes of the shares of bits born here that the program uses
        self._strings: dict[int, tuple[Words, Words]] = {}

    def take(self, first: int, low: Words) -> None:
        """Strings (2, 64, count, W) of the lifts first, first + 1, ..."""
        count = low.shape[2]
        born = min(max(self._born - first, 0), count)  # those that are born come first
        if born:
            sent, bits = self._sent[first : first + born], np.empty((born, self._words), dtype=np.uint64)
            rows = new_words((int(sent.sum()), self._words))
            factors = self._coefficients[first : first + born]
            native.offered(low[0][:, :born], low[1][:, :born], factors, sent, self.total, rows, bits)
            self.rows[first : first + born] = [rows, *[rows[:0]] * (born - 1)]  # which are sent in a row
            self.bits |= {k: bits[k - first] for k in range(first, first + born) if self._items[k].output is not None}
        for k in range(born, count):
            self._strings[first + k] = low[0][:, k].reshape(-1).copy(), low[1][:, k].reshape(-1).copy()

    def offer(self, outputs: Words) -> Words:
        """What is sent, (rows, W), given this party's shares of the program's outputs (outputs, W)."""
        for k in self._told:
            q0, q1 = self._strings[k]
            bit = values_of(outputs[_output(self._items[k])][None])
            self.rows[k] = planes_of((q0 - q1 + bit)[None], self._words)[0, : self._items[k].width]
        return np.concatenate([np.zeros((0, self._words), dtype=np.uint64), *self.rows])

    def finish(self, outputs: Words, told: Words) -> Words:
        """This party's share of its part of the sum, given the choices told (count, W)."""
        for k, row in zip(self._told, told, strict=True):
            q0, _ = self._strings[k]
            bit, e = values_of(outputs[_output(self._items[k])][None]), values_of(row[None])
            product = e * bit - (_1 - (e << _1)) * q0
            self.total += (bit - (product << _1)) * np.uint64(self._items[k].coefficient % (1 << 64))
        return self.total


class ChosenLifts:
    """The chooser's part."""

    def __init__(self, lifts: Lifts, chooser: int, words: int) -> None:
        self._items, self._words = lifts.by_chooser[chooser], words
        self._told = lifts.told(chooser)
        self._born = len(self._items) - len(self._told)
        self._coefficients, self._sent = lifts.coefficients[chooser], lifts.sent[chooser]
        self.total = new_words((64 * words,))
        self.total[:] = 0
        self.choices = np.zeros((len(self._items), words), dtype=np.uint64)
        self._strings: dict[int, Words] = {}

    def take(self, first: int, low: Words) -> None:
        """Strings (1, 64, count, W) of the lifts first, first + 1, ..."""
        count = low.shape[2]
        born = min(max(self._born - first, 0), count)
        if born:
            part = slice(first, first + born)
            native.chosen(low[0][:, :born], self._coefficients[part], self._sent[part], self.total)
        for k in range(born, count):
            self._strings[first + k] = low[0][:, k].reshape(-1).copy()

    def tell(self, outputs: Words) -> Words:
        """The choices told, (count, W)."""
        rows = [self.choices[k] ^ outputs[_output(self._items[k])] for k in self._told]
        return np.array(rows, dtype=np.uint64).reshape(len(rows), self._words)

    def finish(self, outputs: Words, told: Words, offered: Words) -> Words:
        """This party's share of its part of the sum, given what the offerer sent (rows, W)."""
        born, ends = self._born, np.cumsum(self._sent)
        told_born = offered[: ends[born - 1] if born else 0]
        native.finished(self.choices[:born], told_born, self._coefficients[:born], self._sent[:born], self.total)
        for k, row in zip(self._told, told, strict=True):
            u, e = values_of(self.choices[k : k + 1]), values_of(row[None])
            bit = values_of(outputs[_output(self._items[k])][None])
            part = offered[ends[k] - self._sent[k] : ends[k]]
            product = (_1 - (e << _1)) * (self._strings[k] + u * values_of(part))
            self.total += (bit - (product << _1)) * np.uint64(self._items[k].coefficient % (1 << 64))
        return self.total


def _output(item: Lift) -> int:
    assert item.output is not None
    return item.output


def values_of(planes: Words) -> Words:
    """Numbers, one a lane, from bit planes (width, W)."""
    return from_planes(planes)


# -- into F_p ----------------------------------------------------------------------------------------------------------
def reduce_wide(low: Words, high: Words) -> Words:
    """Strings of 128 bits mod p = 2^61 - 1: within 2^-122 of uniform, for 2^128 = 64 mod p."""
    return field.add(field.fold(low), field.mul(field.fold(high), 8))


def wrap_bit(share: Words, bits: int) -> Words:
    """1 - the highest of `bits` bits of a share, one a lane: both parties' product is 1 where nothing wraps around."""
    return _1 ^ ((share >> np.uint64(bits - 1)) & _1)


def offer_field(q0: Words, q1: Words, bit: Words) -> Words:
    """What the offerer of the last transfer sends, below p."""
    return field.add(field.sub(q0, q1), bit)


def offered_product(q0: Words, bit: Words, told: Words) -> Words:
    """The offerer's share of the product in F_p, given the choice told (0 or 1 a lane)."""
    return np.where(told == 0, field.neg(q0), field.add(bit, q0))


def chosen_product(q: Words, choice: Words, told: Words, offered: Words) -> Words:
    """The chooser's share."""
    mine = field.add(q, field.mul(offered, choice))
    return np.where(told == 0, mine, field.neg(mine))


def field_share(share: Words, product: Words, bits: int, constant: int) -> Words:
    """share + 2^bits product + constant, in F_p."""
    total = field.add(share, field.mul(product, 1 << bits))
    return field.add(total, np.full(1, constant % field.P, dtype=np.uint64))
