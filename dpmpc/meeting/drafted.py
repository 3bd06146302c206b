"""A first schema of what a meeting opened: what of every column stands out of the noise of all sites together.

It is what a survey's findings lead to, by the same rules, but that a meeting has no moments: within an octave numbers
are taken to lie evenly. Its bounds are "survey", and it carries the promise of the meeting (`Schema.found`), which is
joined to that of every run by this schema.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError, python_spelling, spelt
from dpmpc.learning.source import Opening
from dpmpc.learning.survey_columns import ANY, surveyed_schema
from dpmpc.learning.survey_numbers import CELLS, NUMBER
from dpmpc.learning.survey_words import Name, stated_names
from dpmpc.meeting.differences import ONE, ZERO
from dpmpc.records.draft import label_of, toml_of
from dpmpc.records.schema import Classes, FoundBy, Labels, Range, Schema, Target, with_names

if TYPE_CHECKING:
    from dpmpc.meeting.source import MeetingSource

Floats = NDArray[np.float64]
_HEAD = (
    "# Found by a meeting of sites: what stands out of its noise. Where ranges, lists or classes are known without",
    "# records, put these here. Its own promise ([[found]]) is joined to that of every run by this schema.",
)


def drafted(
    meeting: "MeetingSource", counts: Floats, opened: Opening, named: Mapping[str, Mapping[int, Name]]
) -> tuple[str | None, str]:
    """The schema as TOML, None where there is none, and a line on it. counts (columns, cells): of all sites; named:
    words of buckets, by column."""
    if not meeting.target:
        return None, "A schema is drafted where the column to predict is named."
    features = tuple(name for name in meeting.columns if name != meeting.target)
    noise = opened.last.noise * math.sqrt(len(opened.owners))
    try:
        if not features:
            raise UsageError("a schema has columns beside the target; none was compared; name others")
        target = _target(meeting, counts[meeting.columns.index(meeting.target)], noise, named.get(meeting.target, {}))
        draft = Schema((), target, unknown=features)
        asked = replace(meeting.asks, words=())
        found = asked.findings(_as_survey(meeting, counts), sum(opened.sizes), noise)
        made = with_names(surveyed_schema(found, draft), {name: stated_names(of) for name, of in named.items()})
    except UsageError as error:
        return None, f"No schema was drafted: {spelt(error.message, python_spelling)}"
    epsilon, delta = opened.promised
    if math.isfinite(epsilon):
        of = opened.neighbours, not opened.counted, opened.holds_if
        made = made.found_by(FoundBy(opened.run, epsilon, delta, *of))
    left = [name for name in features if name not in {column.name for column in made.columns}]
    more = f"; nothing stood out of {', '.join(left[:8])}" if left else ""
    return toml_of(made, head=_HEAD), f"schema.toml: a first schema of all sites' records as they are{more}."


def _as_survey(meeting: "MeetingSource", counts: Floats) -> Floats:
    """(coordinates,) the sum that a survey of these columns would have opened, with no moments."""
    found = np.zeros((len(meeting.columns), NUMBER + meeting.buckets))
    found[:, :CELLS], found[:, NUMBER:] = counts[:, :CELLS], counts[:, CELLS:]
    times = np.array([meeting.asks.times(name) for name in meeting.columns])
    return np.asarray((found * times[:, None]).reshape(-1))


def _target(meeting: "MeetingSource", counts: Floats, noise: float, named: Mapping[int, Name]) -> Target:
    """What is predicted: the classes that are stated; two words that have names; 0 and 1, or 1 and 2, where these stand
    out alone; else a quantity, whose range is then found. Errors: words, whose texts nobody knows here."""
    name, stated = meeting.target, meeting.classes
    if len(stated) == 2:
        return Labels(name, stated[1:], stated[:1])
    if stated:
        return Classes(name, stated)
    high = meeting.asks.high(noise / meeting.asks.times(name))
    kept = {int(cell) for cell in np.flatnonzero(counts > high) if cell}
    for pair, codes in (((ZERO, ONE), ("0", "1")), ((ONE, ONE + 1), ("1", "2"))):
        if kept == set(pair):
            return Labels(name, codes[1:], codes[:1])
    if len(kept) == 2 and kept == {CELLS + at for at in named}:
        first, second = (name.word for name in named.values())
        return label_of(name, [first, second], None)
    if not kept or any(cell >= CELLS for cell in kept):
        raise UsageError(
            f"a target's numbers stand out, or classes are stated; those of '{name}' do not; name them by <<classes>>"
        )
    return Range(name, *ANY)
