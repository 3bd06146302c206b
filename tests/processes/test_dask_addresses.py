"""Dask's messages are pickles: a cluster is taken where all of it listens on this machine alone, or by TLS."""

import sys
import warnings
from collections.abc import Iterable
from concurrent.futures import Executor
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dpmpc.processes import executors
from dpmpc.processes.executors import executor_maker
from tests.refusals import refuses

HERE, TLS = "tcp://127.0.0.1:8786", "tls://bank.example:8786"


class Cluster:
    """A scheduler and a worker with a nanny, as a client sees them: who is called where, and listens where."""

    def __init__(self, called: str = HERE, **listening: Iterable[str]) -> None:
        servers = {"scheduler": [HERE], "worker": [HERE], "nanny": [HERE]} | listening
        self._at = {
            who: SimpleNamespace(listeners=[SimpleNamespace(listen_address=each) for each in addresses])
            for who, addresses in servers.items()
        }
        self._worker, self._nanny = called, bool(servers["nanny"])
        self.closed = 0

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1  # all of them
        return {"workers": {self._worker: {"nanny": HERE if self._nanny else None}}}

    def run_on_scheduler(self, function: Any) -> Any:
        return function(dask_scheduler=self._at["scheduler"])

    def run(self, function: Any, workers: Any = None, nanny: bool = False) -> Any:
        assert not nanny or (self._nanny and workers == [self._worker])
        return {self._worker: function(dask_worker=self._at["nanny" if nanny else "worker"])}

    def get_executor(self, pure: bool) -> Any:
        assert not pure
        return Executor()

    def close(self) -> None:
        self.closed += 1


def made(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Any:
    distributed = ModuleType("distributed")
    vars(distributed)["Client"] = lambda address: cluster
    monkeypatch.setitem(sys.modules, "distributed", distributed)
    return executor_maker(f"dask:{HERE}")(2)


@pytest.mark.parametrize("who", ["scheduler", "worker", "nanny"])
@pytest.mark.parametrize(
    "address", ["tcp://0.0.0.0:8786", "tcp://[::]:8786", "tcp://:8786", "tcp://10.0.0.7:8786", "ws://127.0.0.1:80"]
)
def test_who_listens_beyond_this_machine_is_named_and_refused(
    who: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(**{who: [HERE, address]})
    with refuses("addresses") as caught:
        made(cluster, monkeypatch)
    named = {"scheduler": "the scheduler", "worker": f"worker {HERE}", "nanny": f"the nanny of worker {HERE}"}[who]
    assert f"; {named} listens at {address}, which is neither tls:// nor of this machine alone; " in str(caught.value)
    assert cluster.closed == 1  # nobody goes on talking to it


def test_a_worker_elsewhere_by_plain_tcp_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(called="tcp://10.0.0.7:8786")
    with refuses("addresses", "10.0.0.7", 8786):
        made(cluster, monkeypatch)
    assert cluster.closed == 1


@pytest.mark.parametrize("nanny", [[], [HERE], [TLS, "tcp://[::1]:9"]])
def test_others_are_taken(nanny: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(scheduler=[HERE, TLS], worker=[TLS], nanny=nanny)
    executor = made(cluster, monkeypatch)
    assert not cluster.closed
    executor.shutdown()
    assert cluster.closed == 1


@pytest.mark.slow
def test_a_real_cluster_says_where_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    asked, check = list[str](), executors._check_way

    def noted(address: str, what: str = "") -> None:
        asked.append(what.split(" ")[-1] and " ".join(what.split(" ")[:2]))
        check(address, what)

    monkeypatch.setattr(executors, "_check_way", noted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as here:
            executor = executor_maker(f"dask:{here.scheduler_address}")(1)
            assert executor.submit(abs, -2).result() == 2
            executor.shutdown()
    assert {"the scheduler", "the nanny"} < set(asked) and len(set(asked)) == 4  # the worker's, and where it is called
