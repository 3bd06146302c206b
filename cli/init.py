"""`dpmpc init`: a new consortium.toml."""

import json
from pathlib import Path

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import setting_option
from dpmpc.errors import UsageError


@click.command("init")
@click.option("--out", type=click.Path(path_type=Path), default=Path("consortium.toml"), show_default=True)
@setting_option("parties", type=click.IntRange(1, 32), help="Number of parties, at example addresses.")
@click.option("-P", "addresses", multiple=True, metavar="HOST:PORT", help="Address of a party, once for each in order.")
@setting_option("owner_sizes", help="Records of each owner, in order.  [default: example numbers]")
@setting_option("role", default="apart")
@setting_option("schema", help="A schema file, beside consortium.toml.  [default: bounds in the file]")
@setting_option("data_id", default="our records")
@setting_option("method")
@setting_option("iterations", help="Releases of the method.  [default: as advised]")
@setting_option("epsilon", default=1.0)
@setting_option("delta", default=1e-5)
@click.option("--tls/--no-tls", default=True, help="Without TLS only loopback addresses are allowed.")
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def command(
    out: Path,
    parties: int | None,
    addresses: tuple[str, ...],
    owner_sizes: tuple[int, ...] | None,
    role: str,
    schema: str | None,
    data_id: str,
    method: str | None,
    iterations: int | None,
    epsilon: float,
    delta: float,
    tls: bool,
    overwrite: bool,
) -> None:
    """Write consortium.toml: one commented file that says all about a run over several machines. Asks nothing; edit it,
    then `dpmpc plan consortium.toml`.

    Beside it goes consortium.schema.json, by which editors check and complete it.

    \b
    Example:
      dpmpc init -P a.example:11365 -P b.example:11365 -P c.example:11365 --owner-sizes 400,250,900
    """
    from dpmpc.consortium.toml_keys import editor_schema
    from dpmpc.consortium.toml_text import Founding, text_of

    if parties is not None and addresses and parties != len(addresses):
        raise UsageError(f"-P is given once for each party; got {len(addresses)} for -M {parties}; leave -M out")
    records = owner_sizes or ()
    n = parties or len(addresses) or (len(records) if records and role == "both" else 3)
    founding = Founding(
        addresses=addresses or tuple(f"party{i}.example:11365" for i in range(n)),
        records=records or (400,) * (n if role == "both" else 3),
        role="both" if role == "both" else "apart",
        schema=schema,
        data_id=data_id,
        epsilon=epsilon,
        delta=delta,
        tls=tls,
        method=method,
        iterations=iterations,
    )
    try:
        with out.open("w" if overwrite else "x", encoding="utf-8") as file:
            file.write(text_of(founding))
        editors = out.with_name("consortium.schema.json")
        editors.write_text(json.dumps(editor_schema(), indent=1) + "\n", encoding="utf-8")
    except FileExistsError:
        raise UsageError(
            f"a file is not overwritten; {out} is there; name another with --out, or add --overwrite"
        ) from None
    except OSError as error:
        raise UsageError(f"the file must be writable; {out}: {error.strerror}; name another with --out") from None
    give({"file": out, "editors": editors})
    click.echo(f"{out}: edit it, then `dpmpc plan {out}` checks it")
