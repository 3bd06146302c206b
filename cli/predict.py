"""`dpmpc predict`: a trained model applied to a CSV file."""

import csv
import sys
from pathlib import Path

import click

from dpmpc.errors import UsageError


@click.command("predict")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--csv",
    "source",
    required=True,
    type=click.Path(path_type=Path),
    help="Records with the model's feature columns, and a header.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the predictions here.  [default: standard output]")
def command(run: Path, source: Path, out: Path | None) -> None:
    """Predict with the model of the run directory RUN.

    Writes one CSV row a record: the predicted class and the probability of the positive class, or the predicted number.
    If the file has the target column too, accuracy or root mean squared error goes to standard error.

    Example: dpmpc predict runs/mine --csv new_patients.csv
    """
    from dpmpc.learning.predict import predict

    result = predict(run, source)
    try:
        file = sys.stdout if out is None else out.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"--out must be a file that can be written; {out}: {error.strerror}; name another") from None
    try:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(result.columns)
        for row in zip(*result.columns.values(), strict=True):
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in row])
    finally:
        if file is not sys.stdout:
            file.close()
    if result.score is not None:
        name, score = result.score
        figure = f"{score:.4f}" if name == "accuracy" else f"{score:.5g}"
        click.echo(f"{name} on {len(next(iter(result.columns.values())))} records: {figure}", err=True)
