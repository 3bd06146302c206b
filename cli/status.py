"""`dpmpc status`: how far a run is."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dpmpc.processes.status import State
    from dpmpc.runs.status import Spent


@click.command("status")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(run: Path, as_json: bool) -> None:
    """How far the run in the folder RUN (or the kit RUN) is: phase, release, rate, who is connected, what is spent, the
    last event of every process here. Beside a running run or after its end; it changes nothing."""
    from dpmpc.runs.status import read_status

    found = read_status(run)
    if as_json:
        click.echo(json.dumps(found.to_json()))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    plan = found.plan
    console.print(Text(f"run {plan.run_id} on '{plan.data}': {plan.releases} releases planned"), soft_wrap=True)
    console.print(Text(_spent(found.spent)), soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for title in ("process", "phase", "release", "rate", "connected", "last event"):
        table.add_column(title, overflow="fold")
    now = time.time()
    for state in found.processes:
        table.add_row(*(Text(cell) for cell in _cells(state, now)))
    console.print(table)
    if found.model:
        console.print(Text(f"the model: {found.folder / 'model.npz'}"), soft_wrap=True)


def _spent(spent: "Spent | None") -> str:
    if spent is None:
        return "no ledger here"
    epsilon, most = (("no promise" if x is None else f"epsilon {x:.4g}") for x in (spent.epsilon, spent.of_epsilon))
    return f"spent: {spent.releases} releases, {epsilon} at delta {spent.delta:g} (the whole plan: {most})"


def _cells(state: "State", now: float) -> tuple[str, ...]:
    rate = "" if state.rate is None else f"{state.rate:.3g}/s"
    ago = f"{max(0.0, now - state.event_time):.0f} s ago: {state.event}" if state.event else ""
    return (
        state.process,
        state.phase,
        f"{state.release}/{state.releases}" if state.releases else "",
        rate,
        ", ".join(state.connected),
        ago,
    )
