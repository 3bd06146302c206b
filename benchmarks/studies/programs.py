"""Noise made by this version against that of another commit: rates, processor time, rounds, bytes, memory.

    python benchmarks/studies/programs.py [--against COMMIT] [--cases gaussian,ot,...] [--features avx2,aes,...]
                                  [--repetitions 5] [--json FILE] [--show FILE]

Without --against the other one is 71173d3, which walked circuits instead of tracing them to programs. It is checked out
into a temporary folder, and its kernels are compiled; a folder that holds a checkout, compiled, is taken as it is.
Both run by turns on the same machine, so that ratios mean something where other work runs; medians are reported.
--features limits the kernels of both to some of this processor's (`dpmpc.mpc.native`), to stand for a processor that
has no more. Run from the repository, with its environment.
"""

import argparse
import contextlib
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WALKER = "71173d3"
SCALE = float(1 << 20)  # grid steps
CASES: dict[str, dict[str, Any]] = {
    "gaussian": {"law": "gaussian", "count": 1_000_000},
    "laplace": {"law": "laplace", "count": 1_000_000},
    "gaussian n=5": {"law": "gaussian", "count": 250_000, "parties": 5},
    "gaussian d=122": {"law": "gaussian", "count": 122, "times": 40},
    "box-muller": {"law": "gaussian", "sampler": "box-muller", "count": 100_000},
    "active": {"law": "gaussian", "count": 500_000, "backend": "checked"},
    "active long": {"law": "gaussian", "count": 3 << 20, "backend": "checked"},
    "ot": {"law": "gaussian", "count": 100_000, "parties": 2, "backend": "ot"},
    "garbled": {"law": "gaussian", "count": 4_096, "parties": 2, "backend": "garbled"},
    "shamir n=9": {"law": "gaussian", "count": 30_000, "parties": 9, "backend": "shamir"},
    "alone on 1 core": {"law": "gaussian", "count": 1_000_000, "parties": 1, "cores": [0]},
    "alone on 2 cores": {"law": "gaussian", "count": 1_000_000, "parties": 1, "cores": [0, 1]},
}
_DEFAULTS = {"sampler": "discrete", "parties": 3, "times": 1, "backend": "sharing", "features": None}


def _home(*names: str) -> Any:
    """The module of `dpmpc.mpc` that has the first of these names that this version knows."""
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(f"dpmpc.mpc.{name}")
    raise ModuleNotFoundError(names[0])


async def draw_new(holder: Any, case: dict[str, Any]) -> dict[str, float]:
    """Seconds and processor seconds of one draw after a warm-up, and what it sent."""
    from dpmpc.mpc.native import choice
    from dpmpc.noise.draw import draw
    from dpmpc.privacy.law import LAWS

    if case["features"] is not None and choice.compiled is not None:
        choice.compiled.restrict_to(tuple(case["features"]))
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


def work(case: dict[str, Any], walker: bool) -> dict[str, float]:
    """One run of all parties as processes: the slowest one's time, the mean of the others' figures."""
    if walker:
        from dpmpc.local import run_parties  # type: ignore[attr-defined]

        found = run_parties(draw_old, case["parties"], None, (case,))
    else:
        import programs  # type: ignore[import-not-found]  # this file, whichever version `dpmpc` is

        run_parties = _home("loopback", "parties.loopback").run_parties

        found = run_parties(programs.draw_new, case["parties"], None, (case,), backend=case["backend"])
    mean = {key: statistics.fmean(f[key] for f in found) for key in found[0]}
    return {**mean, "seconds": max(f["seconds"] for f in found)}


def measure(tree: Path, case: dict[str, Any], walker: bool = False) -> dict[str, float]:
    """`work` by the version in `tree`."""
    here = Path(__file__).resolve()
    environment = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{here.parent}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(here), "--work", "walker" if walker else "programs", json.dumps(case)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=tree)
    result: dict[str, float] = json.loads(done.stdout)
    return result


@contextlib.contextmanager
def checkout(against: str) -> Iterator[Path]:
    """The folder of another version: as it is, if that is a folder, else of a commit, with its kernels compiled."""
    if Path(against).is_dir():
        yield Path(against).resolve()
        return
    from dpmpc.folders import passing_folder  # older versions, which this file runs as well, have none

    with passing_folder() as folder:
        tree = folder / "old"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), against], cwd=ROOT, check=True)
        try:
            if (tree / "setup.py").exists():
                build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
                subprocess.run(build, cwd=tree, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def compare(names: Sequence[str], repetitions: int, against: str, features: Sequence[str] | None) -> dict[str, Any]:
    """Figures of both versions, by case; `ratio`: medians of the pairs' ratios, of time and of processor time."""
    runs: dict[str, dict[str, list[dict[str, float]]]] = {name: {"old": [], "new": []} for name in names}
    cases = {name: _DEFAULTS | CASES[name] | {"features": features} for name in names}
    with checkout(against) as tree:
        for _ in range(repetitions):  # cases by turns, too
            for name, case in cases.items():
                runs[name]["old"].append(measure(tree, case, against == WALKER))
                runs[name]["new"].append(measure(ROOT, case))
    results: dict[str, Any] = {}
    for name, found in runs.items():
        both = {which: {key: statistics.median(run[key] for run in of) for key in of[0]} for which, of in found.items()}
        ratios = {
            kind: sorted(old[kind] / new[kind] for old, new in zip(found["old"], found["new"], strict=True))
            for kind in ("seconds", "cpu")
        }
        medians = {kind: statistics.median(of) for kind, of in ratios.items()}
        results[name] = {"case": cases[name], **both, "ratio": medians, "ratios": ratios}
        print(*lines(name, results[name]), sep="\n", flush=True)
    return results


def lines(name: str, result: dict[str, Any]) -> list[str]:
    """A case in words."""
    count = result["case"]["count"]
    each = ", ".join(f"{r:.2f}" for r in result["ratios"]["seconds"])
    shown = [
        f"{name}: {result['ratio']['seconds']:.2f} times as fast ({each}), {result['ratio']['cpu']:.2f} by processor"
    ]
    for which in ("old", "new"):
        r = result[which]
        shown.append(
            f"  {which}: {1e3 * r['seconds']:.2f} ms, {count / r['seconds']:,.0f} samples/s, "
            f"{1e9 * r['cpu'] / count:.0f} ns of processor a sample and party, {r['rounds']:g} rounds, "
            f"{r['bytes'] / count:.1f} bytes a sample, {r['memory']:.0f} MB a party"
        )
    return shown


def cases(found: dict[str, Any]) -> dict[str, Any]:
    """The cases of a result file; the machine, which newer files have, is none."""
    return {name: result for name, result in found.items() if name != "machine"}


def table(results: dict[str, Any]) -> str:
    """The cases of a result file in Markdown: ratios of pairs that ran one after the other, and what is counted."""
    rows = [
        "| noise | times as fast, by processor time (each pair) | by the clock | ns of processor a sample and party "
        "| rounds | bytes a sample | MB a party |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, result in cases(results).items():
        old, new, count = result["old"], result["new"], result["case"]["count"]
        each = ", ".join(f"{ratio:.2f}" for ratio in result["ratios"]["cpu"])
        figures = [
            f"{count:,} {name}",
            f"{result['ratio']['cpu']:.2f} ({each})",
            f"{result['ratio']['seconds']:.2f}",
            f"{1e9 * old['cpu'] / count:,.0f} -> {1e9 * new['cpu'] / count:,.0f}",
            f"{old['rounds']:g} -> {new['rounds']:g}",
            f"{old['bytes'] / count:,.1f} -> {new['bytes'] / count:,.1f}",
            f"{old['memory']:.0f} -> {new['memory']:.0f}",
        ]
        rows.append("| " + " | ".join(figures) + " |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--against", default=WALKER, help="a commit, or a folder that holds a checkout, compiled")
    parser.add_argument("--cases", help="some of: " + ", ".join(CASES))
    parser.add_argument("--features", help="kernels of both use no other features of the processor than these")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", type=Path, help="print the table of such a file, and measure nothing")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        case = json.loads(arguments.work[1])
        if "cores" in case:
            os.sched_setaffinity(0, case["cores"])  # the parties inherit it, and take as many threads
        print(json.dumps(work(case, arguments.work[0] == "walker")))
        return
    if arguments.show:
        print(table(json.loads(arguments.show.read_text())))
        return
    walked = [name for name, case in CASES.items() if "backend" not in case]
    names = arguments.cases.split(",") if arguments.cases else walked if arguments.against == WALKER else list(CASES)
    features = None if arguments.features is None else [name for name in arguments.features.split(",") if name]
    from dpmpc.benchmarks.machine import machine

    before = machine()
    results = compare(names, arguments.repetitions, arguments.against, features)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": before, **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
