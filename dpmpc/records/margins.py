"""Public facts that are read off records by a margin."""


def decided(count: int, threshold: int, moved: int) -> bool | None:
    """Whether a count is beyond a threshold; None where a neighbour's count could lie on the other side.

    `moved`: how far the count of a neighbouring table can be from this one's, for the promise's own neighbours (a
    person moves as many as all of its records do).

    Guarantees: of two neighbours that both get an answer, both get the same. With True, count > threshold, so that the
    neighbour's count is above threshold - moved and its answer is not False; with False, count <= threshold - moved, so
    that the neighbour's count is at most threshold and its answer is not True. Whoever gets None makes no public fact:
    the run ends, before anything is spent, with the way to state it.
    """
    if count > threshold:
        return True
    return False if count <= threshold - moved else None
