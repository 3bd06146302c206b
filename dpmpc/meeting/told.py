"""What a meeting opened, for people: what differs and how, the cells of every column site by site, and a first
schema."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.learning.source import Opening
from dpmpc.learning.survey_numbers import CELLS, LOWEST, OCTAVES
from dpmpc.learning.survey_words import Name, known_words
from dpmpc.meeting.differences import EXCHANGED, MISSING, ZERO, Difference, differences, weights_of
from dpmpc.meeting.drafted import drafted
from dpmpc.outcome import Answer, Level, Line, Number, Outcome, spelled

if TYPE_CHECKING:
    from dpmpc.meeting.source import MeetingSource

Floats = NDArray[np.float64]

SCHEMA = "schema.toml"
_SHOWN = 4.0  # deviations of the noise of all sites together that a cell must exceed to be shown


def told(
    meeting: "MeetingSource",
    opened: Opening,
    words: Sequence[str] = (),
    known: Mapping[str, Sequence[str]] | None = None,
    about: Sequence[str] = (),
) -> Outcome:
    """The outcome, of the owners that are in the sum; `words`: public candidates for names, beside those that everybody
    knows; `known`: by column, words that a release of their own has opened, and `about`: lines on its promise."""
    names = opened.names or tuple(f"owner {j}" for j in range(opened.everybody))
    present = list(opened.owners)
    here = [names[j] for j in present]
    counts = meeting.counts(opened.last.total)[present]
    named = meeting.names(opened.last.total, opened.last.noise, (*known_words(), *meeting.classes, *words), known)
    answers, lines, found = [], [], []
    deviations = np.array([opened.last.noise / meeting.asks.times(column) for column in meeting.columns])
    weights = weights_of(counts, opened.sizes, deviations)
    for k, column in enumerate(meeting.columns):
        noise = float(deviations[k])
        each = differences(counts[:, k], opened.sizes, noise, weights.size, weights[:, k])
        lines += [said(column, here, difference) for difference in each]
        found += [section_of(column, here, difference) for difference in each]
        answers.append(_answer(column, counts[:, k], here, opened, noise, named.get(column, {})))
    if not found:
        lines = ["No site differs from the others in any column by more than noise and chance explain."]
    schema, note = drafted(meeting, counts.sum(axis=0), opened, named)
    files = {} if schema is None else {SCHEMA: schema}
    lines.append(note)
    section: dict[str, Any] = {"sites": here, "differences": found, "noise": opened.last.noise}
    if meeting.named:
        section["names"] = {name: {str(at): vars(word) for at, word in each.items()} for name, each in named.items()}
    return Outcome(
        tuple(answers), title="Sites meet", level=Level(), about=(opened.guarantee, *about), section=section,
        files=files, lines=tuple(lines),
    )  # fmt: skip


def said(column: str, names: list[str], found: Difference) -> str:
    """A line on a difference."""
    who = f"{column}: {names[found.site]} differs from {_others(names, found.site)}"
    if found.test == "missing":
        mine, theirs = (min(max(share, 0.0), 1.0) for share in found.missing)
        return f"{who}: {mine:.0%} of its records have no value, {theirs:.0%} of the others'"
    text = who
    if found.share > 2 * found.noise and found.coding != EXCHANGED:
        text += (
            f": about {min(found.share, 1.0):.0%} of its records (give or take {2 * found.noise:.0%}) lie where few of "
            "the others' do"
        )
    return f"{text}; as it would with {found.coding}" if found.coding else text


def _others(names: list[str], site: int) -> str:
    rest = [name for j, name in enumerate(names) if j != site]
    return rest[0] if len(rest) == 1 else "the others"


def section_of(column: str, names: list[str], found: Difference) -> dict[str, Any]:
    """The same as JSON values."""
    finite = math.isfinite(found.noise)
    return {
        "column": column, "site": names[found.site], "test": found.test, "chance": found.chance,
        "coding": found.coding, "share": found.share, "noise": found.noise if finite else None,
        "missing": list(found.missing),
    }  # fmt: skip


def cell_name(cell: int, named: Mapping[int, Name] | None = None) -> str:
    """What is in a cell; `named`: the words of buckets, of those that have a name."""
    if cell >= CELLS:
        at = cell - CELLS
        return f"{named[at].word} [bucket {at}]" if named and at in named else f"bucket {at}"
    if cell in (MISSING, ZERO):
        return "missing" if cell == MISSING else "0"
    sign, octave = divmod(cell - 2, OCTAVES)
    low, high = math.ldexp(1.0, LOWEST + octave), math.ldexp(2.0, LOWEST + octave)
    low, high = (low, high) if sign else (-high, -low)
    return f"{spelled(low)} to {spelled(high)}"


def _answer(
    column: str, counts: Floats, names: list[str], opened: Opening, noise: float, named: Mapping[int, Name]
) -> Answer:
    """A column's cells that stand out of all sites together, and the rest, in percent of each site's records."""
    total = counts.sum(axis=0)
    kept = np.flatnonzero(total > _SHOWN * noise * math.sqrt(len(counts)))
    cells = [MISSING, *(int(cell) for cell in kept if cell != MISSING)]
    lines = []
    half = opened.reach(Level().confidence)
    for site, name in enumerate(names):
        n = opened.sizes[site]
        shown = [(cell_name(cell, named), float(counts[site, cell]), 1) for cell in _in_order(cells)]
        shown.append(("anywhere else", n - math.fsum(count for _, count, _ in shown), len(cells)))
        for label, count, many in shown:
            deviation = noise * math.sqrt(many) / n
            share = count / n
            number = Number(share, deviation, share - half * deviation, share + half * deviation)
            lines.append(Line((name, label), "percent", number.mapped(100.0)))
    return Answer(column, ("site", "cell"), tuple(lines), grouped=True)


def _in_order(cells: list[int]) -> list[int]:
    """Missing, numbers as they rise, buckets."""
    def place(cell: int) -> tuple[int, int]:
        if cell == MISSING or cell >= CELLS:
            return (0, 0) if cell == MISSING else (2, cell)
        if cell == ZERO:
            return 1, 0
        return 1, (cell - 1 - OCTAVES) if cell >= 2 + OCTAVES else -(cell - 1)

    return sorted(cells, key=place)
