"""Rows made by the compiled kernel and by NumPy: the same bits and counts, whatever columns hold."""

import datetime
import hashlib
import itertools
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpmpc.intake.spelling import Spelling
from dpmpc.lazy import kernels
from dpmpc.learning import predict as predicting
from dpmpc.learning.away import Tile, _Tiled
from dpmpc.learning.erm_blocks import _Pulls
from dpmpc.learning.losses import LOGISTIC
from dpmpc.learning.model import Model
from dpmpc.records import Schema, filling, kernel, load, loading, rows
from dpmpc.records.columns import Categorical, Column, Date, Numeric, Surveyed
from dpmpc.records.dataset import split
from dpmpc.records.mapping import Mapping
from dpmpc.records.schema import Basis, Labels

pytestmark = pytest.mark.usefixtures("small_tables")
FAR = 2**63 - 1
needs_kernel = pytest.mark.skipif(kernel.compiled() is None, reason="installed without a compiler")
ODD = [0.0, -0.0, 1.0, -1.0, 2.5, 1e-300, 5e-324, -1e300, 1e300, 7.25, 3.0, np.nan, np.inf, -np.inf]


def _table(seed: int, n: int = 700) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    words = np.array(["red", "green", "blue", "", "NA", "True", "ﬁ", "12", "-0.0", "2024-02-29"])
    columns: dict[str, Any] = {}
    for k in range(6):
        column = rng.normal(1, 3, n)
        at = rng.integers(0, n, n // 3)
        column[at] = rng.choice(ODD, len(at))
        columns[f"x{k}"] = column
    for k in range(3):
        columns[f"t{k}"] = words[rng.integers(0, len(words), n)]
    many = [f"{rng.normal():.3f}" if rng.random() < 0.5 else f"word {rng.integers(0, 400)}" for _ in range(n)]
    columns["many"] = np.array(many)
    start = datetime.date(2020, 1, 1)
    days = [start + datetime.timedelta(days=int(d)) for d in rng.integers(-500, 900, n)]
    columns["day"] = np.array([str(day) if rng.random() < 0.9 else "" for day in days])
    columns["site"] = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    columns["label"] = np.array(["yes", "no"])[rng.integers(0, 2, n)]
    return columns


KNOTS = (-1.0, 0.0, 0.5, 2.0, 7.25, 8.0)
MIXED: tuple[Column, ...] = (
    Surveyed("x0", True, -1.0, 8.0, missing=True, knots=KNOTS),
    Surveyed("x1", True, -2.5, 2.5),
    Surveyed("x2", missing=True),
    Surveyed("x3", True, 3.0, 3.0, missing=True, knots=(-5.0, 5.0)),
    Numeric("x4", -1.0, 8.0, knots=KNOTS),
    Numeric("x5", 0.0, 7.0, "unit"),
    Surveyed("many", True, -1.0, 1.0, 16, (0, 3, 15), missing=True, knots=(-1.0, 0.0, 1.0)),
    Surveyed("t0", buckets=8, kept=(1, 2, 5)),
    Surveyed("t1", True, 0.0, 12.0, 8, (0, 1, 2, 3), missing=True),
    Categorical("t2", ("red", "green", "true", "12")),
    Date("day", datetime.date(2020, 1, 1), datetime.date(2021, 6, 1), ("days", "month", "weekday")),
)
PLAIN: tuple[Column, ...] = (
    Numeric("x0", -3.0, 3.0),
    Numeric("x1", 0.0, 9.0, "log"),
    Numeric("x2", 2.0, 2.0),
    Numeric("x3", -0.0, 1e-300, "unit"),
    Numeric("t1", -1.0, 12.0),
    Numeric("many", -1.0, 1.0, knots=(-1.0, 1.0)),
)


def _loaded(table: Any, schema: Schema, **how: Any) -> tuple[str, Any, Any]:
    data = load(table, schema=schema, **how)
    counts = [
        (c.name, c.rows, c.missing, c.unknown, c.clipped, c.unread, c.surveyed, c.silent, c.warning)
        for c in data.counts
    ]
    return hashlib.sha256(data.records.X.tobytes() + data.records.y.tobytes()).hexdigest(), counts, data.records


def _parquet(table: dict[str, Any], folder: Path) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    connection = duckdb.connect()
    connection.register("records", pyarrow.table(table))
    connection.execute(f"COPY records TO '{folder}/records.parquet'")
    return folder / "records.parquet"


# Each two of what differs, together.
CASES = (("mixed", "double", True), ("mixed", "single", False), ("plain", "double", False), ("plain", "single", True))


@pytest.mark.slow
@needs_kernel
@pytest.mark.parametrize(("columns", "precision", "intercept"), CASES)
def test_the_kernel_and_numpy_make_the_same_rows(
    columns: str, precision: Any, intercept: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    basis: Basis = "additive" if columns == "mixed" else "linear"
    schema = Schema(MIXED if columns == "mixed" else PLAIN, Labels("label", ("yes",), ("no",)), intercept, basis=basis)
    for seed in range(2):
        table: Any = _table(seed)
        if seed:  # as a file, whose texts have few spellings
            table = _parquet(table, tmp_path)
        ways: list[dict[str, Any]] = [{"test_fraction": 0.0}, {"owners_column": "site", "max_rows": 300}]
        for how in ways:
            found = _loaded(table, schema, precision=precision, **how)
            monkeypatch.setattr(kernel, "compiled", lambda: None)
            twin = _loaded(table, schema, precision=precision, **how)
            monkeypatch.undo()
            np.testing.assert_array_equal(found[2].X, twin[2].X)
            assert found[:2] == twin[:2]


@needs_kernel
def test_records_without_a_label_are_zero_vectors_in_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = _table(5)
    table["label"][::7] = "perhaps"
    path = tmp_path / "records.csv"
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    schema = Schema(MIXED, Labels("label", ("yes",), ("no",)), True, basis="additive")
    found = _loaded(path, schema, spelling=Spelling(misfits="zero"))
    assert (np.abs(found[2].X).sum(axis=1) == 0).sum() == 100 and not found[2].y[found[2].X[:, -1] == 0].any()
    monkeypatch.setattr(kernel, "compiled", lambda: None)
    assert _loaded(path, schema, spelling=Spelling(misfits="zero"))[:2] == found[:2]


@pytest.mark.slow
@needs_kernel
@pytest.mark.parametrize("precision", ["double", "single"])
def test_workers_elsewhere_make_the_same_rows_by_either(
    precision: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whichever rows are theirs, wherever tiles end: digests, sums and counts."""
    schema = Schema(MIXED, Labels("label", ("yes",), ("no",)), True, basis="additive")
    path, rng = _parquet(_table(3), tmp_path), np.random.default_rng(2)
    for mine in (None, rng.random(700) < 0.3, np.arange(700) >= 650):
        n = 700 if mine is None else int(np.count_nonzero(mine))
        cuts = [0, 1, n // 3, n - 1, n]
        tiles = tuple(Tile(a, b, 0, np.array([0, b - a])) for a, b in itertools.pairwise(cuts))
        found = []
        for made, numbers in ((kernel.compiled(), 1 << 16), (kernel.compiled(), 3000), (None, 1 << 18)):
            monkeypatch.setattr(kernel, "compiled", lambda found=made: found)
            monkeypatch.setattr(rows, "_STEP", numbers)
            with loading.opened(path) as (table, _):
                job = _Tiled(schema, precision, tiles, _Pulls(LOGISTIC, np.ones(len(schema.feature_names))), b"key")
                sums, digest, counts = job(table, mine)
            found.append(([part.tobytes() for (part,) in sums], digest, counts))
            monkeypatch.undo()
        assert found[0] == found[1] == found[2] and len(found[0][0]) == 4


@needs_kernel
@pytest.mark.parametrize("precision", ["double", "single"])
def test_held_out_rows_are_scaled_as_predictions_are_and_training_rows_lie_in_the_ball(
    precision: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = _parquet(_table(6), tmp_path)
    schema = Schema(MIXED, Labels("label", ("yes",), ("no",)), True, basis="additive")
    with loading.opened(path) as (opened, _):
        mapping = Mapping(opened, schema)
        ball, even = (mapping.arrays(ball=ball)[0] for ball in (True, False))
    train, test = split(len(ball), test_fraction=0.3, max_rows=None, seed=1)
    assert (np.linalg.norm(even[test], axis=1) > 1.01).any()  # else there is nothing to tell apart
    near = 1e-12 if precision == "double" else 1e-6
    for made in (kernel.compiled(), None):
        monkeypatch.setattr(kernel, "compiled", lambda found=made: found)
        data = load(path, schema=schema, test_fraction=0.3, precision=precision)
        assert np.allclose(data.X_test, even[test], atol=near) and np.allclose(data.X, ball[train], atol=near)
        assert (np.linalg.norm(np.float64(data.X), axis=1) <= 1).all()


@pytest.mark.slow
@needs_kernel
@pytest.mark.parametrize("basis", ["additive", "linear"])
def test_predictions_are_the_same_by_either(basis: Basis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = _table(4)
    table["label"][::9] = "perhaps"
    path, schema = _parquet(table, tmp_path), Schema(MIXED, Labels("label", ("yes",), ("no",)), True, basis=basis)
    theta = np.random.default_rng(1).normal(size=len(schema.feature_names))
    monkeypatch.setattr(predicting, "read_model", lambda run: Model(theta, schema.feature_names, schema.to_json(), ""))
    monkeypatch.setattr(predicting, "_ROWS", 256)
    found = predicting.predict(tmp_path, path, spelling=Spelling(misfits="zero"))
    with loading.opened(path, spelling=Spelling(misfits="zero")) as (opened, _):
        X, _ = Mapping(opened, schema, labels=False).arrays(ball=False)  # as NumPy makes them
    monkeypatch.setattr(kernel, "compiled", lambda: None)
    twin = predicting.predict(tmp_path, path, spelling=Spelling(misfits="zero"))
    assert found.columns["probability_yes"].tobytes() == twin.columns["probability_yes"].tobytes()
    assert np.array_equal(found.columns["label"] == "yes", X @ theta > 0) and [*map(vars, found.counts)] == [
        *map(vars, twin.counts)
    ]


def _with_memory(
    much: int, mapping: Any, places: Any, training: int, private: Path, memory: int, precision: Any
) -> Any:
    return filling.filled(mapping, places, training, private, much, precision)


@pytest.mark.slow
@needs_kernel
def test_neither_threads_nor_memory_nor_steps_decide_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema(MIXED, Labels("label", ("yes",), ("no",)), True, basis="additive")
    table, found = _table(9, 5000), set()
    monkeypatch.setattr("dpmpc.intake.engine.duckdb.connect", duckdb.connect)  # with threads of its own
    for cores, memory, numbers in ((1, 1 << 30, 1 << 16), (3, 1 << 30, 1 << 12), (2, 1, 1 << 14), (2, 1 << 30, 64)):
        monkeypatch.setattr("dpmpc.records.filling.cores", lambda cores=cores: cores)
        monkeypatch.setattr("dpmpc.records.ordered_pool.cores", lambda cores=cores: cores)
        monkeypatch.setattr(rows, "_STEP", numbers)
        monkeypatch.setattr(loading, "filled", partial(_with_memory, memory))
        digest, _, records = _loaded(table, schema)
        assert records.resident == (memory > 1)  # else it lies in a file
        found.add(digest)
    assert len(found) == 1


@needs_kernel
def test_the_kernel_refuses_what_lies_outside_its_arrays() -> None:
    compiled, n, width = kernel.compiled(), 4, 2
    good = [0, 0, -1, 0, 8, 0, 3, 0, 0, 0]  # codes, of which three have a place
    codes, constants = np.array([0, 2, -1, 1], dtype=np.int32), np.array([4.0, 5.5, 6.0])
    P, seen = np.zeros((n, width)), np.zeros(3, dtype=np.int64)

    def call(column: list[int], codes: Any = codes, P: Any = P) -> None:
        told = np.array(column, dtype=np.int64)
        compiled.places((codes,), told, constants, n, 8 * width, P.view(np.uint8), seen)

    call(good)
    np.testing.assert_array_equal(P[:, 0], constants[[0, 2, 2, 1]])
    assert seen.tolist() == [1, 1, 2] and not P[:, 1].any()
    for kind in (np.int8, np.int16, np.int32):
        for size, as_held in ((1, np.uint8), (2, np.uint16)):
            room = np.zeros((n, 8 * width), dtype=np.uint8)
            call([0, 0, -1, 3, size, 0, 3, 0, 0, 0], codes=codes.astype(kind), P=room)
            held = np.ascontiguousarray(room[:, 3 : 3 + size]).view(as_held)[:, 0]
            assert held.tolist() == [0, 2, 2, 1] and room.sum() == 5
    narrow = np.zeros((n, 8 * width), dtype=np.uint8)
    call([0, 0, -1, 12, 4, 0, 3, 0, 0, 0], P=narrow)
    assert np.ascontiguousarray(narrow[:, 12:]).view(np.float32)[:, 0].tolist() == [4.0, 6.0, 6.0, 5.5]
    for place, value in (
        (0, 3), (1, 1), (1, -1), (2, 1), (3, 9), (3, -2), (4, 3), (4, 16), (4, 0), (5, 1), (6, 4), (7, -1), (9, 1),
        (6, -1), (7, 1 << 40), (3, 1 << 40),
        (5, FAR), (9, FAR), (5, FAR - 2), (9, FAR - 2), (1, FAR), (3, FAR), (4, FAR), (6, FAR),
    ):  # fmt: skip
        wrong = list(good)
        wrong[place] = value
        with pytest.raises(ValueError):
            call(wrong)
    with pytest.raises(ValueError):
        call(good, codes=np.array([0, 3, 0, 0], dtype=np.int32))
    with pytest.raises(ValueError):
        call(good, codes=codes[:3])
    for other in (np.float64, np.int64, np.uint32):
        with pytest.raises(TypeError):
            call(good, codes=codes.astype(other))
    with pytest.raises(ValueError):  # a number's place is none of so many codes
        call([2, 0, -1, 0, 2, 0, 1, 0, 0, 0], codes=np.zeros(n))
    with pytest.raises(ValueError):
        call(good, P=np.zeros((n - 1, width)))


@needs_kernel
def test_what_the_kernel_writes_is_not_what_says_where() -> None:
    """Counts that are the columns themselves would change what was checked while it is used."""
    compiled, told = kernel.compiled(), np.array([0, 0, -1, -1, 0, 0, 3, 0, 0, 0], dtype=np.int64)
    codes, constants, room = np.array([0, 2, 1], dtype=np.int32), np.array([4.0, 5.5, 6.0]), np.zeros(0, dtype=np.uint8)
    compiled.places((codes,), told, constants, 3, 0, room, np.zeros(3, dtype=np.int64))
    for P, seen in ((room, told), (told.view(np.uint8), np.zeros(3, dtype=np.int64))):
        with pytest.raises(ValueError):
            compiled.places((codes,), told, constants, 3, 0, P, seen)
    assert told.tolist() == [0, 0, -1, -1, 0, 0, 3, 0, 0, 0]


@needs_kernel
def test_the_kernel_refuses_a_design_that_lies_outside_its_arrays() -> None:
    """Also where a place and a length together are beyond what an integer holds, and an intercept has no feature."""
    compiled, tables, held, out = kernel.compiled(), np.array([0.0, 1.0, 0.0]), np.array([0.5]), np.zeros(1)
    good = [0, 2, 1, 0, 0, 0]  # a feature between two knots, and a row of nothing

    def call(cell: list[int], d: int = 1, intercept: bool = False) -> None:
        compiled.squares(np.array(cell, dtype=np.int64), tables, d, intercept, held[: len(cell)], False, 1, None, out)

    call(good)
    assert out.tolist() == [0.25]
    for place, value in (
        (0, 2), (0, FAR), (1, 3), (1, FAR), (2, 2), (3, 1), (4, 1), (5, 1), (5, FAR), (5, FAR - 2), (5, -1),
    ):  # fmt: skip
        wrong = list(good)
        wrong[place] = value
        with pytest.raises(ValueError):
            call(wrong)
    with pytest.raises(ValueError):
        call(good, intercept=True)
    with pytest.raises(ValueError):
        call([], d=0, intercept=True)


@needs_kernel
def test_a_text_with_a_bucket_beyond_all_goes_nowhere() -> None:
    """Also where the bucket is a number that no integer holds."""
    compiled, stride = kernel.compiled(), 2 + 6 * 64 + 3
    out, values = np.zeros((1, stride)), np.full(5, np.inf)
    places, group = np.array([1.0, 3.0, 1e18, 9.3e18, np.inf]), np.zeros(5, dtype=np.int64)
    compiled.cells(values, places, group, 5, -1.0, 1.0, 3, out, 0, stride, 1)
    assert out.sum() == 1.0 and out[0, stride - 2] == 1.0


def test_the_environment_turns_the_kernel_off(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels.cache_clear()
    monkeypatch.setenv("DPMPC_NATIVE", "off")
    assert kernel.compiled() is None
    kernels.cache_clear()
