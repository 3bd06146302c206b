"""Noise made by traced programs against the bundle walker of commit 71173d3: rates, processor time, rounds, memory.

    python benchmarks/programs.py [--cases gaussian,laplace,...] [--repetitions 5] [--json FILE]

The old commit is checked out into a temporary folder. Both versions run by turns on the same machine, so that ratios
mean something where other work runs; medians are reported. Run from the repository, with its environment.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OLD = "71173d3"
SCALE = float(1 << 20)  # grid steps
CASES: dict[str, dict[str, Any]] = {
    "gaussian": {"law": "gaussian", "count": 1_000_000},
    "laplace": {"law": "laplace", "count": 1_000_000},
    "gaussian n=5": {"law": "gaussian", "count": 250_000, "parties": 5},
    "gaussian d=122": {"law": "gaussian", "count": 122, "times": 40},
    "box-muller": {"law": "gaussian", "sampler": "box-muller", "count": 100_000},
    "alone on 1 core": {"law": "gaussian", "count": 1_000_000, "parties": 1, "cores": [0]},
    "alone on 2 cores": {"law": "gaussian", "count": 1_000_000, "parties": 1, "cores": [0, 1]},
}
_DEFAULTS = {"sampler": "discrete", "parties": 3, "times": 1}


async def draw_new(holder: Any, case: dict[str, Any]) -> dict[str, float]:
    """Seconds and processor seconds of one draw after a warm-up, and what it sent."""
    from dpmpc.noise.draw import draw
    from dpmpc.privacy.law import LAWS

    begin = time.perf_counter()
    sampler = LAWS[case["law"]].sampler(case["sampler"], SCALE)

    async def again(channel: int, count: int) -> None:
        await draw(holder, sampler, count, first_channel=channel)

    async def here() -> None:
        await holder.here(1)

    return await _measured(case, holder, again, here, begin)


async def draw_old(session: Any, case: dict[str, Any]) -> dict[str, float]:
    """The same in the old version."""
    import numpy as np
    from dpmpc.pool import draw  # type: ignore[import-not-found]
    from dpmpc.samplers import make_sampler  # type: ignore[import-not-found]

    begin = time.perf_counter()
    sampler = make_sampler(case["sampler"], case["law"], SCALE)

    async def again(channel: int, count: int) -> None:
        await draw(session, sampler, count, first_channel=channel)

    async def here() -> None:
        await session.open(np.zeros(1, dtype=np.uint64), session.channel(1))

    return await _measured(case, session, again, here, begin)


async def _measured(case: dict[str, Any], session: Any, again: Any, here: Any, begin: float) -> dict[str, float]:
    channel, times = 1 << 26, case["times"]
    await again(1 << 25, min(case["count"], 1 << 17))
    first = time.perf_counter() - begin
    await here()
    rounds, sent, cpu, begin = session.rounds, session.bytes_sent, time.process_time(), time.perf_counter()
    for _ in range(times):
        await again(channel, case["count"])
        channel += 1 << 10
    return {
        "seconds": (time.perf_counter() - begin) / times,
        "cpu": (time.process_time() - cpu) / times,
        "rounds": (session.rounds - rounds) / times,
        "bytes": (session.bytes_sent - sent) / times,
        "first": first,
        "memory": _peak() / 1e6,
    }


def _peak() -> int:
    """The most memory this process has had, bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def work(case: dict[str, Any], old: bool) -> dict[str, float]:
    """One run of all parties as processes: the slowest one's time, the mean of the others' figures."""
    if old:
        from dpmpc.local import run_parties  # type: ignore[import-not-found]

        found = run_parties(draw_old, case["parties"], None, (case,))
    else:
        from dpmpc.benchmarks import programs
        from dpmpc.mpc.loopback import run_parties

        found = run_parties(programs.draw_new, case["parties"], None, (case,))
    mean = {key: statistics.fmean(f[key] for f in found) for key in found[0]}
    return {**mean, "seconds": max(f["seconds"] for f in found)}


def measure(tree: Path, case: dict[str, Any]) -> dict[str, float]:
    """`work` by the version in `tree`."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    which = "new" if tree == ROOT else "old"
    command = [sys.executable, str(Path(__file__).resolve()), "--work", which, json.dumps(case)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def compare(names: list[str], repetitions: int) -> dict[str, Any]:
    """Figures of both versions, by case."""
    runs: dict[str, dict[str, list[dict[str, float]]]] = {name: {"old": [], "new": []} for name in names}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "old"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), OLD], cwd=ROOT, check=True)
        try:
            for _ in range(repetitions):  # cases by turns, too
                for name in names:
                    case = _DEFAULTS | CASES[name]
                    runs[name]["old"].append(measure(tree, case))
                    runs[name]["new"].append(measure(ROOT, case))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    results: dict[str, Any] = {}
    for name, found in runs.items():
        both = {which: {key: statistics.median(run[key] for run in of) for key in of[0]} for which, of in found.items()}
        ratios = [old["seconds"] / new["seconds"] for old, new in zip(found["old"], found["new"], strict=True)]
        case = _DEFAULTS | CASES[name]
        results[name] = {"case": case, **both, "ratio": statistics.median(ratios), "ratios": sorted(ratios)}
        print(*lines(name, results[name]), sep="\n", flush=True)
    return results


def lines(name: str, result: dict[str, Any]) -> list[str]:
    """A case in words."""
    count = result["case"]["count"]
    shown = [f"{name}: {result['ratio']:.2f} times as fast ({', '.join(f'{r:.2f}' for r in result['ratios'])})"]
    for which in ("old", "new"):
        r = result[which]
        shown.append(
            f"  {which}: {1e3 * r['seconds']:.2f} ms, {count / r['seconds']:,.0f} samples/s, "
            f"{1e9 * r['cpu'] / count:.0f} ns of processor a sample and party, {r['rounds']:g} rounds, "
            f"{r['bytes'] / count:.1f} bytes a sample, {r['memory']:.0f} MB a party"
        )
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        case = json.loads(arguments.work[1])
        if "cores" in case:
            os.sched_setaffinity(0, case["cores"])  # the parties inherit it, and take as many threads
        print(json.dumps(work(case, arguments.work[0] == "old")))
        return
    results = compare(arguments.cases.split(","), arguments.repetitions)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
