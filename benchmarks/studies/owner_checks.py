"""What checks of owners cost the parties: three processes of this machine, seconds of a release's check beside those of
taking and adding up the shares, and what is counted.

python benchmarks/studies/owner_checks.py [--cases 100x122,100x100000,1000x122] [--repetitions 5] [--json FILE]
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

BITS = 57.6  # 40 over 100 releases and 1,024 attempts of each: 58 projections
BOUND_BITS = 36  # of the largest sum of squares, in grid steps
CASES = "100x122,100x100000,1000x122"
CELLS = {"lan": (0.5e-3, 1e9), "wan": (40e-3, 1e8)}  # round trip, bits a second
MODES = {"shares": "shamir", "semi-honest": "sharing", "active": "checked"}


async def check_once(holder: Any, owners: int, dimension: int, norms: bool, repetitions: int) -> dict[str, Any]:
    """At one party: seconds of each check, and of reading and adding up the same shares; rounds and bytes of one check.
    Shares of small random vectors, with public randomness: nothing here is a secret."""
    from dpmpc.mpc.contract.owner_checks import NormTest, OwnerTest
    from dpmpc.mpc.numbers import field
    from dpmpc.mpc.numbers.prg import Prg
    from dpmpc.mpc.transport.channels import OWNERS, OWNERS_EACH

    rows = np.empty((owners, dimension), dtype=np.uint64)
    largest = int((2.0**BOUND_BITS / dimension) ** 0.5)
    for j in range(owners):
        values = np.random.default_rng(j).integers(-largest, largest + 1, dimension)
        prg = Prg(b"public", j)
        rows[j] = field.share(field.from_int64(values), holder.parties, holder.threshold, prg)[holder.party]
    test = OwnerTest(owners, dimension, None)
    if norms:
        test = OwnerTest(owners, dimension, NormTest.of((1 << BOUND_BITS,) * owners, dimension, BITS))
    payload = rows[: max(1, (1 << 19) // dimension)]
    checks, sums = [], []
    before = after = (0, 0, 0)
    for k in range(repetitions):
        await holder.here(k)
        begin = time.perf_counter()
        for _ in range(-(-owners // len(payload))):
            field.total(payload)
        sums.append(time.perf_counter() - begin)
        await holder.here(repetitions + k)
        before = holder.rounds, holder.bytes_sent, holder.frames_sent
        begin = time.perf_counter()
        found = await holder.inspect([rows], test, OWNERS + OWNERS_EACH * k)
        checks.append(time.perf_counter() - begin)
        after = holder.rounds, holder.bytes_sent, holder.frames_sent
        if found.all:
            raise AssertionError("honest owners pass")
    rounds, sent, frames = (b - a for a, b in zip(before, after, strict=True))
    return {"checks": checks, "sums": sums, "rounds": rounds, "bytes": sent, "frames": frames}


def measure(owners: int, dimension: int, mode: str, repetitions: int) -> dict[str, Any]:
    """Medians of seconds at the slowest party, and what is counted. Errors: AssertionError for bytes or rounds that
    were not counted."""
    from dpmpc.benchmarks.studies.owner_checks import check_once as body
    from dpmpc.mpc.contract.backend import BACKENDS
    from dpmpc.mpc.contract.owner_checks import ChecksOwners, NormTest, OwnerTest
    from dpmpc.mpc.parties.loopback import run_parties
    from dpmpc.mpc.transport.wire import HEADER

    norms = mode != "shares"
    found = run_parties(body, 3, 1, [owners, dimension, norms, repetitions], backend=MODES[mode], threads=1)
    backend = BACKENDS[MODES[mode]]
    assert isinstance(backend, ChecksOwners)
    spec = NormTest.of((1 << BOUND_BITS,) * owners, dimension, BITS) if norms else None
    counts = backend.count_owner_checks(OwnerTest(owners, dimension, spec), 3, 1)
    rounds = sum(each.rounds for each in counts)
    due = [sum(each.bytes_sent[i] + HEADER.size * each.messages_sent[i] for each in counts) for i in range(3)]
    got = [each["bytes"] for each in found]
    beats = [each["frames"] - sum(c.messages_sent[i] for c in counts) for i, each in enumerate(found)]
    if any(each["rounds"] != rounds for each in found) or any(
        b != d
        for b, d, more in zip(got, due, beats, strict=True)
        if not more  # a heartbeat fell in between
    ):
        raise AssertionError(f"measured {got} bytes, {[e['rounds'] for e in found]} rounds; counted {due}, {rounds}")
    seconds = max(statistics.median(each["checks"]) for each in found)
    lanes = (0, 0) if spec is None else ((spec.projections + 1) * owners, owners)
    ands = sum(each.sample.get("ands", 0) * k for each, k in zip(counts[1:3], lanes, strict=False))
    return {
        "owners": owners,
        "dimension": dimension,
        "mode": mode,
        "seconds": seconds,
        "adding_s": max(statistics.median(each["sums"]) for each in found),
        "rounds": rounds,
        "bytes": max(due),
        "ands": ands,
        "projections": 0 if spec is None else spec.projections,
        **{cell: seconds + rounds * rtt / 2 + 8 * max(due) / speed for cell, (rtt, speed) in CELLS.items()},
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cases = [tuple(map(int, case.split("x"))) for case in given.cases.split(",")]
    rows = [measure(m, d, mode, given.repetitions) for m, d in cases for mode in MODES]
    print("| owners, coordinates | checks | seconds | lan | wan | adding up | rounds | kB a party | ANDs | load |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        times = " | ".join(f"{row[key]:.3g} s" for key in ("seconds", "lan", "wan", "adding_s"))
        print(
            f"| {row['owners']:,}, {row['dimension']:,} | {row['mode']} | {times} | {row['rounds']} | "
            f"{row['bytes'] / 1e3:.1f} | {row['ands']:,} | {row['load']:.1f} |"
        )
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
