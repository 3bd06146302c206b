"""What share of faults the statistics of `dpmpc verify` catch: noise of the exact law, spoilt in drawn ways.

A fault is a way (missing, scaled, repeated, shifted, correlated, another law, added twice, a copy an owner, following
the data), how strong it is, and a place: which releases, and which of their coordinates. Faults are drawn by a seed, so
a table can be made again; each is held against the same checks as `dpmpc verify` makes. A fault of which a run of this
size shows nothing (one value of one release) is drawn too: the tables say what is *not* caught.

    python -m tests.endurance.faults --size 64x1000 --draws 1000
"""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmpc.privacy.exact import Integers, Reals
from dpmpc.verify.scores import Sample
from dpmpc.verify.statistics import _CHECKS, check_statistics, law_check, scale_check
from dpmpc.verify.verdict import Check

Rng = np.random.Generator
SCALE = 40_000.0  # grid steps
OWNERS = 10
CHECKS = (scale_check, law_check, *(check for check, _ in _CHECKS))  # of a sample
LAWS = ("gaussian", "laplace")
SIZES = ((64, 1000), (128, 500), (24, 1000), (16, 200))  # (coordinates, releases)
RELEASES = ("all", "one", "every 2nd", "every 10th", "every 50th", "half", "a random tenth")
COORDINATES = ("all", "one", "every 2nd", "half")


@dataclass(frozen=True)
class Fault:
    """`strength` is the way's own: a factor, a shift in deviations, a correlation, a number of bits; 0 where the way
    has none."""

    way: str
    strength: float
    releases: str
    coordinates: str

    def __str__(self) -> str:
        strength = f" {self.strength:g}" if self.strength else ""
        return f"{self.way}{strength}; releases: {self.releases}; coordinates: {self.coordinates}"

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"{self.releases} / {self.coordinates}"


def chosen(which: str, n: int, rng: Rng) -> NDArray[np.bool_]:
    """(n,) the releases or coordinates that a place names."""
    k = np.arange(n)
    if which.startswith("every"):
        period = min(n, int("".join(filter(str.isdigit, which))))
        return np.asarray(k % period == rng.integers(period))
    if which == "one":
        return np.asarray(k == rng.integers(n))
    if which == "half":
        return k >= n // 2
    if which == "a random tenth":
        return np.isin(k, rng.permutation(n)[: max(1, n // 10)])
    return np.ones(n, dtype=np.bool_)


def draw_noise(law: str, shape: tuple[int, ...], rng: Rng) -> Reals:
    """Noise of scale 1, before rounding."""
    drawn = rng.standard_normal(shape) if law == "gaussian" else rng.laplace(size=shape)
    return np.asarray(drawn, dtype=np.float64)


# -- ways: (good noise (K, d) in scales, strength, rng, law, exact sums) -> what stands in its place -------------------
Way = Callable[[Reals, float, Rng, str, Integers], Reals]


def _missing(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
    return np.zeros_like(x)


def _scaled(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
    return strength * x


def _twice(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
    return x + draw_noise(law, x.shape, rng)


def _per_owner(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
    return np.asarray(x + sum(draw_noise(law, x.shape, rng) for _ in range(OWNERS - 1)))


def _shifted(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
    return x + strength


def _with_data(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
    return x + strength * np.sign(sums)


def _wide_with_data(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
    large = np.abs(sums) > np.median(np.abs(sums))
    return np.where(large, 1 + strength, 1 - strength) * x


def _mixed(other: Callable[[Reals], Reals]) -> Way:
    """Correlated with other noise of the run, as wide as before."""

    def way(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
        return strength * other(x) + math.sqrt(1 - strength**2) * x

    return way


def _mirror(x: Reals) -> Reals:
    """The other half of the same release, in its place (of an odd d, the middle keeps its own)."""
    d = x.shape[1]
    half = d // 2
    return np.concatenate([x[:, d - half :], x[:, half : d - half], x[:, :half]], axis=1)


def _before(x: Reals) -> Reals:
    return np.roll(x, 1, axis=0)


def _copied(change: str) -> Way:
    """A copy: as it is, under fresh signs, in another order, turned round, times `strength`, moved by `strength`."""

    def way(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
        if change == "signs":
            return np.where(rng.random(x.shape) < 0.5, 1.0, -1.0) * x
        if change == "order":
            return np.asarray(rng.permuted(x, axis=1), dtype=np.float64)
        if change == "turned":
            return x[:, ::-1]
        if change == "scaled":
            return strength * x
        return x + strength if change == "shifted" else x

    return way


def _of_law(shape: Callable[[Reals, str], Reals]) -> Way:
    """Another law of the same variance."""

    def way(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
        deviation = 1.0 if law == "gaussian" else math.sqrt(2)
        return shape(rng.random(x.shape), law) * deviation

    return way


def _coarse(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
    step = 2.0**strength
    return np.asarray(np.rint(x * SCALE / step) * (step / SCALE), dtype=np.float64)


def _clipped(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
    return np.clip(x, -strength, strength)


def _wandering(x: Reals, strength: float, rng: Rng, law: str, sums: Integers) -> Reals:
    """A scale of its own in each release."""
    return np.exp(strength * rng.standard_normal((len(x), 1))) * x


def _other_law(u: Reals, law: str) -> Reals:
    from scipy.special import ndtri

    if law == "laplace":
        return np.asarray(ndtri(u), dtype=np.float64)
    return np.where(u < 0.5, np.log(2 * u), -np.log(2 - 2 * u)) / math.sqrt(2)


WAYS: dict[str, tuple[Way, tuple[float, ...]]] = {
    "missing": (_missing, (0.0,)),
    "scaled by": (_scaled, (0.3, 0.5, 0.7, 0.9, 1.1, 1.5)),
    "added twice over": (_scaled, (2.0,)),
    "a second vector": (_twice, (0.0,)),
    "a copy an owner": (_per_owner, (0.0,)),
    "shifted by": (_shifted, (0.1, 0.5, 1.0)),
    "follows the data by": (_with_data, (0.1, 0.3)),
    "as wide as the data by": (_wide_with_data, (0.1, 0.3)),
    "half repeated": (_copied("as it is"), (0.0,)),
    "half repeated under fresh signs": (_copied("signs"), (0.0,)),
    "half repeated in another order": (_copied("as it is"), (0.0,)),
    "half repeated times": (_copied("scaled"), (0.8, 0.95)),
    "half repeated and moved by": (_copied("shifted"), (0.3, 1.0)),
    "the release before": (_copied("as it is"), (0.0,)),
    "the release before under fresh signs": (_copied("signs"), (0.0,)),
    "the release before in another order": (_copied("order"), (0.0,)),
    "the release before turned round": (_copied("turned"), (0.0,)),
    "the release before times": (_copied("scaled"), (0.8, 0.95)),
    "the release before and moved by": (_copied("shifted"), (0.3, 1.0)),
    "the first release": (_copied("as it is"), (0.0,)),
    "the first release under fresh signs": (_copied("signs"), (0.0,)),
    "correlated with the release before by": (_mixed(_before), (0.3, 0.6, 0.9)),
    "correlated with the other half by": (_mixed(_mirror), (0.3, 0.6, 0.9)),
    "uniform": (_of_law(lambda u, law: (2 * u - 1) * math.sqrt(3)), (0.0,)),
    "two values": (_of_law(lambda u, law: np.where(u < 0.5, -1.0, 1.0)), (0.0,)),
    "the other law": (_of_law(_other_law), (0.0,)),
    "magnitudes alone": (lambda x, strength, rng, law, sums: np.abs(x), (0.0,)),
    "low bits missing:": (_coarse, (1.0, 4.0, 12.0)),
    "clipped at": (_clipped, (1.5, 2.5)),
    "a scale that wanders by": (_wandering, (0.1, 0.3)),
}


def every() -> Iterator[Fault]:
    """All faults: each way at each strength at each place."""
    for way, (_, strengths) in WAYS.items():
        for strength in strengths:
            for releases in RELEASES:
                for coordinates in COORDINATES:
                    yield Fault(way, strength, releases, coordinates)


def good(law: str, d: int, releases: int, rng: Rng) -> Sample:
    """A sample of the law itself, with data and bits of its own."""
    noise = np.rint(SCALE * draw_noise(law, (releases, d), rng)).astype(np.int64)
    sums = rng.integers(-(10**8), 10**8, noise.shape)
    return Sample(OWNERS, law, SCALE, True, noise, sums, rng.random((releases, d - 1)) < 0.5)


def spoilt(sample: Sample, fault: Fault, rng: Rng) -> Sample:
    """The sample with the fault in it. A half is repeated in the second half; what a release repeats is the last one
    before it that the fault has not touched, or the first."""
    k, d = sample.noise.shape
    rows, columns = chosen(fault.releases, k, rng), chosen(fault.coordinates, d, rng)
    x = y = sample.noise / SCALE
    if fault.way.startswith("half"):
        first = d - d // 2
        columns = np.concatenate([np.zeros(first, dtype=np.bool_), chosen(fault.coordinates, d // 2, rng)])
        y = np.concatenate([x[:, :first], x[:, : d // 2]], axis=1)
        if fault.way.endswith("order"):
            y = np.concatenate([x[:, :first], rng.permuted(x[:, : d // 2], axis=1)], axis=1)
    elif fault.way.startswith("the release before") or fault.way.startswith("the first"):
        rows = np.concatenate([[False], chosen(fault.releases, k - 1, rng)])
        last = np.maximum.accumulate(np.where(rows, 0, np.arange(k)))
        y = x[last] if "before" in fault.way else np.broadcast_to(x[0], x.shape)
    way, _ = WAYS[fault.way]
    wrong = np.rint(SCALE * way(y, fault.strength, rng, sample.law, sample.sums)).astype(np.int64)
    return replace(sample, noise=np.where(np.outer(rows, columns), wrong, sample.noise))


@dataclass(frozen=True)
class Found:
    """What became of a fault: the checks that caught it."""

    fault: Fault
    law: str
    caught: tuple[str, ...]


def trial(fault: Fault, law: str, d: int, releases: int, seed: int) -> Found:
    """One fault at one size, by its seed."""
    rng = np.random.default_rng(seed)
    evidence = check_statistics([spoilt(good(law, d, releases, rng), fault, rng)])
    return Found(fault, law, tuple(name.split(" (")[0] for name in evidence.failed))


def is_caught(fault: Fault, law: str, d: int, releases: int, seed: int) -> bool:
    """Whether a check catches it: as `trial` finds, but no check is made after the first that does."""
    rng = np.random.default_rng(seed)
    sample = spoilt(good(law, d, releases, rng), fault, rng)
    return any(not check(sample).holds for check in CHECKS)


def trials(d: int, releases: int, draws: int, seed: int) -> Iterator[Found]:
    """So many faults, drawn; every one once before any comes again."""
    faults = list(every())
    order = np.random.default_rng(seed).permutation(max(1, -(-draws // len(faults))) * len(faults))[:draws]
    for k, number in enumerate(order):
        yield trial(faults[number % len(faults)], LAWS[k % len(LAWS)], d, releases, seed + 1 + k)


def _too_few(check: Check) -> bool:
    """Whether a check of the scale fails because so few samples do not exclude twice the variance: no false alarm."""
    low, high = check.figures.get("interval", (2.0, 0.0))
    return bool(low <= 1 <= high)


def honest(law: str, d: int, releases: int, runs: int, seed: int) -> tuple[dict[str, list[float]], list[str]]:
    """Of so many honest runs: (the p-values of each check that has one, the checks that failed)."""
    p_values: dict[str, list[float]] = {}
    failed: list[str] = []
    for k in range(runs):
        evidence = check_statistics([good(law, d, releases, np.random.default_rng([seed, k]))])
        failed += [check.name for check in evidence.checks if not check.holds and not _too_few(check)]
        for check in evidence.checks:
            if "p_value" in check.figures:
                p_values.setdefault(check.name.split(" (")[0], []).append(float(check.figures["p_value"]))
    return p_values, failed


def shares(found: list[Found], by: Callable[[Fault], str]) -> dict[str, tuple[int, int]]:
    """value of `by` -> (caught, drawn), in the order of the ways and places."""
    drawn, caught = Counter(by(f.fault) for f in found), Counter(by(f.fault) for f in found if f.caught)
    names = dict.fromkeys(by(fault) for fault in every())
    return {name: (caught[name], drawn[name]) for name in names if drawn[name]}


def table(found: list[Found]) -> str:
    """Way by releases, over all coordinates, laws and strengths: caught of drawn."""
    lines = ["| fault | " + " | ".join(RELEASES) + " |", "| --- |" + " --- |" * len(RELEASES)]
    for way in WAYS:
        cells = []
        for releases in RELEASES:
            mine = [f for f in found if f.fault.way == way and f.fault.releases == releases]
            cells.append(f"{sum(bool(f.caught) for f in mine)} of {len(mine)}" if mine else "")
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def about_honest(law: str, d: int, releases: int, runs: int, seed: int) -> str:
    """A line on so many honest runs: how many checks failed, and how often p-values are below 0.1, 0.01, 0.001."""
    p_values, failed = honest(law, d, releases, runs, seed)
    lines = [f"{law}, d = {d}, T = {releases}: {len(failed)} checks of {runs} honest runs failed {failed or ''}"]
    for name, values in p_values.items():
        found = ", ".join(
            f"{sum(p <= level for p in values) / runs:.4f} below {level:g}" for level in (0.1, 0.01, 0.001)
        )
        lines.append(f"  {name}: {found}; least {min(values):.2g}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", help="coordinates x releases, such as 64x1000; may come again")
    parser.add_argument("--draws", type=int, default=1_000, help="faults at each size")
    parser.add_argument("--honest", type=int, help="so many honest runs of each law and size, in place of faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--missed", action="store_true", help="name every fault that was not caught")
    parser.add_argument("--json", help="where every fault and the checks that caught it are written")
    asked = parser.parse_args()
    sizes = [tuple(map(int, size.split("x"))) for size in asked.size] if asked.size else list(SIZES)
    if asked.honest:
        for d, releases in sizes:
            for law in LAWS:
                print(about_honest(law, d, releases, asked.honest, asked.seed), flush=True)
        return
    record = []
    for d, releases in sizes:
        found = []
        for k, one in enumerate(trials(d, releases, asked.draws, asked.seed)):
            found.append(one)
            if (k + 1) % 100 == 0:
                print(f"{k + 1} of {asked.draws} faults", file=sys.stderr)
        caught = sum(bool(f.caught) for f in found)
        print(f"\nd = {d}, T = {releases}: {caught} of {len(found)} faults caught\n\n{table(found)}\n")
        for name, (part, drawn) in shares(found, lambda fault: fault.place).items():
            print(f"{name}: {part} of {drawn}")
        alone = Counter(f.caught[0] for f in found if len(f.caught) == 1)
        print("caught by one check alone: " + ", ".join(f"{name} {n}" for name, n in alone.most_common()))
        if asked.missed:
            print("\n".join(sorted(f"missed ({f.law}): {f.fault}" for f in found if not f.caught)))
        record += [{"d": d, "T": releases, "law": f.law, **asdict(f.fault), "caught": f.caught} for f in found]
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
