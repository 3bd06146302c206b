"""`dpmpc synth`: a synthetic table of the records of several owners, from noisy tables with one copy of noise each."""

import os
from pathlib import Path
from typing import Any

import click

from dpmpc.aggregation.plan.settings import Accounting, Choosing, Computing, PromiseSettings
from dpmpc.cli.defaults import OUT, out_of, with_delta, with_delta_rule
from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import names_options, options_of
from dpmpc.cli.sources import memory_of, of_records, source_of, warn_of_filters
from dpmpc.errors import UsageError
from dpmpc.planning.settings import OwnerSettings

_FILES = (".parquet", ".csv")


def run_command(
    csv: Path | None, records: str | None, database: str | None, sql: str | None, memory: str | None,
    owners_column: str | None, schema: Path | None, bounds: Path | None, cuts: Path | None, cells: int | None,
    drop: tuple[str, ...], named: tuple[str, ...], spell: tuple[str, ...], word_list: Path | None,
    target: str | None, rows: int | None,
    constraints: Path | None, model: str,
    digits: tuple[str, ...], hopeless: bool, seed: int | None, dry: bool, of: Path | None, out: Path | None,
    data_id: str | None, budget: str | None, account: str | None, wait: float, spelling: Any, **settings: Any,
) -> None:  # fmt: skip
    """Draw a synthetic table of the records of several owners, from tables with one copy of noise.

    Two releases under one promise: all tables of one and two columns, which say what depends on what, and the tables of
    a tree of columns, which the rows are drawn from. Where cells of numbers are not public, a private survey comes
    first. docs/synth.md says what the rows are good for, and what not.

    \b
    Examples:
      dpmpc synth --csv hospitals.csv --owners-column site --bounds bounds.toml --target readmitted \\
        --epsilon 1 --delta 1e-5 --out synthetic.parquet
      dpmpc stats "table(sex) by readmitted" --of synthetic
      dpmpc synth --of kits/site0/run --rows 1000 --out rows.csv
    """
    from dpmpc.learning.survey_words import read_words
    from dpmpc.tables.synth import synth

    os.umask(0o077)  # what a run writes is for this user alone
    drawing: dict[str, Any] = {
        "rows": rows, "model": model, "digits": dict(_digits(part) for part in digits), "seed": seed
    }  # fmt: skip
    if of is not None:
        _redrawn(of, out, drawing)
        return
    with_delta(settings)
    source = source_of(csv, records, database, sql)
    warn_of_filters(sql, settings)
    given: dict[str, Any] = {
        "owners": owners_column, "schema": schema, "bounds": bounds, "cuts": cuts, "cells": cells, "drop": drop,
        "named": named, "words": () if word_list is None else read_words(word_list), "spell": spell, "target": target,
        "constraints": constraints, "memory": memory_of(memory), "spelling": spelling, **settings,
    }  # fmt: skip
    if dry:
        from dpmpc.tables.synth_dry import dry as foreseen

        click.echo(foreseen(source, digits=drawing["digits"], **given), nl=False)
        return
    out = out_of("synth") if out is None else out
    file = out if out.suffix in _FILES else None
    folder = out.with_suffix("") if file is not None else out
    if file is not None and file.exists():
        raise UsageError(f"--out must be a new file or folder; {file} is there; name another")
    found = synth(
        source, hopeless="allow" if hopeless else "refuse", data_id=data_id, budget=budget, account=account,
        out=folder, wait=wait, **drawing, **given,
    )  # fmt: skip
    _say(found, folder, file)


def _redrawn(of: Path, out: Path | None, drawing: dict[str, Any]) -> None:
    """Rows from a run that is there, into a new folder, or a file and a folder beside it."""
    from dpmpc.tables.synth_made import made_from

    out = out_of("synth") if out is None else out
    file = out if out.suffix in _FILES else None
    folder = out.with_suffix("") if file is not None else out
    if out.exists() or folder.exists():
        raise UsageError(f"--out must be a new file or folder; {folder} is there; name another")
    found = made_from(of, **drawing)
    found.write_rows(folder)
    _say(found, folder, file)


def _say(found: Any, folder: Path, file: Path | None) -> None:
    if file is not None:
        (folder / f"synthetic{file.suffix}").rename(file)
    rows = file or folder / "synthetic.parquet"
    give({"rows": rows, "folder": folder, "records": len(next(iter(found.values.values()))), "about": found.lines})
    for line in found.lines:
        click.echo(line)
    click.echo(f"Rows: {rows}; what they are good for: {folder}")


def _digits(part: str) -> tuple[str, int]:
    name, mark, count = part.rpartition("=")
    if not (name and mark and count.isdecimal()):
        raise UsageError(f"decimals of a column are --digits COLUMN=2; got {part}; write it so")
    return name, int(count)


_OWN = [
    click.Option(["--owners-column"], metavar="COLUMN", help="The column that says whose each record is."),
    click.Option(["--schema"], type=click.Path(path_type=Path), help="A public schema: the columns."),
    click.Option(["--bounds"], type=click.Path(path_type=Path), help="Or bounds: column = [low, high] or texts."),
    click.Option(["--cuts"], type=click.Path(path_type=Path), help="Cells of numbers: column = [edges], or how many."),
    click.Option(["--cells"], type=click.IntRange(1), help="So many even cells for all other numbers; without, a "
                 "private survey finds cells."),
    click.Option(["--drop"], multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated."),
    *names_options(),
    click.Option(["--target"], metavar="COLUMN", help="The column that the rows are to tell most about."),
    click.Option(["--rows"], type=int, metavar="N", help="How many rows.  [default: as many as records]"),
    click.Option(["--constraints"], type=click.Path(path_type=Path), help='What cannot be: impossible = ["sex = M and '
                 'relationship = Wife"].'),
    click.Option(["--model"], type=click.Choice(["tree", "mbi"]), default="tree", help="A tree of columns, or more "
                 "pairs by Private-PGM, where the package mbi is installed.  [default: tree]"),
    click.Option(["--digits"], multiple=True, metavar="COLUMN=N", help="Decimals of a column; may be repeated."),
    click.Option(["--hopeless"], is_flag=True, help="Make even what the noise will drown."),
    click.Option(["--seed"], type=int, help="Of drawing rows from the noisy tables; never of noise."),
    click.Option(["--dry"], is_flag=True, help="Say what noise will do and what it costs, from public numbers; spend "
                 "nothing."),
    click.Option(["--of"], type=click.Path(path_type=Path), help="Rows from a run that is there, of one machine or of "
                 "several ([synth] in consortium.toml); spend nothing."),
    click.Option(["--out"], type=click.Path(path_type=Path), help="A new folder, or a file .parquet or .csv "
                 f"beside it.  [default: {OUT.format('synth')}]"),
    click.Option(["--data-id"], metavar="TEXT", help="Name under which ledgers add up what is spent."),
    click.Option(["--wait"], type=float, default=60.0, help="Seconds for parties to come.  [default: 60]"),
]  # fmt: skip
_LATER = ("pool", "check_owners", "link")
_PROMISE = options_of(Accounting, PromiseSettings, Choosing, Computing, without=_LATER)
_OWNERS = options_of(OwnerSettings, without=("owners", "owner_sizes", "skew"))
command = of_records("synth", run_command, _OWN, [*_OWNERS, *with_delta_rule(_PROMISE)])
