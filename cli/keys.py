"""`dpmpc keys`: certificates and keys for TLS between the processes of a run."""

from pathlib import Path

import click


@click.command("keys")
@click.option("-M", "parties", type=click.IntRange(1), required=True, help="Number of parties.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="An empty or new folder.")
@click.option("--owners", type=click.IntRange(0), default=0, help="Also a key for each of so many owners on their own.")
def command(parties: int, out: Path, owners: int) -> None:
    """Make a certificate authority and one key for each party and for the owners.

    Give every process ca.crt and its own .crt and .key alone; then start it with --tls FOLDER. Whoever runs this
    command sees all keys.
    """
    from dpmpc.mpc.tls import make_credentials

    names = [*(f"party{i}" for i in range(parties)), "owners", *(f"owner{j}" for j in range(owners))]
    make_credentials(out, names)
    click.echo(
        f"written to {out}: ca.crt and {', '.join(names)} (.crt, .key). Give each process ca.crt and its own two "
        "files, no more."
    )
