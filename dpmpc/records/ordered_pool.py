"""Work on many pieces by all cores, whose results come in the order of the pieces."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(work: Callable[[Piece], Result], pieces: Iterable[Piece], ahead: int) -> Iterator[Result]:
    """work(piece) of every piece, by a thread a core, with at most so many pieces a core begun. What is done of a piece
    must not depend on others, and pieces are made by the thread that asks. Errors: those of `work` and of `pieces`."""
    many, rest = cores(), iter(pieces)
    first = list(islice(rest, 2))
    if many == 1 or len(first) < 2:  # not worth a thread
        yield from map(work, chain(first, rest))
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(many) as pool:
        for piece in chain(first, rest):
            waiting.append(pool.submit(work, piece))
            if len(waiting) >= ahead * many:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
