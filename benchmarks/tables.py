"""Result files as text: tables of iterations, noise, growth and targets, and the Markdown of the README."""

from collections.abc import Iterable, Sequence
from typing import Any

from dpmpc.benchmarks.cell import BASE, kind
from dpmpc.benchmarks.compare import Comparison
from dpmpc.benchmarks.plot import sampler_title, seconds
from dpmpc.benchmarks.result_file import Record, Results

Rows = list[list[str]]


def size(count: float) -> str:
    """Bytes for people."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def iteration_rows(records: Iterable[Record]) -> Rows:
    """The iteration table, header first; one line a cell."""
    rows = [
        [
            "d",
            "m",
            "n",
            "cell",
            "share",
            "network in",
            "aggregate",
            "noise",
            "add",
            "ledger",
            "open",
            "out",
            "total",
            "quartiles",
            "x bare TCP",
            "x durable",
            "noise ahead",
            "sent a party",
            "an owner",
            "memory",
            "predicted",
        ]
    ]
    for r in records:
        key, s, v, c = r.key, r.seconds, r.values, r.counts
        cell = [kind(key)] + ([] if key["pool"] else ["no pool"])
        cell += [] if key["network"] == "loopback" else [f"{key['network']} ({v['network_made_by']})"]
        rows.append(
            [
                f"{key['dimension']:,}",
                f"{key['owners']:,}",
                str(key["parties"]),
                " ".join(cell),
                *(
                    seconds(s[part].median)
                    for part in ("share", "network in", "aggregate", "noise online", "add", "ledger", "open", "out")
                ),
                seconds(s["total"].median),
                f"{seconds(s['total'].q1)}..{seconds(s['total'].q3)}",
                f"{v['over_limit']:.2f}" if "over_limit" in v else "",
                f"{v['over_durable_limit']:.2f}" if "over_durable_limit" in v else "",
                seconds(v["noise_offline_s"]) if key["pool"] else "",
                size(c["bytes_party_to_parties"] + c["bytes_party_to_owners"]),
                size(c["bytes_one_owner"]),
                size(v["peak_memory_party"]),
                seconds(v["predicted_s"]) if "predicted_s" in v else "",
            ]
        )
    return drop_empty(rows)


def limit_rows(records: Iterable[Record]) -> Rows:
    """The limit alone."""
    rows = [["d", "m", "n", "network", "release", "opening", "with a durable line"]]
    for r in records:
        figures = [seconds(r.seconds[name].median) for name in ("limit", "limit open", "limit durable")]
        rows.append(
            [f"{r.key['dimension']:,}", f"{r.key['owners']:,}", str(r.key["parties"]), r.key["network"], *figures]
        )
    return rows


def noise_rows(records: Iterable[Record]) -> Rows:
    """The samplers' table."""
    rows = [["sampler", "n", "samples", "seconds", "samples/s", "bytes a sample", "ANDs a sample", "rounds", "x MPyC"]]
    for r in records:
        ratio = r.values.get("over_plain_mpyc")
        rate = r.values["samples_a_second"]
        rows.append(
            [
                sampler_title(r.key),
                str(r.key["parties"]),
                f"{r.key['count']:,}",
                seconds(r.seconds["draw"].median),
                f"{rate:,.0f}" if rate >= 100 else f"{rate:.2f}",
                f"{r.counts['bytes_a_sample']:,.0f}",
                str(r.counts.get("ands_a_sample") or ""),
                str(r.counts["rounds"] or ""),
                f"{ratio:,.0f}" if ratio else "",
            ]
        )
    return drop_empty(rows)


def growth_rows(found: Sequence[dict[str, Any]]) -> Rows:
    """Slopes of log cost against log size."""
    rows = [["in", "cost", "slope", "95 % interval", "sizes", "a unit: largest over smallest", "verdict"]]
    for f in found:
        verdict = (
            "WORSE THAN LINEAR"
            if f["worse_than_linear"]
            else "not judged"
            if f["axis"] == "n"
            else "not shown to be worse than linear"
        )
        rows.append(
            [
                f["axis"],
                f["cost"],
                f"{f['value']:.2f}",
                f"{f['low']:.2f} .. {f['high']:.2f}",
                ", ".join(f"{x:,.0f}" for x in f["sizes"]),
                f"{f['spread_a_unit']:.2f}",
                verdict,
            ]
        )
    return rows


def target_rows(found: Sequence[dict[str, Any]]) -> Rows:
    """What was wanted, what was found."""
    return [["target", "wanted", "found", ""]] + [
        [
            f["target"],
            f["wanted"],
            f"{f['found']:,.3g}" if f["found"] < 1000 else f"{f['found']:,.0f}",
            "met" if f["met"] else "MISSED",
        ]
        for f in found
    ]


def comparison_rows(found: Comparison) -> Rows:
    """Every change, worse ones first."""
    rows = [["", "what", "cell", "old", "new", "ratio"]]
    for c in sorted(found.changes, key=lambda c: (c.verdict != "worse", c.record.title())):
        time = c.ratio is not None
        old, new = (seconds(x) if time else str(x) for x in (c.old, c.new))
        rows.append([c.verdict, c.name, c.record.title(), old, new, f"{c.ratio:.2f}" if c.ratio is not None else ""])
    return rows


def drop_empty(rows: Rows) -> Rows:
    """The rows without columns that are empty below their header."""
    keep = [k for k in range(len(rows[0])) if any(row[k] for row in rows[1:])]
    return [[row[k] for k in keep] for row in rows]


def markdown(rows: Rows) -> str:
    """The rows as a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "| " + " | ".join("---" for _ in rows[0]) + " |", *lines[1:]])


def plain(rows: Rows) -> str:
    """The rows in columns, for a terminal or a pipe."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def readme(results: Results) -> str:
    """The README's cost table: one release at the sizes people ask about."""
    rows = [
        [
            "d",
            "m",
            "n",
            "network",
            "one release",
            "noise ahead, a release",
            "a party sends",
            "a party receives",
            "an owner sends",
            "memory a party",
        ]
    ]
    for d, m, n, network in (
        (122, 100, 3, "loopback"),
        (122, 100, 5, "loopback"),
        (122, 100, 3, "lan"),
        (122, 100, 3, "wan"),
        (10_000, 100, 3, "loopback"),
        (100_000, 100, 3, "loopback"),
        (122, 1_000, 3, "loopback"),
        (122, 50_000, 3, "loopback"),
    ):
        for r in results.find("iteration", **{**BASE, "network": network}, dimension=d, owners=m, parties=n):
            c = r.counts
            rows.append(
                [
                    f"{d:,}",
                    f"{m:,}",
                    str(n),
                    network,
                    seconds(r.seconds["total"].median),
                    seconds(r.values["noise_offline_s"]),
                    size(c["bytes_party_to_parties"] + c["bytes_party_to_owners"]),
                    size(c["bytes_party_received"]),
                    size(c["bytes_one_owner"]),
                    size(r.values["peak_memory_party"]),
                ]
            )
    return markdown(rows)
