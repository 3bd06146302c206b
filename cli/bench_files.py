"""`dpmpc bench table`, `plot` and `compare`: results that were written before."""

from pathlib import Path

import click


@click.command("table")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def table(file: Path) -> None:
    """The cost table of the README and the noise table, from FILE, in Markdown."""
    from dpmpc.benchmarks import result_file as records
    from dpmpc.benchmarks import tables

    results = records.read(file)
    click.echo(tables.readme(results) + "\n\n" + tables.markdown(tables.noise_rows(results.find("noise"))))


@click.command("plot")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Directory of the PNGs.  [default: beside FILE]"
)
def plot(file: Path, out: Path | None) -> None:
    """Draw FILE: cost against d, m and n, the breakdown of a release, the samplers' rates."""
    from dpmpc.benchmarks import plot
    from dpmpc.benchmarks import result_file as records

    for path in plot.draw(records.read(file), out or file.parent, file.stem):
        click.echo(f"written to {path}")


@click.command("compare")
@click.argument("old", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("new", type=click.Path(dir_okay=False, path_type=Path))
def compare(old: Path, new: Path) -> None:
    """What got better or worse from OLD to NEW: counts exactly, times beyond their noise. Exits with 1 if anything
    got worse.
    """
    from dpmpc.benchmarks import result_file as records
    from dpmpc.benchmarks import tables
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
