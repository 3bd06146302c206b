"""The comparison of masked numbers, on plain bits, gate by gate: at every edge, with every kind of mask."""

import numpy as np
import pytest
from direct import DirectEngine, evaluate

from dpmpc.circuits.in_range import all_of, all_program, small, small_program
from dpmpc.mpc.contract.lanes import from_planes, to_planes
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import P
from dpmpc.mpc.numbers.prg import Prg

LANES = 1 << 12


def lanes_of(values: list[int]) -> field.Words:
    padded = (values * (LANES // len(values) + 1))[:LANES]
    return np.array(padded, dtype=np.uint64)


@pytest.mark.parametrize("masks", [1, 2, 5])
@pytest.mark.parametrize("widths", [(1, 1), (14, 21), (25, 60), (29, 30)])
def test_small_is_exact_at_every_edge(masks: int, widths: tuple[int, int]) -> None:
    rng = np.random.default_rng(masks)
    edges = {0, 1, 2, P - 1, P - 2, P // 2, P // 2 + 1}
    for width in widths:
        edges |= {(1 << width) + k for k in (-2, -1, 0, 1, 2)} | {P - (1 << width) + k for k in (-1, 0, 1)}
    x = lanes_of([v % P for v in sorted(edges)] + [int(v) for v in rng.integers(0, P, 200)])
    extreme = lanes_of([0, 1, P - 1, P - 2, *(int(v) for v in rng.integers(0, P, 13))])
    drawn = [np.roll(extreme, 7 * k) for k in range(masks)]
    y = x.copy()
    for mask in drawn:
        y = field.add(y, mask)
    engine = DirectEngine(LANES, Prg(b"none"))
    planes = np.array([to_planes(mask, 61) for mask in drawn])
    found = evaluate(small(engine, to_planes(y, 61), planes, widths))
    for row, width in zip(found, widths, strict=True):
        assert (from_planes(row[None]) == ((x >= 1) & (x < 1 << width))).all()


def test_all_of_is_one_where_all_are() -> None:
    bits = to_planes(np.arange(LANES, dtype=np.uint64), 12)
    for k in (1, 2, 3, 7, 12):
        found = from_planes(evaluate(all_of(DirectEngine(LANES, Prg(b"none")), bits[:k])))
        assert (found == (np.arange(LANES) & (1 << k) - 1 == (1 << k) - 1)).all()


def test_what_it_costs() -> None:
    assert (small_program(2, (14, 21)).ands, small_program(2, (14, 21)).depth) == (336, 22)
    assert (small_program(9, (14, 21)).ands) == 336 + 7 * 61
    assert (all_program(42).ands, all_program(42).depth) == (41, 6)
