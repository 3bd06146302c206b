"""What every source must do: say the same after a plan has carried it, and bounds that a calibration can use."""

from collections.abc import Sequence

from dpmpc.errors import UsageError
from dpmpc.extend.failed import hold
from dpmpc.learning.source import SOURCES, Source


def check_source(source: Source, sizes: Sequence[int], dimension: int | None = None) -> None:
    """Holds a source against what a plan needs of it: it is its class's entry, survives `to_json` and `from_json`,
    refuses fields that it does not know, knows the length of its vectors or takes `dimension`, and every bound is
    positive, with l2 <= l1 <= sqrt(d) l2 and linf <= l2, and no larger for a record than for a whole owner.

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
    if source.coordinates is not None:
        hold(not _taken(source, units[0], d + 1), "a source of known length refuses another")


def _taken(source: Source, neighbours: str, dimension: int) -> bool:
    try:
        source.check(neighbours, dimension)
    except UsageError:
        return False
    return True
