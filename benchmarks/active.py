"""What checked parties cost beside semi-honest ones: the same noise by both, by turns, so that ratios mean something.

python benchmarks/active.py [--counts 122,10000,1000000] [--repetitions 5] [--json FILE]
"""

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any

SCALE = float(1 << 18)  # grid steps
MODES = ("semi-honest", "active")


def measure(count: int, repetitions: int) -> dict[str, Any]:
    """Medians of seconds, by mode, their ratio, and what is counted. Errors: bytes or rounds that were not counted."""
    from dpmpc.errors import DpmpcError
    from dpmpc.noise.sampling import sample

    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    counted: dict[str, Any] = {}
    for _ in range(repetitions):
        for mode in MODES:
            report, _values = sample("gaussian", SCALE, count, parties=3, security=mode)
            measured, predicted = report["measured"], report["predicted"]
            if any(measured[key] != predicted[key] for key in ("rounds", "bytes", "messages")):
                raise DpmpcError(f"{mode}, {count} samples: measured {measured}, counted {predicted}")
            seconds[mode].append(report["seconds"])
            counted[mode] = {"rounds": predicted["rounds"], "bytes_a_sample": max(predicted["bytes"]) / count}
    medians = {mode: statistics.median(times) for mode, times in seconds.items()}
    return {
        "count": count,
        "seconds": medians,
        "ratio": medians["active"] / medians["semi-honest"],
        "counted": counted,
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--counts", default="122,10000,1000000")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = [measure(int(count), given.repetitions) for count in given.counts.split(",")]
    print("| samples | semi-honest | active | ratio | rounds | bytes a sample | load |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        one, two = (row["counted"][mode] for mode in MODES)
        times = " | ".join(f"{row['seconds'][mode] * 1e3:.3g} ms" for mode in MODES)
        rounds = f"{one['rounds']}, {two['rounds']}"
        sent = f"{one['bytes_a_sample']:.1f}, {two['bytes_a_sample']:.1f}"
        print(f"| {row['count']:,} | {times} | {row['ratio']:.2f} | {rounds} | {sent} | {row['load']:.1f} |")
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
