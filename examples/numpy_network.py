"""Any model: a small network in plain NumPy, three owners, per-record gradients clipped by each owner.

    python examples/numpy_network.py

The guarantee is of one record: its owner clips its gradient before it is averaged, so it moves the mean of owner j's
n_j records by at most 2 clip / n_j.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dpmpc

HIDDEN, CLIP, STEPS, RATE = 24, 1.0, 60, 1.0
OWNERS = 3

pixels, digit = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(pixels / 16, digit, test_size=300, random_state=1)
shapes = [(64, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)]
cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])


def layers(theta):
    """The weights and offsets that the vector theta holds."""
    return [part.reshape(shape) for part, shape in zip(np.split(theta, cuts[:-1]), shapes, strict=True)]


def forward(theta, X):
    W, b, V, c = layers(theta)
    hidden = np.tanh(X @ W + b)
    scores = hidden @ V + c
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, p / p.sum(axis=1, keepdims=True)


def gradients(theta, X, y):
    """(n, d): the gradient of each record's loss, a row a record."""
    _, _, V, _ = layers(theta)
    hidden, p = forward(theta, X)
    p[np.arange(len(y)), y] -= 1
    back = (p @ V.T) * (1 - hidden**2)
    parts = [X[:, :, None] * back[:, None, :], back, hidden[:, :, None] * p[:, None, :], p]
    return np.concatenate([part.reshape(len(y), -1) for part in parts], axis=1)


owners = [(X[j::OWNERS], y[j::OWNERS]) for j in range(OWNERS)]
start = np.random.default_rng(1)
theta = np.concatenate([(start.normal(size=shape) / np.sqrt(shape[0])).ravel() * (len(shape) > 1) for shape in shapes])
with dpmpc.Aggregator(
    owners=OWNERS,
    dimension=len(theta),
    clip=CLIP,
    records=[len(labels) for _, labels in owners],
    weights="size",
    epsilon=4.0,
    delta=1e-5,
    releases=STEPS,
) as aggregator:
    for _ in range(STEPS):
        theta -= RATE * aggregator.mean(dpmpc.clipped_mean(gradients(theta, *own), CLIP, len(own[1])) for own in owners)
    print(aggregator.guarantee)
print(f"test accuracy {np.mean(forward(theta, X_test)[1].argmax(axis=1) == y_test):.3f}")
