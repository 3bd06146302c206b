"""What a look asks of columns of numbers: the kernel and its twin beside plain Python, in any order, with nulls."""

import math
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmpc.intake import numbers
from dpmpc.intake.numbers import BELOW, Numbers, NumbersSeen, numbers_of
from dpmpc.intake.profile import look
from dpmpc.intake.table import Column, Floats
from dpmpc.records import loading

ODD = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324, -5e-324, 2.0**52, 2.0**53 + 2, 1e300, -1e300, 0.5]
LONE_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF0_0000_0000_0001))[0]


def plain(values: list[float | None]) -> Numbers:
    """The same without NumPy, but for how many are different, which are counted."""
    there = [value for value in values if value is not None]
    finite = [value + 0.0 for value in there if math.isfinite(value)]
    codes = {sign * code for code in BELOW for sign in (1, -1)}
    least, greatest = (min(finite), max(finite)) if finite else (None, None)
    rest = sorted(value for value in finite if value not in codes and value not in (least, greatest))
    different = {repr(value + 0.0) if value == value else "nan" for value in there}
    return Numbers(
        len(there), len(finite), sum(value == math.floor(value) for value in finite), len(different), least, greatest,
        sum(v == least for v in finite), sum(v == greatest for v in finite),
        {c: finite.count(c) for c in codes & set(finite)}, (rest[0], rest[-1]) if rest else (),
    )  # fmt: skip


def drawn(rng: random.Random) -> list[float | None]:
    ways: list[Callable[[], float | None]] = [
        lambda: rng.choice(ODD), lambda: rng.choice([*BELOW]) * rng.choice([1, -1]), lambda: rng.randrange(-5, 5) * 1.0,
        lambda: rng.gauss(0, 10 ** rng.randrange(-3, 7)), lambda: None, lambda: float(rng.randrange(10**7)),
        lambda: LONE_NAN, lambda: rng.choice([-1, 1]) * 999.0, lambda: rng.choice([7777.0, 7776.0, 999999.0, 1000.0]),
    ]  # fmt: skip
    ways = rng.sample(ways, rng.randrange(1, 4))
    return [rng.choice(ways)() for _ in range(rng.randrange(0, 60))]


def seen(values: list[float | None], cut: int, first: int, twin: bool) -> Numbers:
    """After two parts, whose bits of validity begin anywhere."""
    held = NumbersSeen()
    for part in (values[:cut], values[cut:]):
        array = np.array([math.nan if v is None else v for v in part], dtype=np.float64)
        array[np.array([v is None for v in part], dtype=bool)] = 1e9  # a null's may be anything
        bits = np.packbits(np.array([False] * first + [v is not None for v in part], dtype=bool), bitorder="little")
        there = None if all(v is not None for v in part) else bits
        (held._add if twin else held.add)(array, there, first)
    return held.found


@pytest.mark.parametrize("twin", [True, False])
def test_both_say_what_plain_python_says(twin: bool) -> None:
    rng = random.Random(3)
    for _ in range(800):
        values = drawn(rng)
        found, known = seen(values, rng.randrange(len(values) + 1), rng.randrange(20), twin), plain(values)
        # of up to 60 values, 2 or more share a register's rank rarely, and their count is off by few
        assert abs(found.distinct - known.distinct) <= 3
        assert found.__dict__ | {"distinct": 0} == known.__dict__ | {"distinct": 0}
        assert found.least is None or math.copysign(1.0, found.least) == 1.0 or found.least < 0


def test_the_kernel_and_its_twin_leave_the_same_bits() -> None:
    rng = random.Random(5)
    if numbers.compiled() is None:
        pytest.skip("there is no kernel")
    for _ in range(200):
        values = np.array([math.nan if v is None else v for v in drawn(rng) * 5], dtype=np.float64)
        one, other = NumbersSeen(), NumbersSeen()
        one.add(values, None, 0)
        other._add(values, None, 0)
        for name in ("counts", "ends", "of_code", "registers"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


def test_the_kernel_refuses_what_would_be_read_beyond_its_end() -> None:
    kernel = numbers.compiled()
    if kernel is None:
        pytest.skip("there is no kernel")
    held, values = NumbersSeen(), np.zeros(9)
    state: tuple[Any, ...] = (held.counts, held.ends, held.of_code, held.registers)
    kernel.look(values, np.zeros(2, dtype=np.uint8), 7, numbers._SIGNED, *state)
    some, few = np.zeros(2, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
    for there, first in ((some, 8), (few, 0), (None, -1), (some, 2**63 - 1), (some, 2**63 - 10)):
        with pytest.raises(ValueError):
            kernel.look(values, there, first, numbers._SIGNED, *state)
    for short in range(4):
        with pytest.raises(ValueError):
            kernel.look(values, None, 0, numbers._SIGNED, *(a[:-1] if k == short else a for k, a in enumerate(state)))
    with pytest.raises(TypeError):
        kernel.look(values.astype(np.float32), None, 0, numbers._SIGNED, *state)


@pytest.mark.parametrize("many", [1, 2, 50, 900, 5_000, 10_000, 13_000, 20_000, 200_000])
def test_different_numbers_are_estimated(many: int) -> None:
    """Within 8 standard errors of 2.2 %, for values that no hash was made for: counts, decimals, halves."""
    at: Floats = np.arange(many).astype(np.float64)
    for values in (at, at / 100, 1e6 + at / 2, -at * 1024.0):
        held = NumbersSeen()
        held.add(np.concatenate([values, values[: many // 2]]), None, 0)
        assert abs(held.found.distinct - many) <= max(8 * 0.022 * many, 0)
        short = NumbersSeen()
        short.add(values[: many // 2], None, 0)  # half as many is told from it
        assert many < 50 or abs(short.found.distinct - many) > 8 * 0.022 * many


def test_a_look_at_many_records_says_what_one_at_few_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same columns, by SQL where counts are exact and in one reading where they are not."""
    rng, n = np.random.default_rng(7), 30_000
    age = rng.integers(1500, 9000, n).astype(float)
    age[rng.random(n) < 0.05] = 99999.0
    held = rng.normal(size=n).round(3)
    held[rng.random(n) < 0.03] = -999
    odd = rng.normal(size=n)
    odd[:3] = np.nan, np.inf, -np.inf
    clock = (rng.integers(0, 24, n) * 100 + rng.integers(0, 60, n)).astype(float)
    some = pa.array(rng.normal(size=n).round(2), mask=rng.random(n) < 0.3)
    columns: dict[str, Any] = {"age": age, "held": held, "odd": odd, "clock": clock, "some": some, "same": some}
    columns |= {"one": np.ones(n), "days": rng.integers(19900101, 19900128, n)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    found: list[tuple[tuple[str, ...], list[Any]]] = []
    for exact in (100_000, 20_000):
        monkeypatch.setattr(numbers, "EXACT", exact)
        with loading.opened(str(tmp_path / "a.parquet"), folder=tmp_path) as (table, _):
            assert bool(numbers.streamed_of(table, table.names)) is (exact < n)
            profile = look(table)[0]
        found.append((profile.notes, [(c.kind, c.least, c.greatest, c.unread, c.present) for c in profile.columns]))
    assert found[0] == found[1]
    assert {"'age'", "'held'", "'same'", "'clock'"} <= set("".join(found[0][0]).replace(":", "").split())


def test_decimals_are_the_nearest_doubles(tmp_path: Path) -> None:
    """Of any number of digits, by division where that is exact and by their text where it may not be."""
    rng = random.Random(11)
    for width, scale in ((4, 2), (9, 9), (15, 0), (15, 3), (15, 15), (16, 3), (18, 17), (38, 20)):
        values = [Decimal(rng.randrange(-(10**width) + 1, 10**width)).scaleb(-scale) for _ in range(2000)]
        pq.write_table(pa.table({"x": pa.array(values, pa.decimal128(width, scale))}), tmp_path / "d.parquet")
        with loading.opened(str(tmp_path / "d.parquet"), folder=tmp_path) as (table, _):
            assert ("VARCHAR" in table.number("x")) is (width > 15)
            rows = [row[0] for row in table.rows(table.number("x"))]
        assert rows == [float(value) for value in values]
    assert Column("x", "x", "DECIMAL(15,3)").kind == "number"


def test_numbers_that_are_known_are_not_read_again(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, None, 3.5]}), tmp_path / "x.parquet")
    with loading.opened(str(tmp_path / "x.parquet"), folder=tmp_path) as (table, _):
        found = numbers_of(table, ["x"])["x"]
        assert (found.present, found.least, found.greatest) == (2, 1.0, 3.5)
        (tmp_path / "x.parquet").unlink()
        assert numbers_of(table, ["x"])["x"] is found
