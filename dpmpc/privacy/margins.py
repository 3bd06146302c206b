"""Public facts that are read off records by a margin."""


def decided(count: int, threshold: int, moved: int) -> bool | None:
    """Whether a count is beyond a threshold; None where a neighbour's count could lie on the other side.

    `moved`: how far the count of a neighbouring table can be from this one's, for the promise's own neighbours (a
    person moves as many as all of its records do).

    Guarantees: of two neighbours that both get an answer, both get the same. With True, count - moved > threshold, and
    the neighbour's count is count - moved at least, so its answer is not False; with False, the same the other way.
    Whoever gets None makes no public fact: the run ends, before anything is spent, with the way to state it.
    """
    if count - moved > threshold:
        return True
    return False if count + moved <= threshold else None
