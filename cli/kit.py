"""`dpmpc kit`: a folder for every site of consortium.toml."""

from pathlib import Path

import click

from dpmpc.cli.everywhere import give


@click.command("kit")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="A new or empty folder for the kits.  [default: kits beside FILE]"
)
@click.option(
    "--authority",
    type=click.Path(file_okay=False, path_type=Path),
    help="The authority's own folder; made if there is none.  [default: authority beside FILE]",
)
@click.option(
    "--wheel",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The wheel of dpmpc that all sites install: kits say its name and SHA-256.  [default: the one that this dpmpc "
    "was installed from, if it was from one]",
)
def command(file: Path, out: Path | None, authority: Path | None, wheel: Path | None) -> None:
    """Write a folder for every site of FILE, a consortium.toml: plan, schema, the authority's certificate, limits to be
    read and changed by the site, a systemd unit, a compose file, and ten lines that say what to do. Nothing in it is
    secret; the authority's folder is, and stays here.

    Example: dpmpc kit consortium.toml
    """
    from dpmpc.consortium.kit import write_kits
    from dpmpc.consortium.toml import read_consortium
    from dpmpc.consortium.wheel import wheel_of

    consortium = read_consortium(file)
    authority = file.with_name("authority") if authority is None else authority
    out = file.with_name("kits") if out is None else out
    folders = write_kits(consortium, out, authority, wheel_of(wheel))
    give({
        "kits": {site.name: folder for folder, site in zip(folders, consortium.sites, strict=True)},
        "notes": consortium.notes, "authority": authority if consortium.file.run.tls else None,
    })  # fmt: skip
    for folder, site in zip(folders, consortium.sites, strict=True):
        click.echo(f"{folder}: {site.called}")
    for line in consortium.notes:
        click.echo(line)
    if consortium.file.run.tls:
        click.echo(f"{authority}: the authority; keep it to yourself, `dpmpc keys sign` needs it")
