"""Frames in parts, as Dask and Ray have them: the same records as in one table. Of Dask itself where it is there."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.intake.objects import stored
from dpmpc.intake.partitions import partitions_of
from dpmpc.records import load
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")

N, PARTS = 1200, 11


def whole() -> pd.DataFrame:
    """Numbers, texts, days and categories; a text column that the first parts have nothing of."""
    rng = np.random.default_rng(1)
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 400, N), "D")
    frame = pd.DataFrame({"a": rng.normal(size=N), "t": rng.choice(["x", "y"], N).astype(object), "d": days})
    frame["c"], frame["i"] = pd.Categorical(rng.choice(["u", "v"], N)), rng.integers(0, 9, N)
    frame.loc[::17, "a"] = np.nan
    frame.loc[:500, "t"] = None
    frame["y"] = (frame["i"] > 4).astype(int)
    return frame


class OfDask:
    """What of a Dask frame is used: its columns' names, and that its parts are written by whoever holds them."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame, self.columns = frame, frame.columns

    def rename(self, columns: dict[Any, str]) -> "OfDask":
        return OfDask(self.frame.rename(columns=columns))

    def to_parquet(self, folder: str, write_index: bool, name_function: Callable[[int], str]) -> None:
        assert not write_index
        places = np.linspace(0, len(self.frame), PARTS + 1).astype(int)
        for k, (begin, end) in reversed(list(enumerate(pairwise(places)))):
            part = self.frame[begin:end].astype({"t": "string"} if "t" in self.frame else {})
            part.to_parquet(Path(folder) / name_function(k), index=False)

    def compute(self) -> pd.DataFrame:
        return self.frame


class OfRay(OfDask):
    """The same of a Ray data set."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def write_parquet(self, folder: str) -> None:
        OfDask(self.frame).to_parquet(folder, False, lambda k: f"1f3a_{k:06d}_000000.parquet")

    to_pandas = OfDask.compute
    to_parquet = compute = property()  # it has none


OfDask.__module__, OfRay.__module__ = "dask.dataframe", "ray.data.dataset"


def by_dask(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=PARTS)


def joined(ray: Any) -> str:
    """The address of a Ray cluster of this machine, which stands until the tests end. Ray speaks by the machine's
    network address where it has one; so the tests of it want a namespace that has loopback alone:
    unshare -rn sh -c 'ip link set lo up; python -m pytest tests/data/test_spread_frames.py'"""
    if ray.util.get_node_ip_address() != "127.0.0.1":
        pytest.skip("Ray listens to the network here")
    if not ray.is_initialized():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    return str(ray.get_runtime_context().gcs_address)


def by_ray(frame: pd.DataFrame) -> Any:
    """Parts of which each has types of its own values, as Ray makes them."""
    ray = pytest.importorskip("ray")
    data = pytest.importorskip("ray.data")
    joined(ray)
    return data.from_pandas(frame).repartition(PARTS)


@pytest.fixture(params=[OfDask, OfRay, by_dask, by_ray])
def spread(request: pytest.FixtureRequest) -> Callable[[pd.DataFrame], Any]:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.slow
def test_its_records_are_those_of_one_table(spread: Callable[[pd.DataFrame], Any], tmp_path: Path) -> None:
    frame = whole()
    one, parts = load(frame, target="y", seed=1), load(spread(frame), target="y", seed=1)
    assert np.array_equal(one.X, parts.X) and np.array_equal(one.y, parts.y) and one.schema == parts.schema
    folder = stored(spread(frame), tmp_path)
    found = partitions_of(str(folder))
    assert (found.n, found.pieces) == (N, PARTS)  # what workers read
    if spread is by_ray:
        return  # it has no columns of one name
    with refuses("unique", "a"):
        load(spread(frame.rename(columns={"i": "a"})), target="y")


def test_an_estimator_fits_it_as_one_table(spread: Callable[[pd.DataFrame], Any]) -> None:
    frame = whole()
    asked: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-5, "engine": "clear", "iterations": 2, "scale": 0}
    asked |= {"bounds": {"a": (-4, 4), "i": (0, 9)}, "classes": [0, 1]}
    owners, X = np.arange(N) % 3, frame[["a", "i"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = PrivateLogisticRegression(**asked).fit(X, frame["y"], owners=owners)
        parts = PrivateLogisticRegression(**asked).fit(spread(X), frame["y"], owners=owners)
        assert np.array_equal(one.coef_, parts.coef_)
        assert np.array_equal(one.predict(X), parts.predict(spread(X)))


def test_a_column_of_one_is_no_frame() -> None:
    kind = type("Series", (), {"__module__": "dask.dataframe", "to_parquet": None})
    with refuses("type", "Series"):
        load(kind(), target="y")


@contextlib.contextmanager
def cluster() -> Iterator[str]:
    """The name of an executor of a Dask cluster of this machine, with two workers that are processes."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as here:
            yield f"dask:{here.scheduler_address}"


@contextlib.contextmanager
def of_ray() -> Iterator[str]:
    """The name of an executor of Ray's workers."""
    yield f"ray:{joined(pytest.importorskip('ray'))}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("of", "frame_of"), [(cluster, by_dask), (of_ray, by_ray)])
def test_workers_read_what_they_wrote(of: Any, frame_of: Callable[[pd.DataFrame], Any], tmp_path: Path) -> None:
    """A frame whose parts lie with the workers of Dask or Ray: they write it, read it back as an owner's records, and
    bring the gradient that one machine has, to the last bit; one is killed at its work meanwhile."""
    from dpmpc.intake.spelling import PLAIN
    from dpmpc.learning.away import Away, owner_of
    from dpmpc.learning.erm_blocks import owner_gradients
    from dpmpc.learning.losses import LOGISTIC
    from dpmpc.learning.tiled import tiles
    from dpmpc.processes.elsewhere import Workers
    from dpmpc.processes.executors import executor_maker
    from dpmpc.records.schema import Labels, Numeric, Schema
    from tests.learning.test_away import Once, Products

    frame = whole()[["i", "y"]].assign(b=np.linspace(-1, 1, N))
    schema = Schema((Numeric("i", 0.0, 9.0), Numeric("b", -1.0, 1.0)), Labels("y", ("1",), ("0",)))
    one = load(frame, schema=schema, test_fraction=0.0)
    with of() as name:
        folder = stored(frame_of(frame), tmp_path)
        workers = Workers(executor_maker(name), 2, 300.0)
        away = Away(owner_of(workers, str(folder), PLAIN, None), schema, "double")
        theta, offsets = np.linspace(-1, 1, one.d), np.array([0, N])
        found = owner_gradients(LOGISTIC, theta, away, offsets)
        assert found.tobytes() == owner_gradients(LOGISTIC, theta, one.train, offsets).tobytes()
        work, all_tiles = Once(tmp_path / "killed", Products(), 0), list(tiles(offsets, away.width))
        expected = [sums[0].tobytes() for _, sums in away.sums(all_tiles, Products())]
        assert [sums[0].tobytes() for _, sums in away.sums(all_tiles, work)] == expected
        assert (tmp_path / "killed").exists()
        workers.close()
