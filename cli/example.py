"""`dpmpc example`: made-up tables to try the other commands on."""

from pathlib import Path

import click

from dpmpc.cli.everywhere import give


@click.command("example")
@click.argument("name", type=click.Choice(["hospitals"]))
@click.option("--out", type=click.Path(path_type=Path), default=Path(), show_default="here", help="Where to write.")
@click.option("--records", type=int, default=3000, show_default=True, help="How many records.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed makes other records.")
def command(name: str, out: Path, records: int, seed: int) -> None:
    """Write the made-up table NAME, to try the other commands on.

    hospitals: stays at three hospitals, and whether the patient was readmitted. All records with their site, a file a
    site, twenty new patients, and public bounds.

    \b
    Example:
      dpmpc example hospitals --out trial
    """
    from dpmpc.records.example import hospitals

    written = hospitals(out, records, seed)
    give({"files": written})
    for path in written:
        click.echo(f"{path}: {_lines(path)}")


def _lines(path: Path) -> str:
    count = len(path.read_text(encoding="utf-8").splitlines()) - 1
    return f"{count} records" if path.suffix == ".csv" else "public bounds"
