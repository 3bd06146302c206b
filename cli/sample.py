"""`dpmpc sample`: noise for study, its cost and its certificate."""

import math
from pathlib import Path
from typing import Any

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import setting_option
from dpmpc.privacy.law import DEFAULT_LAW
from dpmpc.show.values import json_text

GATES = {"ands": "ANDs"}


@click.command("sample")
@setting_option("law", default=DEFAULT_LAW)
@setting_option("scale", default=65536.0, help="sigma (gaussian) or b (laplace), in grid steps.")
@click.option("--count", type=int, default=100_000, show_default=True, help="Samples to draw.")
@setting_option("parties", type=click.IntRange(1), default=3, help="Local parties, each a process.")
@setting_option("threshold")
@setting_option(
    "engine",
    type=click.Choice(["mpc", "clear", "counting"]),
    default="mpc",
    help="mpc: by parties. clear: the same circuit on plain bits. counting: print the predicted cost, none drawn.",
)
@setting_option("sampler")
@setting_option("backend")
@setting_option("link")
@setting_option("security")
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of a party that compute.  [default: its part of the cores]"
)
@click.option(
    "--open",
    "opened",
    is_flag=True,
    help="Open the samples and hold them against the exact law. For study only: opened noise protects nothing.",
)
@click.option(
    "--out", "out", type=click.Path(dir_okay=False, path_type=Path), help="Also write everything to this file."
)
def command(
    law: str,
    scale: float,
    count: int,
    parties: int,
    threshold: int | None,
    engine: str,
    sampler: str | None,
    backend: str | None,
    security: str | None,
    link: str | None,
    threads: int | None,
    opened: bool,
    out: Path | None,
) -> None:
    """Draw noise samples inside MPC and report rate, cost and certificate.

    Example: dpmpc sample --law gaussian --scale 65536 --count 100000 -M 3 --open
    """
    from dpmpc.noise import sampling

    report, values = sampling.sample(
        law,
        scale,
        count,
        engine=engine,
        backend=backend,
        security=security,
        link=link,
        parties=parties,
        threshold=threshold,
        sampler=sampler,
        opened=opened,
        threads=threads,
        say=click.echo,
    )
    where = "in the clear" if engine == "clear" else f"for n = {parties}, t = {report['threshold']}{_transfers(report)}"
    name = report["certificate"].get("law", law)
    click.echo(f"{name}, scale {report['scale']:g} grid steps, {count} samples {where}")
    _show_cost(report, count)
    click.echo("certificate, bounds per coordinate")
    for line in sampling.certificate_lines(report["certificate"]):
        click.echo(line)
    if "opened" in report:
        assert values is not None
        _show_opened(report, engine)
        for line in sampling.histogram(values, report["scale"]):
            click.echo("  " + line)
    give(report)
    if out:
        out.write_text(json_text(report))
        click.echo(f"written to {out}")


def _transfers(report: dict[str, Any]) -> str:
    return "" if report["transfers_k"] is None else f", {report['backend']} with k = {report['transfers_k']}"


def _show_cost(report: dict[str, Any], count: int) -> None:
    """Rate, what was predicted and what was measured, as far as there is any."""
    if "rate" in report:
        click.echo(
            f"  {report['rate']:,.0f} samples a second ({report['seconds']:.3f} s, connection and start-up excluded)"
        )
    if "predicted" in report:
        cost = report["predicted"]
        per = max(cost["bytes"]) / count
        gates = " and ".join(f"{number} {GATES.get(gate, gate)}" for gate, number in cost["gates"].items())
        click.echo(
            f"  {gates} a sample; "
            f"{cost['rounds']} rounds "
            f"in {cost['batches']} batch{'es' if cost['batches'] > 1 else ''}; {per:.1f} bytes sent a party and "
            "sample (predicted)"
        )
    if "undetected" in report:
        click.echo(
            f"  parties are checked: a cheat passes with probability 2^{math.log2(report['undetected']):.1f} at most"
        )
    if "measured" in report:
        got = report["measured"]
        agrees = "predicted" not in report or all(
            got[k] == report["predicted"][k] for k in ("rounds", "bytes", "messages")
        )
        note = "" if "predicted" not in report else ", as predicted" if agrees else ", NOT as predicted"
        click.echo(
            f"  measured: {got['rounds']} rounds, {got['bytes_per_party_and_sample']:.1f} bytes sent a party and "
            f"sample{note}"
        )


def _show_opened(report: dict[str, Any], engine: str) -> None:
    """The opened samples, held against their law."""
    o = report["opened"]
    click.echo(
        "drawn in the clear, for study only"
        if engine == "clear"
        else "opened, for study only: these samples can protect nothing any more"
    )
    click.echo(f"  mean {o['mean']:.2f}, standard error {o['mean_standard_error']:.2f}")
    if o["variance"] is not None:
        click.echo(f"  variance {o['variance']:.6g}, of the law {o['law_variance']:.6g}")
    if "p_value" in o:
        click.echo(
            f"  chi-square {o['chi_square']:.1f} on {o['degrees_of_freedom']} degrees of freedom, p = "
            f"{o['p_value']:.3g}"
        )
