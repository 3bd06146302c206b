"""`dpmpc predict`: a trained model applied to new records."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import options_stating
from dpmpc.cli.sources import memory_of, source_of, source_options
from dpmpc.show.terminal import harmless

if TYPE_CHECKING:
    from dpmpc.intake.spelling import Spelling


_OF_FILES = ("header", "names", "no_header", "below", "footer", "encoding", "misfits")  # each file has its own


def _own_spelling(run: Path) -> "Spelling":
    """How the values of this run's own records were spelled, where it was started here."""
    from dpmpc.intake.spelling import Spelling
    from dpmpc.planning.request import Request
    from dpmpc.run.folder import request_path, run_folder

    folder = run_folder(run)
    if not request_path(folder).is_file():
        return Spelling()
    own = Request.from_json(json.loads(request_path(folder).read_text(encoding="utf-8"))).spelling.options()
    if said := {name: value for name, value in own.items() if name not in _OF_FILES}:
        click.echo(f"read as this run's own records were: {options_stating(said)}", err=True)
    return Spelling(**said)


@click.command("predict")
@click.argument("run", type=click.Path(path_type=Path))
@partial(source_options, own=_own_spelling)
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="A column of the records to write beside their predictions, such as an id to join them by; may be repeated.  "
    "[default: the number of each record]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the predictions here: .csv, .tsv, .parquet, .jsonl, .arrow, .feather; text also .gz or .zst.  "
    "[default: CSV on standard output]",
)
def command(
    run: Path,
    csv: Path | None,
    records: str | None,
    database: str | None,
    sql: str | None,
    memory: str | None,
    spelling: "Spelling",
    keep: tuple[str, ...],
    out: Path | None,
) -> None:
    """Predict with the model of the run directory RUN, or of a site's kit.

    Writes one row a record: its number or the columns to keep, the predicted class and the probability of the positive
    class, or the predicted number. The records need the model's feature columns only; others are not used, and named.
    If they have the target column too, accuracy, beside that of always saying the commonest class, or root mean squared
    error goes to standard error, and so do values that did not fit the model's schema. Records without a target are
    predicted all the same.

    \b
    Examples:
      dpmpc predict demo --csv new_patients.csv
      dpmpc predict demo --records new.parquet --keep patient --out predictions.parquet
    """
    from dpmpc.intake.writing import print_table, write_table
    from dpmpc.learning.predict import predict
    from dpmpc.run.folder import run_folder

    source, folder = source_of(csv, records, database, sql), run_folder(run)
    result = predict(folder, source, keep=keep, memory=memory_of(memory), spelling=spelling)
    written = result.joined()
    give({
        "predictions": written if out is None else out, "records": result.n, "score": result.score,
        "base": result.base, "unused": result.unused,
    })  # fmt: skip
    if out is None:
        print_table(written, sys.stdout, harmless if sys.stdout.isatty() else str)
    else:
        write_table(written, out)
    if result.beyond is not None:
        click.echo(harmless(result.beyond), err=True)
    for counts in result.counts:
        if counts.warning is not None:
            click.echo(f"warning: {counts.warning}", err=True)
    if result.alone is not None:
        click.echo(
            f"warning: the model says '{result.alone}' of every record; the probabilities still tell records apart",
            err=True,
        )
    if result.line is not None:
        click.echo(result.line, err=True)
