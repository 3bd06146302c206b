"""`dpmpc bench`: what a release costs, how that grows, and how near it is to what the wires allow."""

from pathlib import Path
from typing import Any

import click

from dpmpc.cli.bench_files import compare, plot, table
from dpmpc.cli.bench_options import (
    NETWORKS,
    PLACES,
    Progress,
    bar,
    computed_options,
    csv_option,
    networks_option,
    numbers_option,
    out_option,
    quick_option,
    show_findings,
    two_servers,
    write,
)
from dpmpc.cli.bench_others import flower, masking
from dpmpc.cli.bench_parties import many
from dpmpc.errors import UsageError
from dpmpc.learning.method import METHODS
from dpmpc.mpc.contract.backend import BACKENDS


@click.group("bench")
def command() -> None:
    """Measure what one release costs: seconds, bytes, rounds, memory; beside the same bytes over bare TCP, and beside
    MPyC's own fixed-point arrays.

    Counts are exact and are checked against their formulas. Seconds are medians with quartiles, after a warm-up.

    \b
    Examples:
      dpmpc bench all --quick --out results.json
      dpmpc bench iteration -d 122,10k -m 100 -M 3,5 --rtt 40 --bandwidth 100
      dpmpc bench compare before.json after.json
    """


@command.command("iteration")
@quick_option
@numbers_option("-d", "dimensions", help="Dimensions; with any of -d, -m, -M these cells replace the profile's.")
@numbers_option("-m", "owners", help="Numbers of owners.")
@numbers_option("-M", "parties", help="Numbers of parties.")
@click.option(
    "--method",
    type=click.Choice(METHODS.names()),
    help="Method of the cells named by -d, -m, -M.  [default: gradient]",
)
@computed_options(
    "Law of their noise.  [default: gaussian, or the sampler's]",
    "Their sampler.  [default: the law's first]",
    "Who computes. One of two servers without -M is measured beside three parties.  [default: the backend that "
    "computes less]",
)
@click.option(
    "--pool/--no-pool", default=None, help="Make noise ahead, or in each release.  [default: pool for gradient]"
)
@networks_option("lan: 0.5 ms, 1 Gb/s; wan: 40 ms, 100 Mb/s; by netem, or by a relay without it.  [default: loopback]")
@click.option("--rtt", type=click.FloatRange(0), help="Also predict for this round-trip time, in ms ...")
@click.option(
    "--bandwidth", type=click.FloatRange(0, min_open=True), help="... and this bandwidth of a party, in Mb/s."
)
@click.option(
    "--executor",
    metavar="WHERE",
    help="Measure the cells by processes, joblib, dask:ADDRESS, or MODULE:FUNCTION, which returns an Executor; a "
    "file of --out then holds every cell as soon as it is measured, and is gone on with.  [default: one by one]",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Cells at once with --executor, at most."
)
@out_option
@csv_option
def iteration(
    quick: bool,
    dimensions: list[int] | None,
    owners: list[int] | None,
    parties: list[int] | None,
    method: str | None,
    law: str | None,
    sampler: str | None,
    backend: str | None,
    link: str | None,
    security: str | None,
    pool: bool | None,
    places: list[str] | None,
    rtt: float | None,
    bandwidth: float | None,
    executor: str | None,
    jobs: int,
    out: Path | None,
    csv_file: Path | None,
) -> None:
    """The main table: one release, split into its stages."""
    from dpmpc.benchmarks import suite, tables
    from dpmpc.benchmarks.counts import NetworkLink

    if (rtt is None) != (bandwidth is None):
        raise UsageError("a prediction needs both --rtt and --bandwidth; one was given; add the other", code="missing")
    line = None if rtt is None or bandwidth is None else NetworkLink.of(rtt, bandwidth)
    sizes = (dimensions, owners)
    backend, two = two_servers(backend, security, link, parties)
    kind: dict[str, Any] = {"method": method, "law": law, "sampler": sampler, "pool": pool}
    by: list[tuple[Any, str | None]] = (
        [([2], backend), ([3], None)] if two and parties is None else [(parties, backend)]
    )
    named = any(x is not None for x in (*sizes, parties, backend, places, *kind.values()))
    chosen = [
        cell
        for place in places or (None,)
        for n, each in by
        for cell in suite.cross(*sizes, n, **kind, network=place, backend=each)
    ]
    chosen = chosen if named else suite.cells(quick)
    with bar(len(chosen)) as progress:
        if executor is None:
            results = suite.results(quick, lambda: suite.run_cells(chosen, quick, progress, line))
        else:
            results = _by(executor, jobs, chosen, quick, progress, line, out)
    click.echo(tables.plain(tables.iteration_rows(results.records)))
    if any(cell.parties == 2 for cell in chosen):
        click.echo(suite.PUBLISHED)
    write(results, out, csv_file)


@command.command("noise")
@quick_option
@numbers_option("-M", "parties", help="Numbers of parties.  [default: 3; 2,3 where --backend is one of two servers]")
@networks_option("Also draw by the exact samplers over these: lan, wan, as for iteration.")
@click.option(
    "--plain/--no-plain",
    default=True,
    show_default=True,
    help="Measure MPyC's own fixed-point arrays too; it takes half a minute.",
)
@computed_options(
    "Measure this law only.",
    "Measure this sampler only.",
    "Who draws.  [default: the backend that computes less; with -M 2, ot and garbled]",
)
@out_option
@csv_option
def noise(
    quick: bool,
    parties: list[int] | None,
    places: list[str] | None,
    plain: bool,
    law: str | None,
    sampler: str | None,
    backend: str | None,
    link: str | None,
    security: str | None,
    out: Path | None,
    csv_file: Path | None,
) -> None:
    """Samplers against each other and against MPyC's own fixed-point arrays (the backend mpyc)."""
    from dpmpc.benchmarks import suite, tables

    backend, two = two_servers(backend, security, link, parties)
    slow = [place for place in places or () if place != PLACES[0]]
    if slow and sampler not in (None, "discrete"):
        raise UsageError(f"over lan and wan the exact samplers are measured; got --sampler {sampler}; leave one out")
    beside = two and parties is None
    sampler = sampler or ("discrete" if beside else None)  # which two servers have alone
    with bar(None) as progress:
        by: list[tuple[Any, str | None]] = [([2], backend), ([3], None)] if beside else [(parties or [3], backend)]

        def measured() -> list[Any]:
            found = []
            for n, each in by:
                found += suite.run_noise(n, quick, progress, plain and 3 in n, law=law, sampler=sampler, backend=each)
            for family in [law] if law else suite.EXACT if slow else ():
                for n, each in by:
                    found += suite.run_noise_over(slow, n, quick, progress, family, each)
            return found

        results = suite.results(quick, measured)
    click.echo(tables.plain(tables.noise_rows(results.records)))
    if any(record.key["parties"] == 2 for record in results.records):
        click.echo(suite.PUBLISHED)
    write(results, out, csv_file)


@command.command("limit")
@quick_option
@numbers_option("-d", "dimensions", help="Dimensions.")
@numbers_option("-m", "owners", help="Numbers of owners.")
@numbers_option("-M", "parties", help="Numbers of parties.")
@click.option(
    "--network",
    type=NETWORKS,
    default="loopback",
    show_default=True,
    help="As for iteration.",
)
@click.option(
    "--backend", type=click.Choice(BACKENDS.names()), help="Whose messages.  [default: sharing; with -M 2, ot]"
)
@out_option
@csv_option
def limit(
    quick: bool,
    dimensions: list[int] | None,
    owners: list[int] | None,
    parties: list[int] | None,
    network: str,
    backend: str | None,
    out: Path | None,
    csv_file: Path | None,
) -> None:
    """The physical limit: a release's messages between as many processes over bare TCP, with no computation."""
    from dpmpc.benchmarks import suite, tables

    chosen = suite.cross(dimensions, owners, parties, network=network, backend=backend)
    with bar(len(chosen)) as progress:
        results = suite.results(quick, lambda: suite.run_limit(chosen, quick, progress))
    click.echo(tables.plain(tables.limit_rows(results.records)))
    write(results, out, csv_file)


@command.command("scale")
@quick_option
@click.option(
    "--from",
    "source",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Fit the results in this file instead of measuring.",
)
@out_option
def scale(quick: bool, source: Path | None, out: Path | None) -> None:
    """How cost grows with d, m, n and T; flags what is worse than linear."""
    from dpmpc.benchmarks import result_file as records
    from dpmpc.benchmarks import suite

    if source is not None:
        results = records.read(source)
    else:
        chosen = suite.scale_cells(quick)
        with bar(len(chosen) + len(suite.RUNS)) as progress:
            results = suite.results(
                quick, lambda: suite.run_cells(chosen, quick, progress) + suite.run_growth(quick, progress)
            )
    show_findings(results)
    write(results, out, None)


@command.command("all")
@quick_option
@out_option
@csv_option
def everything(quick: bool, out: Path | None, csv_file: Path | None) -> None:
    """Iterations, growth and noise in one result file, with slopes and targets."""
    from dpmpc.benchmarks import suite, tables

    with bar(None) as progress:
        results = suite.results(quick, lambda: suite.run_all(quick, progress))
    click.echo(tables.plain(tables.iteration_rows(results.find("iteration"))) + "\n")
    click.echo(tables.plain(tables.noise_rows(results.find("noise"))) + "\n")
    show_findings(results)
    write(results, out, csv_file)


def _by(executor: str, jobs: int, chosen: Any, quick: bool, progress: Progress, link: Any, file: Path | None) -> Any:
    """The results of a grid that an executor measures, kept in the file as it grows."""
    from dpmpc.benchmarks import grid, suite
    from dpmpc.benchmarks import result_file as records

    known = grid.known_records(file, quick)

    def keep(found: list[Any]) -> None:
        if file is not None:
            records.write_json(suite.results(quick, lambda: found), file)

    return suite.results(
        quick, lambda: grid.run_grid(chosen, quick, progress, executor, jobs, link=link, known=known, keep=keep)
    )


for _one in (many, table, plot, compare, masking, flower):
    command.add_command(_one)
