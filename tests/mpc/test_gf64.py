"""The field's kernels: against arithmetic on polynomials, and against their twin on every kind of processor."""

from typing import Any

import numpy as np
import pytest
from twins import Remembering

from dpmpc.circuits.program import Layer, program_of
from dpmpc.mpc.native import choice
from dpmpc.mpc.native.gf64 import GF64, WIDE, BinaryField
from dpmpc.mpc.native.layers import Deposit, KeptOperands, ProductLayer, Slots, add_sources
from tests.mpc.test_native import ALL, LEVELS, compiled_only, draw

TWIN = BinaryField(64, 0x1B)
KNOWN = Remembering(TWIN)
RIGHTS = [[[0]], [[], [0, 1, 2], [1]], [[0, 1, 2, 3, 4, 5], [1], [], [4, 2], [0, 5], [3]]]


# lists of components that are no lists, or of others than there are
WRONG = [(), (1,), (2, 0, 1), (2, 0, 2, 1, 0), (-1, 0), (1, -1, 1, 0), (17, *range(17), 0), (1, 0) * 17, (1, 0) * 3]


def ints(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int32)


def by_hand(a: int, b: int, bits: int, polynomial: int) -> int:
    """The product of two polynomials over F_2 modulo X^bits + polynomial, bit by bit."""
    product = 0
    for k in range(bits):
        product ^= (a << k) * (b >> k & 1)
    for k in reversed(range(bits, 2 * bits)):
        if product >> k & 1:
            product ^= (1 << bits | polynomial) << (k - bits)
    return product


@pytest.mark.parametrize(("field", "polynomial"), [(GF64, 0x1B), (TWIN, 0x1B), (BinaryField(8, 0x1B), 0x1B)])
def test_products_are_those_of_polynomials(field: BinaryField, polynomial: int) -> None:
    top = (1 << field.bits) - 1
    a = np.array([0, 1, 2, top, top, *(draw(20) & np.uint64(top))], dtype=field.dtype)
    b = np.array([top, top, top, top, 2, *(draw(2, 20)[1] & np.uint64(top))], dtype=field.dtype)
    due = [by_hand(int(x), int(y), field.bits, polynomial) for x, y in zip(a, b, strict=True)]
    assert field.multiply(a, b).tolist() == due
    assert field.times_x(a).tolist() == field.multiply(a, np.full_like(a, 2)).tolist()


def test_the_modulus_is_irreducible() -> None:
    """X^(2^64) = X mod f, and X^(2^32) - X has no factor with f: X^(2^32) + X is invertible (Rabin's test)."""
    x = np.array([2], dtype=np.uint64)
    power = x
    for k in range(64):
        if k == 32:
            difference = int((power ^ x)[0])
        power = GF64.multiply(power, power)
    assert power[0] == 2
    a, b = 1 << 64 | 0x1B, difference
    while b:  # the greatest common divisor of polynomials
        while a.bit_length() >= b.bit_length():
            a ^= b << (a.bit_length() - b.bit_length())
        a, b = b, a
    assert a == 1


@compiled_only
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: "+".join(level) or "portable")
def test_kernels_give_what_their_twin_gives(level: tuple[str, ...]) -> None:
    choice.compiled.restrict_to(level)
    try:
        for count in (0, 1, 7, 8, 29):
            assert (
                GF64.multiply(draw(count), draw(1, count)[0]) == KNOWN.multiply(draw(count), draw(1, count)[0])
            ).all()
        for v in range(7):
            words = 3 * WIDE << v
            x, y, weights, factors = draw(2, words), draw(3, words)[1:], draw(words >> v), draw(4, 1 << v)[3]
            assert (GF64.sums(x, y, v) == KNOWN.sums(x, y, v)).all()
            assert (GF64.sums(x, y, v, weights) == KNOWN.sums(x, y, v, weights)).all()
            for rights in RIGHTS:
                a, b = draw(len(rights), words), draw(len(rights) + 1, words)[1:]
                found, due = (field.sums(a, b, v, None, rights) for field in (GF64, KNOWN))
                assert (found == due).all()
                found, due = (field.sums(a, b, v, weights, rights) for field in (GF64, KNOWN))
                assert (found == due).all()
            assert (GF64.fold(x[0].copy(), factors) == KNOWN.fold(x[0], factors)).all()
            assert (GF64.claim(x[0], weights, 1 << v) == KNOWN.claim(x[0], weights, 1 << v)).all()
        for columns in (0, 1, 3, 8, 21):
            rows, start = draw(5, columns), draw(6, 5)[0]
            found, due = start.copy(), start.copy()
            GF64.weigh(rows, draw(7, columns)[0], found)
            TWIN.weigh(rows, draw(7, columns)[0], due)
            assert (found == due).all() and (columns == 0 or (due != start).all())
        for following in (None, *range(7)):
            due = KNOWN.fold_bits(x, y, factors, weights, following)
            found = GF64.fold_bits(x.copy(), y.copy(), factors, weights, following)
            assert all((a == b).all() for a, b in zip(found, due, strict=True))
        for rights in RIGHTS:
            a, b = draw(len(rights), words), draw(len(rights) + 1, words)[1:]
            due = KNOWN.fold_bits(a, b, factors, weights, 3, rights)
            found = GF64.fold_bits(a.copy(), b.copy(), factors, weights, 3, rights)
            assert all((one == other).all() for one, other in zip(found, due, strict=True))
    finally:
        choice.compiled.restrict_to(ALL)


@compiled_only
def test_kernels_refuse_what_does_not_fit() -> None:
    kernels, one = choice.compiled, np.zeros(1, dtype=np.uint64)
    x, out, wide = np.zeros((2, 64), dtype=np.uint64), np.zeros(27, dtype=np.uint64), draw(2, 512)
    both = ints(2, 0, 1, 1, 0)
    kernels.gf_sums(x, x, both, 3, one[:0], out)  # what fits
    for call in (
        lambda: kernels.gf_multiply(x[0], x[1], out),
        lambda: kernels.gf_multiply(out, out, out),
        lambda: kernels.gf_sums(x, x[:1], both, 3, one[:0], out),
        lambda: kernels.gf_sums(x, x, both, 7, one[:0], out),
        lambda: kernels.gf_sums(x, x, both, 3, one, out),
        *(lambda wrong=wrong: kernels.gf_sums(x, x, ints(*wrong), 3, one[:0], out) for wrong in WRONG),
        lambda: kernels.gf_fold(x[0], x[1][:3]),
        lambda: kernels.gf_fold(x[0][:63], x[1][:8]),
        lambda: kernels.gf_fold(x[0], x[0][:8]),
        lambda: kernels.gf_weigh(x, x[0], out[:1]),
        lambda: kernels.gf_weigh(x, x[0], x[0, :2]),
        lambda: kernels.gf_fold_bits(x, x.copy(), both, out[:8], one[:0], 3, out),
        lambda: kernels.gf_fold_bits(wide, wide, both, draw(64), draw(8), -1, out[:0]),
        lambda: kernels.gf_fold_bits(wide, wide.copy(), both, draw(64), draw(8), 3, out[:9]),
        lambda: kernels.gf_fold_bits(wide, wide.copy(), both, draw(64), draw(8), 7, out),
        lambda: kernels.gf_fold_bits(wide, wide.copy(), both, draw(64), draw(9), 3, out),
        lambda: kernels.gf_claim(x[0], one, out[:8]),
        lambda: kernels.add_sources((x[0], one), np.zeros(64, dtype=np.uint64)),
    ):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=compiled_only)])
def test_operands_of_ands_are_kept_by_component(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    if not compiled:
        monkeypatch.setattr(choice, "compiled", None)

    async def circuit(engine: Any) -> Any:
        bits = engine.random_bits(8)
        return await engine.and_(bits[:4], bits[4:])

    layer: Layer = program_of(circuit).layers[0]
    slots, message = Slots(program_of(circuit).slots, 2, 200), np.zeros((4, 200), dtype=np.uint64)
    slots.set_constants(0)
    values = draw(2, 8, 200)
    deposits = [Deposit(layer.random, k, (values[k],)) for k in range(2)]
    place = {slot: i for i, slot in enumerate(layer.random)}
    for turned in (False, True):
        kept, results = [np.zeros((2, 2048), dtype=np.uint64) for _ in range(2)], np.zeros(2048, dtype=np.uint64)
        slots.run(
            layer, deposits, ProductLayer([(0, [0])], 1), message=message, kept=KeptOperands(*kept, results, 3, turned)
        )
        assert (results[600:1400] == message.reshape(-1)).all()
        assert not results[:600].any() and not results[1400:].any()
        for side, out in enumerate(kept, start=1):
            found, operands = out[::-1] if turned else out, [place[slot] for slot in layer.ands[:, side]]
            for k in range(2):
                assert (found[k, 600:1400].reshape(4, 200) == values[k, operands]).all()
                assert not found[k, :600].any() and not found[k, 1400:].any()
    total = np.ones(400, dtype=np.uint64)
    add_sources((draw(400), draw(2, 400)[1]), total)
    assert (total == draw(400) ^ draw(2, 400)[1]).all()
