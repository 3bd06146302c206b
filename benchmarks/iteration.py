"""Measures one cell: n parties and the owners as processes of their own, releases one after another, split into
stages.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.benchmarks import counts
from dpmpc.benchmarks.bare import MessageSizes
from dpmpc.benchmarks.cell import BenchCell, plan_of
from dpmpc.benchmarks.network import Network
from dpmpc.benchmarks.quartiles import Figure, figure
from dpmpc.benchmarks.release import STAGES
from dpmpc.errors import DpmpcError

Array = NDArray[np.float64]
WARM_UP = 3
PARTS = ("share", "network in", "aggregate", "noise online", "add", "ledger", "open", "out")  # add up to the total


@dataclass(frozen=True)
class MessageLimit:
    """Seconds for the same messages between the same number of processes, without computation."""

    total: Figure
    open: Figure
    durable: Figure  # the total, when every party also writes a line to disk before the opening, as the ledger must


@dataclass(frozen=True)
class Measured:
    """A cell's figures. `parts` and `total`: seconds of one release."""

    cell: BenchCell
    total: Figure
    without_ledger: Figure  # the total less the ledger's write to disk, release by release
    parts: dict[str, Figure]
    noise_offline: float  # seconds a release, made ahead
    counts: dict[str, Any]
    peak_party: int  # bytes
    peak_owners: int
    limit: MessageLimit | None


def repetitions(cell: BenchCell, quick: bool) -> int:
    """How often a cell is measured after the warm-up: 5 times at least, small ones more often. Over a slow network the
    line sets the time, which hardly varies: 40 times at most."""
    most, budget = (40, 2e6) if quick else (150, 2e7)
    if cell.network == "wan":
        most = 40
    return max(5, min(most, int(budget / (cell.values + 100 * cell.dimension + 20_000))))


def measure(cell: BenchCell, network: Network, releases: int, *, limit: bool = True) -> Measured:
    """The figures of `releases` releases after `WARM_UP` others.

    Errors: what `dpmpc train` would refuse; DpmpcError when measured counts differ from the formula.
    """
    plan = plan_of(cell, WARM_UP + releases).to_text()
    with network.places(cell.parties) as places:
        owners, parties = places.run("dpmpc.benchmarks.release", {"plan": plan})
    return summarise(cell, owners, parties, measure_limit(cell, network, releases) if limit else None)


def measure_limit(cell: BenchCell, network: Network, releases: int) -> MessageLimit:
    """The physical limit of a release."""
    rounds = WARM_UP + releases
    with network.places(cell.parties) as places:
        arguments = {"traffic": MessageSizes.of(cell).to_json(), "rounds": 2 * rounds}
        owners, parties = places.run("dpmpc.benchmarks.bare", arguments)
    begins, ends = (np.array([party[name] for party in parties])[:, WARM_UP:rounds] for name in ("begins", "ends"))
    seconds = owners["seconds"]
    return MessageLimit(
        figure(seconds[WARM_UP:rounds]),
        figure(ends.max(axis=0) - begins.max(axis=0)),
        figure(seconds[rounds + WARM_UP :]),
    )


def summarise(
    cell: BenchCell, owners: dict[str, Any], parties: list[dict[str, Any]], limit: MessageLimit | None
) -> Measured:
    """The figures of one run of the processes. Errors: counts that differ from the formula."""
    releases = len(owners["begins"])
    check_counts(cell, releases, owners, parties)
    times = split(owners, parties)
    parts = {name: figure(values[WARM_UP:]) for name, values in times.items()}
    total = np.array(owners["ends"]) - np.array(owners["begins"])
    return Measured(
        cell,
        figure(total[WARM_UP:]),
        figure((total - times["ledger"])[WARM_UP:]),
        parts,
        max(cost["offline_s"] for cost in owners["costs"]) / releases if cell.pool else 0.0,
        counts.counts_record(cell, releases),
        max(cost["peak_memory"] for cost in owners["costs"]),
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
        "ledger": ended["ledger"] - ended["stand"],
        "open": ended["open"] - ended["ledger"] + ended["stand"] - ended["add"],  # with its barrier
        "out": ends - ended["open"],
    }


def check_counts(cell: BenchCell, releases: int, owners: dict[str, Any], parties: list[dict[str, Any]]) -> None:
    """Errors: bytes or rounds of a release, or of the noise, that differ from what is counted.

    With a pool nothing but the noise goes between parties ahead, and no noise in a release. What is received is counted
    over all parties.
    """
    one = counts.release_counts(cell)
    noise = counts.noise_counts(cell, releases if cell.pool else 1)
    none = (0,) * cell.parties
    ahead, online = (noise.bytes_by_party, none) if cell.pool else (none, noise.bytes_by_party)
    rounds_ahead, rounds_online = (noise.rounds, 0) if cell.pool else (0, noise.rounds)

    def same(what: str, found: Any, due: Any) -> None:
        if found != due:
            raise DpmpcError(
                f"counts must equal dpmpc.benchmarks.counts; {cell}: {what} {found}, by formula {due}; report this"
            )

    for i, party in enumerate(parties):
        same(f"party {i} made noise ahead for", party["ahead"], [ahead[i], rounds_ahead])
        due = [one.parties_bytes[i] + online[i], one.results_bytes, one.rounds + rounds_online]
        for to_parties, to_owners, _, rounds in party["counts"]:
            same(f"party {i} released for", [to_parties, to_owners, rounds], due)
    for k in range(releases):
        received = sum(party["counts"][k][2] for party in parties)
        same("parties received", received, one.owners_bytes + sum(one.parties_bytes) + sum(online))
        same("owners sent", owners["bytes_sent"][k], one.owners_bytes)
