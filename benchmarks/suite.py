"""What is measured in the quick and the full profile, and how measurements become records."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from dpmpc.benchmarks import noise
from dpmpc.benchmarks.cell import BenchCell, law_and_sampler
from dpmpc.benchmarks.counts import NETWORKS, NetworkLink, NoiseCounts, by_gate, network_seconds, noise_counts
from dpmpc.benchmarks.iteration import WARM_UP, Measured, MessageLimit, measure, measure_limit, repetitions
from dpmpc.benchmarks.machine import load, machine
from dpmpc.benchmarks.network import Network, named
from dpmpc.benchmarks.quartiles import Figure, figure
from dpmpc.benchmarks.result_file import Record, Results
from dpmpc.benchmarks.scale import findings
from dpmpc.errors import UsageError
from dpmpc.learning.method import METHODS
from dpmpc.mpc.contract.backend import BACKENDS, FOR_TWO, GARBLED
from dpmpc.mpc.contract.default_backend import default_backend
from dpmpc.privacy.law import DEFAULT_LAW, LAWS, PURE_LAW

DIMENSIONS = (10, 31, 122, 1_000, 10_000, 100_000)
OWNERS = (2, 10, 100, 1_000, 10_000, 50_000)
PARTIES = (3, 5, 7)
RUNS = (10, 50, 250)  # releases, for growth in T
TWO = (FOR_TWO, GARBLED)  # how two servers make noise
EXACT = (DEFAULT_LAW, PURE_LAW)  # laws whose exact samplers are measured over slow networks
PUBLISHED = (
    "for comparison: two servers with garbled circuits, m = 100, d = 200, the sum alone: 1.06 s (Tian et al. 2016, as "
    "published, on another machine)"
)
_MOST_VALUES = 12_500_000  # numbers into a party in one release: 100 MB; larger cells take the owners' process minutes
Progress = Callable[[str], None]


def cells(quick: bool) -> list[BenchCell]:
    """The iteration table. Full: every d with every m at n = 3 that fits, both sweeps at n = 5 and 7, then methods,
    samplers, backends, pool, networks.
    """
    base = BenchCell()  # the one that the targets speak of
    found: list[BenchCell] = []
    if quick:
        found += [replace(base, dimension=d) for d in (10, 122, 1_000, 10_000)]
        found += [replace(base, owners=m) for m in (2, 1_000, 10_000)]
        found += [replace(base, parties=n) for n in PARTIES]
        found += [replace(base, parties=2, backend=backend) for backend in TWO]
        found += [replace(base, pool=False), replace(base, network="lan"), replace(base, network="wan")]
    else:
        found += [BenchCell(dimension=d, owners=m) for d in DIMENSIONS for m in OWNERS if d * m <= _MOST_VALUES]
        for n in PARTIES[1:]:
            found += [BenchCell(dimension=d, parties=n) for d in DIMENSIONS]
            found += [BenchCell(owners=m, parties=n) for m in OWNERS]
        for law, sampler in noise.samplers():
            found += [replace(base, law=law, sampler=sampler, pool=pool) for pool in (True, False)]
        for method in METHODS.names():
            for law in LAWS.names():
                family, sampler = law_and_sampler(law, None)
                found.append(replace(base, method=method, law=family, sampler=sampler, pool=METHODS[method].repeats))
        found += [replace(base, backend=name, parties=usual_parties(name)) for name in BACKENDS.names()]
        for backend in TWO:
            found += [BenchCell(parties=2, backend=backend, network=network) for network in NETWORKS]
            found.append(BenchCell(dimension=200, parties=2, backend=backend))  # as PUBLISHED
        found += [replace(base, pool=False, parties=n) for n in PARTIES]
        for network in NETWORKS:
            found += [BenchCell(dimension=d, parties=n, network=network) for d in (122, 10_000) for n in (3, 5)]
            found += [BenchCell(network=network, pool=False), BenchCell(owners=10_000, network=network)]
    return list(dict.fromkeys(found))


def run_cells(
    chosen: Sequence[BenchCell], quick: bool, progress: Progress, link: NetworkLink | None = None
) -> list[Record]:
    """One iteration record for each cell; with `link`, also the time predicted for that network. Cells that a sampler
    refuses are left out.

    Errors: UsageError when no cell can be measured.
    """
    records, refused = [], ""
    networks: dict[str, Network] = {}
    for cell in chosen:
        progress(str(cell))
        if cell.network not in networks:
            networks[cell.network] = named(cell.network)
        network = networks[cell.network]
        try:
            measured = measure(cell, network, repetitions(cell, quick))
        except UsageError as error:
            refused = str(error)
            continue
        records.append(iteration_record(measured, network, link))
    if not records:
        raise UsageError(refused)
    return with_predictions(records)


def iteration_record(measured: Measured, network: Network, link: NetworkLink | None = None) -> Record:
    """The row of a measured cell."""
    cell = measured.cell
    seconds = {"total": measured.total, "without ledger": measured.without_ledger, **measured.parts}
    values: dict[str, Any] = {
        "noise_offline_s": measured.noise_offline,
        "peak_memory_party": measured.peak_party,
        "peak_memory_owners": measured.peak_owners,
        "network_made_by": network.how,
    }
    if measured.limit is not None:
        limit = measured.limit
        seconds |= limit_figures(limit)
        values |= {
            "over_limit": measured.without_ledger.median / limit.total.median,
            "over_durable_limit": measured.total.median / limit.durable.median,
        }
    if link is not None:
        values["predicted_s"] = measured.total.median + network_seconds(cell, link, _online(cell))
    return Record("iteration", cell.key(), measured.counts, seconds, values)


def limit_figures(limit: MessageLimit) -> dict[str, Figure]:
    """The limit under the names of the result file."""
    return {"limit": limit.total, "limit open": limit.open, "limit durable": limit.durable}


def _online(cell: BenchCell) -> NoiseCounts | None:
    return None if cell.pool else noise_counts(cell, 1)


def with_predictions(records: Sequence[Record]) -> list[Record]:
    """The records; those over a slow network get the prediction beside the measurement: the same cell on loopback,
    plus what the network adds.
    """
    local = {r.name: r for r in records}
    found = []
    for record in records:
        name = record.key["network"]
        if name != "loopback":
            twin = local.get(Record("iteration", {**record.key, "network": "loopback"}).name)
            if twin is not None:
                cell = BenchCell(**record.key)
                seconds = twin.seconds["total"].median + network_seconds(cell, NETWORKS[name], _online(cell))
                record = replace(record, values={**record.values, "predicted_s": seconds})
        found.append(record)
    return found


def run_limit(chosen: Iterable[BenchCell], quick: bool, progress: Progress) -> list[Record]:
    """The limit alone."""
    records = []
    for cell in chosen:
        progress(str(cell))
        limit = measure_limit(cell, named(cell.network), repetitions(cell, quick))
        records.append(Record("limit", cell.key(), {}, limit_figures(limit)))
    return records


def run_noise(
    parties: Sequence[int],
    quick: bool,
    progress: Progress,
    plain: bool = True,
    *,
    law: str | None = None,
    sampler: str | None = None,
    backend: str | None = None,
) -> list[Record]:
    """The samplers (of one law, or of one name, if that is given), and MPyC's fixed-point arrays, with their ratios to
    those at the same law. Samplers that refuse the scale are left out.

    Errors: UsageError when none can be measured.
    """
    chosen = [s for s in noise.samplers() if law in (None, s[0]) and sampler in (None, s[1])]
    costs: list[noise.NoiseCost] = []
    refused = f"--sampler {sampler} does not make {law} noise; leave one of them out"
    for n in parties:
        for family, name in chosen:
            try:
                for count in _draws(name, n, quick, backend):
                    progress(f"noise: {family}/{name}, {count:,} at n={n}")
                    for each in [backend] if backend else TWO if n == 2 else [default_backend(family, name, n, None)]:
                        costs.append(noise.measure_sampler(family, name, n, count, 3 if quick else 5, each))
            except UsageError as error:
                refused = str(error)
    if not costs:
        raise UsageError(refused)
    if plain:
        for family in dict.fromkeys(cost.law for cost in costs if cost.law in noise.PLAIN_SAMPLERS):
            count = 8 if quick else 122
            progress(f"noise: {family}/{noise.PLAIN}, {count} at n=3")
            costs.append(noise.measure_plain(family, count, 1 if quick else 3))
    slow = {c.law: c.rate for c in costs if c.sampler == noise.PLAIN}
    return [noise_record(cost, slow.get(cost.law) if cost.parties == 3 else None) for cost in costs]


def run_noise_over(
    networks: Sequence[str], parties: Sequence[int], quick: bool, progress: Progress, law: str, backend: str | None
) -> list[Record]:
    """The exact sampler of a law over slow networks: a draw of 122 samples, and one of thousands."""
    records = []
    for network in networks:
        for n in parties:
            for each in [backend] if backend else TWO if n == 2 else [default_backend(law, "discrete", n, None)]:
                progress(f"noise: {law}/discrete at n={n} {each} {network}")
                costs = noise.measure_over(network, law, n, 1 << 13, 1 if quick else 3, each)
                records += [noise_record(cost, None) for cost in costs]
    return records


def _draws(sampler: str, parties: int, quick: bool, backend: str | None) -> tuple[int, ...]:
    """Samples in a draw; the slower samplers, the larger n and the slower backends stop earlier."""
    if backend is not None and _slow(backend, parties):
        return (122,) if quick else (122, 1_000)
    sizes = (122, 10_000, 100_000, 1_000_000)
    if quick or parties > 5:
        return sizes[:2]
    return sizes if sampler == "discrete" and parties == 3 else sizes[:3]


def _slow(backend: str, parties: int) -> bool:
    """Whether a backend says before a run how long it takes. Errors: it cannot have so many parties."""
    entry = BACKENDS[backend]
    t = entry.threshold(parties)
    entry.check(parties, t)
    law = LAWS[DEFAULT_LAW]
    return entry.count_noise(law.sampler(next(iter(law.samplers)), noise.SCALE), 1, parties, t).seconds is not None


def noise_record(cost: noise.NoiseCost, plain: float | None) -> Record:
    key = {name: getattr(cost, name) for name in ("law", "sampler", "backend", "parties", "count")}
    key |= {} if cost.network == "loopback" else {"network": cost.network}
    values: dict[str, Any] = {"samples_a_second": cost.rate}
    if plain is not None:
        values["over_plain_mpyc"] = cost.rate / plain
    counts = {"rounds": cost.rounds, "bytes_a_sample": cost.bytes / cost.count, **by_gate("", cost.gates, "sample")}
    return Record("noise", key, counts, {"draw": cost.seconds}, values)


def run_growth(quick: bool, progress: Progress) -> list[Record]:
    """Whole runs of T releases: noise made ahead, then the releases. The seconds of connecting are not in it."""
    records = []
    for T in RUNS[:2] if quick else RUNS:
        progress(f"a run of {T} releases")
        totals = []
        for _ in range(1 if quick else 3):
            measured = measure(BenchCell(), named("loopback"), T, limit=False)
            totals.append(measured.total.median * T + measured.noise_offline * (T + WARM_UP))
        records.append(Record("growth", {"releases": T}, {}, {"run": figure(totals)}))
    return records


def usual_parties(backend: str) -> int:
    """The number of parties that a backend is measured with: 3, or 2 where it is for two."""
    return 3 if BACKENDS[backend].threshold(3) >= 0 else 2


def cross(
    dimensions: Sequence[int] | None = None,
    owners: Sequence[int] | None = None,
    parties: Sequence[int] | None = None,
    *,
    method: str | None = None,
    law: str | None = None,
    sampler: str | None = None,
    pool: bool | None = None,
    network: str | None = None,
    backend: str | None = None,
) -> list[BenchCell]:
    """All combinations; what is None takes the base cell's value. Without a pool named, methods of many releases have
    one, and without a backend named the one that computes less is taken, as in `dpmpc train`.
    """
    base = BenchCell()
    family, drawn_by = law_and_sampler(law, sampler)
    common = replace(
        base,
        method=method or base.method,
        law=family,
        sampler=drawn_by,
        pool=METHODS[method or base.method].repeats if pool is None else pool,
        network=network or base.network,
    )
    return [
        replace(common, dimension=d, owners=m, parties=n, backend=backend or default_backend(family, drawn_by, n, None))
        for n in parties or (base.parties,)
        for m in owners or (base.owners,)
        for d in dimensions or (base.dimension,)
    ]


def scale_cells(quick: bool) -> list[BenchCell]:
    """The cells that `growth` fits, and no others."""
    most_d, most_m = (10_000, 10_000) if quick else (100_000, 50_000)
    found = [BenchCell(dimension=d) for d in (1_000, 3_000, 10_000, 30_000, 100_000) if d <= most_d]
    found += [BenchCell(owners=m) for m in (100, 1_000, 10_000, 50_000) if m <= most_m]
    return found + [BenchCell(parties=n) for n in PARTIES[1:]]


def run_all(quick: bool, progress: Progress) -> list[Record]:
    """Everything that a result file holds."""
    return (
        run_noise((3, 2) if quick else (2, *PARTIES), quick, progress)
        + run_cells(cells(quick), quick, progress)
        + run_growth(quick, progress)
    )


def results(quick: bool, run: Callable[[], list[Record]]) -> Results:
    """The records of `run` with the machine they come from, slopes and targets."""
    facts, begin = machine(), time.monotonic()
    records = tuple(run())
    facts["load_after"] = load()
    found = Results(facts, "quick" if quick else "full", records, (), time.monotonic() - begin)
    return replace(found, findings=findings(found))
