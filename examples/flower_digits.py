"""A Flower app with a private mean: its clients' updates leave as sealed shares, the server gets the noisy mean.

    python examples/flower_digits.py

30 simulated clients train softmax regression on their own digits. Of an app without privacy, the lines marked with
`# private` are new; everything else is Flower's.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}  # nothing leaves this machine

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dpmpc.flower import PrivateStrategy, prepare, private_mod  # private

CLIENTS, ROUNDS = 30, 3
HERE = {"init_args": {"_node_ip_address": "127.0.0.1"}, "client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
RUN = Path(tempfile.mkdtemp(prefix="dpmpc-"))
prepare(RUN / "plan", owners=CLIENTS, dimension=650, clip=1.0, epsilon=8.0, delta=1e-3, releases=ROUNDS)  # private


def digits(part):
    """(X, y) of one client, or of the test set."""
    pixels, digit = load_digits(return_X_y=True)
    pixels = np.hstack([pixels / 64, np.full((len(pixels), 1), 0.5)])
    X, X_test, y, y_test = train_test_split(pixels, digit, test_size=300, random_state=1)
    return (X_test, y_test) if part is None else (X[part::CLIENTS], y[part::CLIENTS])


client = ClientApp(mods=[private_mod(RUN / "plan", owners=range(CLIENTS))])  # private: mods


@client.train()
def train(message, context):
    """Some local steps of gradient descent."""
    X, y = digits(context.node_config["partition-id"])
    (model,) = message.content["arrays"].to_numpy_ndarrays()
    for _ in range(20):
        p = np.exp(X @ model)
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(y)), y] -= 1
        model = model - 2.0 * X.T @ p / len(y)
    metrics = MetricRecord({"num-examples": len(y)})
    return Message(RecordDict({"arrays": ArrayRecord([model]), "metrics": metrics}), reply_to=message)


server = ServerApp()


@server.main()
def main(grid, context):
    """Rounds of training, each of all clients; the parties are processes of this machine."""
    strategy = FedAvg(fraction_evaluate=0.0)
    strategy = PrivateStrategy(strategy, RUN / "plan", out=RUN / "out")  # private
    result = strategy.start(grid, ArrayRecord([np.zeros((65, 10))]), num_rounds=ROUNDS, timeout=300)
    X, y = digits(None)
    (model,) = result.arrays.to_numpy_ndarrays()
    print(strategy.guarantee)  # private
    print(f"test accuracy {np.mean((X @ model).argmax(axis=1) == y):.3f}", flush=True)


if __name__ == "__main__":
    try:
        run_simulation(server, client, CLIENTS, backend_config=HERE)
    finally:
        shutil.rmtree(RUN)
    sys.stdout.flush()
