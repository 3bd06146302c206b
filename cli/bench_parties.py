"""`dpmpc bench parties`: noise against the number of parties."""

from pathlib import Path

import click

from dpmpc.cli.bench_options import bar, csv_option, numbers_option, out_option, quick_option, write
from dpmpc.errors import UsageError
from dpmpc.mpc.shamir.layout import MOST_PARTIES


@click.command("parties")
@quick_option
@numbers_option("-M", "parties", help="Numbers of parties, up to 32.", default="3,5,7,9,16,32")
@click.option(
    "--png",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("parties.png"),
    show_default=True,
    help="Draw rate, bytes and latency against the number of parties here.",
)
@out_option
@csv_option
def many(quick: bool, parties: list[int], png: Path, out: Path | None, csv_file: Path | None) -> None:
    """Noise against the number of parties: numbers mod a prime beside replicated bits, in one run."""
    from dpmpc.benchmarks import parties as benchmark
    from dpmpc.benchmarks import parties_plot, plot, suite, tables

    if max(parties) > MOST_PARTIES:
        raise UsageError(f"-M takes numbers of parties up to {MOST_PARTIES}; got {max(parties)}; leave it out")
    with bar(len(benchmark.draws(parties, quick))) as progress:
        results = suite.results(quick, lambda: benchmark.run(parties, quick, progress))
    click.echo(tables.plain(parties_plot.rows(results.records)))
    click.echo(f"best published rate known: 16 a second at n = 16 ({benchmark.PUBLISHED_BY})")
    write(results, out, csv_file)
    for path in plot.draw(results, png.parent, png.stem.removesuffix("-parties")):
        path.replace(png)
        click.echo(f"written to {png}")
