"""The check of ANDs as arithmetic: honest products pass, wrong ones do not, at the rate that the formula has in a small
field; and what breaks it if a rule is left out."""

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from alarms import FALSE_ALARM

from dpmpc.mpc.checked.fold import Fold, Stages, holds
from dpmpc.mpc.native.gf64 import GF64, WIDE, BinaryField, Words
from dpmpc.mpc.replicated.layout import SharingLayout


class Small(BinaryField):
    """GF(2^8), by a table of products."""

    def __init__(self) -> None:
        super().__init__(8, 0x1B)
        all_words = np.arange(256, dtype=np.uint8)
        self._table = super().multiply(all_words[:, None], all_words[None, :])

    def multiply(self, a: Words, b: Words) -> Words:
        return self._table[a, b] if hasattr(self, "_table") else super().multiply(a, b)


SMALL = Small()


@functools.cache
def tiny() -> Stages:
    """The smallest check over the small field."""
    return Stages.of(2 * WIDE, SMALL, first=1, widest=4)


class Dice:
    """Coins from a seed; those of the small field are single bytes."""

    def __init__(self, field: BinaryField, *seed: int) -> None:
        self._random, self._dtype = np.random.default_rng(seed), field.dtype

    def words(self, shape: tuple[int, ...]) -> Words:
        return self._random.integers(0, 1 << 8 * self._dtype.itemsize, shape, dtype=self._dtype)


class Play:
    """Three parties and their folds, or one that holds everything: shares are then the values themselves, and zeros."""

    def __init__(self, stages: Stages, words: int, seed: int, alone: bool = False) -> None:
        self.stages, self.field, self.seed, self.alone = stages, stages.field, seed, alone
        draw, length = Dice(self.field, seed, 1).words, stages.lengths[0]
        self.x, self.y, self.z, self.pair = draw((3, length)), draw((3, length)), draw((3, length)), draw((3, 2))
        for array in (self.x, self.y, self.z, self.pair):
            array[1 if alone else 3 :] = 0
        for array in (self.x, self.y, self.z):
            array[:, words:] = 0
        total = [np.bitwise_xor.reduce(array, axis=0) for array in (self.x, self.y, self.z)]
        self.z[0] ^= total[2] ^ (total[0] & total[1])

    def begin(self) -> None:
        self.parties = [
            Fold(
                self.stages,
                *(np.stack([a[j], a[j - 1]]) for a in (self.x, self.y, self.z)),
                np.stack([self.pair[j], self.pair[j - 1]], axis=1),
            )
            for j in range(1 if self.alone else 3)
        ]
        for party in self.parties:
            party.begin(Dice(self.field, self.seed, 2))

    def stage(self, number: int, error: Words | None = None, coin: Any = None) -> None:
        parts = [party.sums() for party in self.parties]
        if error is not None:
            parts[0] = parts[0] ^ error
        for j, party in enumerate(self.parties):
            party.take(np.stack([parts[j], np.zeros_like(parts[j]) if self.alone else parts[j - 1]]))
        for party in self.parties:
            party.fold(Dice(self.field, self.seed, 3, number) if coin is None else coin(number))

    def finish(self) -> bool:
        for number in range(self.parties[0]._stage, len(self.stages.variables)):
            self.stage(number)
        return self.verdict()

    @property
    def opened(self) -> Words:
        first = self.parties[0].opening
        return first[0] ^ first[1] if self.alone else first[0] ^ first[1] ^ self.parties[1].opening[0]

    def verdict(self) -> bool:
        return holds(self.field, self.opened)


@pytest.mark.parametrize("words", [1, 511, 700, 3000])
def test_honest_products_pass_and_one_wrong_bit_does_not(words: int) -> None:
    stages = Stages.of(words)
    play = Play(stages, words, words)
    play.begin()
    assert play.finish()
    for at, bit in ((0, 0), (words - 1, 63), (words // 2, 17)):
        play = Play(stages, words, words)
        play.z[2, at] ^= np.uint64(1 << bit)
        play.begin()
        assert not play.finish()


def opened_by_many(sizes: tuple[int, int], secrets: int, flip: int | None = None, error: int = 0) -> Words:
    """X, Y, Z of parties of any layout, which compute each product of parts once. `secrets`: what operands follow from;
    `flip`: the component of which one bit of a result is wrong; `error`: of every sum."""
    layout, words = SharingLayout.of(*sizes), 700
    stages, parts = Stages.of(words), len(layout.subsets)
    draw = Dice(GF64, secrets).words
    x, y, z = (draw((parts, stages.lengths[0])) for _ in range(3))
    for array in (x, y, z):
        array[:, words:] = 0
    total = [np.bitwise_xor.reduce(array, axis=0) for array in (x, y, z)]
    z[0] ^= total[2] ^ (total[0] & total[1])
    pair = draw((2, parts))
    if flip is not None:
        z[flip, 17] ^= np.uint64(1 << 40)
    held = [[layout.subsets.index(s) for s in layout.mine(j)] for j in range(sizes[0])]
    folds = []
    for j, mine in enumerate(held):
        rights = dict(layout.products(j))
        each = [rights.get(k, []) for k in range(len(mine))]
        folds.append(Fold(stages, *(a[mine] for a in (x, y, z)), pair[:, mine], each))
        folds[-1].begin(Dice(GF64, 6))
    for number in range(len(stages.variables)):
        values = np.zeros((parts, stages.messages[number]), dtype=np.uint64)
        for j, fold in enumerate(folds):
            values[layout.subsets.index(layout.target(j))] ^= fold.sums()
        values[0] ^= np.uint64(error)
        for fold, mine in zip(folds, held, strict=True):
            fold.take(values[mine])
            fold.fold(Dice(GF64, 7, number))
    opened: dict[int, Words] = {}
    for fold, mine in zip(folds, held, strict=True):
        opened |= zip(mine, fold.opening, strict=True)
    return np.bitwise_xor.reduce(np.stack(list(opened.values())), axis=0)


@pytest.mark.parametrize("sizes", [(4, 1), (5, 2), (6, 2)])
def test_parties_with_more_parts_check_the_same(sizes: tuple[int, int]) -> None:
    """One wrong bit is seen in any part; and what is opened then tells a cheat its own errors alone: Z - X Y is the
    same for all secrets."""
    assert holds(GF64, opened_by_many(sizes, 5))
    last = len(SharingLayout.of(*sizes).subsets) - 1
    for flip, error in ((0, 0), (last, 0), (None, 9), (last, 9)):
        told = set()
        for secrets in (5, 6, 7):
            opened = opened_by_many(sizes, secrets, flip, error)
            assert not holds(GF64, opened)
            told.add(int(opened[2] ^ GF64.multiply(opened[:1], opened[1:2])[0]))
        assert len(told) == 1


def test_the_sum_of_stages_bounds_the_error() -> None:
    for words in (1, 1292, 646 * 512, 646 * 768, 1 << 22):
        stages = Stages.of(words)
        rows = [1 << v for v in stages.variables]
        left = stages.lengths[0] * 64 // 64
        for length, row in zip(stages.lengths[1:-1], rows[1:-1], strict=True):
            assert left <= length < left + WIDE * row
            left = length // row
        assert left < rows[-1] <= 64  # and a row for the mask
        assert Fraction(1, 1 << 59) < stages.error < Fraction(1, 1 << 57)
        assert stages.error >= Fraction(2 + 2 * sum(stages.variables), 1 << 64)
    wanted = [Stages.of(words).variables for words in (1292, 646 * 512)]
    assert wanted == [(6, 6, 5), (6, 3, 3, 6, 6, 4)]


# -- the best cheat that is known, in a field of 256 elements ----------------------------------------------------------
def two_roots(stages: Stages, number: int, claim: int, weights: Words) -> tuple[Words, Any]:
    """Errors of a stage's values: a polynomial k (t_1 + a)(t_1 + b) (t_2 + a) ... that fits the claim's error, and so
    vanishes for two values of each coin; and its value at a coin."""
    v = stages.variables[number]
    times = SMALL.multiply
    for a in range(2, 256):
        b = a ^ 1 if a ^ 1 > a else 77
        single = np.array([times(np.uint8(a), np.uint8(b)), times(np.uint8(a ^ 1), np.uint8(b ^ 1)), 1], dtype=np.uint8)
        values = single
        for _ in range(v - 1):
            values = times(values[:, None], single[None, :]).reshape(-1)
        corners = [sum((r >> k & 1) * 3**k for k in range(v)) for r in range(1 << v)]
        total = int(np.bitwise_xor.reduce(times(weights, values[corners])))
        if a != b and total:
            break
    inverse = int(np.flatnonzero(SMALL._table[total] == 1)[0])
    scale = times(np.uint8(claim), np.uint8(inverse))

    def at(coin: Words) -> int:
        value = scale
        for t in coin:
            value = times(times(value, t ^ np.uint8(a)), t ^ np.uint8(b))
        return int(value)

    return times(scale, values)[1:], at


def cheat(stages: Stages, seed: int) -> bool:
    """Whether a cheat with one wrong AND, who chooses errors with two roots at every later message, is believed."""
    play = Play(stages, 2 * WIDE, seed, alone=True)
    play.z[0, WIDE] ^= np.uint8(1)  # in row 1 of column 0
    play.begin()
    party = play.parties[0]
    error = int(SMALL.multiply(party._weights[1], party._rho[0]))
    for number, v in enumerate(stages.variables):
        if not error:
            return play.finish()
        errors, at = two_roots(stages, number, error, party._weights)
        play.stage(number, errors)
        coin = Dice(SMALL, seed, 3, number)
        if number < len(stages.variables) - 1:
            error = at(coin.words((v,)))
        else:
            found: list[int] = []
            while len(found) < v:
                found += [word for word in coin.words((1,)) if word]
            error = at(np.array(found, dtype=np.uint8))
    assert play.verdict() == (error == 0)
    return play.verdict()


def likely(stages: Stages) -> float:
    """How often that cheat is believed, exactly: unless its error survives each coin."""
    q = 256
    inner, last = sum(stages.variables[:-1]), stages.variables[-1]
    return 1 - (1 - 1 / q) ** 2 * (1 - 2 / q) ** inner * (1 - 2 / (q - 1)) ** last


@pytest.mark.slow
def test_in_a_small_field_the_best_cheat_is_believed_as_often_as_predicted() -> None:
    """Two-sided and exact, at the false-alarm rate; a third of the prediction is rejected."""
    stages, trials = tiny(), 800
    believed = sum(cheat(stages, seed) for seed in range(trials))
    p = likely(stages)
    assert p < float(stages.error) < 1.15 * p
    from scipy.stats import binomtest

    assert binomtest(believed, trials, p).pvalue > FALSE_ALARM
    assert binomtest(believed, trials, p / 3).pvalue < FALSE_ALARM


# -- rules, and what happens without them ------------------------------------------------------------------------------
def test_coins_that_are_known_before_the_message_are_forged_every_time() -> None:
    """Why a coin is given out by the receiver of the message that it weighs, after that has come."""
    for seed in range(20):
        play = Play(Stages.of(700), 700, seed)
        play.begin()  # the coins, before the ANDs are sent
        weight = GF64.multiply(play.parties[0]._weights[:2], play.parties[0]._rho[:1])
        first, second = np.uint64(5), None
        inverse = _power(weight[1:2], (1 << 64) - 2)
        second = GF64.multiply(GF64.multiply(weight[:1], np.array([first])), inverse)[0]
        play.z[2, 0] ^= first
        play.z[2, WIDE] ^= second  # the next row of the same column
        play.begin()
        assert play.finish()


def _power(a: Words, exponent: int) -> Words:
    result = np.ones(1, dtype=np.uint64)
    for bit in bin(exponent)[2:]:
        result = GF64.multiply(result, result)
        if bit == "1":
            result = GF64.multiply(result, a)
    return result


def test_errors_that_cancel_in_a_plain_sum_do_not_cancel_here() -> None:
    for places in ([0, 1], [0, WIDE], [3, 515], [8, 16, 24, 32]):
        play = Play(Stages.of(700), 700, 1)
        for at in places:
            play.z[1, at] ^= np.uint64(1 << 40)
        play.begin()
        assert not play.finish()


def test_an_error_of_the_mask_s_product_buys_nothing() -> None:
    """The product of the random pair is sent in the last stage, and no claim counts it: an error of it alone is caught,
    and one that should make up for a wrong AND is, too."""
    stages = Stages.of(700)
    for wrong in (False, True):
        play = Play(stages, 700, 3)
        play.z[0, 5] ^= np.uint64(wrong)
        play.begin()
        for number in range(len(stages.variables) - 1):
            play.stage(number)
        error = np.zeros(3 ** stages.variables[-1] - 1, dtype=np.uint64)
        corner = (3 ** stages.variables[-1] - 1) // 2 - 1
        party, other = play.parties[0], play.parties[1]
        claim = party._claim[0] ^ party._claim[1] ^ other._claim[0]
        truth = np.bitwise_xor.reduce([p.sums() for p in play.parties])
        assert not party._weights[-1] and party._weights[:-1].all()
        error[corner] = claim ^ truth[corner] if wrong else np.uint64(9)
        play.stage(len(stages.variables) - 1, error)
        assert not play.verdict()


def test_coins_of_the_last_stage_are_never_zero_so_what_is_opened_is_masked() -> None:
    """With a coin 0 the random pair would have the factor 0: X and Y would be sums of secrets."""

    class Zeros:
        def __init__(self) -> None:
            self.left = [0] * 9 + [3] * 20

        def words(self, shape: tuple[int, ...]) -> Words:
            assert shape == (1,)
            return np.array([self.left.pop(0)], dtype=np.uint64)

    opened = []
    stages = Stages.of(100)
    for k in range(2):
        play = Play(stages, 100, 4)
        play.pair[0, 0] ^= np.uint64(k)
        play.begin()
        for number in range(len(stages.variables) - 1):
            play.stage(number)
        play.stage(len(stages.variables) - 1, coin=lambda _: Zeros())
        assert play.verdict()
        opened.append(play.opened)
    assert opened[0][0] != opened[1][0] and opened[0][1] == opened[1][1]


def test_what_is_opened_has_one_law_whatever_the_secrets_are() -> None:
    """In the small field: X, for two sets of secrets, over the pair's first element, takes every value once."""
    for seed in (1, 2):
        seen = set()
        for a in range(256):
            play = Play(tiny(), 16, seed, alone=True)
            play.pair[0, 0] ^= np.uint8(a)
            play.begin()
            assert play.finish()
            seen.add(int(play.opened[0]))
        assert len(seen) == 256
    assert math.isclose(likely(tiny()), 0.073, abs_tol=0.02)


def test_what_an_abort_tells_is_the_cheat_s_own_error() -> None:
    """Z - X Y, and with it the verdict, depends on errors and coins alone: the same for all secrets."""
    found = set()
    for secrets in range(30):
        play = Play(tiny(), 16, 5, alone=True)
        other = Play(tiny(), 16, 100 + secrets, alone=True)
        play.x, play.y, play.pair = other.x, other.y, other.pair
        play.z[:] = 0
        play.z[0] = play.x[0] & play.y[0]
        play.z[0, 3] ^= np.uint8(77)
        play.begin()
        error = np.zeros(80, dtype=np.uint8)
        error[11] = 5
        play.stage(0)
        play.stage(1, error)
        play.finish()
        x, y, z = play.opened
        found.add(int(z ^ SMALL.multiply(x, y)))
    assert len(found) == 1 and found != {0}
