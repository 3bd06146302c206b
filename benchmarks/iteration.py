"""Measures one cell: n parties and the owners as processes of their own, releases one after another, split into
stages.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.benchmarks import counts
from dpmpc.benchmarks.bare import Traffic
from dpmpc.benchmarks.cell import Cell, plan_of
from dpmpc.benchmarks.network import Network
from dpmpc.benchmarks.processes import Job
from dpmpc.benchmarks.quartiles import Figure, figure
from dpmpc.benchmarks.release import STAGES
from dpmpc.errors import DpmpcError

Array = NDArray[np.float64]
WARM_UP = 3
PARTS = ("share", "network in", "aggregate", "noise online", "add", "ledger", "open", "out")  # add up to the total


@dataclass(frozen=True)
class Limit:
    """Seconds for the same messages between the same number of processes, without computation."""

    total: Figure
    open: Figure
    durable: Figure  # the total, when every party also writes a line to disk before the opening, as the ledger must


@dataclass(frozen=True)
class Measured:
    """A cell's figures. `parts` and `total`: seconds of one release."""

    cell: Cell
    total: Figure
    without_ledger: Figure  # the total less the ledger's write to disk, release by release
    parts: dict[str, Figure]
    noise_offline: float  # seconds a release, made ahead
    counts: dict[str, Any]
    peak_party: int  # bytes
    peak_owners: int
    limit: Limit | None


def repetitions(cell: Cell, quick: bool) -> int:
    """How often a cell is measured after the warm-up: 5 times at least, small ones more often."""
    most, budget = (40, 2e6) if quick else (150, 2e7)
    return max(5, min(most, int(budget / (cell.values + 100 * cell.dimension + 20_000))))


def measure(cell: Cell, network: Network, releases: int, *, limit: bool = True) -> Measured:
    """The figures of `releases` releases after `WARM_UP` others.

    Errors: what `dpmpc train` would refuse; DpmpcError when measured counts differ from the formula.
    """
    plan = plan_of(cell, WARM_UP + releases).to_text()
    with network.places(cell.parties) as places:
        jobs = [
            Job("owners", {"plan": plan, "owner_addresses": places.owners_see()}, places.prefix(None)),
            *(
                Job(
                    "party",
                    {
                        "index": i,
                        "plan": plan,
                        "addresses": places.party_sees(i),
                        "owner_addresses": places.owner_ports(),
                    },
                    places.prefix(i),
                )
                for i in range(cell.parties)
            ),
        ]
        owners, *parties = places.run(jobs)
    return summarise(cell, owners, parties, measure_limit(cell, network, releases) if limit else None)


def measure_limit(cell: Cell, network: Network, releases: int) -> Limit:
    """The physical limit of a release."""
    rounds = WARM_UP + releases
    common = {"traffic": Traffic.of(cell).to_json(), "rounds": 2 * rounds}
    with network.places(cell.parties) as places:
        jobs = [Job("bare owners", {**common, "owner_addresses": places.owners_see()}, places.prefix(None))]
        for i in range(cell.parties):
            party = {"index": i, "addresses": places.party_sees(i), "owner_addresses": places.owner_ports()}
            jobs.append(Job("bare party", {**common, **party}, places.prefix(i)))
        owners, *parties = places.run(jobs)
    begins, ends = (np.array([party[name] for party in parties])[:, WARM_UP:rounds] for name in ("begins", "ends"))
    seconds = owners["seconds"]
    return Limit(
        figure(seconds[WARM_UP:rounds]),
        figure(ends.max(axis=0) - begins.max(axis=0)),
        figure(seconds[rounds + WARM_UP :]),
    )


def summarise(cell: Cell, owners: dict[str, Any], parties: list[dict[str, Any]], limit: Limit | None) -> Measured:
    """The figures of one run of the processes. Errors: counts that differ from the formula."""
    expected = counts.counts_record(cell, len(owners["begins"]))
    check_counts(cell, expected, owners, parties)
    times = split(owners, parties)
    parts = {name: figure(values[WARM_UP:]) for name, values in times.items()}
    total = np.array(owners["ends"]) - np.array(owners["begins"])
    offline = max(party["offline_s"] for party in parties) / len(total) if cell.pool else 0.0
    return Measured(
        cell,
        figure(total[WARM_UP:]),
        figure((total - times["ledger"])[WARM_UP:]),
        parts,
        offline,
        expected,
        max(p["peak_memory"] for p in parties),
        owners["peak_memory"],
        limit,
    )


def split(owners: dict[str, Any], parties: list[dict[str, Any]]) -> dict[str, Array]:
    """Seconds of each release in each of `PARTS`, which add up to the owners' time. A stage ends when the last party
    has ended it.

    Sharing, sending and adding go on at the same time in a long input: what is neither sharing nor adding counts as
    `network in`.
    """
    times = np.array([party["times"] for party in parties])  # (party, release, stage)
    ended = dict(zip(STAGES, times.max(axis=0).T, strict=True))
    last = times[:, :, STAGES.index("collect")].argmax(axis=0)
    adding = np.array([party["adding"] for party in parties])[last, np.arange(times.shape[1])]
    begins, ends = np.array(owners["begins"]), np.array(owners["ends"])
    inputs = ended["collect"] - begins
    share = np.minimum(owners["sharing"], inputs)
    adding = np.minimum(adding, inputs - share)
    return {
        "share": share,
        "network in": inputs - share - adding,
        "aggregate": adding,
        "noise online": ended["noise"] - ended["collect"],
        "add": ended["add"] - ended["noise"],
        "ledger": ended["ledger"] - ended["add"],
        "open": ended["open"] - ended["ledger"],
        "out": ends - ended["open"],
    }


def check_counts(cell: Cell, expected: dict[str, Any], owners: dict[str, Any], parties: list[dict[str, Any]]) -> None:
    """Errors: bytes or rounds of a release that differ from the formula. Only noise made in the release itself may
    add to them.
    """
    noise = [0] * cell.parties if cell.pool else expected["noise_bytes_by_party"]
    for i, party in enumerate(parties):
        for found in party["counts"]:
            due = [
                expected["bytes_party_to_parties"] + noise[i],
                expected["bytes_party_to_owners"],
                expected["bytes_party_received"] if cell.pool else found[2],
                expected["rounds"] + (0 if cell.pool else expected["noise_rounds"]),
            ]
            if found != due:
                raise DpmpcError(
                    f"counts must equal dpmpc.benchmarks.counts; {cell}: {found}, by formula {due}; report this"
                )
    if set(owners["bytes_sent"]) != {expected["bytes_owners"]}:
        raise DpmpcError(
            f"counts must equal dpmpc.benchmarks.counts; {cell}: owners sent {owners['bytes_sent'][0]}, by formula "
            f"{expected['bytes_owners']}; report this"
        )
