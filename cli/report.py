"""`dpmpc report`: a run as one page to read, check and sign."""

from pathlib import Path

import click

from dpmpc.cli.everywhere import give


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Where the page goes.  [default: report.html in RUN]"
)
@click.option(
    "--ledgers",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder with the ledgers of other runs on the same data.  [default: the folder that RUN is in]",
)
@click.option(
    "--curves",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write an additive model as JSON too: the curve of each column, by which others can predict the same.",
)
def command(run: Path, out: Path | None, ledgers: Path | None, curves: Path | None) -> None:
    """Write the finished run in the directory RUN as one HTML page, for whoever answers for the data.

    The page says what was promised in plain words and exactly, who could see what, what was verified and what that
    cannot show, the budget before and after, schema, noise, cost, warnings, versions and digests. It needs no network
    and prints. Without verify.json the transcripts' structure is checked while the page is made. Of a run over several
    machines every owner's folder or kit gives a page; a party's gives one of answers to questions alone. Verdicts that
    parties sent (verify_*.json in RUN) are on it. The page of questions has the answers, that of a synthetic table what
    its rows are good for.

    \b
    Examples:
      dpmpc report demo
      dpmpc report demo --ledgers runs --out demo.html
      dpmpc report demo --curves curves.json
    """
    from dpmpc.dossier.facts import facts_of, of_a_party
    from dpmpc.dossier.page import write_page
    from dpmpc.errors import UsageError
    from dpmpc.learning.model import read_model
    from dpmpc.run.folder import run_folder
    from dpmpc.tables.answer_files import ANSWERS

    run = run_folder(run)
    path = out or run / "report.html"
    try:
        if of_a_party(run) and (run / ANSWERS).exists():
            from dpmpc.folders import write_file
            from dpmpc.local.delivering import outcome_in
            from dpmpc.show.answers_page import as_html

            write_file(path, as_html(outcome_in(run)))
        else:
            write_page(facts_of(run, ledgers), path)
        if curves is not None:
            read_model(run).additive.write(curves)
    except OSError as error:
        raise UsageError(f"the page must be written; {path}: {error.strerror}; name another with --out") from None
    give({"page": path, "curves": curves})
    click.echo(path)
