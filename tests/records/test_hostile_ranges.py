"""Ranges, scales and knots as anybody may write them into a schema: a column is refused, or all that records become of
it are numbers within what is claimed of them, computed in fractions. No value of one record is an error of its own."""

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpmpc.records import columns
from dpmpc.records.columns import Column, Numeric, Surveyed
from dpmpc.records.schema import Labels, Range, Schema
from dpmpc.records.targets import SchemaError
from dpmpc.statistics.cells import RecordFields
from dpmpc.statistics.columns import Quantity
from dpmpc.statistics.scores import Target
from tests.refusals import refuses

TARGET = Labels("label", ("yes",), ("no",))
LOWS = (0.0, -1.0, 1.0, 3.3, 1e-300, 7e-310, 5e-324, -7e-310, -1e300, -8e307)
WIDTHS = (1.0, 1e-3, 7.7, 1e12, 1e300, 1.6e308, 5e-324)
ODD = (0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, math.nan, 2.0**53 + 1, 1.0, -1.0, 1 + 2**-52)


def drawn(rng: random.Random) -> tuple[dict[str, Any], type[Any]]:
    """What a schema may say of a column of numbers."""
    low = rng.choice(LOWS)
    high = max(low + rng.choice(WIDTHS), math.nextafter(low, math.inf))
    knots = {low + (high - low) * rng.random() for _ in range(rng.choice((0, 2, 3, 6)))}
    if knots and rng.random() < 0.5:
        knots |= {math.nextafter(min(knots), math.inf), low, high}
    said: dict[str, Any] = {"low": low, "high": high, "knots": tuple(sorted(knots))}
    if rng.random() < 0.3:
        return {**said, "number": True, "buckets": 4, "kept": (0, 2), "missing": True}, Surveyed
    return {**said, "scale": rng.choice(("centred", "log", "unit"))}, Numeric


def made(rng: random.Random) -> Column | None:
    """A column; None where it is refused."""
    said, kind = drawn(rng)
    try:
        found: Column = kind("x", **said)
        return found
    except SchemaError:
        return None


def values_of(column: Any, rng: random.Random) -> Any:
    near = [math.nextafter(each, to) for each in (column.low, column.high, *column.knots) for to in (-1e309, 1e309)]
    inside = [column.low + (column.high - column.low) * rng.random() for _ in range(8)]
    values = np.array([*ODD, *near, *inside, column.low, column.high, *column.knots])
    if isinstance(column, Numeric):
        return values
    pairs = np.column_stack([values, np.full(len(values), -1.0)])
    return np.concatenate([pairs, [[math.inf, 0.0], [math.inf, 3.0], [math.inf, -1.0]]])


def longest(schema: Schema, values: Any, precision: Any) -> Fraction:
    """The largest squared norm of the records' exact vectors. Errors: one has no vector of numbers."""
    design, most = schema.design, Fraction(0)
    P = design.places([values]).astype(precision)
    for place, factor in zip(P, design.factors(P), strict=True):
        total = Fraction(int(design.intercept))
        for cell, at in zip(design.cells, place.tolist(), strict=True):
            row, share = int(at), Fraction(at) - int(at)
            if row < len(cell.dense):
                after = cell.dense[row + 1] if share else cell.dense[row]
                pairs = zip(cell.dense[row].tolist(), after.tolist(), strict=True)
                total += sum(((1 - share) * Fraction(a) + share * Fraction(b)) ** 2 for a, b in pairs)
            else:
                assert not share and row <= cell.nothing
                total += row < cell.nothing
        most = max(most, total * Fraction(float(factor)) ** 2)
    return most


def tried(seed: int, many: int) -> tuple[int, Fraction]:
    """(how many columns are refused, the largest squared norm of the others' records)."""
    rng, refused, most = random.Random(seed), 0, Fraction(0)
    for _ in range(many):
        if (column := made(rng)) is None:
            refused += 1
            continue
        schema = Schema((column,), TARGET, rng.random() < 0.5, basis=rng.choice(("linear", "additive")))
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            for precision in (np.float64, np.float32):
                most = max(most, longest(schema, values_of(column, rng), precision))
    return refused, most


def test_every_column_is_refused_or_its_records_are_in_the_unit_ball() -> None:
    refused, most = tried(5, 300)
    assert 10 < refused < 200 and Fraction(99, 100) < most <= 1


def test_the_draws_find_scales_on_which_ends_or_knots_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_check_told_apart", lambda column: None)
    with pytest.raises((FloatingPointError, ValueError, OverflowError)):
        tried(5, 300)


@pytest.mark.parametrize("knots", [(), (1e12, math.nextafter(1e12, 2e12), 1e13)])
def test_what_is_not_told_apart_is_refused_with_the_way_out(knots: tuple[float, ...]) -> None:
    low, high = (1.0, 1e13) if knots else (7e-310, 1e12)
    with refuses("range", "x"):
        Numeric("x", low, high, "log", knots)
    assert Numeric("x", low, high, knots=knots).low == low


@pytest.mark.parametrize(("low", "high"), [(-8e307, 8e307), (-1.7e308, 0.0), (0.0, 5e-324), (1.0, 1 + 2**-52)])
def test_targets_lie_in_their_interval_however_wide_the_range(low: float, high: float) -> None:
    """A target beyond it would be an error that one record alone makes."""
    values = np.array([low, high, 0.0, math.nextafter(low, 1e308), -1e308, 1e308])
    with np.errstate(over="raise", invalid="raise"):
        y = Range("y", low, high).values(values)
        of = Target(column := Quantity("y", low, high)).of(RecordFields(len(values), {column: values}))
    for found in (y, of):
        assert np.isfinite(found).all() and found.min() == -1.0 and found.max() == 1.0
