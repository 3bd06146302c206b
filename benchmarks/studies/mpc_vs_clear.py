"""Trains the same model R times with MPC and R times in the clear, and compares the mean test accuracy.

    python -m dpmpc.benchmarks.studies.mpc_vs_clear --runs 5 --data breast-cancer

The two engines share data, split, grid, noise law and arithmetic, and differ only in who adds and who draws noise, so
the difference of the means must lie within its own confidence interval (Welch, 95 %) but for one time in twenty.
"""

import argparse
import json
import math
import statistics
from pathlib import Path

from scipy.stats import t as student

from dpmpc.aggregation.plan.here import Here
from dpmpc.folders import passing_folder
from dpmpc.learning.method import DEFAULT_METHOD, METHODS
from dpmpc.local.launcher import train
from dpmpc.planning.request import Request
from dpmpc.privacy.law import LAWS


def accuracies(request: Request, runs: int, folder: Path) -> list[float]:
    """The test accuracy of each of `runs` runs."""
    result = []
    for k in range(runs):
        out = folder / f"{request.engine}{k}"
        train(request, Here(out=out))
        result.append(float(json.loads((out / "report.json").read_text())["utility"]["test_accuracy"]))
    return result


def difference(a: list[float], b: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """(mean(a) - mean(b), half width of its interval). Source: Welch 1947."""
    va, vb = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1)) if va + vb else 1.0
    return statistics.mean(a) - statistics.mean(b), float(student.ppf(0.5 + confidence / 2, freedom)) * math.sqrt(
        va + vb
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", default="breast-cancer")
    parser.add_argument("--data-dir")
    parser.add_argument("--owners", type=int, default=5)
    parser.add_argument("--method", choices=METHODS.names(), default=DEFAULT_METHOD)
    parser.add_argument("--epsilon", type=float, default=1.0)
    given = parser.parse_args()
    common = {"data": given.data, "data_dir": given.data_dir, "owners": given.owners, "epsilon": given.epsilon}
    delta = None if LAWS[METHODS[given.method].law].pure else 1e-5
    noise = {"method": given.method, "delta": delta}
    with passing_folder() as folder:
        mpc = accuracies(Request(**common, **noise), given.runs, folder)
        clear = accuracies(Request(**common, **noise, engine="clear"), given.runs, folder)
    gap, half = difference(mpc, clear)
    print(f"MPC   {statistics.mean(mpc):.4f}  {[round(v, 4) for v in mpc]}")
    print(f"clear {statistics.mean(clear):.4f}  {[round(v, 4) for v in clear]}")
    print(f"difference {gap:+.4f}, 95 % interval +-{half:.4f}: {'agrees' if abs(gap) <= half else 'DISAGREES'}")


if __name__ == "__main__":
    main()
