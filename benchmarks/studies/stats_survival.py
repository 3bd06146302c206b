"""How often the log-rank test rejects where arms do not differ, and how often late survival intervals hold the truth.

    python -m dpmpc.benchmarks.studies.stats survival --trials 5000

Times are drawn from one law in both arms, observation ends by chance or at the last edge. Six nulls: even arms, a small
arm, early deaths, rare deaths, an arm that is observed for a shorter time, and fine bins. *Naive* tests know no noise;
a trial in which too few are at risk has no answer, and is counted as refused.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.benchmarks.result_file import replace_rows
from dpmpc.benchmarks.studies.stats_coverage import LOW, NAIVE
from dpmpc.outcome import Level
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.statistics.kinds.survival import log_rank, survival

SIZE = 0.065
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Null:
    """Part of the first arm, hazards of death and of leaving a unit of time, each arm's end of observation, bins of
    [0, 1]."""

    first: float = 0.5
    death: float = 1.0
    leave: float = 0.3
    ends: tuple[float, float] = (1.0, 1.0)
    bins: int = 20


NULLS = {
    "even arms": Null(),
    "a small arm": Null(first=0.2),
    "early deaths": Null(death=3.0),
    "rare deaths": Null(death=0.1),
    "a short arm": Null(ends=(0.5, 1.0)),
    "fine bins": Null(bins=60),
}


def chances(null: Null) -> tuple[Floats, Floats]:
    """Of a record to die (2, bins), and to have left (2, bins + 1), in each arm and bin; the end of observation is one
    of the edges."""
    rate, edges = null.death + null.leave, np.arange(null.bins + 1) / null.bins
    deaths, gone = np.zeros((2, null.bins)), np.zeros((2, null.bins + 1))
    for arm, (part, end) in enumerate(zip((null.first, 1 - null.first), null.ends, strict=True)):
        last = round(end * null.bins)
        there = part * np.exp(-rate * edges[: last + 1])
        deaths[arm, :last] = (there[:-1] - there[1:]) * null.death / rate
        gone[arm, :last] = (there[:-1] - there[1:]) * null.leave / rate
        gone[arm, last] += there[-1]
    return deaths, gone


def tables(null: Null, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Deaths (2, bins) and those that left (2, bins + 1) of n records."""
    deaths, gone = chances(null)
    counts = rng.multinomial(n, np.concatenate([deaths.ravel(), gone.ravel()])).astype(np.float64)
    return counts[: deaths.size].reshape(deaths.shape), counts[deaths.size :].reshape(gone.shape)


def truth(null: Null) -> Floats:
    """Survival to the end of each bin."""
    return np.asarray(np.exp(-null.death * np.arange(1, null.bins + 1) / null.bins))


def trial(null: Null, n: int, sigma: float, rng: np.random.Generator, naive: bool = True) -> dict[str, list[bool]]:
    """Of one draw of records and noise: whether the tests reject, and whether late intervals of the larger arm hold the
    truth; nothing where there is no answer, or a naive one is not wanted."""
    deaths, gone = tables(null, n, rng)
    noisy = deaths + sigma * rng.normal(size=deaths.shape)
    left = gone + sigma * rng.normal(size=gone.shape)
    left[:, -1] += sigma * rng.normal(size=2)  # deaths beyond the last edge are in a cell of their own
    found: dict[str, list[bool]] = {"naive test": [], "naive late": []}
    for name, deviation in (("test", sigma), *((("naive test", 0.0),) if naive else ())):
        p = log_rank(noisy, left, deviation, 1)
        found[name] = [] if p is None else [p < 0.05]
    right = truth(null)
    for name, deviation in (("late", sigma), *((("naive late", 0.0),) if naive else ())):
        curve = survival(noisy[1], left[1], deviation, 1, Level(about="population"))
        known = [(k, x) for k, x in enumerate(curve) if x.estimate is not None and x.low is not None]
        found[name] = [
            bool(x.low <= right[k] <= x.high)
            for k, x in known[-max(len(known) // 4, 1) :]
            if x.low is not None and x.high is not None
        ]
    return found


def run(trials: int, sizes: tuple[int, ...], epsilons: tuple[float, ...], out: Path | None = None) -> int:
    """Prints a line a null; how many tests reject too often, or late intervals hold the truth too rarely. `out`: a CSV
    file whose rows of the same null, number of records and epsilon become these."""
    print(f"{trials} trials each; size of the log-rank test, naive, refused; late survival, naive")
    bad = 0
    for name, null in NULLS.items():
        for n in sizes:
            for epsilon in epsilons:
                rng = np.random.default_rng(1)
                sigma = gaussian_scale(epsilon, 1e-5, 2**0.5)
                each = [trial(null, n, sigma, rng, k % NAIVE == 0) for k in range(trials)]
                of = {key: [x for found in each for x in found[key]] for key in each[0]}
                share = {key: float(np.mean(x)) if x else float("nan") for key, x in of.items()}
                answered = len(of["test"])
                size = SIZE + 2.5 * (0.05 * 0.95 / max(answered, 1)) ** 0.5
                low = LOW - 2.5 * (0.05 * 0.95 / trials) ** 0.5
                wrong = share["test"] > size or share["late"] < low
                bad += wrong
                print(
                    f"{name:12} n={n:<6} eps={epsilon:<4} {share['test']:.3f} {share['naive test']:.3f} "
                    f"{trials - answered:5}   {share['late']:.3f} {share['naive late']:.3f} {'BAD' if wrong else ''}",
                    flush=True,
                )
                row = {"null": name, "n": n, "epsilon": epsilon, "trials": trials, "answered": answered}
                row |= {key.replace(" ", "_"): round(value, 4) for key, value in share.items()}
                if out is not None:
                    replace_rows(out, [row | {"bad": int(wrong)}], ("null", "n", "epsilon"))
    return bad
