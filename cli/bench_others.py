"""`dpmpc bench masking` and `flower`: what others do, beside a release of ours."""

import click

from dpmpc.cli.bench_options import quick_option
from dpmpc.errors import UsageError


@click.command("masking")
@quick_option
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


@click.command("flower")
@quick_option
def flower(quick: bool) -> None:
    """One round of a Flower app: as it is, with central differential privacy, with SecAgg+, and with dpmpc.flower.

    All clients run in one process, so that only the apps' own work counts; three parties' is in a round's seconds.
    """
    try:
        from dpmpc.benchmarks import flower as benchmark
    except ImportError as error:
        raise UsageError(f"bench flower needs Flower; {error}; pip install 'flwr[simulation]'") from None
    import logging

    logging.getLogger("flwr").setLevel(logging.ERROR)
    found = benchmark.rows(quick)
    names = list(found[0])
    lines = [[f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()] for row in found]
    widths = [max(len(cell) for cell in column) for column in zip(names, *lines, strict=True)]
    for line in (names, *lines):
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
