"""PNGs of a result file: growth in d, m and n, where the time of a release goes, and the samplers' rates."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmpc.benchmarks import parties_plot
from dpmpc.benchmarks.cell import BASE
from dpmpc.benchmarks.iteration import PARTS
from dpmpc.benchmarks.result_file import Record, Results
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import DEFAULT

_AXES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("dimension d (m = 100 owners, n = 3)", "dimension", {"owners": 100, "parties": 3}),
    ("owners m (d = 122, n = 3)", "owners", {"dimension": 122, "parties": 3}),
    ("parties n (d = 122, m = 100)", "parties", {"dimension": 122, "owners": 100}),
)
_COLOURS = ("#4477aa", "#66ccee", "#228833", "#bbbbbb", "#ccbb44", "#ee6677", "#aa3377", "#999933")
_THIN = 0.015  # of a release: what no bar shows


def draw(results: Results, directory: Path, stem: str) -> list[Path]:
    """The files written: those of growth, breakdown, noise and parties that the results have data for.

    Errors: UsageError without matplotlib, without anything to draw, or for a directory that cannot be written.
    """
    try:
        import matplotlib
    except ImportError:
        raise UsageError("plots need matplotlib; it is not installed; install dpmpc with its extra `plot`") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    written = []
    drawings: tuple[tuple[str, Callable[[Any, Results], Any]], ...] = (
        ("growth", _growth),
        ("breakdown", _breakdown),
        ("noise", _noise),
        ("parties", parties_plot.draw),
    )
    for name, drawing in drawings:
        figure = drawing(plt, results)
        if figure is None:
            continue
        path = directory / f"{stem}-{name}.png"
        try:
            figure.savefig(path, dpi=130)
        except OSError as error:
            raise UsageError(
                f"plots must go to a directory that can be written; {directory}: {error.strerror}; name another"
            ) from None
        plt.close(figure)
        written.append(path)
    if not written:
        raise UsageError(
            "a plot needs records of `dpmpc bench iteration`, `noise` or `parties`; the file has none; measure with "
            "--json first"
        )
    return written


def _growth(plt: Any, results: Results) -> Any:
    panels = []
    for label, key, fixed in _AXES:
        records = sorted(results.find("iteration", **BASE, **fixed), key=lambda r: float(r.key[key]))
        if len(records) > 1:
            panels.append((label, key, records))
    if not panels:
        return None
    figure, axes = plt.subplots(
        1, len(panels), figsize=(4.3 * len(panels), 4.0), layout="constrained", squeeze=False, sharey=True
    )
    for axis, (label, key, records) in zip(axes[0], panels, strict=True):
        sizes = [r.key[key] for r in records]
        for name, colour, marker, of in (
            ("one release, ledger on disk", "#aa3377", "s", lambda r: r.seconds["total"].median),
            ("one release, without the disk", "#4477aa", "o", lambda r: r.seconds["without ledger"].median),
            ("noise made ahead, a release", "#228833", "^", lambda r: r.values["noise_offline_s"]),
            (
                "limit: bare TCP, same bytes",
                "#888888",
                "x",
                lambda r: r.seconds["limit"].median if "limit" in r.seconds else None,
            ),
        ):
            points = [(x, y) for x, y in zip(sizes, map(of, records), strict=True) if y]
            if name.startswith("noise") and key == "owners":
                continue  # it does not depend on m; few releases only spread its rounds less
            if points:
                axis.plot(
                    *zip(*points, strict=True), color=colour, marker=marker, label=name, linewidth=1.4, markersize=5
                )
        axis.set_yscale("log")
        if key == "parties":
            axis.set_xticks(sizes)
        else:
            axis.set_xscale("log")
        axis.set_xlabel(label)
        axis.grid(alpha=0.3, which="major")
    axes[0][0].set_ylabel("seconds (median)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _breakdown(plt: Any, results: Results) -> Any:
    records = [r for r in results.find("iteration", **BASE, parties=3) if _shown(r)]
    records += [
        r for r in results.find("iteration", **{**BASE, "network": "lan"}, dimension=122, owners=100, parties=3)
    ]
    records += [
        r for r in results.find("iteration", **{**BASE, "network": "wan"}, dimension=122, owners=100, parties=3)
    ]
    if not records:
        return None
    figure, axis = plt.subplots(figsize=(11.0, 1.4 + 0.42 * len(records)), layout="constrained")
    left = [0.0] * len(records)
    totals = [sum(r.seconds[part].median for part in PARTS) for r in records]
    for part, colour in zip(PARTS, _COLOURS, strict=True):
        widths = [100 * r.seconds[part].median / total for r, total in zip(records, totals, strict=True)]
        if max(widths) >= 0.2:
            axis.barh(
                range(len(records)), widths, left=left, color=colour, label=part, edgecolor="white", linewidth=0.4
            )
        left = [a + b for a, b in zip(left, widths, strict=True)]
    for k, (record, total) in enumerate(zip(records, totals, strict=True)):  # what is too thin to see gets its number
        thin = [part for part in PARTS if record.seconds[part].median < _THIN * total]
        said = ", ".join(f"{part} {seconds(record.seconds[part].median)}" for part in thin)
        axis.annotate(said, (100, k), xytext=(6, 0), textcoords="offset points", va="center", fontsize=7)
    axis.set_yticks(range(len(records)), [_label(r) for r in records], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(0, 100)
    axis.set_xlabel("share of one release's seconds, %")
    figure.legend(loc="outside lower center", ncols=len(PARTS), fontsize=8, frameon=False)
    return figure


def _shown(record: Record) -> bool:
    return bool(record.key["owners"] == 100 or record.key["dimension"] == 122)


def _label(record: Record) -> str:
    key = record.key
    network = "" if key["network"] == "loopback" else f", {key['network']}"
    return f"d={key['dimension']:,} m={key['owners']:,}{network}: {seconds(record.seconds['total'].median)}"


def sampler_title(key: dict[str, Any]) -> str:
    """Sampler and law of a noise record's key, and the backend and network where they are others than usual."""
    more = [key["backend"]] if key["backend"] != DEFAULT else []
    more += [key["network"]] if "network" in key else []
    return f"{key['sampler']} ({', '.join([key['law'], *more])})"


def seconds(value: float) -> str:
    """Seconds for people: three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1 or unit == "µs":
            return f"{value * scale:.3g} {unit}" if value * scale < 1000 else f"{value * scale:,.0f} {unit}"
    raise AssertionError("unreachable")


def _noise(plt: Any, results: Results) -> Any:
    rows: dict[str, float] = {}
    for record in results.find("noise", parties=3):
        name = sampler_title(record.key)
        rows[name] = max(rows.get(name, 0.0), record.values["samples_a_second"])
    if not rows:
        return None
    names = sorted(rows, key=lambda name: rows[name])
    figure, axis = plt.subplots(figsize=(7.5, 1.2 + 0.45 * len(names)), layout="constrained")
    axis.barh(range(len(names)), [rows[name] for name in names], color="#4477aa")
    axis.set_xscale("log")
    axis.set_yticks(range(len(names)), names, fontsize=9)
    axis.set_xlabel("noise samples a second inside MPC, n = 3 (log scale)")
    axis.set_xlim(1, 8 * max(rows.values()))
    for k, name in enumerate(names):
        axis.text(
            rows[name] * 1.15,
            k,
            f"{rows[name]:,.0f}" if rows[name] >= 100 else f"{rows[name]:.1f}",
            va="center",
            fontsize=9,
        )
    axis.grid(alpha=0.3, axis="x")
    return figure
