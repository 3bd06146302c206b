"""`dpmpc verify`: three lines of evidence that noise is added once, after aggregation, as wide as claimed."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.progress import make_progress
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.security import MODES, backend_for
from dpmpc.privacy.law import LAWS, law_of_sampler, sampler_names
from dpmpc.show.terminal import Styled, Terminal, TextColumn, TextRow

if TYPE_CHECKING:
    from dpmpc.verify.verification import Verification


@click.command()
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option("--fresh", is_flag=True, help="verify fresh releases with known inputs instead of a run.")
@click.option("--structure", is_flag=True, help="only the transcripts of RUN; takes a second.")
@click.option("-M", "parties", type=click.IntRange(1), default=3, show_default=True, help="parties, with --fresh.")
@click.option(
    "-T", "threshold", type=int, help="parties that may collude.  [default: the most that the backend allows]"
)
@click.option(
    "--backend",
    type=click.Choice(BACKENDS.names()),
    metavar="NAME",
    help="with --fresh.  [default: the one that computes less]",
)
@click.option("--security", type=click.Choice(MODES), help="with --fresh: active checks the parties.")
@click.option(
    "--law",
    type=click.Choice([*LAWS.names(), "all"]),
    default="all",
    show_default=True,
    help="noise of the fresh releases, with --fresh.",
)
@click.option(
    "--sampler",
    type=click.Choice(sampler_names()),
    help="of the fresh releases, with --fresh.  [default: the law's exact one]",
)
@click.option(
    "--work",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs/verify"),
    show_default=True,
    help="where fresh releases leave their transcripts.",
)
@click.option(
    "--out",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="where the verdict is written.  [default: verify.json in RUN, or in --work]",
)
@click.option("--details", is_flag=True, help="print every check, not only those that fail.")
def command(
    run: Path | None,
    fresh: bool,
    structure: bool,
    parties: int,
    threshold: int | None,
    backend: str | None,
    security: str | None,
    law: str,
    sampler: str | None,
    work: Path,
    out: Path | None,
    details: bool,
) -> int:
    """Check a RUN directory: its transcripts, and fresh releases of the same kind. Exit code 0 only if all hold.
    RUN may be a party's folder or kit, which shows that party's part, or a folder with all sites' folders or kits.

    \b
    Examples:
      dpmpc verify demo --structure  what parties did, by their transcripts
      dpmpc verify demo              that, and fresh releases with an audit
      dpmpc verify --fresh           all on fresh releases, without a run
    """
    from dpmpc.run.folder import run_folder
    from dpmpc.verify.verification import default_cases, verify_fresh, verify_run, verify_structure

    if (run is None) != fresh:
        raise UsageError(
            f"verify looks at one thing; got {'neither a run nor' if run is None else 'a run and'} --fresh; "
            "name a run directory, or give --fresh"
        )

    if run is None:
        only = law_of_sampler(sampler) if sampler and law == "all" else None
        laws = LAWS.names() if law == "all" and only is None else (only or law,)
        cases = []
        for name in laws:
            how = sampler or next(iter(LAWS[name].samplers))
            by = backend_for(security, backend, name, how, parties, threshold)
            t = BACKENDS[by].threshold(parties) if threshold is None else threshold
            BACKENDS[by].check(parties, t)
            cases += default_cases(parties, t, (name,), by, sampler)
        with make_progress("release") as progress:
            result = verify_fresh(cases, work, progress)
    elif structure:
        result = verify_structure(run)
    else:
        with make_progress("release") as progress:
            result = verify_run(run, work, progress)
    path = out if out is not None else (run_folder(run) if run else work) / "verify.json"
    result.write(path)
    give(result)
    _print(result, details)
    click.echo(f"written to {path}")
    return 0 if result.holds else 1


def _print(result: "Verification", details: bool) -> None:
    terminal = Terminal(sys.stdout, width=160)
    holds, fails = Styled("holds", "green"), Styled("FAILS", "bold red")
    rows = []
    for evidence in result.evidence:
        alarm = f"< {evidence.false_alarm:.0e}" if evidence.false_alarm else "none"
        verdict = holds if evidence.holds else fails
        left = len(evidence.checks) - evidence.tested
        counts = f"{evidence.held} of {evidence.tested}" + f", {left} not tested" * bool(left)
        rows.append(TextRow([evidence.name, verdict, counts, alarm, evidence.note]))
    terminal.line(f"Evidence on {result.subject}")
    terminal.table([TextColumn(name) for name in ("evidence", "verdict", "checks", "false alarm", "note")], rows)
    for evidence in result.evidence:
        if evidence.misses:
            terminal.text(f"{evidence.name} would miss: {evidence.misses}")
    for evidence in result.evidence:
        for check in evidence.checks:
            if details or not check.holds:
                mark = fails if not check.holds else holds if check.tested else Styled("-----", "dim")
                misses = f"; would miss: {check.misses}" * bool(check.misses)
                terminal.line(mark, f"  {evidence.name}: {check.name}: {check.detail}{misses}")
