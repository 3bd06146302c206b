"""How cost grows: slopes of log cost against log d, m, n and T with confidence intervals, and the targets of the
suite.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from dpmpc.benchmarks.cell import BASE
from dpmpc.benchmarks.quartiles import slope
from dpmpc.benchmarks.result_file import Record, Results
from dpmpc.mpc.contract.backend import DEFAULT
from dpmpc.privacy.law import DEFAULT_LAW

_LINEAR = 1.05  # a slope whose confidence interval lies above this is worse than linear
_AXES: tuple[tuple[str, str, float, dict[str, Any]], ...] = (  # name, key, sizes from here on, what else is fixed
    ("d", "dimension", 1_000, {"owners": 100, "parties": 3}),
    ("m", "owners", 100, {"dimension": 122, "parties": 3}),
    ("n", "parties", 3, {"dimension": 122, "owners": 100}),
)


def growth(results: Results) -> list[dict[str, Any]]:
    """For each axis and each cost: the slope, its interval, and whether it is worse than linear. Axes with fewer than
    3 sizes are left out.

    The fit starts where the cost of the values outweighs the fixed cost of a release: d = 1,000, m = 100. In n the
    number of messages grows as n t, so the flag is for d, m and T only.
    """
    costs: dict[str, Callable[[Record], float]] = {
        "online": lambda r: r.seconds["without ledger"].median,
        "noise ahead": lambda r: r.values["noise_offline_s"],
        "bytes received": lambda r: r.counts["bytes_party_received"],
    }
    rows = []
    for name, key, start, fixed in _AXES:
        for cost, of in costs.items():
            if (name, cost) == ("m", "noise ahead"):
                continue  # noise does not depend on the number of owners
            points = sorted(
                (r.key[key], of(r)) for r in results.find("iteration", **BASE, **fixed) if r.key[key] >= start
            )
            rows += _row(name, cost, points)
    runs = sorted((r.key["releases"], r.seconds["run"].median) for r in results.find("growth"))
    return rows + _row("T", "whole run", runs)


def _row(axis: str, cost: str, points: Sequence[tuple[float, float]]) -> list[dict[str, Any]]:
    if len(points) < 3:
        return []
    fit = slope([x for x, _ in points], [y for _, y in points])
    worse = axis != "n" and fit.low > _LINEAR
    per_unit = [y / x for x, y in points]
    return [
        {
            "axis": axis,
            "cost": cost,
            **asdict(fit),
            "worse_than_linear": worse,
            "sizes": [x for x, _ in points],
            "spread_a_unit": max(per_unit) / min(per_unit),
        }
    ]


def targets(results: Results) -> list[dict[str, Any]]:
    """Each target of the suite that these results speak of: what was wanted, what was found, whether it is met."""
    rows: list[dict[str, Any]] = []

    def add(name: str, wanted: str, found: float, met: bool) -> None:
        rows.append({"target": name, "wanted": wanted, "found": found, "met": met})

    def one(**key: Any) -> Record | None:
        found = results.find("iteration", **{**BASE, **key})
        return found[0] if found else None

    if base := one(dimension=122, owners=100, parties=3):
        if "over_limit" in base.values:
            add(
                "online part over bare TCP, d=122 m=100 n=3, ledger's disk write left out",
                "<= 3",
                base.values["over_limit"],
                base.values["over_limit"] <= 3,
            )
            add(
                "the same over bare TCP and one durable line a party",
                "<= 3",
                base.values["over_durable_limit"],
                base.values["over_durable_limit"] <= 3,
            )
    for name, key, sizes, fixed in (
        ("cost a coordinate, d=1k..100k", "dimension", (1_000, 100_000), {"owners": 100, "parties": 3}),
        ("cost an owner, m=100..50k", "owners", (100, 50_000), {"dimension": 122, "parties": 3}),
    ):
        found = [r for r in results.find("iteration", **BASE, **fixed) if sizes[0] <= r.key[key] <= sizes[1]]
        if {r.key[key] for r in found} >= set(sizes):
            ordered = sorted(found, key=lambda r: float(r.key[key]))
            units = [r.seconds["without ledger"].median / r.key[key] for r in ordered]
            rise = max(units) / units[0]  # a unit gets cheaper where the fixed cost of a release is spread over more
            spread = max(units) / min(units)
            add(name + ": largest over smallest", "<= 1.5 (flat within 20 %)", spread, spread <= 1.5)
            add(name + ": largest over first (it may fall, not rise)", "<= 1.2", rise, rise <= 1.2)
    if large := one(dimension=122, owners=50_000, parties=3):
        add("m=50,000 d=122: seconds", "< 3", large.seconds["total"].median, large.seconds["total"].median < 3)
        gib = large.values["peak_memory_party"] / 2**30
        add("m=50,000 d=122: GiB a party", "< 1", gib, gib < 1)
    for sampler, least in (("discrete", 10_000.0), ("box-muller", 500.0)):
        ratios = [
            r.values["over_plain_mpyc"]
            for r in results.find("noise", law=DEFAULT_LAW, sampler=sampler, backend=DEFAULT, parties=3)
            if "over_plain_mpyc" in r.values
        ]
        if ratios:
            add(
                f"{sampler} Gaussian over the rate of MPyC's SecFxp",
                f">= {least:,.0f}",
                max(ratios),
                max(ratios) >= least,
            )
    return rows


def findings(results: Results) -> tuple[dict[str, Any], ...]:
    """Growth and targets, for the result file."""
    return tuple(
        [{"kind": "growth", **row} for row in growth(results)] + [{"kind": "target", **row} for row in targets(results)]
    )
