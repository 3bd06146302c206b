"""`dpmpc circuit`: what a sampler computes on secret bits, as the program that every engine runs."""

import json
import re
from pathlib import Path

import click

from dpmpc.cli.everywhere import give
from dpmpc.errors import UsageError
from dpmpc.privacy.law import LAWS, sampler_names


def number(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """A number, which may be written as a power such as 2^20."""
    found = re.fullmatch(r"(\d+)\^(\d{1,3})", value)
    try:
        return float(int(found[1]) ** int(found[2])) if found else float(value)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"takes a number such as 1000.5 or 2^20; got {value!r}") from None


@click.command("circuit")
@click.argument("law", type=click.Choice(LAWS.names()))
@click.option(
    "--scale", "--sigma", "--b", "scale", callback=number, default="2^20", show_default=True, help="In grid steps."
)
@click.option("--sampler", type=click.Choice(sampler_names()), help="How it is drawn.  [default: the law's first]")
@click.option("-M", "parties", type=click.IntRange(1), default=3, show_default=True, help="Parties.")
@click.option(
    "-T", "threshold", type=int, default=None, help="Parties that may collude, below M / 2.  [default: (M - 1) // 2]"
)
@click.option("--samples", type=click.IntRange(1), default=1 << 16, show_default=True, help="Samples of the batch.")
@click.option("--dot", type=click.Path(dir_okay=False, path_type=Path), help="Write the graph, for Graphviz.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write its arrays, as JSON.")
def command(
    law: str,
    scale: float,
    sampler: str | None,
    parties: int,
    threshold: int | None,
    samples: int,
    dot: Path | None,
    out: Path | None,
) -> None:
    """Show the Boolean program of a sampler: its gates, its layers, its inputs, and what it costs the parties.

    A discrete sampler is one program; of box-muller and log-laplace it is the part before the arithmetic.

    Example: dpmpc circuit gaussian --sigma 2^20
    """
    from dpmpc.circuits.picture import figures, to_dot, to_json
    from dpmpc.mpc.replicated.backend import SHARING, programs_of

    t = SHARING.threshold(parties) if threshold is None else threshold
    SHARING.check(parties, t)
    chosen = LAWS[law].sampler(sampler or next(iter(LAWS[law].samplers)), scale)
    programs = programs_of(chosen, samples, parties, t)
    if not programs:
        raise UsageError(f"a circuit has secret bits; {law}/{chosen.name} has none; choose another sampler")
    program = programs[0]
    click.echo(f"{chosen.certificate.get('law', law)}, scale {chosen.scale:g} grid steps, for n = {parties}, t = {t}")
    for name, value in figures(program).items():
        shown = " ".join(map(str, value)) if isinstance(value, list) else f"{value:,}"
        click.echo(f"  {name:<18} {shown}")
    cost = SHARING.count_noise(chosen, samples, parties, t)
    click.echo(
        f"  {samples:,} samples on replicated shares: {cost.rounds} rounds, {max(cost.bytes_sent) / samples:.1f} bytes "
        "sent a party and sample"
    )
    if dot:
        dot.write_text(to_dot(program))
        click.echo(f"written to {dot}")
    give({**figures(program), "cost": cost})
    if out:
        out.write_text(json.dumps(to_json(program)) + "\n")
        click.echo(f"written to {out}")
