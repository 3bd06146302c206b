"""Rows from the noisy tables of a run, at any of its processes: public post-processing, at no cost."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.run.files import WHOLE
from dpmpc.synthesis.source import FIRST, synthesis_of
from dpmpc.synthesis.values import check_digits, numbers_of
from dpmpc.tables.stats import reopened
from dpmpc.tables.synth import Synthetic, check_drawing, check_room, made_of
from dpmpc.tables.synth_columns import digits_of_columns


def made_from(
    out: Path, *, rows: int | None = None, model: str = "tree", digits: Mapping[str, int] | None = None,
    seed: int | None = None,
) -> Synthetic:  # fmt: skip
    """The synthetic table of the run in this folder. Errors: UsageError where there is none, or it has not ended."""
    whole = out / FIRST / WHOLE
    if not whole.is_file():
        raise UsageError(
            f"other rows are drawn of a run that made a synthetic table; {out} has none; name the folder of one"
        )
    source = synthesis_of(Plan.read(whole).source)
    check_drawing(rows, model, seed, digits)
    check_room(rows, len(source.known.names))
    check_digits(digits or {}, numbers_of(source.known))
    second = reopened(out)
    (first,) = second.earlier
    releases = (first, replace(second, earlier=()))
    places = digits_of_columns(second.tables.columns, {**dict(source.digits), **(digits or {})})
    return made_of(releases, source.target, source.constraints, rows=rows, model=model, places=places, seed=seed)
