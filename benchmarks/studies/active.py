"""What checked parties cost beside semi-honest ones: the same noise by both, by turns, so that ratios mean something.

python benchmarks/studies/active.py [--parties 3] [--counts 122,10000,1000000] [--repetitions 5] [--json FILE]

Both modes are on replicated shares for 3 to 5 parties, and on Shamir's for more. The first draw of a session, whose
memory is fresh, stands apart from those that follow.
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

SCALE = float(1 << 18)  # grid steps
MODES = ("semi-honest", "active")


async def draws(holder: Any, count: int, times: int) -> dict[str, Any]:
    """Of a session that has drawn a few samples: seconds and processor seconds of its first draw of `count`, whose
    memory is fresh, and of each of the `times` that follow; the costs of one."""
    from dpmpc.noise.draw import draw
    from dpmpc.privacy.law import DEFAULT_LAW, LAWS
    from dpmpc.processes.memory import peak_memory

    sampler = LAWS[DEFAULT_LAW].sampler("discrete", SCALE)
    await draw(holder, sampler, 122, first_channel=1 << 25)
    await holder.here(1)
    seconds, cpu, rounds, sent = [], [], holder.rounds, holder.bytes_sent
    for k in range(times + 1):
        begin, before = time.perf_counter(), time.process_time()
        await draw(holder, sampler, count, first_channel=(1 << 26) + (k << 10))
        seconds.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - before)
    return {
        "first": {"seconds": seconds[0], "cpu": cpu[0]},
        "seconds": seconds[1:],
        "rounds": (holder.rounds - rounds) / (times + 1),
        "bytes": (holder.bytes_sent - sent) / (times + 1),
        "cpu": statistics.mean(cpu[1:]),
        "memory": peak_memory(),
    }


def measure(parties: int, count: int, repetitions: int) -> dict[str, Any]:
    """Medians of seconds, by mode, their ratio, and what is counted. Errors: bytes or rounds that were not counted."""
    from dpmpc.benchmarks.studies import active
    from dpmpc.errors import DpmpcError
    from dpmpc.mpc.contract.backend import BACKENDS
    from dpmpc.mpc.contract.security import backend_for
    from dpmpc.mpc.parties.loopback import run_parties
    from dpmpc.noise.sampling import predict
    from dpmpc.privacy.law import DEFAULT_LAW, LAWS

    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    cpu: dict[str, list[float]] = {mode: [] for mode in MODES}
    first: dict[str, list[float]] = {mode: [] for mode in MODES}
    counted: dict[str, Any] = {}
    memory: dict[str, int] = {}
    times = max(3, min(40, 100_000 // count))  # one draw alone would be at the mercy of what else runs
    for _ in range(repetitions):
        for mode in MODES:
            backend = backend_for(mode, None, DEFAULT_LAW, "discrete", parties, None)
            found = run_parties(active.draws, parties, None, (count, times), backend=backend, seconds=600)
            threshold = BACKENDS[backend].threshold(parties)
            predicted = predict(LAWS[DEFAULT_LAW].sampler("discrete", SCALE), count, parties, threshold, backend)
            measured = {"rounds": found[0]["rounds"], "bytes": [f["bytes"] for f in found]}
            if any(measured[key] != predicted[key] for key in measured):
                raise DpmpcError(f"{mode}, {count} samples: measured {measured}, counted {predicted}")
            seconds[mode].append(max(statistics.median(f["seconds"]) for f in found))
            cpu[mode].append(statistics.mean(f["cpu"] for f in found))
            first[mode].append(statistics.mean(f["first"]["cpu"] for f in found))
            counted[mode] = {"rounds": predicted["rounds"], "bytes_a_sample": max(predicted["bytes"]) / count}
            memory[mode] = max(memory.get(mode, 0), *(f["memory"] for f in found))
    medians = {mode: statistics.median(times) for mode, times in seconds.items()}
    ratios, work, fresh = (
        sorted(two / one for one, two in zip(*(of[mode] for mode in MODES), strict=True))
        for of in (seconds, cpu, first)
    )
    return {
        "parties": parties,
        "count": count,
        "seconds": medians,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "cpu": {mode: statistics.median(times) for mode, times in cpu.items()},
        "cpu_ratio": statistics.median(work),
        "first_cpu": {mode: statistics.median(times) for mode, times in first.items()},
        "first_cpu_ratio": statistics.median(fresh),
        "counted": counted,
        "memory": memory,
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parties", default="3")
    parser.add_argument("--counts", default="122,10000,1000000")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    numbers, counts = ([int(each) for each in text.split(",")] for text in (given.parties, given.counts))
    head = "parties | samples | semi-honest | active | ratio | CPU, ratio | first, CPU, ratio | rounds | bytes a sample"
    print(f"| {head} | MB | load |")
    print("| --- " * 11 + "|")
    rows = []
    for parties in numbers:
        for count in counts:
            rows.append(row := measure(parties, count, given.repetitions))
            one, two = (row["counted"][mode] for mode in MODES)
            times = " | ".join(f"{row['seconds'][mode] * 1e3:.3g} ms" for mode in MODES)
            cpu, first = (", ".join(f"{row[of][mode] * 1e3:.3g}" for mode in MODES) for of in ("cpu", "first_cpu"))
            rounds = f"{one['rounds']}, {two['rounds']}"
            sent = f"{one['bytes_a_sample']:.1f}, {two['bytes_a_sample']:.1f}"
            memory = ", ".join(f"{row['memory'][mode] / 1e6:.0f}" for mode in MODES)
            print(
                f"| {parties} | {count:,} | {times} | {row['ratio']:.2f} | {cpu}, {row['cpu_ratio']:.2f} | {first}, "
                f"{row['first_cpu_ratio']:.2f} | {rounds} | {sent} | {memory} | {row['load']:.1f} |",
                flush=True,
            )
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
