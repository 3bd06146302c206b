"""`dpmpc keys`: certificates and keys for TLS between the processes of a run."""

from pathlib import Path
from typing import Any

import click

from dpmpc.errors import UsageError
from dpmpc.folders import write_file

_PATH = click.Path(path_type=Path)
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
    request with `dpmpc keys sign`, and each site accepts the list of all keys with `dpmpc keys accept`.
    """
    if context.invoked_subcommand is not None:
        return
    if given["parties"] is None or given["out"] is None:
        raise UsageError("keys for a trial need -M and --out; one is missing; or use `dpmpc keys request` and `sign`")
    from dpmpc.mpc.transport.credentials import make_credentials

    parties, out, owners = given["parties"], given["out"], given["owners"]
    names = [*(f"party{i}" for i in range(parties)), "owners", *(f"owner{j}" for j in range(owners))]
    make_credentials(out, names)
    click.echo(
        f"written to {out}: ca.crt and {', '.join(names)} (.crt, .key). Give each process ca.crt and its own two "
        "files, no more."
    )


@command.command("request")
@click.argument("names", metavar="NAME|KIT...", nargs=-1, required=True)
@click.option("--out", type=_FOLDER, help="The folder for --tls at this site; not needed with a kit.")
def request(names: tuple[str, ...], out: Path | None) -> None:
    """At a site: make a key for the process NAME (party0, owner3, owners, or site2 for both roles), or for the site of
    the folder KIT, and a request for its certificate. (Several kits: for a trial on one machine.)

    The key stays here. Send the request to the authority, by a way that shows it is yours.
    """
    from dpmpc.mpc.transport.credentials import make_request

    if out is not None and len(names) > 1:
        raise UsageError(f"--out is the folder of one process; got {len(names)} names; make one request at a time")
    for name in names:
        role, folder = (name, out) if out is not None else _site(Path(name))[:2]
        path = make_request(folder, role)
        click.echo(f"{path}: send this to the authority; put the {role}.crt and ca.crt that come back into {folder}")


@command.command("sign")
@click.argument("requested", metavar="REQUEST|KIT...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--for", "name", help="Whose request it is: a site's own name, or party0, owner3, site2, owners.")
@click.option("--authority", type=_FOLDER, required=True, help="The authority's own folder; made if there is none.")
@click.option("--out", type=_FOLDER, help="Where the certificate goes, for sending back.")
def sign(requested: tuple[Path, ...], name: str | None, authority: Path, out: Path | None) -> None:
    """At the authority: sign a request for one process, and write the list of all sites' keys. Again for the same
    process: a renewal, for which every site accepts a new list; at any time: a late owner, likewise.

    REQUEST is the file that a site sent; --for says which process it is, and --out where the certificate goes. Or the
    request is put into the authority's copy of that site's kit, in keys: then KIT is enough, and the certificate goes
    there too.

    Be sure who sent the request: the certificate makes its sender that process.
    """
    from dpmpc.mpc.transport.credentials import process_of, sign_request
    from dpmpc.mpc.transport.site_keys import LIST, SiteKeys

    if (name is None) != (out is None) or (name is not None and len(requested) > 1):
        raise UsageError("one request is signed with --for and --out; kits with neither; give both, or kits")
    for path in requested:
        if name is not None and out is not None:
            role, folder, file, who, plan = process_of(authority, name), out, path, name, ""
        else:
            role, folder, who, plan = _site(path)
            file = folder / f"{role}.csr"
        made = sign_request(authority, file, role, folder, plan)
        whose = role if who == role else f"{who} ({role})"
        click.echo(f"{made} and {folder / 'ca.crt'}, for {whose}: send both back; neither is secret")
    if not (authority / LIST).is_file():
        click.echo(
            f"{authority}: it knows of no plan yet, so there is no list of all keys; when there is one, make the list "
            "of the certificates: `dpmpc keys list *.crt --plan plan.json --out sites.txt`"
        )
        return
    click.echo(
        f"{authority / LIST}: the list of all keys; send it to every site, when all are signed. Each puts it into keys "
        f"with `dpmpc keys accept`, and compares its number by voice: {SiteKeys.read(authority / LIST).number}"
    )


@command.command("list")
@click.argument("paths", metavar="AUTHORITY|KIT|LIST|CERTIFICATE...", nargs=-1, required=True, type=_PATH)
@click.option("--plan", type=click.Path(dir_okay=False, path_type=Path), help="With certificates: the plan.json.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="With certificates: where the list goes.")
def show(paths: tuple[Path, ...], plan: Path | None, out: Path | None) -> None:
    """Show the list of all sites' keys for a plan, and the short number that their people compare by voice.

    Of an authority's folder, of a kit that has accepted one, or of a file. From the certificates of all sites it is
    made: under an authority of your own, which does not write one.
    """
    from dpmpc.aggregation.plan.plan import Plan
    from dpmpc.mpc.transport.credentials import list_of_certificates
    from dpmpc.mpc.transport.site_keys import LIST, SiteKeys

    if all(path.suffix == ".crt" for path in paths):
        if plan is None:
            raise UsageError("a list of keys is for one plan; none was named; add --plan plan.json", code="keys")
        found = list_of_certificates(paths, Plan.read(plan).file_digest)
        if out is not None:
            write_file(out, found.to_text())
    elif len(paths) > 1 or plan is not None or out is not None:
        raise UsageError("a list is shown of one place, or made of certificates (.crt); got other paths; name one")
    else:
        path = paths[0]
        places = [path / LIST, path / "keys" / LIST] if path.is_dir() else [path]
        found = SiteKeys.read(next((each for each in places if each.is_file()), places[0]))
    click.echo(f"plan    {found.plan}")
    for process, key in found.keys:
        click.echo(f"{process:<7} {key}")
    click.echo(f"number  {found.number}")
    click.echo(
        "All sites have the same number, or somebody signed other keys for some of them. Read it to each other over a "
        "line on which you know the voice.",
        err=True,
    )


@command.command("accept")
@click.argument("kits", metavar="KIT...", nargs=-1, required=True, type=_FOLDER)
@click.option("--list", "listed", type=_PATH, required=True, help="The list that the authority sent.")
@click.option("--number", help="The number that another site said; refused if the list has another.")
def accept(kits: tuple[Path, ...], listed: Path, number: str | None) -> None:
    """At a site: take a list of all sites' keys for this plan, the first one or a new one.

    From then on this site meets nobody whose key is not on it, whatever certificate it has, and nobody with another
    list. A renewed key is a new list. Compare its number with the other sites' by voice before. (Several kits: for a
    trial on one machine.)
    """
    from dpmpc.mpc.transport.credentials import accept_list
    from dpmpc.mpc.transport.site_keys import SiteKeys

    found = SiteKeys.read(listed)
    if number is not None and "".join(number.split()) != "".join(found.number.split()):
        raise UsageError(
            f"all sites have one list, with one number; {listed} has {found.number}, you were told {number}; ask the "
            "authority, and the sites, which keys it signed"
        )
    for kit in kits:
        role, folder, who, plan = _site(kit)
        for line in accept_list(folder, role, found, plan):
            click.echo(f"{who}: {line}")
        click.echo(f"{who} ({role}): accepted, {len(found.keys)} keys, number {found.number}")


def _site(kit: Path) -> tuple[str, Path, str, str]:
    """(the process of a kit, the folder of its keys, the site's name, its plan's digest). Errors: it is no kit."""
    from dpmpc.consortium.kit import read_kit
    from dpmpc.consortium.site_file import SITE

    if not (kit / SITE).is_file():
        raise UsageError(
            f"a key goes into a kit, or into a folder that --out names; {kit} is no kit; give the folder of a kit, or "
            "say which with --out (and --for)"
        )
    found = read_kit(kit)
    return found.site.role, found.keys, found.site.name, found.site.plan
