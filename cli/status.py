"""`dpmpc status`: how far a run is."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import spelling

if TYPE_CHECKING:
    from dpmpc.consortium.status import Spent
    from dpmpc.processes.status import State


@click.command("status")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> None:
    """How far the run in the folder RUN (or the kit RUN) is: phase, release, rate, who is connected, what is spent, the
    last event of every process here. Beside a running run or after its end; it changes nothing.

    Example: dpmpc status demo
    """
    from dpmpc.consortium.joining import kit_spelling
    from dpmpc.consortium.kit import is_kit
    from dpmpc.consortium.status import read_lines, read_status

    of_kit = is_kit(run) or is_kit(run.absolute().parent)
    found = read_status(run, kit_spelling if of_kit else spelling)
    give(found)
    plan, now = found.plan, time.time()
    click.echo(f"run {plan.run_id} on '{plan.data}': {plan.releases} releases planned")
    click.echo(_spent(found.spent))
    for state in found.processes:
        click.echo(_line(state))
        if state.event:
            click.echo(f"    {max(0.0, now - state.event_time):.0f} s ago: {state.event}")
    if found.model:
        click.echo(f"the model: {found.folder / 'model.npz'}")
    for what, value in read_lines(found.folder):
        click.echo(f"    {what}: {value}")
    if found.answers:
        click.echo(f"the answers: {found.folder / found.answers}, and as text, Markdown, CSV and JSON beside it")


def _spent(spent: "Spent | None") -> str:
    if spent is None:
        return "no ledger here"
    epsilon, most = (("no promise" if x is None else f"epsilon {x:.4g}") for x in (spent.epsilon, spent.of_epsilon))
    staged = f" ({', '.join(spent.stages)} among them)" * bool(spent.stages)
    text = f"spent: {spent.releases} releases{staged}, {epsilon} at delta {spent.delta:g} (the whole plan: {most})"
    if spent.lines < spent.releases:
        have = f", whose ledgers have it: parties {', '.join(map(str, spent.parties))}" if spent.parties else ""
        text += f"\n    {spent.lines} of them have a line here; others made the rest, or may{have}"
    return text


def _line(state: "State") -> str:
    """Process, phase, release, rate, who is connected."""
    from dpmpc.processes.status import BY_OTHERS, LEFT_OUT

    parts = [f"{state.process}: {state.phase}"]
    if state.phase in (LEFT_OUT, BY_OTHERS):
        parts.append(
            "the others go on" if state.phase == LEFT_OUT else "the others finished the run, and have the model"
        )
    elif state.releases:
        parts.append(f"{state.release} of {state.releases} releases")
    if state.rate is not None:
        parts.append(f"{state.rate:.3g} a second")
    if state.alive and state.phase != LEFT_OUT:
        shown = state.connected[:8] + ([f"{len(state.connected) - 8} more"] if len(state.connected) > 8 else [])
        parts.append(f"connected with {', '.join(shown) or 'nobody'}")
    return ", ".join(parts)
