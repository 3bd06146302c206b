"""What every source must do: say the same after a plan has carried it, and bounds that a calibration can use."""

import json
from collections.abc import Sequence

import numpy as np

from dpmpc.errors import UsageError
from dpmpc.extend.failed import hold
from dpmpc.learning.source import SOURCES, Opening, Source, Sum
from dpmpc.show.answers_page import as_html
from dpmpc.show.files import check_names
from dpmpc.show.forms import as_text, values


def check_source(source: Source, sizes: Sequence[int], dimension: int | None = None) -> None:
    """Holds a source against what a plan needs of it: it is its class's entry, survives `to_json` and `from_json`,
    refuses fields that it does not know, knows the length of its vectors or takes `dimension`, and every bound is
    positive, with l2 <= l1 <= sqrt(d) l2 and linf <= l2, and no larger for a record than for a whole owner. What it
    says of an opened sum is JSON, can be shown, and is the same again; what it makes up has the columns that it reads.

    `sizes`: records of each owner. Errors: ConformanceError. How far a record really moves its vectors is the source's
    own to prove, and to test.
    """
    kind = type(source).KIND
    hold(kind in SOURCES and SOURCES[kind] is type(source), f"a source is the entry of its KIND; {kind!r} is another")
    again = type(source).from_json(source.to_json())
    hold(again == source and again.to_json() == source.to_json(), "a plan carries a source as it is")
    try:
        type(source).from_json({**source.to_json(), "no such field": 1})
    except UsageError:
        pass
    else:
        hold(False, "a source refuses a field that it does not know")
    d = source.coordinates if source.coordinates is not None else dimension
    hold(d is not None and d > 0, "a source says its length, or it is given")
    assert d is not None
    hold(source.clip > 0, "a source's clip is positive")
    units = [unit for unit in source.UNITS if _taken(source, unit, d)]
    hold(bool(units), "a source takes one of its kinds of neighbours")
    for weights in ("equal", "size"):
        for neighbours in units:
            levels = source.levels(neighbours, sizes, weights, d)
            hold(neighbours in levels, f"a promise for {neighbours} has a bound")
            for name, moved in levels.items():
                near = 1 + 1e-9
                hold(0 < moved.l2 <= moved.l1 * near, f"{name}: 0 < l2 <= l1; got {moved}")
                hold(moved.l1 <= d**0.5 * moved.l2 * near, f"{name}: l1 <= sqrt(d) l2; got {moved}")
                hold(0 < moved.linf <= moved.l2 * near, f"{name}: 0 < linf <= l2; got {moved}")
            if {"record", "owner"} <= levels.keys():
                least = levels["owner"].l2 * (1 + 1e-6)
                hold(levels["record"].l2 <= least, "a record moves the mean no further than its whole owner")
    _check_told(source, sizes, d)
    if source.coordinates is not None:
        hold(not _taken(source, units[0], d + 1), "a source of known length refuses another")


def _check_told(source: Source, sizes: Sequence[int], dimension: int) -> None:
    """Of sums that noise has carried to either side, and to 0."""
    for sign in (1.0, -1.0, 0.0):
        total = sign * np.arange(1.0, dimension + 1) * sum(sizes) / dimension
        opened = Opening(
            run="r", data="d", sums=(Sum(total, sum(sizes), float(sum(sizes))),), owners=tuple(range(len(sizes))),
            everybody=len(sizes), sizes=tuple(sizes), counted=True, divisor=sum(sizes), releases=1, guarantee="none",
            reach=lambda confidence: 2.0,
        )  # fmt: skip
        found = source.outcome(opened)
        check_names(found)
        hold(as_html(found) == as_html(source.outcome(opened)), "an outcome follows from what was opened alone")
        try:
            json.dumps({**found.section, **values(found)}, allow_nan=False)
        except (TypeError, ValueError) as error:
            hold(False, f"an outcome's section and numbers are JSON values; {error}")
        hold(not found.answers or bool(as_text(found)), "numbers can be read")
    if source.OF_RECORDS and source.draft is None and not source.TRAINS:
        columns = [name for name, _ in source.invented(None)]
        hold(set(source.reads) <= set(columns), f"made-up records have the columns that are read; got {columns}")


def _taken(source: Source, neighbours: str, dimension: int) -> bool:
    try:
        source.check(neighbours, dimension)
    except UsageError:
        return False
    return True
