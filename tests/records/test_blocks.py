"""Records in blocks: the same bits for every size of block, place and number of cores; private, and gone at the end."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import owner_text
from dpmpc.intake.scratch import scratch_folder, sweep
from dpmpc.learning import erm, erm_blocks
from dpmpc.learning.erm_blocks import (
    accuracy,
    mse,
    objective,
    optima,
    owner_gradients,
    scores,
    solve,
)
from dpmpc.learning.losses import LOGISTIC, ridge
from dpmpc.learning.matrix import scored
from dpmpc.learning.tiled import tile_rows, tiles
from dpmpc.records import CsvFile, load
from dpmpc.records.blocks import Precision, Records, allocate, arranged, in_memory
from dpmpc.records.loading import opened
from dpmpc.records.memory import parse_memory, usual_memory
from tests.refusals import refuses

SIZES = (5, 1, 3000, 9000, 40_000, 2, 2)


def made(precision: Any, folder: Path | None, d: int = 20) -> tuple[Records, Any]:
    rng = np.random.default_rng(d)
    offsets = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int64)
    n = int(offsets[-1])
    records = allocate(n, d, precision, folder)
    X = rng.standard_normal((n, d))
    X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
    records.X[:] = X
    records.y[:] = np.where(X @ rng.standard_normal(d) + 0.2 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return records, offsets


@pytest.mark.parametrize(("m", "d"), [(1, 3), (1000, 7), (50, 400), (3, 100_000)])
def test_tiles_cover_every_row_once_and_follow_from_sizes_alone(m: int, d: int) -> None:
    sizes = np.random.default_rng(m).integers(1, 4 * tile_rows(d), m)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    at = owner = 0
    for tile in tiles(offsets, d):
        assert tile.begin == at and 0 < tile.end - tile.begin <= tile_rows(d)
        assert tile.cuts[0] == 0 and tile.cuts[-1] == tile.end - tile.begin
        if len(tile.cuts) == 2:
            assert offsets[tile.first] <= tile.begin < tile.end <= offsets[tile.last]
        else:
            assert (tile.cuts + tile.begin == offsets[tile.first : tile.last + 1]).all()
        assert tile.first in (owner, owner - 1)
        at, owner = tile.end, tile.last
    assert at == offsets[-1] and owner == m


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("loss", [LOGISTIC, ridge(0.5)], ids=["logistic", "ridge"])
def test_gradients_are_the_same_to_the_last_bit_and_right(precision: Any, loss: Any, tmp_path: Path) -> None:
    """In memory and in a file, with one tile at a time or many, on one core or more."""
    theta = np.random.default_rng(9).standard_normal(20)
    results = []
    for folder in (None, tmp_path):
        records, offsets = made(precision, folder)
        results += [
            owner_gradients(loss, theta, records, offsets, cores=cores, ahead=ahead)
            for cores in (1, 2, 3)
            for ahead in (1, 5)
        ]
        plain = erm.owner_gradients(loss, theta, records.X.astype(np.float64), records.y, offsets)
        assert np.abs(results[-1] - plain).max() < 1e-14
    assert all(np.array_equal(result, results[0]) for result in results)
    assert not np.array_equal(results[0], plain)  # another order of summation shows: the test can fail


def test_optima_objectives_and_scores_are_those_of_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmpc.learning.erm_blocks._STREAMED", 20 * 8000)  # the two largest owners go tile by tile
    theta = np.random.default_rng(9).standard_normal(20)
    found = []
    for folder in (None, tmp_path):
        records, offsets = made("double", folder)
        X, y = np.array(records.X), records.y
        own, norms = optima(LOGISTIC, records, offsets, 0.01)
        expected, _ = erm.solve_owners(LOGISTIC, X, y, offsets, 0.01)
        assert norms.max() < 1e-9 and np.abs(own - expected).max() < 1e-7
        whole = solve(LOGISTIC, records, 0.05)
        assert np.abs(whole.theta - erm.solve(LOGISTIC, X, y, 0.05).theta).max() < 1e-9
        assert objective(LOGISTIC, theta, records, 0.1) == pytest.approx(erm.objective(LOGISTIC, theta, X, y, 0.1))
        assert np.allclose(scores(theta, records), X @ theta, rtol=1e-13)
        assert accuracy(theta, records) == erm.accuracy(theta, X, y)
        assert mse(theta, records) == pytest.approx(erm.mse(theta, X, y))
        found.append((own, norms, whole.theta))
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))
    with refuses("range", "0.0"):
        optima(LOGISTIC, records, offsets, 0.0)
    with refuses("enough"):
        optima(LOGISTIC, records, np.array([0, 0, 5]), 0.1)
    with refuses("enough"):
        accuracy(theta, records.part(0, 0))


@pytest.mark.parametrize("rare", [False, True], ids=["alike", "a rare feature"])
def test_the_curvature_of_some_tiles_finds_the_optimum_of_all_records(
    rare: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a feature that no record of those tiles has, and hardly a regulariser, all tiles are asked."""
    monkeypatch.setattr("dpmpc.learning.erm_blocks._STREAMED", 1)
    monkeypatch.setattr("dpmpc.learning.erm_blocks._FEWEST", 2)
    rng, (n, d) = np.random.default_rng(3), (40_000, 20)
    X = rng.standard_normal((n, d))
    if rare:  # every second of five tiles is looked at
        X[:, 7] = 0.0
        X[tile_rows(d) : tile_rows(d) + 300, 7] = 2.0
    X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
    y, lam = np.where(X[:, 7] + rng.standard_normal(n) > 0, 1.0, -1.0), 1e-7 if rare else 1e-3
    asked, passes = list[int](), list[Any]()
    curved, valued = erm_blocks._Curved.__call__, erm_blocks._Streamed.at

    def counted(self: Any, tile: Any, *rest: Any) -> Any:
        asked.append(self.step)
        return curved(self, tile, *rest)

    def passed(self: Any, theta: Any) -> Any:
        passes.append(theta)
        return valued(self, theta)

    monkeypatch.setattr(erm_blocks._Curved, "__call__", counted)
    monkeypatch.setattr(erm_blocks._Streamed, "at", passed)
    found = solve(LOGISTIC, in_memory(X, y), lam)
    expected = erm.solve(LOGISTIC, X, y, lam)
    assert found.gradient_norm < 1e-10 and np.linalg.norm(found.theta - expected.theta) < 2e-10 / lam
    assert asked[0] == 2 and (min(asked) == 1) == rare
    if not rare:  # at 0 and after the first step, of the first, third and fifth tile; then that serves
        assert len(asked) == 2 * 3 < 3 * (len(passes) - 1)


def test_a_score_does_not_depend_on_its_block() -> None:
    rng = np.random.default_rng(5)
    X, theta = rng.standard_normal((2000, 113)), rng.standard_normal(113)
    whole = scored(X, theta)
    assert np.allclose(whole, X @ theta, rtol=0, atol=1e-12)
    assert all(np.array_equal(scored(X[k : k + m], theta), whole[k : k + m]) for k, m in ((1, 1), (7, 64), (999, 1001)))


@pytest.mark.slow
def test_order_is_kept_through_several_threads_and_both_kinds_of_storage(tmp_path: Path) -> None:
    n = 300_000
    (tmp_path / "t.csv").write_text(
        "k,w,y\n" + "".join(f"{k},{'' if k % 7 == 0 else 'ab'[k % 2]},{k % 2}\n" for k in range(n))
    )
    (tmp_path / "bounds.json").write_text(f'{{"k": [0, {n}], "w": ["a", "b"], "y": [0, 1]}}')
    given: dict[str, Any] = {"target": "y", "bounds": tmp_path / "bounds.json", "intercept": False}
    held = load(CsvFile(tmp_path / "t.csv"), test_fraction=0.0, **given)
    assert (np.diff(held.X[:, 0] / np.maximum(1e-300, np.linalg.norm(held.X, axis=1))) != 0).all()
    ranks = held.X[:, 0] / np.where(held.X[:, 1:].any(axis=1), held.X[:, 1:].max(axis=1), 1.0)  # in [-1, 1]
    assert np.array_equal(np.rint((ranks + 1) / 2 * n), np.arange(n))
    assert np.array_equal(held.y > 0, np.arange(n) % 2 == 1)
    one = load(CsvFile(tmp_path / "t.csv"), seed=4, max_rows=200_000, **given)
    from dpmpc.records import loading

    with opened(CsvFile(tmp_path / "t.csv"), folder=tmp_path) as (table, private):
        other = loading.build(
            table, one.schema, private, seed=4, test_fraction=0.2, max_rows=200_000, memory=10**6, precision="double"
        )
    assert not other.records.resident and one.records.resident
    assert np.array_equal(one.X, other.X) and np.array_equal(one.y_test, other.y_test)
    order = np.random.default_rng(1).permutation(200_000)[:1000]
    again = arranged(other.records, order, tmp_path)
    assert np.array_equal(again.X, one.records.X[order]) and np.array_equal(again.y, one.records.y[order])


@pytest.mark.parametrize("fraction", [0.0, 0.25])
def test_records_do_not_depend_on_how_many_cores_write_them(monkeypatch: pytest.MonkeyPatch, fraction: float) -> None:
    from dpmpc.records import filling, rows
    from dpmpc.records import ordered_pool as ahead

    rng = np.random.default_rng(2)
    columns = {f"x{k}": rng.standard_normal(6000) for k in range(3)} | {"y": rng.integers(0, 2, 6000)}
    given: dict[str, Any] = {"target": "y", "bounds": {f"x{k}": [-2.0, 2.0] for k in range(3)} | {"y": [0.0, 1.0]}}
    for twin in ("_STEP", "_TWINS"):
        monkeypatch.setattr(rows, twin, 300)
    found, written = [], []
    for cores in (1, 3):
        monkeypatch.setattr(ahead, "cores", lambda cores=cores: cores)
        monkeypatch.setattr(filling, "cores", lambda cores=cores: cores)
        written.append(load(columns, test_fraction=fraction, **given).records)
        found.append((written[-1].X.tobytes(), written[-1].y.tobytes()))
    assert found[0] == found[1] and written[0].X.any(axis=1).all()


@pytest.mark.parametrize("precision", ["double", "single"])
def test_rows_are_put_into_a_file_as_into_memory(precision: Precision, tmp_path: Path) -> None:
    """In any order, with gaps, into a part of it; rows that lie there stay."""
    rng = np.random.default_rng(3)
    both = [allocate(500, 7, precision, folder) for folder in (None, tmp_path)]
    for records in both:
        records.y[:] = 0.0
    for size in (0, 1, 40, 200):
        to = rng.permutation(300)[:size] if size < 200 else np.arange(17, 217)
        X: Any = rng.standard_normal((size, 7)).astype(both[0].X.dtype)
        y = rng.standard_normal(size)
        for records in both:
            records.part(100, 450).put(to, X, None, y)
        assert np.array_equal(both[0].X, both[1].X) and np.array_equal(both[0].y, both[1].y)
    assert both[1].X[117:317].all() and not both[1].X[:100].any()


def test_features_in_a_file_have_no_name_and_are_forgotten(tmp_path: Path) -> None:
    records, _ = made("double", tmp_path)
    assert list(tmp_path.iterdir()) == [] and not records.resident
    before = np.array(records.X)
    records.forget()
    records.part(17, 4000).forget(3, 5)
    assert np.array_equal(records.X, before)


def test_private_folders_are_private_and_go_with_their_process(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "x").write_text("record")
        os.utime(folder, (0, 0))
        assert sweep(tmp_path) == 0 and (folder / "x").exists()  # its process lives
    assert list(tmp_path.iterdir()) == []
    program = (
        "import sys, time; from pathlib import Path; from dpmpc.intake.scratch import scratch_folder\n"
        f"with scratch_folder(Path({str(tmp_path)!r})) as f:\n"
        " (f / 'x').write_text('record'); print(f, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    left = Path(process.stdout.readline().strip())
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (left / "x").exists() and sweep(tmp_path) == 0  # too young to tell from one that is being made
    os.utime(left, (0, 0))
    with scratch_folder(tmp_path):
        assert not left.exists()


def test_a_full_disk_is_found_before_the_first_row(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        with refuses("records", os.strerror(errno.ENOSPC), "0.008"):
            allocate(10_000, 100, "double", disk)
        assert list(disk.iterdir()) == []
        packed = tmp_path / "t.csv.gz"
        import gzip

        packed.write_bytes(gzip.compress(b"a,y\n" + b"1234567,1\n1234568,0\n" * 400_000))
        with refuses("records", "t.csv.gz") as error:
            load(packed, target="y", folder=disk)
        assert "\n" not in owner_text(error.value) and list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("512mb", 512 * 10**6), ("1.5 GB", 15 * 10**8), ("700M", 7 * 10**8)]
)
def test_memory_sizes(text: str, size: int) -> None:
    assert parse_memory(text) == size and usual_memory() >= 512 * 10**6


@pytest.mark.parametrize("text", ["", "2", "1GX", "100MB", "-2GB", "nan", "infGB", "GB"])
def test_what_is_no_memory_size(text: str) -> None:
    with refuses("range", setting="memory"):
        parse_memory(text)


@pytest.mark.slow
@pytest.mark.parametrize("places", [[5, 0, 7, 3], [5, -1, 0, -1, 7, 6, 1, 2, 3, 4]])
def test_records_loaded_in_an_order_are_those_that_are_arranged_afterwards(tmp_path: Path, places: list[int]) -> None:
    rng = np.random.default_rng(4)
    source = {"x": rng.standard_normal(10), "c": np.array(list("abcabcabca")), "y": np.array(list("uvuvuvuvuv"))}
    order = np.array(places, dtype=np.int64)
    plain = load(source, target="y", folder=tmp_path)
    there = load(source, target="y", folder=tmp_path, arranging=lambda n, persons, groups: order)
    rest = np.arange(plain.training, plain.records.n)
    again = arranged(plain.records, np.concatenate([order, rest]), tmp_path)
    assert there.training == len(order) and plain.training == 8
    assert there.records.X.tobytes() == again.X.tobytes() and there.records.y.tobytes() == again.y.tobytes()


def test_steps_that_were_made_tell_of_the_curvature_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes over the records to one optimum, with what steps tell and without; to the same point."""
    monkeypatch.setattr("dpmpc.learning.erm_blocks._STREAMED", 1)
    rng, (n, d) = np.random.default_rng(3), (60_000, 30)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.2)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X @ rng.standard_normal(d) + rng.logistic(size=n) / 4 > 0, 1.0, -1.0)
    passes, valued = list[int](), erm_blocks._Streamed.at

    def passed(self: Any, theta: Any) -> Any:
        passes[-1] += 1
        return valued(self, theta)

    monkeypatch.setattr(erm_blocks._Streamed, "at", passed)
    passes.append(0)
    told = solve(LOGISTIC, in_memory(X, y), 1e-3)
    monkeypatch.setattr(erm_blocks, "_bent", lambda curvature, step, change: curvature)
    passes.append(0)
    untold = solve(LOGISTIC, in_memory(X, y), 1e-3)
    assert max(told.gradient_norm, untold.gradient_norm) < 1e-10
    assert np.linalg.norm(told.theta - untold.theta) < 2e-7
    assert passes[0] < passes[1], passes
