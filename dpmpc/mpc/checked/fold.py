"""The check of a batch's ANDs as arithmetic: one party's side, without a network. Replicated shares of any parties.

All products of a batch are checked at once. A word of lanes is an element of a binary field of q elements; the words
x, y, z of all ANDs lie in R = 2^v rows and some columns. With public coins delta (a row; the first is 1) and rho (a
column), the claim is

    sum_r delta_r sum_c rho_c z_(r,c) = sum_r delta_r P(r),   P(t) = sum_c rho_c sum_l X^l f_(c,l)(t) g_(c,l)(t),

where f_(c,l) and g_(c,l) are multilinear in t in F^v and are the bits of lane l of x and y at the corners r in {0,1}^v.
P has degree 2 in each variable, so its values at {0, 1, infinity}^v fix it, where the value at infinity is the leading
coefficient. The parties compute and share anew those 3^v values, less the one at the corner 0, which follows from the
claim; the coin t takes the claim to P(t) and each column's rows to one element, f_(c,l)(t). Again with the elements as
rows and columns, until one is left. The last stage has one column and in its last row a random pair (a, b), which no
claim counts, with coins that are not 0: so X = f(t) and Y = g(t) are masked, may be opened, and must have the product
Z = P(t).

A batch's ANDs may be checked in *segments*, layers one after the other: operands and results are kept for one segment
at a time. Each segment has a claim, coins and first stages of its own, which leave few elements. When all have come so
far, one more coin gives each segment s a gamma_s, and the stages go on with one claim of all,

    sum_s gamma_s Z_s = sum_s gamma_s <X_s, Y_s>,

about the elements gamma_s X_s and Y_s, side by side. The gammas must be fresh. Behind the first stage all weights are
1: so a party that knows by how much one segment's claim is off could add that, as a constant, to the sums of a later
segment whose ANDs are right, and the claims' plain sum would be true.

Guarantees: if any AND of the batch is wrong, Z = X Y with probability at most `BatchCheck.error`, for errors of each
stage that were fixed before its coin. Take the first segment with a wrong AND. Its claim is true with probability 2/q
at most, and becomes true in its own stages with 2/q a variable. Whatever all segments' claims are off by is fixed
before the gammas: if one of them is off, so is the claim of all, but for 1/q. From there as for one segment. How many
segments there are does not matter (docs/active.md).
Source: Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai 2019; Boyle, Gilboa, Ishai, Nof 2020; Goyal, Song, Zhu 2020, whose
recursion is run jointly on shares here. Points, rows and the place of the mask are our own.
"""

import functools
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.mpc.native.gf64 import GF64, THREE, WIDE, BinaryField, Rights, Words
from dpmpc.mpc.numbers.product_fold import Coin

FIRST = 6  # variables of the first stage, on bits
WIDEST = 6  # variables of a stage at most
_NARROW = 3  # variables while there are many elements: fewer products, one stage more
_MANY = 1 << 14  # elements; a segment's own stages leave fewer
# Words of ANDs whose operands and results are kept at a time at most, but for a layer that has more. Each takes 24
# bytes a part: 25 MB among three parties, which the last cache of a server's processor holds. At a party of one thread
# they are there once (`CheckedHolder._turn`), and are written to again and again.
MOST_WORDS = 1 << 19


@dataclass(frozen=True)
class Stages:
    """Some stages of a check, one after the other. `variables`: of each; `lengths`: the elements of each with padding;
    `own`: how many are a segment's own."""

    field: BinaryField
    variables: tuple[int, ...]
    lengths: tuple[int, ...]
    own: int = 0

    @staticmethod
    def of(words: int, field: BinaryField = GF64, first: int = FIRST, widest: int = WIDEST) -> "Stages":
        """All, of so many words of ANDs, at least 1. A stage leaves eight elements at least, so the last needs 9
        rows."""
        own = Stages.begun(words, field, first, widest)
        rest = Stages.ended(own.left, field, widest)
        return Stages(field, own.variables + rest.variables, own.lengths + rest.lengths, own.own)

    @staticmethod
    def begun(words: int, field: BinaryField = GF64, first: int = FIRST, widest: int = WIDEST) -> "Stages":
        """A segment's own, of so many words of ANDs: the first, which makes an element of each lane of a column, and
        more while there are many elements."""
        padded = _up(words, WIDE << first)
        variables, lengths = _until(_MANY, padded * field.bits >> first, widest)
        return Stages(field, (first, *variables), (padded, *lengths), 1 + len(variables))

    @staticmethod
    def ended(elements: int, field: BinaryField = GF64, widest: int = WIDEST) -> "Stages":
        """The rest, of so many elements."""
        assert widest >= 4
        variables, lengths = _until(1 << widest, elements, widest)  # a row is kept for the mask
        last = (lengths[-1] >> variables[-1] if variables else elements).bit_length()
        return Stages(field, (*variables, last), (*lengths, WIDE << last))

    @property
    def all_own(self) -> bool:
        """Whether the rest is missing."""
        return self.own == len(self.variables)

    @property
    def left(self) -> int:
        """Elements that a segment's own stages leave."""
        length, v = self.lengths[self.own - 1], self.variables[self.own - 1]
        return length * self.field.bits >> v if self.own == 1 else length >> v

    @property
    def messages(self) -> tuple[int, ...]:
        """Words that a party sends in each stage."""
        return tuple(3**v - 1 for v in self.variables)

    @property
    def error(self) -> Fraction:
        """How likely a check of all stages passes with a wrong AND, at most: a polynomial of degree 2 in (delta, rho),
        then one of degree 2 in each of v coins of each stage, has its root where the coins fall. Coins of the last
        stage are one of q - 1."""
        q = 1 << self.field.bits
        return Fraction(2 + 2 * sum(self.variables[:-1]), q) + Fraction(2 * self.variables[-1], q - 1)


def _until(fewer: int, left: int, widest: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The variables and lengths of stages, of so many elements, until fewer than `fewer` are left."""
    variables, lengths = [], []
    while left >= fewer:
        variables.append(min(widest, _NARROW) if left >= _MANY else widest)
        lengths.append(_up(left, WIDE << variables[-1]))
        left = lengths[-1] >> variables[-1]
    return tuple(variables), tuple(lengths)


@dataclass(frozen=True)
class BatchCheck:
    """The check of a batch. `segments`: the own stages of each, or of the only one all; `rest`: those of what several
    leave."""

    segments: tuple[Stages, ...]
    rest: Stages | None = None

    @staticmethod
    def of(sizes: Sequence[int]) -> "BatchCheck":
        """Of so many words of ANDs in each segment."""
        if len(sizes) == 1:
            return BatchCheck((Stages.of(sizes[0]),))
        segments = tuple(map(Stages.begun, sizes))
        return BatchCheck(segments, Stages.ended(sum(each.left for each in segments)))

    @property
    def error(self) -> Fraction:
        """How likely the batch passes with a wrong AND, at most: see the module."""
        if self.rest is None:
            return self.segments[0].error
        return _joined(max(sum(each.variables) for each in self.segments), self.rest)

    @property
    def worst(self) -> Fraction:
        """The same of this batch, and of any with the same program and fewer words a wire: it is not always that of
        the most. Cost: as of `worst`."""
        largest = max(each.lengths[0] for each in self.segments)
        if self.rest is None:
            return worst(largest)
        largest = max(largest, MOST_WORDS)
        return max(worst(largest), _worst_joined(largest, len(self.segments) * _MANY))

    @property
    def coins(self) -> int:
        """How many are told."""
        stages = [*self.segments, *([] if self.rest is None else [self.rest])]
        return sum(1 + len(each.variables) for each in stages)


def segments_of(widths: Sequence[int], words: int) -> tuple[int, ...]:
    """How many ANDs each segment has, of a program whose layers have `widths` of so many words each: whole layers, as
    many as `MOST_WORDS` allows, and one at least."""
    found: list[int] = []
    for width in widths:
        if found and (found[-1] + width) * words <= MOST_WORDS:
            found[-1] += width
        else:
            found.append(width)
    return tuple(found)


def _joined(own: int, rest: Stages) -> Fraction:
    """The error of segments that have so many variables at most. The gammas are one of q, a polynomial of degree 1."""
    return rest.error + Fraction(1 + 2 * own, 1 << rest.field.bits)


@functools.lru_cache
def worst(words: int) -> Fraction:
    """The largest error of a check of so many words of ANDs or of fewer, in one segment: it is not always that of the
    most. Cost: some microseconds for each 512 words."""
    return max(Stages.of(size).error for size in _sizes(words))


@functools.lru_cache
def _worst_joined(words: int, left: int) -> Fraction:
    """The same of segments of so many words at most, which leave so many elements together at most. Cost: as of
    `worst`, and some microseconds for each 32 elements."""
    unit = WIDE << _NARROW  # what stages are padded to, or a multiple; as many as `_MANY` begin with another stage
    sizes = {*range(WIDE, unit, WIDE), *(at - less for at in range(unit, left + 1, unit) for less in (0, WIDE))}
    rest = max(map(Stages.ended, sizes), key=lambda rest: rest.error)
    return _joined(max(sum(Stages.begun(size).variables) for size in _sizes(words)), rest)


def _sizes(words: int) -> range:
    """The lengths of a first stage of so many words or fewer."""
    unit = WIDE << FIRST
    return range(unit, _up(words, unit) + 1, unit)


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


class Fold:
    """One party's side of the check. Shares are (K, ...), by component; `rights` says which products of components are
    this party's, see `BinaryField.sums`. Among three parties component 0 is the one that its messages go into."""

    def __init__(
        self,
        stages: Stages,
        x: Words,
        y: Words,
        z: Words,
        mask: Words | None,
        rights: Rights = THREE,
        done: Callable[[Words], None] = lambda words: None,
    ) -> None:
        """x, y, z: (K, stages.lengths[0]), zeros behind the last AND; x and y are used up. `mask`: shares (2, K) of a
        random pair, which the last stage needs. `done`: told of each of x, y, z as soon as nothing is left in it, for
        other ANDs to use: of z when the claim is made, of x and y after the segment's own stages."""
        self.stages, self._field, self._rights, self._done = stages, stages.field, rights, done
        self._x, self._y, self._z, self._mask = x, y, z, mask
        self._given: tuple[Words, ...] = (x, y)
        self._sums: Words | None = None  # of the stage, where they are known
        self._stage = 0
        self._left = 0  # elements that are not padding
        self._claim = np.zeros(len(rights), dtype=self._field.dtype)
        self._points = np.zeros((len(rights), 0), dtype=self._field.dtype)
        self._rho = self._claim
        self._weights = self._claim  # of the corners in the claim

    @staticmethod
    def joined(stages: Stages, parts: "Sequence[Fold]", coin: Coin, mask: Words) -> "Fold":
        """The rest of the check of several segments, which have been through their own stages; takes the coin of the
        gammas, after all of them have."""
        field, rights = parts[0]._field, parts[0]._rights
        gammas = coin.words((len(parts),))
        x = np.concatenate([field.multiply(part._x, gamma) for part, gamma in zip(parts, gammas, strict=True)], axis=1)
        y, none = np.concatenate([part._y for part in parts], axis=1), x[:, :0]
        fold = Fold(stages, x, y, none, mask, rights)
        fold._given = ()
        claims = np.stack([field.multiply(part._claim, gamma) for part, gamma in zip(parts, gammas, strict=True)])
        fold._claim = np.bitwise_xor.reduce(claims, axis=0)
        fold._lay_out()
        return fold

    @property
    def _last(self) -> bool:
        return self._stage == len(self.stages.variables) - 1 and not self.stages.all_own

    @property
    def _on_bits(self) -> bool:
        return self._stage == 0 and self.stages.own > 0

    def begin(self, coin: Coin) -> None:
        """Takes the first coin, after all that is claimed has been sent."""
        rows = 1 << self.stages.variables[0]
        self._weights = np.concatenate([np.ones(1, dtype=self._field.dtype), coin.words((rows - 1,))])
        self._rho = coin.words((self.stages.lengths[0] // rows,))
        for k, z in enumerate(self._z):
            self._claim[k] = self._dot(self._weights, self._field.claim(z, self._rho, rows))
        z, self._z = self._z, self._claim  # the claim says all that is asked of it
        self._done(z)

    @property
    def claim(self) -> Words:
        """(K,): the shares of what is claimed, which are a universal hash of each component of all results."""
        return self._claim

    def sums(self) -> Words:
        """This party's summand of the stage's values, to be shared anew: all points but the corner 0."""
        if self._sums is None:
            weights = self._rho if self._on_bits else None
            v = self.stages.variables[self._stage]
            self._sums = self._field.sums(self._x, self._y, v, weights, self._rights)
        return self._sums[1:]

    def take(self, values: Words) -> None:
        """Takes the shares (K, points - 1) of the values."""
        v = self.stages.variables[self._stage]
        corners, weights = _corners(v)[1:], self._weights[1:]
        if self._on_bits:
            rest = np.array([self._dot(weights, row[corners - 1]) for row in values], dtype=self._field.dtype)
        else:  # they are 1, and 0 of the mask
            rest = np.bitwise_xor.reduce(values[:, corners[weights != 0] - 1], axis=1)
        zero = rest ^ self._claim
        self._points = np.concatenate([zero[:, None], values], axis=1)

    def fold(self, coin: Coin) -> None:
        """Takes the stage's coin, after its values have been shared: on to the next stage."""
        field, v = self._field, self.stages.variables[self._stage]
        t = _not_zero(coin, v) if self._last else coin.words((v,))
        points = self._at(t)
        self._claim = np.array([self._dot(points, values) for values in self._points], dtype=field.dtype)
        factors, self._sums = points[_corners(v)], None
        if self._on_bits:
            # what the next stage adds up is near, where its elements lie as they come
            length = self._x.shape[1] * field.bits >> v
            followed = len(self.stages.variables) > 2 - self.stages.all_own  # by another than the last
            as_they_come = followed and self.stages.lengths[1] == length
            following = self.stages.variables[1] if as_they_come else None
            self._x, self._y, sums = field.fold_bits(self._x, self._y, factors, self._rho, following, self._rights)
            self._sums = sums if as_they_come else None
            self._rho = self._claim  # no longer needed
        else:
            self._x, self._y = (field.fold(a.reshape(-1), factors).reshape(len(a), -1) for a in (self._x, self._y))
        self._stage += 1
        if self._stage == self.stages.own:  # little is left, at the front of what was given
            self._x, self._y = self._x.copy(), self._y.copy()
            for array in self._given:
                self._done(array)
            self._given = ()
        if self._stage < len(self.stages.variables):
            self._lay_out()

    def _at(self, t: Words) -> Words:
        """(3^v,): the factors of the values at {0, 1, infinity}^v in the value at t. A polynomial of degree 2 has
        p(t) = p(0) (1 + t) + p(1) t + p(infinity) (t + t^2); at a corner the factor is that of the row in f(t), too."""
        one = self._field.dtype.type(1)
        single = np.stack([t ^ one, t, t ^ self._field.multiply(t, t)], axis=1)
        factors: Words = single[0]
        for each in single[1:]:  # the first variable's digit is the most significant
            factors = self._field.multiply(np.repeat(factors, 3), np.tile(each, factors.size))
        return factors

    def _lay_out(self) -> None:
        """The elements in the rows of the next stage; the mask in the last row of the last one."""
        v, length = self.stages.variables[self._stage], self.stages.lengths[self._stage]
        self._weights = np.ones(1 << v, dtype=self._field.dtype)
        if not self._last:
            self._x, self._y = _padded(self._x, length), _padded(self._y, length)
            return
        assert self._mask is not None
        for name, mask in (("_x", self._mask[0]), ("_y", self._mask[1])):
            elements = getattr(self, name)
            rows = np.zeros((len(elements), 1 << v, WIDE), dtype=self._field.dtype)
            rows[:, : elements.shape[1], 0] = elements
            rows[:, -1, 0] = mask
            setattr(self, name, rows.reshape(len(elements), -1))
        self._weights[-1] = 0

    @property
    def opening(self) -> Words:
        """(K, 3): the shares of X, Y and Z, after the last coin."""
        assert self._stage == len(self.stages.variables)
        return np.stack([self._x[:, 0], self._y[:, 0], self._claim], axis=1)

    def _dot(self, a: Words, b: Words) -> Words:
        total: Words = np.bitwise_xor.reduce(self._field.multiply(a, b))
        return total


@functools.cache
def _corners(v: int) -> NDArray[np.intp]:
    """Which points the corners {0, 1}^v are, by row."""
    return np.array([sum((r >> k & 1) * 3**k for k in range(v)) for r in range(1 << v)], dtype=np.intp)


def holds(field: BinaryField, opened: Words) -> bool:
    """Whether Z = X Y for the opened (X, Y, Z)."""
    return bool(field.multiply(opened[:1], opened[1:2])[0] == opened[2])


def _padded(elements: Words, length: int) -> Words:
    if elements.shape[1] == length:
        return elements
    rows = np.zeros((len(elements), length), dtype=elements.dtype)
    rows[:, : elements.shape[1]] = elements
    return rows


def _not_zero(coin: Coin, count: int) -> Words:
    """The coin's first words that are not 0: with a 0 the mask would drop out of what is opened."""
    found: list[Words] = []
    while len(found) < count:
        found += [word for word in coin.words((1,)) if word]
    return np.array(found)
