"""`dpmpc meet`: sites compare their columns under a small promise, before they run anything together."""

import os
from pathlib import Path
from typing import Any

import click

from dpmpc.aggregation.plan.settings import Accounting, Choosing, Computing, Noise
from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import names_options, options_of, own_option
from dpmpc.cli.sources import memory_of, of_records, source_of, warn_of_filters


def run_command(
    csv: Path | None, records: str | None, database: str | None, sql: str | None, memory: str | None,
    owners_column: str, columns: tuple[str, ...], target: str, classes: tuple[str, ...], twice: tuple[str, ...],
    drop: tuple[str, ...], named: tuple[str, ...], word_list: Path | None, spell: tuple[str, ...],
    spell_epsilon: float | None, epsilon: float, delta: float, dry: bool,
    out: Path | None, data_id: str | None, budget: str | None, account: str | None, wait: float, spelling: Any,
    **settings: Any,
) -> None:  # fmt: skip
    """See where sites' records are coded otherwise than the others', before the day: months for years, exchanged
    labels, other words, other units.

    One release under a promise of its own: the cells of every column (missing, sign and octave of numbers, hashed
    words) are counted by owner, ONE noise vector is added inside MPC, and what differs by more than noise and chance
    explain is said, column by column and site by site. docs/meet.md has what is seen from how many records on. Over
    several machines the same is [meet] in consortium.toml; a site takes part where its limits.toml allows it by name.

    \b
    Examples:
      dpmpc meet --csv hospitals.csv --owners-column site --target readmitted --dry
      dpmpc meet --csv hospitals.csv --owners-column site --target readmitted --epsilon 0.5 --out met
    """
    from dpmpc.learning.survey_words import read_words
    from dpmpc.tables import meet as meeting

    os.umask(0o077)  # what a run writes is for this user alone
    given: dict[str, Any] = {
        "owners": owners_column, "target": target, "classes": classes, "twice": twice, "drop": drop, "named": named,
        "spell": spell, "spell_epsilon": spell_epsilon,
        "epsilon": epsilon, "delta": delta, "memory": memory_of(memory), "spelling": spelling, **settings,
    }  # fmt: skip
    source = source_of(csv, records, database, sql)
    warn_of_filters(sql, settings)
    if dry:
        click.echo(meeting.dry(source, columns, **given).text(), nl=False)
        return
    found = meeting.meet(
        source, columns, words=() if word_list is None else read_words(word_list), data_id=data_id, budget=budget,
        account=account, out=out, wait=wait,
        tell=lambda line: click.echo(line, err=True), **given,
    )  # fmt: skip
    give({**found.outcome.section, "folder": out})
    click.echo(found.text(), nl=False)
    for line in found.outcome.about[: 1 if found.opened is None else 3]:
        click.echo(line, err=True)


_OWN = [
    click.Option(["--owners-column"], required=True, metavar="COLUMN", help="The column that says whose each record "
                 "is."),
    click.Option(["--column", "columns"], multiple=True, metavar="COLUMN", help="One to compare; may be repeated.  "
                 "[default: all]"),
    click.Option(["--target"], default="", metavar="COLUMN", help="The column to predict, for a first schema."),
    click.Option(["--classes"], multiple=True, metavar="VALUE", help="A class of the target, where they are "
                 "words that everybody knows; once for each, the positive one last."),
    click.Option(["--twice"], multiple=True, metavar="COLUMN", help="A column that counts twice: half the noise of the "
                 "others, such as the target; may be repeated."),
    *names_options(spell=False),
    click.Option(["--spell"], multiple=True, metavar="COLUMN", help="A column whose words are opened, of those that "
                 "enough records of all owners together have: a second release; may be repeated."),
    click.Option(["--spell-epsilon"], type=float, metavar="NUMBER", help="The promise of that release.  [default: "
                 "--epsilon]"),
    click.Option(["--drop"], multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated."),
    own_option("epsilon", default=0.1),
    own_option("delta", default=1e-5),
    click.Option(["--dry"], is_flag=True, help="Say how large a difference would be seen, and which epsilon it takes; "
                 "spend nothing."),
    click.Option(["--out"], type=click.Path(path_type=Path), help="A new folder for the page and the first schema."),
    click.Option(["--data-id"], metavar="TEXT", help="Name under which ledgers add up what is spent."),
    *options_of(Accounting),
    click.Option(["--wait"], type=float, default=60.0, help="Seconds for parties to come.  [default: 60]"),
]  # fmt: skip
_LATER = ("pool", "check_owners", "link", "scale", "calibration", "law", "sampler")
command = of_records("meet", run_command, _OWN, options_of(Noise, Choosing, Computing, without=_LATER))
