"""`dpmpc advise`: what to run for a budget, from public numbers alone."""

import sys
from typing import Any, Literal

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import setting_option, spelling
from dpmpc.errors import spelt
from dpmpc.learning.losses import RESIDUAL_CLIP
from dpmpc.learning.method import METHODS
from dpmpc.privacy.law import PURE_LAW
from dpmpc.show.terminal import Terminal, TextColumn, TextRow


@click.command()
@setting_option("owners", required=True, help="Number m of owners.")
@click.option("--total", type=int, required=True, help="Records n of all owners together.")
@click.option("--smallest", type=int, help="Records of the smallest owner.  [default: an even share]")
@setting_option("dimension", required=True, help="Features d, intercept included.")
@setting_option("task", type=click.Choice(["logistic", "ridge"]), default="logistic")
@setting_option("epsilon", required=True)
@setting_option("delta", help=f"Of the whole run; without one, output perturbation with {PURE_LAW} noise.")
@setting_option("lam")
@setting_option("momentum")
@setting_option("residual_clip", default=RESIDUAL_CLIP)
@setting_option("method", help="Only this one.")
@setting_option("law", help="Law of output perturbation.")
@click.option("--columns", type=int, default=0, show_default=True, help="Columns without public bounds.")
def command(
    owners: int,
    total: int,
    smallest: int | None,
    dimension: int,
    task: Literal["logistic", "ridge"],
    epsilon: float,
    delta: float | None,
    lam: float | None,
    momentum: float | None,
    residual_clip: float,
    method: str | None,
    law: str | None,
    columns: int,
) -> None:
    """Advise on a run: method, iterations, step, averaging, weights, noise, grid, and what to expect.

    Everything is worked out from the numbers given and rehearsed on synthetic records of the same shape; no record is
    looked at, so following the advice costs no privacy.

    \b
    dpmpc advise --owners 1000 --total 100000 --dimension 123 --epsilon 0.5 --delta 1e-6
    """
    from dpmpc.planning.adviser import BETTER, Circumstances, advise

    circumstances = Circumstances(
        owners=owners,
        smallest=total // max(1, owners) if smallest is None else smallest,
        records=total,
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        task=task,
        lam=lam,
        momentum=momentum,
        residual_clip=residual_clip,
        method=method,
        noise=law,
        columns=columns,
    )
    found = advise(circumstances)
    advice = found.to_json()
    give(advice)
    _print({**advice, "warnings": found.marked}, BETTER if found.surpassed else None)


def _print(advice: dict[str, Any], better: float | None) -> None:
    """`better`: the part of the advised method's gap that another one has to keep below, where one is below the gap."""
    terminal = Terminal(sys.stdout, width=120)
    best = advice["advice"]
    words = [f"--method {best['method']}", f"--lam {advice['lam']:g}", f"--weights {advice['weights']}"]
    if best["step"] is not None:
        words += [
            f"--iterations {best['iterations']}",
            f"--step {best['step']:.4g}",
            f"--momentum {best['momentum']:.4g}",
            f"--average {best['average']}",
        ]
    if METHODS[best["method"]].may_be_pure:
        words.append(f"--noise {best['noise']}")
    terminal.line(f"advice     {' '.join(words)}", style="bold")
    terminal.text(
        f"noise      {best['noise']}, {best['sigma']:.4g} a coordinate of the mean; grid 2^-{advice['grid_bits']}"
    )
    if advice["survey_share"]:
        terminal.text(
            f"survey     {advice['survey_share']:.0%} of the budget (of mu squared) for ranges and categories"
        )
    terminal.text(
        f"expected   a loss {best['expected']:.2g} above the optimum, {best['left']:.1%} of what there is to learn "
        "(rehearsed on synthetic records)"
    )
    terminal.line()
    terminal.line("The best of every method")
    names = ("method", "noise", "iterations", "step", "sigma", "expected gap", "left to learn")
    rows = []
    for row in (best, *advice["alternatives"]):
        step = "-" if row["step"] is None else f"{row['step']:.4g}"
        cells = [f"{row['iterations']}", step, f"{row['sigma']:.3g}", f"{row['expected']:.2g}", f"{row['left']:.1%}"]
        rows.append(TextRow([row["method"], row["noise"], *cells]))
    terminal.table([TextColumn(name, right=name not in ("method", "noise")) for name in names], rows)
    if better is not None:
        terminal.text(
            f"{best['method']} is advised unless another method is expected to be clearly better: a gap below "
            f"{better:g} of its own"
        )
    for text in advice["warnings"]:
        terminal.text(f"warning: {spelt(text, spelling)}", "yellow")
