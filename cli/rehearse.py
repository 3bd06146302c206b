"""`dpmpc rehearse`: all sites of a consortium on this machine, before the day."""

import time
from pathlib import Path

import click

from dpmpc.cli.everywhere import give


@click.command("rehearse")
@click.argument("kits", type=click.Path(path_type=Path))
def command(kits: Path) -> None:
    """Run all sites of KITS, the folder that `dpmpc kit` wrote, on this machine: with made-up records by the public
    schema, trial keys and loopback addresses, in a folder that is thrown away. Nothing is spent.

    Example: dpmpc rehearse kits
    """
    from dpmpc.consortium.rehearsing import rehearse
    from dpmpc.folders import passing_folder
    from dpmpc.run.stages import coming

    begin = time.monotonic()
    with passing_folder("dpmpc-rehearsal-") as folder:
        done = rehearse(kits, folder, click.echo)
    releases = done.plan.releases + len(coming(done.plan))
    seconds = time.monotonic() - begin
    give({"sites": len(done.sites), "releases": releases, "seconds": seconds, "spent": 0})
    click.echo(f"all {len(done.sites)} sites made all {releases} releases in {seconds:.1f} s; nothing was spent")
