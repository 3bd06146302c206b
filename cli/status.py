"""`dpmpc status`: how far a run is."""

import contextlib
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import spelling
from dpmpc.folders import replaced

if TYPE_CHECKING:
    from dpmpc.consortium.status import LedgerSpending, RunStatus
    from dpmpc.processes.status import State

_EVERY = 2.0  # seconds
_AGO = re.compile(r"^( +)\d+ s ago: ")


@click.command("status")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--watch", is_flag=True, help="All sites, again every two seconds, until the processes here have ended.")
@click.option("--html", "page", type=click.Path(path_type=Path), help="Write a page of all sites; with --watch again "
              "and again.")  # fmt: skip
@click.option("--metrics", type=click.Path(path_type=Path), help="Write numbers in the text format of Prometheus and "
              "OpenMetrics, for a node exporter's folder; with --watch again and again.")  # fmt: skip
@click.option("--serve", metavar="127.0.0.1:PORT", help="Serve the page at /, /status.json and /metrics to this "
              "machine alone, read-only, until it is stopped.")  # fmt: skip
def command(run: Path, watch: bool, page: Path | None, metrics: Path | None, serve: str | None) -> None:
    """How far the run in the folder RUN (or the kit RUN) is: phase, release, rate, who is connected, what is spent, the
    last event of every process here. Beside a running run or after its end; it changes nothing.

    --watch, --html and --serve show all sites of the plan at once: who is here, connected or not seen, phase, releases,
    spent, last word, from what each process says to all others anyway.

    Example: dpmpc status demo
    """
    from dpmpc.consortium import watching
    from dpmpc.consortium.joining import kit_spelling
    from dpmpc.consortium.kit import is_kit
    from dpmpc.consortium.status import RunStatus, read_status

    of_kit = is_kit(run) or is_kit(run.absolute().parent)

    def read() -> RunStatus:
        return read_status(run, kit_spelling if of_kit else spelling)

    def write(found: RunStatus) -> None:
        for path, text in ((page, watching.page), (metrics, watching.metrics)):
            if path is not None:
                with replaced(path, public=path == metrics) as beside:
                    beside.write_text(text(found), encoding="utf-8")

    if serve is not None:
        _serve(serve, read)
        return
    if watch:
        _watch(read, write)
        give(read())
        return
    found = read()
    write(found)
    give(found)
    if page is None and metrics is None:
        _say(found)


def _watch(read: "Callable[[], RunStatus]", write: "Callable[[RunStatus], None]") -> None:
    """Shows all sites until no process here is alive; on a terminal in the same place, else where something changed."""
    from dpmpc.consortium import watching

    terminal, before = sys.stdout.isatty(), ""
    while True:
        found = read()
        write(found)
        said = [f"run {found.plan.run_id} on '{found.plan.data}': {found.planned} releases planned",
                _spent(found.spent), *watching.lines(found)]  # fmt: skip
        shown = "\n".join(line if terminal else _AGO.sub(r"\1", line) for line in said)
        if terminal:
            click.echo("\x1b[H\x1b[2J" + shown)
        elif shown != before:
            click.echo(shown)
        before = shown
        if found.processes and not any(state.alive for state in found.processes):
            return
        time.sleep(_EVERY)


def _serve(address: str, read: "Callable[[], RunStatus]") -> None:
    from dpmpc.consortium import watched, watching
    from dpmpc.show.values import json_text

    read()  # whether there is a run
    page = "text/html; charset=utf-8"
    with watched.server(address, {
        "/": (page, lambda: watching.page(read(), again=True)),
        "/status.json": ("application/json", lambda: json_text(read())),
        "/metrics": ("text/plain; version=0.0.4; charset=utf-8", lambda: watching.metrics(read())),
    }) as server:  # fmt: skip
        host, port = server.server_address[:2]
        at = f"[{host!s}]" if ":" in str(host) else str(host)
        click.echo(f"serving http://{at}:{port}/ to this machine; stop it by Ctrl-C")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def _say(found: "RunStatus") -> None:
    from dpmpc.consortium.status import read_lines

    plan, now = found.plan, time.time()
    click.echo(f"run {plan.run_id} on '{plan.data}': {found.planned} releases planned")
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


def _spent(spent: "LedgerSpending | None") -> str:
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
