"""`dpmpc account`: noise scale, epsilon, delta or number of iterations from the others, and what the literature's
formulas give."""

import sys
from typing import Any, Literal

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import setting_option
from dpmpc.learning.account import RunTerms, answer
from dpmpc.learning.method import DEFAULT_METHOD, METHODS
from dpmpc.privacy.law import DEFAULT_LAW, PURE_LAW
from dpmpc.privacy.sensitivity import Weights
from dpmpc.show.terminal import Styled, Terminal, TextColumn, TextRow

_CALIBRATIONS = {
    "tight": "tight (exact)",
    "zcdp": "zCDP, exact root",
    "paper": "paper, as printed",
    "l1": "L1 (pure epsilon)",
    "l2-density": "exp(-|x|_2 / b)",
}


@click.command()
@setting_option("method", default=DEFAULT_METHOD)
@setting_option("law", help=f"Law of the noise.  [default: {DEFAULT_LAW}, or {PURE_LAW} for output without a delta]")
@setting_option("owners", required=True, help="Number m of owners.")
@click.option("--smallest", type=int, required=True, help="Records n_(1) of the smallest owner.")
@click.option("--total", type=int, help="Records n of all owners together.  [default: m * n_(1)]")
@setting_option("weights")
@setting_option("neighbours", default="record")
@setting_option("person_rows", default=None)
@setting_option("person_owners", default=0)
@setting_option("epsilon", help="Of the whole run.")
@setting_option("delta", help="Of the whole run.")
@setting_option("iterations", help="Number T of releases.  [default: 1 for --method output]")
@setting_option(
    "scale",
    "--sigma",
    "--scale",
    help="Noise on the released mean: standard deviation, or Laplace scale; then something else is solved for.",
)
@setting_option("dimension", default=122, help="Coordinates d of a release (122: the paper's KDDCup99).")
@setting_option("lam", default=0.01, show_default=True, help="Regularisation lambda.")
@click.option("--G", "lipschitz", type=float, default=1.0, show_default=True, help="Lipschitz constant of the loss.")
@setting_option(
    "solver_tolerance",
    default=0.0,
    help="Bound on every local gradient norm at the returned model (--method output).",
)
@setting_option("grid_bits", help="Account the discrete law on the grid of step 2^-F, rounding included.")
@setting_option("security_bits", default=None, help="Statistical security of the MPC over the run, with --grid-bits.")
@click.option(
    "--sampler-tv",
    type=float,
    default=0.0,
    show_default=True,
    help="Total variation of one coordinate's sampler, with --grid-bits.",
)
@click.option("--literature/--no-literature", default=True, show_default=True, help="The table of published methods.")
def command(
    method: str,
    law: str | None,
    owners: int,
    smallest: int,
    total: int | None,
    weights: Weights | None,
    neighbours: Literal["record", "presence", "person", "owner"],
    person_rows: int | None,
    person_owners: int,
    epsilon: float | None,
    delta: float | None,
    iterations: int | None,
    scale: float | None,
    dimension: int,
    lam: float,
    lipschitz: float,
    solver_tolerance: float,
    grid_bits: int | None,
    security_bits: float | None,
    sampler_tv: float,
    literature: bool,
) -> None:
    """Account for a run: leave out one of --epsilon, --delta, --sigma, --iterations and it is solved for.

    \b
    dpmpc account --epsilon 0.5 --delta 1e-3 --iterations 100 --owners 100 --smallest 500
    dpmpc account --sigma 0.002 --delta 1e-3 --iterations 100 --owners 100 --smallest 500
    dpmpc account --epsilon 0.5 --method output --owners 100 --smallest 500
    """
    question = RunTerms(
        method=method,
        owners=owners,
        smallest=smallest,
        records=total,
        weights=weights,
        neighbours=neighbours,
        person_rows=person_rows,
        person_owners=person_owners,
        dimension=dimension,
        G=lipschitz,
        lam=lam,
        epsilon=epsilon,
        delta=delta,
        scale=scale,
        iterations=iterations,
        law=law,
        solver_tolerance=solver_tolerance,
        grid_bits=grid_bits,
        security_bits=security_bits,
        sampler_tv=sampler_tv,
    )
    result: dict[str, Any] = answer(question, with_literature=literature)
    give(result)
    _print(result)


def _print(result: dict[str, Any]) -> None:
    terminal = Terminal(sys.stdout, width=150)
    q, sensitivity = result["question"], result["sensitivity"]
    parts = " + ".join(f"{name} {_number(value)}" for name, value in sensitivity["parts"].items() if value)
    terminal.text(f"neighbours   {result['neighbours']}")
    terminal.text(
        f"run          {q['method']} releases of {q['owners']} owners, smallest {q['smallest']}, {q['records']} "
        f"{'places' if q['neighbours'] == 'person' else 'records'}, weights {q['weights']}, d = {q['dimension']}, "
        f"G = {q['G']:g}" + (f", lambda = {q['lam']:g}" if METHODS[q["method"]].lam_moves else "")
    )
    terminal.text(f"sensitivity  L2 {_number(sensitivity['l2'])} ({parts}), L1 at most {_number(sensitivity['l1'])}")
    solved = result["solved_for"]
    value = result["scale" if solved in ("sigma", "scale") else solved]
    terminal.line(Styled(f"{solved:12} {_number(value)}", "bold"), f"   ({result['law']} noise, tightest calibration)")
    _print_calibrations(terminal, result)
    if result.get("grid"):
        _print_grid(terminal, result)
    if result.get("literature"):
        _print_literature(terminal, result)
        _print_progress(terminal, result)
        _print_risk(terminal, result["risk"])
    for text in result["warnings"]:
        terminal.text(f"warning: {text}", "yellow")


def _print_calibrations(terminal: Terminal, result: dict[str, Any]) -> None:
    rows = result["calibrations"]
    other = any(row["deviation"] != row["scale"] for row in rows)  # the law's scale is no standard deviation
    composed = any("composed_epsilon" in row for row in rows)
    names = ["calibration", "scale b" if other else "sigma", *(["std dev"] if other else []), "T"]
    names += ["promised (eps, delta)", "truly eps", "zCDP eps", *(["eps at delta"] if composed else []), "holds"]
    laid = []
    for row in rows:
        cells = [_number(row["scale"]), *([_number(row["deviation"])] if other else []), str(row["iterations"])]
        promise = f"({_number(row['epsilon'])}, {_number(row['delta'])})"
        cells += [promise, _number(row["true_epsilon"]), _number(row["zcdp_epsilon"])]
        cells += [_number(row.get("composed_epsilon"))] if composed else []
        name, holds = _CALIBRATIONS.get(row["calibration"], row["calibration"]), row["holds"]
        laid.append(TextRow([name, *cells, Styled("yes", "") if holds else Styled("NO", "red")]))
    terminal.line("Calibrations")
    terminal.table([TextColumn(name, right=name not in ("calibration", "holds")) for name in names], laid)


def _print_grid(terminal: Terminal, result: dict[str, Any]) -> None:
    grid = result["grid"]
    parts = ", ".join(f"{name} {_number(value)}" for name, value in grid["delta_parts"].items())
    terminal.text(
        f"On the grid: discrete {result['law']} of parameter {_number(grid['scale_steps'])} steps (sensitivity "
        f"{_number(grid['sensitivity_steps'])} steps of {_number(grid['step'])}); everything counted: "
        f"epsilon {_number(grid['epsilon'])}, delta {_number(grid['delta'])} ({parts})"
    )


def _print_literature(terminal: Terminal, result: dict[str, Any]) -> None:
    rows = result["literature"]
    delta = _number(max((row["delta"] for row in rows), default=None))
    claims = f"epsilon {_number(result['epsilon'])}, with Laplace noise at delta 0, with Gaussian at {delta}"
    columns = []
    for name in ("method", "law", "noise on the aggregate", "value", "truly eps", "at delta", "towards who sees"):
        figures = name in ("value", "truly eps", "at delta")  # never cut; words wrap where the terminal is narrow
        columns.append(TextColumn(name, right=figures, long="whole" if figures else "wrap"))
    notes: list[str] = []
    laid = []
    for row in rows:
        if row["note"] not in notes:
            notes.append(row["note"])
        mark = f" [{notes.index(row['note']) + 1}]"
        numbers = [_number(row[key]) for key in ("scale", "epsilon", "delta")]
        laid.append(TextRow([row["name"] + mark, row["law"], row["formula"], *numbers, row["published"]]))
    terminal.line()
    terminal.text(f"Published methods, as printed; all claim {claims}")
    terminal.table(columns, laid)
    for number, note in enumerate(notes, 1):
        terminal.text(f"[{number}] {note}")


def _print_progress(terminal: Terminal, result: dict[str, Any]) -> None:
    steps = "; ".join(
        f"{_number(row['exact'])} after {row['iteration']} (printed {_number(row['printed'])})"
        for row in result["progress"]
    )
    terminal.line()
    terminal.text(f"Corollary 3.5, epsilon of intermediate models: {steps}")
    shares = result["collusion"]
    terminal.text(
        f"The same total noise towards {shares['colluding']} colluding owners: epsilon {_number(shares['mpc'])} made "
        f"inside MPC, {_number(shares['masks'])} by owners under secure aggregation, {_number(shares['cape'])} by "
        f"CAPE, {_number(shares['none'])} independent at the owners"
    )


def _print_risk(terminal: Terminal, rows: list[dict[str, Any]]) -> None:
    names = ("bound", "of the risk", "formula", "value")
    columns = [TextColumn(name, right=name == "value", long="whole") for name in names]
    laid = [
        TextRow([f"{row['name']} [{number}]", row["excess"], row["formula"], _number(row["value"])])
        for number, row in enumerate(rows, 1)
    ]
    terminal.line()
    terminal.line("The papers' bounds on the excess risk")
    terminal.table(columns, laid)
    terminal.text("; ".join(f"[{number}] {row['note']}" for number, row in enumerate(rows, 1)))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"
