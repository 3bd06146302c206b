"""What the subcommands of `dpmpc bench` share: options, a bar of progress, and where results go."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dpmpc.cli.everywhere import give
from dpmpc.mpc.contract.backend import BACKENDS, FOR_TWO
from dpmpc.mpc.contract.levels import by_link
from dpmpc.mpc.contract.security import MODES, checked_backend
from dpmpc.privacy.law import LAWS, sampler_names
from dpmpc.show.terminal import Bar, Terminal

Progress = Callable[[str], None]
quick_option = click.option(
    "--quick/--full", "quick", default=True, show_default=True, help="Under 2 minutes, or under 40 on 2 cores."
)
out_option = click.option(
    "--out", "out", type=click.Path(dir_okay=False, path_type=Path), help="Write everything to this file, as JSON."
)
csv_option = click.option(
    "--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), help="Write one line a record to this file."
)


PLACES = ("loopback", "lan", "wan")
NETWORKS = click.Choice(PLACES)
_SUFFIXES = {"k": 1_000, "M": 1_000_000}


def numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> list[int] | None:
    """Whole numbers from 1 on, separated by commas; `1k` is 1,000, `1M` is 1,000,000."""
    if value is None:
        return None
    try:
        found = [_number(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"takes whole numbers separated by commas, such as 10,122,1k,1M; got {value!r}"
        ) from None
    if min(found) < 1:
        raise click.BadParameter(f"takes numbers from 1 on; got {min(found)}")
    return found


def networks(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    """Names of networks, separated by commas."""
    if value is None:
        return None
    found = value.split(",")
    if wrong := [name for name in found if name not in PLACES]:
        raise click.BadParameter(f"takes {', '.join(PLACES)}, separated by commas; got {wrong[0]!r}")
    return found


def networks_option(help: str) -> Callable[[Any], Any]:
    return click.option("--network", "places", callback=networks, metavar="NAME,...", help=help)


def two_servers(
    backend: str | None, security: str | None, link: str | None, parties: Sequence[int] | None
) -> tuple[str | None, bool]:
    """(the backend, whether it is one of two servers). Errors: UsageError where they do not go together."""
    backend = checked_backend(security, backend, max(parties or (3,)))
    if link is not None:
        backend = by_link(link, backend or FOR_TWO)
    return backend, backend is not None and BACKENDS[backend].threshold(3) < 0


def _number(text: str) -> int:
    times = _SUFFIXES.get(text[-1:])
    return int(text) if times is None else int(text[:-1]) * times


def numbers_option(*names: str, help: str, default: str | None = None) -> Callable[[Any], Any]:
    return click.option(
        *names, callback=numbers, metavar="N,N,...", help=help, default=default, show_default=default is not None
    )


def computed_options(law: str, sampler: str, backend: str) -> Callable[[Any], Any]:
    """The options of law, sampler and backend, with the help of each; by default None."""
    options = [
        click.option("--law", "--noise", "law", type=click.Choice(LAWS.names()), help=law),
        click.option("--sampler", type=click.Choice(sampler_names()), help=sampler),
        click.option("--backend", type=click.Choice(BACKENDS.names()), help=backend),
        click.option("--link", metavar="lan|wan|MBITS", help="The line between two servers: chooses ot or ot-k8."),
        click.option("--security", type=click.Choice(MODES), help="active: the backend that checks its parties."),
    ]

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def show_findings(results: Any) -> None:
    from dpmpc.benchmarks import scale, tables

    if growth := scale.growth(results):
        click.echo(tables.plain(tables.growth_rows(growth)) + "\n")
    if targets := scale.targets(results):
        click.echo(tables.plain(tables.target_rows(targets)))


def write(results: Any, out: Path | None, csv_file: Path | None) -> None:
    from dpmpc.benchmarks import result_file as records

    give(results)
    for path, write in ((out, records.write_json), (csv_file, records.write_csv)):
        if path is not None:
            write(results, path)
            click.echo(f"written to {path}")


@contextmanager
def bar(total: int | None) -> Iterator[Progress]:
    """A live bar on a terminal, one line a cell elsewhere; on standard error."""
    if not sys.stderr.isatty():
        yield lambda text: click.echo(text, err=True)
        return
    with Bar(Terminal(sys.stderr), total=total, done=-1) as bar:

        def advance(text: str) -> None:
            bar.note, bar.done = text, bar.done + 1

        yield advance
        bar.done += 1
