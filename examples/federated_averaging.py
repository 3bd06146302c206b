"""Federated averaging with an owner-level promise: what is hidden is whether an owner took part with these records.

    python examples/federated_averaging.py

40 owners train softmax regression on their own records for some local steps and send the change of the model, clipped.
The parties add the changes and one noise vector, and open the sum.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dpmpc

OWNERS, ROUNDS, LOCAL, CLIP = 40, 12, 5, 0.5

pixels, digit = load_digits(return_X_y=True)
pixels = np.hstack([pixels / 64, np.full((len(pixels), 1), 0.5)])
X, X_test, y, y_test = train_test_split(pixels, digit, test_size=300, random_state=1)


def change(theta, X, y):
    """(d,) how local steps of gradient descent on an owner's own records move the model."""
    local = theta.reshape(65, 10).copy()
    for _ in range(LOCAL):
        scores = X @ local
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(y)), y] -= 1
        local -= 2.0 * X.T @ p / len(y)
    return local.ravel() - theta


theta = np.zeros(650)
with dpmpc.Aggregator(owners=OWNERS, dimension=650, clip=CLIP, epsilon=8.0, delta=1e-3, releases=ROUNDS) as aggregator:
    for _ in range(ROUNDS):
        theta += aggregator.mean(change(theta, X[j::OWNERS], y[j::OWNERS]) for j in range(OWNERS))
    print(aggregator.guarantee)
print(f"test accuracy {np.mean((X_test @ theta.reshape(65, 10)).argmax(axis=1) == y_test):.3f}")
