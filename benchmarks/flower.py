"""One round of a Flower app, the same clients and model, four ways: as it is, with Flower's central differential
privacy, with Flower's SecAgg+, and with `dpmpc.flower`.

All clients run in this process, one after the other (`flower_grid`), so that nothing but the apps' own work and the
parties' is measured; the parties are processes of this machine, whose work is in a round's seconds alone. A client's
training is one addition. Trust differs, and that is the point: docs/flower.md has the table.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.client import NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters
from flwr.server import ServerConfig
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.strategy import FedAvg as LegacyFedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg, Strategy

from dpmpc.benchmarks.flower_grid import InlineGrid
from dpmpc.flower import PrivateStrategy, prepare, private_mod
from dpmpc.folders import passing_folder

Row = dict[str, object]
QUICK, FULL = (100, 1_000), (1_000, 10_000)  # owners, dimension
CLIP, EPSILON, DELTA = 1.0, 4.0, 1e-5
NEIGHBOURS = 11  # SecAgg+: with whom a client shares its keys; its work grows with their square
THRESHOLD = 6  # and how many of those must answer


class _Rounds:
    """When rounds ended, and what clients had done by then; given to Flower as its central evaluation."""

    def __init__(self, grid: InlineGrid) -> None:
        self._grid = grid
        self._at: list[tuple[float, ...]] = []

    def __call__(self, *arguments: Any) -> None:
        grid = self._grid
        clocks = time.perf_counter(), time.process_time(), grid.client_s
        self._at.append((*clocks, grid.bytes_up, grid.bytes_down, grid.messages))

    def row(self, name: str, owners: int) -> Row:
        """The last round; one before it warmed up, but for SecAgg+, whose rounds are long."""
        seconds, used, clients, up, down, messages = (b - a for a, b in zip(*self._at[-2:], strict=True))
        return {
            "protocol": name,
            "round, s": seconds,
            "CPU s, server": used - clients,
            "CPU ms a client": 1000 * clients / owners,
            "messages": messages / owners,
            "kB up": up / owners / 1000,
            "kB down": down / owners / 1000,
        }


def _trained(message: Message, context: Context) -> Message:
    arrays = {name: Array(array.numpy() + 1e-4) for name, array in message.content["arrays"].items()}
    metrics = MetricRecord({"num-examples": 10})
    return Message(RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics}), reply_to=message)


def _app(*mods: Any) -> ClientApp:
    app = ClientApp(mods=list(mods))
    app.train()(_trained)
    return app


def _measured(name: str, app: ClientApp, strategy: Strategy, owners: int, dimension: int) -> Row:
    grid = InlineGrid([app] * owners)
    rounds = _Rounds(grid)
    model = ArrayRecord({"model": Array(np.zeros(dimension, dtype=np.float32))})
    strategy.start(grid, model, num_rounds=2, evaluate_fn=rounds)
    return rounds.row(name, owners)


def plain(owners: int, dimension: int) -> Row:
    """FedAvg: the server sees every update, nothing is promised."""
    return _measured("FedAvg", _app(), FedAvg(fraction_evaluate=0.0), owners, dimension)


def central(owners: int, dimension: int) -> Row:
    """Flower's central differential privacy: the server sees every update, clips it and adds the noise."""
    strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(fraction_evaluate=0.0), 1.0, CLIP, owners)
    return _measured("central DP", _app(), strategy, owners, dimension)


def ours(owners: int, dimension: int) -> Row:
    """`dpmpc.flower`, three parties, noise made within the round."""
    with passing_folder("dpmpc-") as folder:
        prepare(
            folder, owners=owners, dimension=dimension, clip=CLIP, epsilon=EPSILON, delta=DELTA, releases=2, pool=False
        )
        strategy = PrivateStrategy(FedAvg(fraction_evaluate=0.0), folder)
        return _measured("dpmpc.flower", _app(private_mod(folder, owners=range(owners))), strategy, owners, dimension)


class _Client(NumPyClient):
    def __init__(self, dimension: int) -> None:
        self._dimension = dimension

    def fit(self, parameters: Any, config: Any) -> Any:
        return [array + np.float32(1e-4) for array in parameters], 10, {}


def masks(owners: int, dimension: int) -> Row:
    """SecAgg+: the server sees the sum alone, without noise."""
    app = ClientApp(client_fn=_client_of(dimension), mods=[secaggplus_mod])
    grid = InlineGrid([app] * owners)
    rounds = _Rounds(grid)
    strategy = LegacyFedAvg(
        fraction_evaluate=0.0,
        min_fit_clients=owners,
        min_available_clients=owners,
        initial_parameters=ndarrays_to_parameters([np.zeros(dimension, dtype=np.float32)]),
        evaluate_fn=rounds,
    )
    context = Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config={})
    legacy = LegacyContext(context, config=ServerConfig(num_rounds=1), strategy=strategy)
    shares = min(NEIGHBOURS, owners)
    workflow = SecAggPlusWorkflow(num_shares=shares, reconstruction_threshold=min(THRESHOLD, shares - 1))
    DefaultWorkflow(fit_workflow=workflow)(grid, legacy)
    return rounds.row(f"SecAgg+ ({shares} neighbours)", owners)


def _client_of(dimension: int) -> Callable[[Context], Any]:
    def client(context: Context) -> Any:
        return _Client(dimension).to_client()

    return client


def rows(quick: bool) -> list[Row]:
    """One a protocol, in one run."""
    size = QUICK if quick else FULL
    return [measure(*size) for measure in (plain, central, masks, ours)]
