"""Rate, bytes and latency of noise against the number of parties: a figure, and the table's rows."""

from collections.abc import Callable, Iterable
from typing import Any

from dpmpc.benchmarks.parties import FEW, PUBLISHED, PUBLISHED_BY
from dpmpc.benchmarks.result_file import Record, Results

_STYLES = {
    "sharing": ("#4477aa", "o"),
    "shamir": ("#aa3377", "s"),
    "shamir-checked": ("#228833", "^"),
    "checked": ("#ccbb44", "v"),
}
_NAMES = {
    "sharing": "sharing (replicated bits)",
    "shamir": "shamir (numbers mod p)",
    "shamir-checked": "shamir, --security active",
    "checked": "sharing, --security active",
}


def rows(records: Iterable[Record]) -> list[list[str]]:
    """The table, header first; one line a measurement, by number of parties."""
    found = [
        ["n", "t", "backend", "network", "samples a second", "CPU a sample and party", "bytes a sample and party",
         "exchanges", f"{FEW} samples", "memory a party"]
    ]  # fmt: skip
    order = {"loopback": 0, "lan": 1, "wan": 2}
    for r in sorted(records, key=lambda r: (order[r.key["network"]], r.key["parties"], r.key["backend"])):
        few = r.seconds["few"].median
        found.append(
            [
                str(r.key["parties"]),
                str(r.key["threshold"]),
                r.key["backend"],
                r.key["network"],
                f"{rounded(r.values['samples_a_second']):,.0f}",
                f"{r.values['cpu_us_a_sample']:.3g} µs",
                f"{r.counts['bytes_a_sample']:,.0f}",
                str(r.counts["exchanges"]),
                f"{few * 1e3:.0f} ms" if few < 10 else f"{few:.1f} s",
                f"{r.values['memory'] / 1e6:.0f} MB",
            ]
        )
    return found


def rounded(value: float) -> float:
    """The value to three digits."""
    return float(f"{value:.3g}")


def draw(plt: Any, results: Results) -> Any:
    """The figure: three panels against n, on loopback; None without such records."""
    records = results.find("parties", network="loopback")
    if not records:
        return None
    figure, axes = plt.subplots(1, 3, figsize=(12.9, 4.2), layout="constrained")
    panels: tuple[tuple[str, Callable[[Record], float]], ...] = (
        ("noise samples a second, all parties on one machine", lambda r: r.values["samples_a_second"]),
        ("bytes a sample that a party sends", lambda r: r.counts["bytes_a_sample"]),
        (f"seconds for {FEW} samples", lambda r: r.seconds["few"].median),
    )
    for axis, (label, of) in zip(axes, panels, strict=True):
        for backend, (colour, marker) in _STYLES.items():
            mine = sorted((r.key["parties"], of(r)) for r in records if r.key["backend"] == backend)
            if mine:
                axis.plot(*zip(*mine, strict=True), color=colour, marker=marker, label=_NAMES[backend], linewidth=1.4)
        axis.set_yscale("log")
        ticks = sorted({r.key["parties"] for r in records})
        axis.set_xticks(ticks, [str(n) for n in ticks])
        axis.set_xlabel("parties n, threshold (n - 1) // 2")
        axis.set_title(label, fontsize=9)
        axis.grid(alpha=0.3, which="major")
    axes[0].plot([*PUBLISHED], [*PUBLISHED.values()], "x", color="#888888", label=f"published: {PUBLISHED_BY}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure
