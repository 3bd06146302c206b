"""Columns that a table keeps by codes: the kernel and its twin, and what is read again beside a table of none."""

import math
import random
import struct
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmpc.intake import coded, numbers, table
from dpmpc.intake.coded import MOST, ColumnCoding, IntegersSeen, Kept
from dpmpc.intake.giving import giving
from dpmpc.intake.numbers import NumbersSeen, _Look
from dpmpc.intake.profile import look
from dpmpc.intake.staging import held
from dpmpc.intake.table import value_sql
from dpmpc.learning import survey as survey_module
from dpmpc.learning.survey import Survey
from dpmpc.records import kernel, load, loading
from dpmpc.records.columns import Numeric, Surveyed
from dpmpc.records.memory import kept_within
from dpmpc.records.schema import Labels, Schema
from tests.records.test_rows import needs_kernel

ODD = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324, 1e300, 0.1 + 0.2]
ODD.append(struct.unpack("<d", struct.pack("<Q", 0x7FF0_0000_0000_0001))[0])  # a NaN that signals
N = 40_000


def parts(rng: random.Random, most: int) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None, int]]:
    """Some parts of a column, with what is missing, whose bits begin anywhere."""
    found: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None, int]] = []
    for _ in range(rng.randrange(1, 6)):
        values = [
            rng.choice(ODD) if rng.random() < 0.1 else float(rng.randrange(most)) / 8
            for _ in range(rng.randrange(3000))
        ]
        first = rng.randrange(12)
        there = None
        if rng.random() < 0.5:
            there = np.packbits([0] * first + [rng.random() < 0.9 for _ in values], bitorder="little")
        found.append((np.array(values, dtype=np.float64), there, first if there is not None else 0))
    return found


def values_of(given: list[Any]) -> list[tuple[bytes, bool]]:
    """Each value's bits, and whether it is there, by plain Python."""
    found = []
    for values, there, first in given:
        for k in range(len(values)):
            here = there is None or bool(there[(first + k) // 8] >> (first + k) % 8 & 1)
            found.append((values[k : k + 1].tobytes() if here else b"", here))
    return found


def taken(given: list[Any], twin: bool, n: int) -> ColumnCoding:
    made = ColumnCoding(n)
    for values, there, first in given:
        if twin:
            done = made._add(values, there, first, made.codes[made.seen : made.seen + len(values)])
            made.seen += done
        else:
            done = made.add(values, there, first)
        if done < len(values):
            break
    return made


@pytest.mark.parametrize("twin", [True, False])
def test_codes_give_back_every_bit(twin: bool) -> None:
    rng = random.Random(3)
    for trial in range(60):
        given = parts(rng, (5, 300, 60_000)[trial % 3])
        plain = values_of(given)
        made = taken(given, twin, len(plain))
        assert made.seen == len(plain)
        column = made.coded
        assert column.values is not None and column.codes.dtype == (np.uint8 if made.state[0] <= 256 else np.uint16)
        read = column.part(0, len(plain))
        assert [b"" if code == 0 else value.tobytes() for code, value in zip(column.codes, read, strict=True)] == [
            bits for bits, _ in plain
        ]
        bits, times = made.values.view(np.int64).tolist(), made.times.tolist()
        assert len(set(bits)) == len(bits) and sum(times) == sum(here for _, here in plain)
        assert all(times[code - 1] == int((column.codes == code).sum()) for code in range(1, min(9, len(bits))))


@needs_kernel
def test_the_kernel_and_its_twin_give_the_same_codes() -> None:
    rng = random.Random(5)
    for trial in range(40):
        given = parts(rng, (3, 2000, 10**6)[trial % 3])
        one, other = (taken(given, twin, len(values_of(given))) for twin in (False, True))
        for name in ("codes", "bits", "counts"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
        assert one.state[0] == other.state[0]


@pytest.mark.parametrize("twin", [True, pytest.param(False, marks=needs_kernel)])
@pytest.mark.parametrize("nulls", [True, False])
def test_the_value_that_is_one_too_many_stops_the_coding(twin: bool, nulls: bool) -> None:
    """65,535 values have codes beside what is missing; the next is where it stops, among others of a part or alone."""
    values = np.arange(MOST + 9, dtype=np.float64)
    for cut in (0, 7, MOST - 1, MOST):
        there = np.packbits(np.arange(len(values) - cut) != 3, bitorder="little") if nulls else None
        made = ColumnCoding(len(values))
        for part, bits in ((values[:cut], None), (values[cut:], there)):
            room = made.codes[made.seen : made.seen + len(part)]
            done = made._add(part, bits, 0, room) if twin else made.add(part, bits, 0)
            made.seen += done if twin else 0
        missing = nulls and cut < MOST - 4
        assert made.seen == MOST - 1 + missing and made.state[0] == MOST
        assert made.counts.sum() == made.seen and made.counts[0] == missing


@needs_kernel
def test_the_kernel_refuses_what_would_lie_beyond_its_end() -> None:
    kernel = coded.compiled()
    made, values = ColumnCoding(9), np.zeros(9)
    own: tuple[Any, ...] = (made.state, made.slots, made.bits, made.counts, made.codes)
    some, few = np.zeros(2, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
    for there, first in ((some, 8), (few, 0), (None, -1), (some, 2**63 - 1), (some, 2**63 - 10)):
        with pytest.raises(ValueError):
            kernel.encode(values, there, first, *own)
    for short in range(5):
        with pytest.raises(ValueError):
            kernel.encode(values, None, 0, *(a[:-1] if k == short else a for k, a in enumerate(own)))
    for state in ((0, 10), (1, 9), (1, 19), (MOST + 1, 18), (600, 10)):
        with pytest.raises(ValueError):
            kernel.encode(values, None, 0, np.array(state, dtype=np.int64), *own[1:])
    assert kernel.encode(values, None, 0, *own) == 9


def test_a_look_at_codes_says_what_one_at_values_does() -> None:
    """Also where there are so many that coding stops on the way."""
    rng = random.Random(7)
    given = [*parts(rng, 10**9), (np.arange(MOST + 500) / 4.0, None, 0)]
    rng.shuffle(given)
    for some in (given, parts(rng, 40), parts(rng, 3000), [(np.zeros(0), None, 0)]):
        direct, one = NumbersSeen(), _Look(numbers._SIGNED, ColumnCoding(sum(len(v) for v, _, _ in some)))
        for part in some:
            direct.add(*part)
            one.add(*part)
        assert one.found == direct.found
        assert (one.coding is None) == (some is given)


def test_small_whole_numbers_are_kept_in_as_few_bytes_as_hold_them() -> None:
    for values, size in (([1, -2, 127], 1), ([1, 300, -128], 2), ([1, 40_000, 2], 0), ([1, 2], 0)):
        made = IntegersSeen(3)
        for value in values:
            made.add(np.array([value], dtype=np.int32))
        column = made.coded
        assert (column is None) == (size == 0)
        if column is not None:
            assert column.codes.dtype.itemsize == size and column.part(0, 3).tolist() == values


def write(path: Path) -> None:
    """Numbers of several kinds with what is missing and what is not finite, an owner and a label."""
    rng = np.random.default_rng(3)
    x = np.round(rng.normal(size=N), 2)
    x[:5] = 0.0, -0.0, math.nan, math.inf, -math.inf
    table = {
        "odd": pa.array(x, pa.float64(), mask=rng.random(N) < 0.01),
        "whole": pa.array(rng.integers(-5, 90, N), pa.int32()),
        "many": pa.array(rng.normal(size=N), pa.float64()),
        "eighths": pa.array(rng.integers(-9, 9, N) / 8.0 * np.where(rng.random(N) < 0.5, 1, -1)),
        "thirds": pa.array((rng.integers(-9, 9, N) / 3.0).astype(np.float32), mask=rng.random(N) < 0.1),
        "money": pa.array(np.round(rng.random(N), 2)).cast(pa.float32()),
        "y": pa.array(np.where(x > 0, "yes", "no")),
        "site": pa.array(np.where(rng.random(N) > 0.3, "a", "b")),
    }
    pq.write_table(pa.table(table), path)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many records are many; more different numbers than these are too many to be kept."""
    monkeypatch.setattr(numbers, "EXACT", 1000)
    monkeypatch.setattr(table, "AT_ONCE", 1 << 12)


def joined(table: Any, expressions: list[str]) -> list[bytes]:
    return [np.concatenate(parts).tobytes() for parts in zip(*table.blocks(expressions), strict=True)]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_what_is_kept_is_what_is_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"records.{kind}"
    write(path := tmp_path / "records.parquet")
    if kind == "csv":
        text = tmp_path / "records.csv"
        coded_as = pq.read_table(path).drop_columns(["odd"]).to_pandas()
        coded_as.to_csv(text, index=False)
        path = text
    found, looks = list[list[bytes]](), list[Any]()
    for most in (1 << 28, 0):
        with loading.opened(str(path), folder=tmp_path) as (opened, _):
            plain = held(opened, opened.names)
            plain.kept.most = most
            looks.append(look(plain)[0].columns)
            own = [name for name in plain.names if plain[name].kind == "number"]
            asked = [value_sql(plain, name, read="either") for name in own] + [plain.number(own[0])]
            asked[-1] = f"coalesce({asked[-1]}, CAST('nan' AS DOUBLE))" if not most else asked[-1]
            kept = [plain.kept.of(plain.relation, each) is not None for each in asked]
            assert kept == [most > 0] * len(asked) and len(own) >= 3
            found.append(joined(plain, asked))
            mixed = joined(plain, [f"{asked[0]} + 0", asked[0]])
            assert mixed[1] == found[-1][0]
    assert found[0] == found[1]
    assert looks[0] == looks[1] and sum(column.listed and len(column.values) > 5 for column in looks[0]) >= 3


@pytest.mark.usefixtures("large")
def test_records_of_kept_columns_are_those_of_read_ones(tmp_path: Path) -> None:
    """Rows, what is worked out of them, labels, and what does not fit; kept columns are held by their codes."""
    path = tmp_path / "records.parquet"
    write(path)
    target = Labels("y", ("yes",), ("no",))
    surveyed = (
        Surveyed("odd", number=True, low=-2.0, high=1.5, missing=True, knots=(0.0, 0.5)),
        Surveyed("whole", number=True, low=0.0, high=60.0, knots=(10.0, 20.0)),
        Surveyed("many", number=True, low=-1.0, high=1.0),
    )
    ranged = (Numeric("odd", -2.0, 1.5), Numeric("whole", 0.0, 60.0), Numeric("money", 0.0, 1.0))
    sizes = list[int]()
    for columns in (surveyed, ranged):
        found = []
        for most in (1 << 28, 0):
            with loading.opened(str(path), folder=tmp_path) as (opened, private):
                opened.kept.most = most
                look(opened, target="y", owners="site")
                list(opened.blocks([value_sql(opened, "money")]))
                source = loading.OpenTable(opened, private)
                schema, memory = Schema(columns, target, True), 4 * 8 * len(columns) * N  # little: codes are kept
                data = load(source, schema=schema, owners_column="site", memory=memory)
                counts = [astuple(each) for each in data.counts]
                made = data.records.compact(0, data.records.n)
                assert made is not None and data.records.width == len(columns)
                d = made.shape[1]
                theta, pulls = np.linspace(-1, 1, 3 * d), np.linspace(-1, 2, data.records.n)
                sums = made.sums(pulls, np.array([0, 7, data.records.n]))
                scores = [made.scores(theta[: k * d]).tobytes() for k in (1, 3)]
                worked_out = (data.records.X, made.factors, data.y, sums)
                found.append(([each.tobytes() for each in worked_out], scores, counts))
                sizes.append(data.records.held.strides[0])
        assert found[0] == found[1] and any(sum(map(int, each[1:6])) for each in found[0][-1])
        assert sizes[-1] == 24 and sizes[-2] <= 6  # bytes a record


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("twin", [False, True])
def test_a_survey_adds_up_codes_to_the_bits_of_numbers(
    twin: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every owner, within ranges or without, of records of nobody too; a column sent twice as large."""
    path, by_codes = tmp_path / "records.parquet", list[int]()
    write(path)
    if twin:
        monkeypatch.setattr("dpmpc.records.kernel.compiled", lambda: None)
    cells_of = survey_module.cells_of  # of the values of codes alone
    monkeypatch.setattr(survey_module, "cells_of", lambda values: by_codes.append(len(values)) or cells_of(values))
    survey = Survey(("odd", "whole", "many", "eighths"), ("thirds",), 16, (("odd", -1.0, 1.25),), ("whole",))
    owner = np.random.default_rng(2).integers(-1, 3, N)
    found = list[bytes]()
    for most in (1 << 28, 0):
        with loading.opened(str(path), folder=tmp_path) as (opened, _):
            opened.kept.most = most
            look(opened)
            found.append(b"".join(part.tobytes() for part in survey.sums(opened, owner, 3)))
            assert bool(by_codes) == (most > 0)
            by_codes.clear()
    assert found[0] == found[1] and any(found[0])


def test_the_kernel_refuses_codes_and_cells_that_are_none() -> None:
    compiled = kernel.compiled()
    if compiled is None:
        pytest.skip("installed without a compiler")
    codes, cells, moments = np.array([0, 2, 1], dtype=np.uint8), np.array([0, 1, 5], dtype=np.int32), np.ones((3, 2))
    group, out = np.array([0, -1, 1]), np.zeros((2, 400))
    compiled.coded_cells(codes, cells, moments, group, out, 3, 400, 2)
    assert out.sum() == 2 and out[0, 3] == out[1, 4] == 1
    good = (codes, cells, moments, group, out, 3, 400, 2)
    for at, wrong in (
        (0, np.array([0, 3, 1], dtype=np.uint8)), (0, codes[:2]), (1, np.array([0, 1, 130], dtype=np.int32)),
        (1, np.array([0, -1, 5], dtype=np.int32)), (2, moments[:2]), (3, np.array([0, 1, 2])), (4, out[:1].copy()),
        (5, 20), (5, -1), (6, 1 << 40), (7, -1), (7, 3),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            compiled.coded_cells(*good[:at], wrong, *good[at + 1 :])
    with pytest.raises(TypeError):
        compiled.coded_cells(codes.astype(float), *good[1:])


@pytest.mark.usefixtures("large")
def test_what_gives_the_target_is_seen_in_kept_columns(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    write(path)
    said = list[list[str]]()
    for most in (1 << 28, 0):
        with loading.opened(str(path), folder=tmp_path) as (opened, _):
            opened.kept.most = most
            look(opened)
            kinds = {"odd": "number", "whole": "number", "site": "text", "money": "number"}
            said.append([line for _, line in giving(opened, "y", kinds, False)])
            assert (opened.kept.of(opened.relation, opened.number("odd")) is not None) == (most > 0)
    assert said[0] == said[1] and len(said[0]) == 1 and "'odd'" in said[0][0]


def test_no_more_is_kept_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "EXACT", 1000)
    path = tmp_path / "records.parquet"
    write(path)
    for columns in range(4):
        with loading.opened(str(path), folder=tmp_path) as (opened, _):
            opened.kept.most = ColumnCoding.size(N) * columns
            look(opened)
            kept = {
                name
                for name in ("odd", "whole", "many", "eighths")
                if opened.kept.of(opened.relation, opened.number(name))
            }
            assert len(kept) == columns and opened.kept.room >= 0


def test_another_relation_has_nothing_of_this_one() -> None:
    kept = Kept(1 << 20)
    kept.put("one", "x", coded.CodedColumn(np.zeros(3, dtype=np.uint8), np.array([math.nan])))
    assert kept.of("one", "x") is not None and kept.of("other", "x") is None and kept.of("one", "y") is None
    assert kept.room == (1 << 20) - 3 - 8


@pytest.mark.parametrize("columns", [0, 2, 5])
def test_no_more_whole_numbers_are_kept_than_there_is_room_for(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those that one reading has."""
    monkeypatch.setattr(table, "AT_ONCE", 1 << 10)
    path = tmp_path / "records.parquet"
    write(path)
    with loading.opened(str(path), folder=tmp_path) as (opened, _):
        opened.n  # noqa: B018
        opened.kept.most = 2 * N * columns + N
        asked = [f"CAST({opened['whole'].sql} + {k} AS INTEGER)" for k in range(5)]
        first = joined(opened, asked)
        assert sum(opened.kept.of(opened.relation, each) is not None for each in asked) == columns
        assert joined(opened, asked) == first and opened.kept.room >= 0


def test_an_eighth_of_memory_is_kept_and_no_more_than_is_said() -> None:
    assert kept_within(10**9) == 125 * 10**6 and kept_within(10**12) == 1 << 28
