"""The README's picture: error against the number of owners, with one copy of noise and with a copy an owner.

    python -m website.picture --data-dir FOLDER    computes docs/one-copy.csv, and draws docs/one-copy.svg
    python -m website.picture                      draws it again from the file

Real records (adult: 45,222 complete ones), split by a seed into training and test. Logistic regression by full
gradients for (1, 1e-6) of a record, as `dpmpc train` does it: step, length and momentum by its rule for the noise at
hand, the last half of the iterates averaged; without privacy the optimum. With one copy the noise of a mean gradient
does not depend on the number of owners m; where each owner adds a copy that protects its own vector it is sqrt(m) times
as large. Noise is NumPy's, in the clear: the picture simulates, as the experiments do.
"""

import csv
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.learning.lengths import descent
from dpmpc.learning.losses import LOGISTIC

ROOT = Path(__file__).resolve().parents[1]
RESULT, PICTURE = ROOT / "docs" / "one-copy.csv", ROOT / "docs" / "one-copy.svg"
OWNERS = (1, 3, 10, 30, 100, 300, 1000)
EPSILON, DELTA, REPEATS = 1.0, 1e-6, 8
LABELS = {"none": "no privacy", "one": "one copy, made in MPC", "each": "a copy an owner"}
Array = NDArray[np.float64]


def errors(X: Array, y: Array, Xt: Array, yt: Array, deviation: float, rng: np.random.Generator) -> list[float]:
    """Test errors of REPEATS models. `deviation`: of the noise of one release that has the whole budget."""
    how = descent("logistic", LOGISTIC, deviation, X.shape[1])
    scale = math.sqrt(how.iterations) * deviation
    theta = np.zeros((X.shape[1], REPEATS))
    moved, total, count = np.zeros_like(theta), np.zeros_like(theta), 0
    for t in range(how.iterations):
        weight = -y[:, None] / (1 + np.exp(np.minimum(y[:, None] * (X @ theta), 500)))
        slope = X.T @ weight / len(y) + how.lam * theta + rng.normal(0, scale, theta.shape)
        moved = how.momentum * moved - how.step * slope
        theta = theta + moved
        if t >= how.iterations // 2:
            total, count = total + theta, count + 1
    wrong = np.sign(Xt @ (total / count)) != yt[:, None]
    return [float(value) for value in 100 * wrong.mean(axis=0)]


def computed(folder: Path) -> list[dict[str, Any]]:
    """The rows of the result file."""
    from sklearn.linear_model import LogisticRegression

    import dpmpc
    from dpmpc.records.sets import load_dataset

    data = load_dataset("adult", data_dir=folder, seed=1, scale="centred")
    X, y, Xt, yt = data.train.X, data.train.y, data.test.X, data.test.y
    scale = dpmpc.account(
        method="gradient", owners=1, smallest=len(y), epsilon=EPSILON, delta=DELTA, iterations=1, dimension=X.shape[1]
    )["scale"]
    rng = np.random.default_rng(1)
    exact = LogisticRegression(C=1e4, fit_intercept=False, max_iter=10_000).fit(X, y)  # X has a constant feature
    found = [("none", 1, [100 * float(np.mean(exact.predict(Xt) != yt))])]
    for owners in OWNERS:
        for name, copies in (("one", 1), ("each", owners)):
            found.append((name, owners, errors(X, y, Xt, yt, scale * math.sqrt(copies), rng)))
    return [
        {
            "noise": name,
            "owners": m,
            "error": f"{statistics.mean(each):.2f}",
            "least": f"{min(each):.2f}",
            "most": f"{max(each):.2f}",
        }
        for name, m, each in found
    ]


def rows() -> list[dict[str, str]]:
    """The result file."""
    with RESULT.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def draw(found: Sequence[dict[str, str]]) -> None:
    """The picture. Its text is text; colours differ in lightness too."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "dpmpc", "font.family": "sans-serif", "font.size": 11}
    figure, axes = plt.subplots(figsize=(7.2, 3.4))
    level = float(found[0]["error"])
    axes.axhline(level, color="#555555", linestyle="--", linewidth=1.2)
    styles = {"each": ("#b3261e", "s"), "one": ("#1f4fd8", "o")}
    for name, (colour, marker) in styles.items():
        own = [row for row in found if row["noise"] == name]
        m, mean = [int(row["owners"]) for row in own], [float(row["error"]) for row in own]
        axes.fill_between(
            m, [float(r["least"]) for r in own], [float(r["most"]) for r in own], color=colour, alpha=0.15, linewidth=0
        )
        axes.plot(m, mean, color=colour, marker=marker, linewidth=2)
        axes.annotate(LABELS[name], (m[-1], mean[-1]), (8, 0), textcoords="offset points", va="center", color=colour)
    axes.annotate(LABELS["none"], (OWNERS[-1], level), (8, 0), textcoords="offset points", va="center", color="#555555")
    axes.set(
        xscale="log",
        xlabel="owners that share 36,178 records",
        ylabel="error on new records, %",
        xlim=(0.9, 1100),
        ylim=(14, None),
    )
    axes.set_xticks(OWNERS, [f"{m:,}" for m in OWNERS])
    axes.spines[["top", "right"]].set_visible(False)
    figure.patch.set_facecolor("white")
    figure.savefig(PICTURE, bbox_inches="tight", metadata={"Date": None, "Title": "Error against the number of owners"})


def main(arguments: Sequence[str]) -> int:
    """The command."""
    if arguments:
        if len(arguments) != 2 or arguments[0] != "--data-dir":
            print(__doc__)
            return 2
        found = computed(Path(arguments[1]))
        with RESULT.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
    draw(rows())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
