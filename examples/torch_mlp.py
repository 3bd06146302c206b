"""PyTorch: a network over the records of three owners, each in a process of its own, as are the three parties.

    python examples/torch_mlp.py                    # needs PyTorch; with Opacus, its central DP-SGD beside it

Per-record gradients come from torch.func; each owner clips its own records' and sends their mean as shares. Nothing but
the noisy mean is opened, to all owners, so that every process has the same model after every step.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.func import functional_call, grad, vmap

import dpmpc

OWNERS, PARTIES, STEPS, CLIP, RATE = 3, 3, 60, 1.0, 1.0
EPSILON, DELTA = 4.0, 1e-5


def records():
    """Training and test records: digits as tensors."""
    pixels, digit = load_digits(return_X_y=True)
    parts = train_test_split(pixels.astype(np.float32) / 16, digit, test_size=300, random_state=1)
    return [torch.as_tensor(part) for part in parts]


def network():
    torch.manual_seed(1)  # the same start in every process; noise does not come from here
    return torch.nn.Sequential(torch.nn.Linear(64, 24), torch.nn.Tanh(), torch.nn.Linear(24, 10))


def loss(parameters, model, x, y):
    return torch.nn.functional.cross_entropy(functional_call(model, parameters, (x[None],)), y[None])


def owner(index, plan, addresses, folder):
    """What one owner's process does."""
    X, X_test, y, y_test = records()
    X, y = X[index::OWNERS], y[index::OWNERS]
    model = network()
    per_record = vmap(grad(loss), in_dims=(None, None, 0, 0))
    with dpmpc.Owner(plan, index, addresses) as site:
        for _ in range(STEPS):
            parameters = {name: p.detach() for name, p in model.named_parameters()}
            gradients = per_record(parameters, model, X, y)
            rows = torch.cat([g.reshape(len(X), -1) for g in gradients.values()], dim=1).numpy()
            mean = torch.as_tensor(site.mean(dpmpc.clipped_mean(rows, CLIP, len(X))), dtype=torch.float32)
            vector = torch.nn.utils.parameters_to_vector(parameters.values()) - RATE * mean
            torch.nn.utils.vector_to_parameters(vector, model.parameters())
    accuracy = (model(X_test).argmax(dim=1) == y_test).float().mean().item()
    (Path(folder) / f"owner{index}.txt").write_text(f"{accuracy:.3f}")


def opacus_accuracy():
    """Central DP-SGD at the same budget, on all records in one place; None without Opacus."""
    try:
        from opacus import PrivacyEngine
    except ImportError:
        return None
    X, X_test, y, y_test = records()
    model = network()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=256)
    model, optimiser, loader = PrivacyEngine().make_private_with_epsilon(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=RATE), data_loader=loader,
        target_epsilon=EPSILON, target_delta=DELTA, epochs=20, max_grad_norm=CLIP,
    )  # fmt: skip
    for _ in range(20):
        for x, labels in loader:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x), labels).backward()
            optimiser.step()
    return (model(X_test).argmax(dim=1) == y_test).float().mean().item()


def main():
    sizes = [len(records()[2][j::OWNERS]) for j in range(OWNERS)]
    d = sum(p.numel() for p in network().parameters())
    plan = dpmpc.Plan.create(
        owners=OWNERS, dimension=d, clip=CLIP, records=sizes, weights="size", epsilon=EPSILON, delta=DELTA,
        releases=STEPS, parties=PARTIES,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        plan.write(f"{folder}/plan.json")
        roles = [("party", i) for i in range(PARTIES)] + [("owner", j) for j in range(OWNERS)]
        processes = [subprocess.Popen([sys.executable, __file__, role, str(i), folder]) for role, i in roles]
        codes = [process.wait() for process in processes]
        if any(codes):
            sys.exit(1)
        found = {(Path(folder) / f"owner{j}.txt").read_text() for j in range(OWNERS)}
    print(f"epsilon = {EPSILON:g}, delta = {DELTA:g}; one record of one owner replaced; d = {d}, {STEPS} releases")
    print(f"test accuracy {', '.join(found)} (the same for every owner: {len(found) == 1})")
    central = opacus_accuracy()
    print("Opacus is not installed" if central is None else f"central DP-SGD with Opacus {central:.3f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) == 1:
        main()
    else:
        role, index, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
        addresses = [f"127.0.0.1:{11_900 + i}" for i in range(PARTIES)]
        if role == "owner":
            owner(index, f"{folder}/plan.json", addresses, folder)
        else:
            dpmpc.Party(f"{folder}/plan.json", index, addresses, out=f"{folder}/party{index}").run()
