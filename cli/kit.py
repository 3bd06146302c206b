"""`dpmpc kit`: a folder for every site of consortium.toml."""

from pathlib import Path

import click


@click.command("kit")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A new or empty folder for the kits.")
@click.option(
    "--authority",
    type=click.Path(file_okay=False, path_type=Path),
    help="The authority's own folder; made if there is none.  [default: authority beside FILE]",
)
def command(file: Path, out: Path, authority: Path | None) -> None:
    """Write a folder for every site of FILE, a consortium.toml: plan, schema, the authority's certificate, limits to be
    read and changed by the site, a systemd unit, a compose file, and ten lines that say what to do. Nothing in it is
    secret; the authority's folder is, and stays here."""
    from dpmpc.consortium.kit import write_kits
    from dpmpc.consortium.toml import read_consortium

    consortium = read_consortium(file)
    authority = file.with_name("authority") if authority is None else authority
    for folder, site in zip(write_kits(consortium, out, authority), consortium.sites, strict=True):
        click.echo(f"{folder}: {site.called}")
    for line in consortium.notes:
        click.echo(line)
    if consortium.file.run.tls:
        click.echo(f"{authority}: the authority; keep it to yourself, `dpmpc keys sign` needs it")
