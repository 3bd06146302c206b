"""`dpmpc bench`: what a release costs, how that grows, and how near it is to what the wires allow."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dpmpc.errors import UsageError
from dpmpc.learning.method import METHODS
from dpmpc.mpc.backend import BACKENDS, FOR_TWO
from dpmpc.mpc.engines.many_layout import MOST_PARTIES
from dpmpc.mpc.levels import by_link
from dpmpc.mpc.security import MODES, checked_backend
from dpmpc.privacy.law import LAWS, sampler_names

Progress = Callable[[str], None]
_quick = click.option(
    "--quick/--full", "quick", default=True, show_default=True, help="Under 2 minutes, or under 40 on 2 cores."
)
_json = click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write everything to this file."
)
_csv = click.option(
    "--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), help="Write one line a record to this file."
)


_PLACES = ("loopback", "lan", "wan")
_NETWORKS = click.Choice(_PLACES)
_SUFFIXES = {"k": 1_000, "M": 1_000_000}


def numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> list[int] | None:
    """Whole numbers from 1 on, separated by commas; `1k` is 1,000, `1M` is 1,000,000."""
    if value is None:
        return None
    try:
        found = [_number(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"takes whole numbers separated by commas, such as 10,122,1k,1M; got {value!r}"
        ) from None
    if min(found) < 1:
        raise click.BadParameter(f"takes numbers from 1 on; got {min(found)}")
    return found


def networks(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    """Names of networks, separated by commas."""
    if value is None:
        return None
    found = value.split(",")
    if wrong := [name for name in found if name not in _PLACES]:
        raise click.BadParameter(f"takes {', '.join(_PLACES)}, separated by commas; got {wrong[0]!r}")
    return found


def _networks(help: str) -> Callable[[Any], Any]:
    return click.option("--network", "places", callback=networks, metavar="NAME,...", help=help)


def _two(backend: str | None, security: str | None, link: str | None) -> tuple[str | None, bool]:
    """(the backend, whether it is one of two servers). Errors: UsageError where they do not go together."""
    backend = checked_backend(security, backend)
    if link is not None:
        backend = by_link(link, backend or FOR_TWO)
    return backend, backend is not None and BACKENDS[backend].threshold(3) < 0


def _number(text: str) -> int:
    times = _SUFFIXES.get(text[-1:])
    return int(text) if times is None else int(text[:-1]) * times


def _numbers(*names: str, help: str, default: str | None = None) -> Callable[[Any], Any]:
    return click.option(
        *names, callback=numbers, metavar="N,N,...", help=help, default=default, show_default=default is not None
    )


def _computed(law: str, sampler: str, backend: str) -> Callable[[Any], Any]:
    """The options of law, sampler and backend, with the help of each; by default None."""
    options = [
        click.option("--law", "--noise", "law", type=click.Choice(LAWS.names()), help=law),
        click.option("--sampler", type=click.Choice(sampler_names()), help=sampler),
        click.option("--backend", type=click.Choice(BACKENDS.names()), help=backend),
        click.option("--link", metavar="lan|wan|MBITS", help="The line between two servers: chooses ot or ot-k8."),
        click.option("--security", type=click.Choice(MODES), help="active: the backend that checks its parties."),
    ]

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@click.group("bench")
def command() -> None:
    """Measure what one release costs: seconds, bytes, rounds, memory; beside the same bytes over bare TCP, and beside
    MPyC's own fixed-point arrays.

    Counts are exact and are checked against their formulas. Seconds are medians with quartiles, after a warm-up.

    \b
    Examples:
      dpmpc bench all --quick --json results.json
      dpmpc bench iteration -d 122,10k -m 100 -M 3,5 --rtt 40 --bandwidth 100
      dpmpc bench compare before.json after.json
    """


@command.command("iteration")
@_quick
@_numbers("-d", "dimensions", help="Dimensions; with any of -d, -m, -M these cells replace the profile's.")
@_numbers("-m", "owners", help="Numbers of owners.")
@_numbers("-M", "parties", help="Numbers of parties.")
@click.option(
    "--method",
    type=click.Choice(METHODS.names()),
    help="Method of the cells named by -d, -m, -M.  [default: gradient]",
)
@_computed(
    "Law of their noise.  [default: gaussian, or the sampler's]",
    "Their sampler.  [default: the law's first]",
    "Who computes. One of two servers without -M is measured beside three parties.  [default: the backend that "
    "computes less]",
)
@click.option(
    "--pool/--no-pool", default=None, help="Make noise ahead, or in each release.  [default: pool for gradient]"
)
@_networks("lan: 0.5 ms, 1 Gb/s; wan: 40 ms, 100 Mb/s; by netem, or by a relay without it.  [default: loopback]")
@click.option("--rtt", type=click.FloatRange(0), help="Also predict for this round-trip time, in ms ...")
@click.option(
    "--bandwidth", type=click.FloatRange(0, min_open=True), help="... and this bandwidth of a party, in Mb/s."
)
@click.option(
    "--executor",
    metavar="WHERE",
    help="Measure the cells by processes, joblib, dask:ADDRESS, or MODULE:FUNCTION, which returns an Executor; a "
    "file of --json then holds every cell as soon as it is measured, and is gone on with.  [default: one by one]",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Cells at once with --executor, at most."
)
@_json
@_csv
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
    json_file: Path | None,
    csv_file: Path | None,
) -> None:
    """The main table: one release, split into its stages."""
    from dpmpc.benchmarks import suite, tables
    from dpmpc.benchmarks.counts import Link

    if (rtt is None) != (bandwidth is None):
        raise UsageError("a prediction needs both --rtt and --bandwidth; one was given; add the other")
    line = None if rtt is None or bandwidth is None else Link.of(rtt, bandwidth)
    sizes = (dimensions, owners)
    backend, two = _two(backend, security, link)
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
    with _bar(len(chosen)) as progress:
        if executor is None:
            results = suite.results(quick, lambda: suite.run_cells(chosen, quick, progress, line))
        else:
            results = _by(executor, jobs, chosen, quick, progress, line, json_file)
    click.echo(tables.plain(tables.iteration_rows(results.records)))
    if any(cell.parties == 2 for cell in chosen):
        click.echo(suite.PUBLISHED)
    _write(results, json_file, csv_file)


@command.command("noise")
@_quick
@_numbers("-M", "parties", help="Numbers of parties.  [default: 3; 2,3 where --backend is one of two servers]")
@_networks("Also draw by the exact samplers over these: lan, wan, as for iteration.")
@click.option(
    "--plain/--no-plain",
    default=True,
    show_default=True,
    help="Measure MPyC's own fixed-point arrays too; it takes half a minute.",
)
@_computed(
    "Measure this law only.",
    "Measure this sampler only.",
    "Who draws.  [default: the backend that computes less; with -M 2, ot and garbled]",
)
@_json
@_csv
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
    json_file: Path | None,
    csv_file: Path | None,
) -> None:
    """Samplers against each other and against MPyC's own fixed-point arrays (the backend mpyc)."""
    from dpmpc.benchmarks import suite, tables

    backend, two = _two(backend, security, link)
    slow = [place for place in places or () if place != _PLACES[0]]
    if slow and sampler not in (None, "discrete"):
        raise UsageError(f"over lan and wan the exact samplers are measured; got --sampler {sampler}; leave one out")
    beside = two and parties is None
    sampler = sampler or ("discrete" if beside else None)  # which two servers have alone
    with _bar(None) as progress:
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
    _write(results, json_file, csv_file)


@command.command("parties")
@_quick
@_numbers("-M", "parties", help="Numbers of parties, up to 32.", default="3,5,7,9,16,32")
@click.option(
    "--png",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("parties.png"),
    show_default=True,
    help="Draw rate, bytes and latency against the number of parties here.",
)
@_json
@_csv
def many(quick: bool, parties: list[int], png: Path, json_file: Path | None, csv_file: Path | None) -> None:
    """Noise against the number of parties: numbers mod a prime beside replicated bits, in one run."""
    from dpmpc.benchmarks import parties as benchmark
    from dpmpc.benchmarks import parties_plot, plot, suite, tables

    if max(parties) > MOST_PARTIES:
        raise UsageError(f"-M takes numbers of parties up to {MOST_PARTIES}; got {max(parties)}; leave it out")
    with _bar(len(benchmark.draws(parties, quick))) as progress:
        results = suite.results(quick, lambda: benchmark.run(parties, quick, progress))
    click.echo(tables.plain(parties_plot.rows(results.records)))
    click.echo(f"best published rate known: 16 a second at n = 16 ({benchmark.PUBLISHED_BY})")
    _write(results, json_file, csv_file)
    for path in plot.draw(results, png.parent, png.stem.removesuffix("-parties")):
        path.replace(png)
        click.echo(f"written to {png}")


@command.command("limit")
@_quick
@_numbers("-d", "dimensions", help="Dimensions.")
@_numbers("-m", "owners", help="Numbers of owners.")
@_numbers("-M", "parties", help="Numbers of parties.")
@click.option(
    "--network",
    type=_NETWORKS,
    default="loopback",
    show_default=True,
    help="As for iteration.",
)
@click.option(
    "--backend", type=click.Choice(BACKENDS.names()), help="Whose messages.  [default: sharing; with -M 2, ot]"
)
@_json
@_csv
def limit(
    quick: bool,
    dimensions: list[int] | None,
    owners: list[int] | None,
    parties: list[int] | None,
    network: str,
    backend: str | None,
    json_file: Path | None,
    csv_file: Path | None,
) -> None:
    """The physical limit: a release's messages between as many processes over bare TCP, with no computation."""
    from dpmpc.benchmarks import suite, tables

    chosen = suite.cross(dimensions, owners, parties, network=network, backend=backend)
    with _bar(len(chosen)) as progress:
        results = suite.results(quick, lambda: suite.run_limit(chosen, quick, progress))
    click.echo(tables.plain(tables.limit_rows(results.records)))
    _write(results, json_file, csv_file)


@command.command("scale")
@_quick
@click.option(
    "--from",
    "source",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Fit the results in this file instead of measuring.",
)
@_json
def scale(quick: bool, source: Path | None, json_file: Path | None) -> None:
    """How cost grows with d, m, n and T; flags what is worse than linear."""
    from dpmpc.benchmarks import records, suite

    if source is not None:
        results = records.read(source)
    else:
        chosen = suite.scale_cells(quick)
        with _bar(len(chosen) + len(suite.RUNS)) as progress:
            results = suite.results(
                quick, lambda: suite.run_cells(chosen, quick, progress) + suite.run_growth(quick, progress)
            )
    _findings(results)
    _write(results, json_file, None)


@command.command("masking")
@_quick
def masking(quick: bool) -> None:
    """Secure aggregation by pairwise masks with recovery of drop-outs, beside a release of ours by three parties.

    Bytes and masks are exact; seconds are of the owners' arithmetic, without a network. Masks add no noise.
    """
    from dpmpc.benchmarks import masking as baseline

    found = baseline.rows(quick)
    names = list(found[0])
    lines = [[f"{row[name]:.3g}" if name.startswith("ms") else f"{row[name]:,}" for name in names] for row in found]
    widths = [max(len(cell) for cell in column) for column in zip(names, *lines, strict=True)]
    for line in (names, *lines):
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


@command.command("flower")
@_quick
def flower(quick: bool) -> None:
    """One round of a Flower app: as it is, with central differential privacy, with SecAgg+, and with dpmpc.flower.

    All clients run in one process, so that only the apps' own work counts; three parties' is in a round's seconds.
    """
    try:
        from dpmpc.benchmarks import flower as benchmark
    except ImportError as error:
        raise UsageError(f"bench flower needs Flower; {error}; pip install 'dpmpc[flower]'") from None
    import logging

    logging.getLogger("flwr").setLevel(logging.ERROR)
    found = benchmark.rows(quick)
    names = list(found[0])
    lines = [[f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()] for row in found]
    widths = [max(len(cell) for cell in column) for column in zip(names, *lines, strict=True)]
    for line in (names, *lines):
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


@command.command("all")
@_quick
@_json
@_csv
def everything(quick: bool, json_file: Path | None, csv_file: Path | None) -> None:
    """Iterations, growth and noise in one result file, with slopes and targets."""
    from dpmpc.benchmarks import suite, tables

    with _bar(None) as progress:
        results = suite.results(quick, lambda: suite.run_all(quick, progress))
    click.echo(tables.plain(tables.iteration_rows(results.find("iteration"))) + "\n")
    click.echo(tables.plain(tables.noise_rows(results.find("noise"))) + "\n")
    _findings(results)
    _write(results, json_file, csv_file)


@command.command("table")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def table(file: Path) -> None:
    """The cost table of the README and the noise table, from FILE, in Markdown."""
    from dpmpc.benchmarks import records, tables

    results = records.read(file)
    click.echo(tables.readme(results) + "\n\n" + tables.markdown(tables.noise_rows(results.find("noise"))))


@command.command("plot")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Directory of the PNGs.  [default: beside FILE]"
)
def plot(file: Path, out: Path | None) -> None:
    """Draw FILE: cost against d, m and n, the breakdown of a release, the samplers' rates."""
    from dpmpc.benchmarks import plot, records

    for path in plot.draw(records.read(file), out or file.parent, file.stem):
        click.echo(f"written to {path}")


@command.command("compare")
@click.argument("old", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("new", type=click.Path(dir_okay=False, path_type=Path))
def compare(old: Path, new: Path) -> None:
    """What got better or worse from OLD to NEW: counts exactly, times beyond their noise. Exits with 1 if anything
    got worse.
    """
    from dpmpc.benchmarks import records, tables
    from dpmpc.benchmarks.compare import compare as compare_results

    found = compare_results(records.read(old), records.read(new))
    if found.changes:
        click.echo(tables.plain(tables.comparison_rows(found)) + "\n")
    worse = sum(c.verdict == "worse" for c in found.changes)
    better = sum(c.verdict == "better" for c in found.changes)
    click.echo(
        f"{found.matched} cells in both: {better} figures better, {worse} worse; "
        f"{len(found.only_old)} cells only in the old file, {len(found.only_new)} only in the new one"
    )
    if found.drift is not None:
        click.echo(f"the machine itself: bare TCP took {found.drift:.2f} times as long; times above are net of that")
    if not found.same_machine:
        click.echo("the two files come from different machines: compare their counts, not their times")
    click.get_current_context().exit(1 if worse else 0)


def _by(executor: str, jobs: int, chosen: Any, quick: bool, progress: Progress, link: Any, file: Path | None) -> Any:
    """The results of a grid that an executor measures, kept in the file as it grows."""
    from dpmpc.benchmarks import grid, records, suite

    known = grid.known_records(file, quick)

    def keep(found: list[Any]) -> None:
        if file is not None:
            records.write_json(suite.results(quick, lambda: found), file)

    return suite.results(
        quick, lambda: grid.run_grid(chosen, quick, progress, executor, jobs, link=link, known=known, keep=keep)
    )


def _findings(results: Any) -> None:
    from dpmpc.benchmarks import scale, tables

    if growth := scale.growth(results):
        click.echo(tables.plain(tables.growth_rows(growth)) + "\n")
    if targets := scale.targets(results):
        click.echo(tables.plain(tables.target_rows(targets)))


def _write(results: Any, json_file: Path | None, csv_file: Path | None) -> None:
    from dpmpc.benchmarks import records

    for path, write in ((json_file, records.write_json), (csv_file, records.write_csv)):
        if path is not None:
            write(results, path)
            click.echo(f"written to {path}")


@contextmanager
def _bar(total: int | None) -> Iterator[Progress]:
    """A live bar on a terminal, one line a cell elsewhere; on standard error."""
    if not sys.stderr.isatty():
        yield lambda text: click.echo(text, err=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns: Sequence[Any] = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=total, completed=-1)

        def advance(text: str) -> None:
            bar.update(task, description=text, advance=1)

        yield advance
        bar.update(task, advance=1)
