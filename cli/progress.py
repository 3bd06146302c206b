"""How a run is shown while it goes on: a live bar on a terminal, a few plain lines elsewhere. All on standard
error."""

import sys
from types import TracebackType
from typing import Any, Self

import click

from dpmpc.cli.settings import spelling
from dpmpc.errors import spelt
from dpmpc.processes.logs import as_json, json_line
from dpmpc.show.terminal import Bar, Terminal


class Plain:
    """Plain lines: each stage, and about ten of the iterations (or of what else `noun` names)."""

    def __init__(self, noun: str = "iteration") -> None:
        self._noun = noun

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] in ("stage", "part"):
            click.echo(spelt(event["text"], spelling), err=True)
        elif event["event"] == "iteration":
            done, total = event["done"], event["total"]
            if done == total or done * 10 // total != (done - 1) * 10 // total:
                click.echo(f"{self._noun} {done}/{total}{_figures(event)}", err=True)


class Json(Plain):
    """A JSON line for every stage, and for every iteration."""

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] in ("stage", "part"):
            click.echo(json_line(spelt(event["text"], spelling)), err=True)
        elif event["event"] == "iteration":
            fields = {name: value for name, value in event.items() if name != "event" and value is not None}
            click.echo(json_line(f"{self._noun} {event['done']}/{event['total']}", **fields), err=True)


class Live:
    """A bar with the figures of the last iteration."""

    def __init__(self) -> None:
        self._bar = Bar(Terminal(sys.stderr), "starting")

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] == "part":
            self._bar.print(spelt(event["text"], spelling))
        elif event["event"] == "stage":
            self._bar.name = spelt(event["text"], spelling)[:40]
        elif event["event"] == "plan":
            self._bar.total, self._bar.done = event["releases"], event["first"]
        elif event["event"] == "iteration":
            self._bar.done, self._bar.note = event["done"], _figures(event).strip()


def make_progress(noun: str = "iteration") -> "Plain | Live":
    """The display that suits standard error, and the way that logs are written. `noun`: what is counted."""
    if as_json():
        return Json(noun)
    return Live() if sys.stderr.isatty() else Plain(noun)


def _figures(event: dict[str, Any]) -> str:
    named = (("loss", "loss"), (event.get("figure_name"), "figure"))
    parts = [f"{name} {event[key]:.4f}" for name, key in named if event.get(key) is not None]
    if event.get("seconds") is not None:
        parts.append(f"{1000 * event['seconds']:.1f} ms")
    return f"  {', '.join(parts)}" if parts else ""
