"""`dpmpc keys`: certificates and keys for TLS between the processes of a run."""

from pathlib import Path
from typing import Any

import click

from dpmpc.errors import UsageError

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group("keys", invoke_without_command=True)
@click.option("-M", "parties", type=click.IntRange(1), help="Number of parties.")
@click.option("--out", type=_FOLDER, help="An empty or new folder.")
@click.option("--owners", type=click.IntRange(0), default=0, help="Also a key for each of so many owners on their own.")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Certificates for a run over several machines.

    With -M and --out: an authority and one key for each party and for the owners, all in one folder, for a trial. Give
    every process ca.crt and its own .crt and .key alone; whoever runs this command sees all keys.

    Otherwise nobody sees them all: each site makes its own key with `dpmpc keys request`, the authority signs the
    request with `dpmpc keys sign`.
    """
    if context.invoked_subcommand is not None:
        return
    if given["parties"] is None or given["out"] is None:
        raise UsageError("keys for a trial need -M and --out; one is missing; or use `dpmpc keys request` and `sign`")
    from dpmpc.mpc.credentials import make_credentials

    parties, out, owners = given["parties"], given["out"], given["owners"]
    names = [*(f"party{i}" for i in range(parties)), "owners", *(f"owner{j}" for j in range(owners))]
    make_credentials(out, names)
    click.echo(
        f"written to {out}: ca.crt and {', '.join(names)} (.crt, .key). Give each process ca.crt and its own two "
        "files, no more."
    )


@command.command("request")
@click.argument("name", metavar="NAME|KIT")
@click.option("--out", type=_FOLDER, help="The folder for --tls at this site; not needed with a kit.")
def request(name: str, out: Path | None) -> None:
    """At a site: make a key for the process NAME (party0, owner3, owners, or site2 for both roles), or for the site of
    the folder KIT, and a request for its certificate.

    The key stays here. Send the request to the authority, by a way that shows it is yours.
    """
    from dpmpc.mpc.credentials import make_request

    if out is None:
        from dpmpc.runs.kit import SITE, read_kit

        if not (Path(name) / SITE).is_file():
            raise UsageError(
                f"a key goes into a kit, or into a folder that --out names; {name} is no kit; give the folder of a kit,"
                " or add --out"
            )
        kit = read_kit(Path(name))
        name, out = kit.site.role, kit.keys
    path = make_request(out, name)
    click.echo(f"{path}: send this to the authority; put the {name}.crt and ca.crt that come back into {out}")


@command.command("sign")
@click.argument("requested", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--for", "name", required=True, help="The process that the request came from: party0, owner3, site2, owners."
)
@click.option("--authority", type=_FOLDER, required=True, help="The authority's own folder; made if there is none.")
@click.option("--out", type=_FOLDER, required=True, help="Where the certificate goes, for sending back.")
def sign(requested: Path, name: str, authority: Path, out: Path) -> None:
    """At the authority: sign a request for one process. Again for the same process: a renewal; at any time: a late
    owner.

    Be sure who sent the request: the certificate makes its sender that process.
    """
    from dpmpc.mpc.credentials import sign_request

    path = sign_request(authority, requested, name, out)
    click.echo(f"{path} and {out / 'ca.crt'}: send both back; neither is secret")
