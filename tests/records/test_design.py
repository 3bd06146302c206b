"""Records by their places: the vectors that columns say, the same bits with and without the kernel, in the ball."""

import datetime
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from dpmpc.learning.matrix import CompactRows, DenseRows
from dpmpc.records import Schema, kernel
from dpmpc.records.blocks import allocate, arranged
from dpmpc.records.columns import Categorical, Column, Date, Numeric, Surveyed
from dpmpc.records.design import RUN, Compact, RecordDesign
from dpmpc.records.schema import Labels
from tests.records.test_rows import MIXED, ODD, PLAIN

TARGET = Labels("label", ("yes",), ("no",))
needs_kernel = pytest.mark.skipif(kernel.compiled() is None, reason="installed without a compiler")
SCHEMAS = [
    Schema(MIXED, TARGET, True, basis="additive"),
    Schema(MIXED, TARGET, False, basis="additive"),
    Schema(PLAIN, TARGET, True),
    Schema((*PLAIN[:1], Numeric("l", 0.5, 90.0, "log"), Numeric("m", 0, 7, "log")), TARGET, False, basis="additive"),
    Schema((Surveyed("x2"), Surveyed("x3", missing=True)), TARGET, False),
]


def values_of(schema: Schema, n: int, rng: np.random.Generator) -> list[Any]:
    """Values or codes of its columns, as `Schema.rows` takes them."""
    found: list[Any] = []
    for column in schema.columns:
        numbers = rng.normal(1, 4, n)
        numbers[rng.integers(0, n, n // 3)] = rng.choice(ODD, n // 3)
        if isinstance(column, Categorical):
            found.append(rng.integers(-2, len(column.values), n).astype(np.int32))
        elif isinstance(column, Surveyed):
            knots = rng.choice([*column.knots, column.low, column.high], n)
            numbers = np.where(rng.random(n) < 0.2, knots, numbers)
            buckets = np.where(np.isinf(numbers), rng.integers(-1, column.buckets, n), -1)
            found.append(np.column_stack([numbers, buckets]))
        elif isinstance(column, Date):
            days = rng.uniform(18000, 19500, n)
            found.append(np.where(rng.random(n) < 0.1, np.nan, days))
        else:
            found.append(np.where(np.isfinite(numbers), numbers, np.nan))
    return found


def features_of(column: Column, values: Any) -> Any:
    """(n, w) what the docs say that a column's features are (docs/data.md), value by value."""
    rows = []
    for value in values.tolist():
        if isinstance(column, Categorical):
            rows.append([float(value == k) for k in range(len(column.values))])
        elif isinstance(column, Date):
            rows.append(_day(column, value))
        else:
            rows.append(_number(column, value))
    return np.array(rows).reshape(len(values), len(column.features))


def _day(column: Date, value: float) -> list[float]:
    found = list[float]()
    when = None if np.isnan(value) else datetime.date(1970, 1, 1) + datetime.timedelta(days=int(np.floor(value)))
    for part in column.parts:
        if part == "days":
            inside = min(max(value, column.low), column.high)
            found.append(0.5 if when is None else (inside - column.low) / (column.high - column.low))
        elif part == "hour":
            found.append(0.5 if when is None else value % 1)
        elif part == "month":
            found += [float(when is not None and when.month == k) for k in range(1, 13)]
        else:
            found += [float(when is not None and when.weekday() == k) for k in range(7)]
    return found


def _number(column: Any, value: Any) -> list[float]:
    bucket = -1.0
    if isinstance(column, Surveyed):
        value, bucket = value
    there, K = np.isfinite(value), len(column.knots)
    log = isinstance(column, Numeric) and column.scale == "log"

    def on(v: float) -> float:
        v = min(max(v, column.low), column.high) if isinstance(column, Numeric) else v
        return v if not log else float(np.log(v / column.low) if column.low > 0 else np.log1p(v))

    found = list[float]()
    if isinstance(column, Numeric) or column.number:
        inside, low, high = min(max(value, column.low), column.high), on(column.low), on(column.high)
        share = (on(inside) - low) / (high - low) if high > low and there else 0.5
        plain = isinstance(column, Numeric) and column.scale == "unit"
        found.append(0.0 if high == low else share if plain else 2 * share - 1)
    if K:
        knots = [on(knot) for knot in column.knots]
        hats = np.array([np.interp(on(value), knots, np.eye(K)[k]) for k in range(K)]) if there else np.zeros(K)
        j = np.arange(K) + 0.5
        found += [float(hats @ (np.sqrt(2 / K) * np.cos(np.pi * q * j / K) / q)) for q in range(1, K)]
    if isinstance(column, Numeric):
        return [*found, float(not there)] if K else found
    gone = np.isnan(value) or (np.isinf(value) and bucket < 0)
    found += [float(np.isinf(value) and bucket == k) for k in column.kept]
    return [*found, float(gone)] if column.missing else found


def compact(schema: Schema, n: int, seed: int, precision: Any = "double") -> tuple[Compact, list[Any]]:
    values = values_of(schema, n, np.random.default_rng(seed))
    P = schema.design.places(values).astype(np.float64 if precision == "double" else np.float32)
    return Compact(schema.design, P, schema.design.factors(P)), values


@pytest.mark.parametrize("schema", SCHEMAS)
def test_rows_are_what_columns_say_divided_by_their_norm(schema: Schema) -> None:
    matrix, values = compact(schema, 400, 1)
    X = np.hstack([features_of(c, v) for c, v in zip(schema.columns, values, strict=True)] + [np.ones((400, 1))])
    X = X[:, : len(schema.feature_names)]
    expected = X / np.maximum(schema.norm, np.linalg.norm(X, axis=1))[:, None]
    assert np.abs(matrix.rows() - expected).max() < 1e-12
    assert len(np.unique(X, axis=0)) > 1  # else there is nothing to tell apart


@needs_kernel
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("classes", [1, 3])
def test_kernel_and_twin_have_the_same_bits_and_are_those_of_written_rows(
    schema: Schema, precision: Any, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, n = np.random.default_rng(3), 300
    matrix, _ = compact(schema, n, 2, precision)
    theta = rng.normal(size=matrix.shape[1] * classes)
    pulls = rng.normal(size=n if classes == 1 else (n, classes))
    cuts = np.array([0, 1, 1, 40, 41, n - 3])

    def everything() -> list[Any]:
        made = matrix.design
        return [
            made.squares(matrix.places), matrix.rows(), matrix.scores(theta), matrix.sums(pulls, cuts),
            matrix.sums(pulls, cuts + 3),
        ]  # fmt: skip

    found = everything()
    monkeypatch.setattr(kernel, "compiled", lambda: None)
    for one, other in zip(found, everything(), strict=True):
        assert one.tobytes() == other.tobytes()
    X = found[1]
    by_class = theta.reshape(-1, classes)
    assert np.abs(found[2].reshape(n, -1) - X @ by_class).max() < 1e-12
    for k, row in enumerate(found[3]):
        part = slice(cuts[k], cuts[k + 1])
        plain = X[part].T @ pulls.reshape(n, -1)[part]
        assert np.abs(row.reshape(-1, classes) - plain).max(initial=0) < 1e-12
    whole = [matrix.design.scores(matrix.places[a:b], matrix.factors[a:b], theta) for a, b in ((0, 7), (7, n))]
    assert np.concatenate(whole).tobytes() == everything()[2].tobytes()  # whatever block a row is in


def packed(matrix: Compact, seed: int, every: bool) -> Compact:
    """The same records by codes, which come in any order; of a cell or two the places themselves unless `every`."""
    rng, tables, held = np.random.default_rng(seed), list[Any](), list[Any]()
    for k in range(matrix.places.shape[1]):
        column = np.ascontiguousarray(matrix.places[:, k])
        if not every and k % 3 == 1:
            tables.append(None)
            held.append(column[:, None].view(np.uint8))
            continue
        table, which = np.unique(column, return_inverse=True)
        more = np.concatenate([table, np.zeros(300 if k % 2 else 0, dtype=table.dtype)])  # codes that nobody has
        order = rng.permutation(len(more))
        tables.append(more[order].astype(np.float64))
        codes = np.argsort(order)[which].astype(np.uint8 if len(more) <= 256 else np.uint16)
        held.append(codes[:, None].view(np.uint8))
    design = matrix.design.packed(tables, matrix.places.dtype == np.float32)
    assert design.packing is not None
    P = np.ascontiguousarray(np.hstack(held))
    assert P.shape[1] == design.packing.size < matrix.places.itemsize * matrix.places.shape[1]
    return Compact(design, P, design.factors(P))


@needs_kernel
@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_packed_records_have_the_bits_of_their_places(
    schema: Schema, precision: Any, every: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kernel and by its twin, however many scores a record has, in any part."""
    n = 261
    matrix, _ = compact(schema, n, 13, precision)
    small = packed(matrix, 3, every)
    cuts = np.array([0, 1, 1, 40, 41, n - 3])

    def everything(made: Compact) -> list[bytes]:
        found = [made.design.squares(made.places), made.factors, made.rows(), made.part(3, 9).rows()]
        for K in (1, 3):
            theta = np.linspace(-1, 1, made.shape[1] * K)
            pulls = np.linspace(-2, 1, n * K).reshape(n, K)[:, 0 if K == 1 else slice(None)]
            found += [made.scores(theta), made.scores(-theta), made.scores(theta), made.sums(pulls, cuts)]
            found += [made.part(5, 8).scores(theta), made.taken(np.array([7, 0, 7])).scores(theta)]
        return [each.tobytes() for each in found]

    whole = everything(matrix)
    assert everything(small) == whole
    monkeypatch.setattr(kernel, "compiled", lambda: None)
    assert everything(small) == whole


@needs_kernel
def test_the_kernel_refuses_codes_and_fields_that_are_none() -> None:
    matrix, _ = compact(SCHEMAS[0], 6, 9)
    out, compiled = np.zeros(6), kernel.compiled()
    for every in (True, False):
        small = packed(matrix, 1, every)
        design, packing = small.design, small.design.packing
        assert packing is not None
        calls = (
            design.squares, partial(design.rows, factors=out),
            partial(design.scores, factors=out, theta=np.zeros(design.d)),
            partial(design.sums, factors=out, coefficients=out, cuts=np.array([0, 6])),
        )  # fmt: skip
        for at, size, _, many in packing.fields.tolist():
            wrong = np.array(small.places)
            if size <= 2 and many < 1 << 8 * size:
                wrong[4, at : at + size] = 255
            elif size > 2:
                wrong[4, at : at + size] = 255  # no number
            else:
                continue
            for call in calls:
                with pytest.raises(ValueError, match="a place must be"):
                    call(wrong)
        for call in calls:
            with pytest.raises(ValueError):
                call(small.places[:, :-1])
        said = list(design._said(small.places))
        for k in range(4):
            for value in (-1, 1 << 17, 1 << 40, *((3,) if k == 1 else ())):
                fields = packing.fields.copy()
                fields[0, k] = value
                with pytest.raises(ValueError, match="a field must lie"):
                    compiled.squares(*said[:7], (fields, *said[7][1:]), out)
        for part, wrong_part in ((0, packing.fields[:-1]), (1, said[7][1][:-1]), (3, said[7][3] - 1), (3, -1)):
            parts = list(said[7])
            parts[part] = wrong_part
            with pytest.raises(ValueError):
                compiled.squares(*said[:7], tuple(parts), out)


@needs_kernel
@pytest.mark.parametrize("precision", ["double", "single"])
def test_few_and_many_numbers_are_split_alike(precision: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel splits four at once and the rest one by one, some records together: each number of records has the
    twin's bits, and a place that is none is found wherever it stands."""
    rng = np.random.default_rng(6)
    for schema, most in ((SCHEMAS[0], 9), (SCHEMAS[1], 140), (SCHEMAS[2], 700)):
        matrix, _ = compact(schema, most, 12, precision)
        theta, pulls = rng.normal(size=matrix.shape[1]), rng.normal(size=most)
        for n in {1, 2, 3, 4, 5, most}:
            part, cuts = matrix.part(0, n), np.array([0, n])
            found = [part.scores(theta), part.sums(pulls[:n], cuts)]
            with monkeypatch.context() as without:
                without.setattr(kernel, "compiled", lambda: None)
                twins = [part.scores(theta), part.sums(pulls[:n], cuts)]
            assert [one.tobytes() for one in found] == [one.tobytes() for one in twins]
            for i, k in {(0, 0), (n - 1, matrix.places.shape[1] - 1), (n // 2, 1)}:
                wrong = np.array(part.places)
                wrong[i, k] = -1.0
                with pytest.raises(ValueError, match="a place must be"):
                    part.design.scores(wrong, part.factors, theta)
                with pytest.raises(ValueError, match="a place must be"):
                    part.design.sums(wrong, part.factors, pulls[:n], cuts)


def exact_square(design: RecordDesign, places: Any, factor: float) -> Fraction:
    """|x|^2 of the vector that a record stands for, in exact arithmetic."""
    total = Fraction(int(design.intercept))
    for cell, place in zip(design.cells, places.tolist(), strict=True):
        row = int(place)
        share = Fraction(place) - row
        if row < len(cell.dense):
            after = cell.dense[row + 1] if row + 1 < len(cell.dense) else np.zeros(cell.dense.shape[1])
            pairs = zip(cell.dense[row].tolist(), after.tolist(), strict=True)
            total += sum(((1 - share) * Fraction(a) + share * Fraction(b)) ** 2 for a, b in pairs)
        elif row < cell.nothing:
            total += 1
    return total * Fraction(factor) ** 2


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_exact_vector_of_every_record_lies_in_the_ball(schema: Schema, precision: Any) -> None:
    matrix, _ = compact(schema, 200, 5, precision)
    squares = [exact_square(matrix.design, *pair) for pair in zip(matrix.places, matrix.factors.tolist(), strict=True)]
    assert max(squares) <= 1
    loose = [square / Fraction(matrix.design.shrink) ** 2 for square in squares]
    if schema.intercept and schema.basis == "linear":  # rounding alone would leave the ball: the margin is of use
        assert max(loose) > 1
    assert (np.linalg.norm(matrix.rows(), axis=1) <= 1).all()


def test_the_margin_grows_with_the_columns() -> None:
    for many in (1, 400, 2000):
        columns = tuple(Numeric(f"x{k}", -1.0, 1.0) for k in range(many))
        made = Schema(columns, TARGET, True).design
        assert 1 - made.shrink >= (2 * many + 64) * 2.0**-53
        P = made.places([np.full(3, 0.1 * (k % 19) - 0.9) for k in range(many)])
        assert exact_square(made, P[0], float(made.factors(P)[0])) <= 1


def test_one_changed_value_changes_one_record() -> None:
    """Whatever else is in its block."""
    schema = SCHEMAS[0]
    values = values_of(schema, 50, np.random.default_rng(8))
    changed = [part.copy() for part in values]
    for part in changed:
        part[17] = part[30]
    found = [schema.design.places(each) for each in (values, changed)]
    differ = (found[0] != found[1]).any(axis=1)
    assert differ[17] and differ.sum() == 1
    factors = [schema.design.factors(P) for P in found]
    assert (np.delete(factors[0], 17) == np.delete(factors[1], 17)).all()


@needs_kernel
def test_the_kernel_refuses_places_and_designs_that_are_none() -> None:
    matrix, _ = compact(SCHEMAS[0], 6, 9)
    design, out = matrix.design, np.zeros(6)
    compiled = kernel.compiled()
    for wrong in (-0.5, 1e9, np.nan, np.inf, design.cells[3].nothing + 0.5):
        places = np.array(matrix.places)
        places[4, 3] = wrong
        for call in (
            lambda P: design.squares(P), lambda P: design.rows(P, out),
            lambda P: design.scores(P, out, np.zeros(design.d)), lambda P: design.sums(P, out, out, np.array([0, 6])),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="a place must be"):
                call(places)
    said = list(design._said(matrix.places))
    for field in range(6):
        for value in (-1, 1 << 20, 1 << 40):
            told = design.told.copy()
            told[0, field] = value
            with pytest.raises(ValueError, match="a cell must lie"):
                compiled.squares(told, *said[1:], out)
    with pytest.raises(ValueError):
        compiled.squares(said[0], said[1][:-1], *said[2:], out)
    for cuts in ([0, 7], [-1, 3], [4, 2]):
        with pytest.raises(ValueError):
            design.sums(matrix.places, out, out, np.array(cuts))
    with pytest.raises(ValueError):
        design.sums(matrix.places, out, out[:5], np.array([0, 6]))
    with pytest.raises(ValueError):
        design.scores(matrix.places[:, :-1], out, np.zeros(design.d))


def test_records_are_as_wide_as_their_columns_and_arranged_as_they_are() -> None:
    """21 numbers a record in place of 121, and a zero vector where a place is empty."""
    knots = tuple(np.linspace(-1, 1, 6).tolist())
    columns = tuple(Surveyed(f"x{k}", True, -1.0, 1.0, knots=knots) for k in range(20))
    schema, n = Schema(columns, TARGET, True, basis="additive"), 1000
    records = allocate(n, schema.design.width, "double", None, schema.design)
    values = values_of(schema, n, np.random.default_rng(1))
    P = schema.design.places(values)
    records.put(np.arange(n), P, schema.design.factors(P), np.ones(n))
    assert records.factors is not None and records.held.nbytes + records.factors.nbytes == n * 21 * 8
    assert records.d == 121 and records.X.nbytes == n * 121 * 8
    order = np.array([5, -1, 999, 0])
    moved = arranged(records, order, None)
    assert (moved.X == np.where(order[:, None] < 0, 0.0, records.X[np.maximum(order, 0)])).all()
    assert moved.y.tolist() == [1, 0, 1, 1]


def test_parts_of_a_vector_are_no_longer_than_few_says() -> None:
    """rho, of which `RecordDesign.few` is made, by trying records: what is added up is longer than the vector."""
    for schema in SCHEMAS[:4]:
        design = schema.design
        matrix, _ = compact(schema, 4000, 11)
        sized = np.full(matrix.shape[0], float(design.intercept))
        for k, cell in enumerate(design.cells):
            row = matrix.places[:, k].astype(int)
            share = (matrix.places[:, k] - row)[:, None]
            dense = np.abs(np.vstack([cell.dense, np.zeros((2, cell.dense.shape[1]))]))
            held = np.minimum(row, len(cell.dense))
            parts = dense[held] * (1 - share) + dense[held + 1] * share
            sized += np.square(parts).sum(axis=1) + ((row >= len(cell.dense)) & (row < cell.nothing))
        rho = np.sqrt(sized) * matrix.factors
        longest = [np.square(cell.dense).sum(axis=1).max() for cell in design.cells if len(cell.dense)]
        most = np.sqrt(1 + sum(longest) / design.norm**2)
        assert 1.0 < rho.max() <= most
        rows = max(len(cell.dense) for cell in design.cells)
        n = design.few
        assert n == 1 << 62 or most * (RUN + n / RUN + rows + 8) <= n < most * (RUN + (n - 2) / RUN + rows + 8) + 2
    wide = Schema(tuple(Numeric(f"x{k}", -1.0, 1.0) for k in range(4000)), TARGET, True).design
    assert wide.few == 1 << 62  # so many numbers may point against each other: rows are written out


@pytest.mark.parametrize("classes", [1, 3])
def test_sums_of_few_rows_are_those_of_written_ones(classes: int) -> None:
    """To the last bit where all groups are small; the others are summed by places."""
    schema, n, rng = SCHEMAS[0], 3000, np.random.default_rng(4)
    matrix, _ = compact(schema, n, 6)
    few = schema.design.few
    assert 20 < few < 1000
    pulls = rng.normal(size=n if classes == 1 else (n, classes))
    X = matrix.rows()
    for sizes in ([3, 0, few - 2], [few - 1, 5, n - few - 5], [few, few], [few]):
        cuts, end = np.concatenate([[0], np.cumsum(sizes)]), sum(sizes)
        part = Compact(matrix.design, matrix.places[:end], matrix.factors[:end])
        found, written = CompactRows(part).sums(pulls[:end], cuts), DenseRows(X[:end]).sums(pulls[:end], cuts)
        assert np.abs(found - written).max() < 1e-11
        assert (found.tobytes() == written.tobytes()) == (max(sizes) < few)  # else another order of additions shows
