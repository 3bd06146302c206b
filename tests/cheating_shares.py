"""Cheats of t of n checked parties on replicated shares: any messages that leave them are changed, alone and together.

Replicated keys follow from a seed, and a party has no other randomness that a result depends on: so whatever honest
parties release must be what they release when nobody cheats.

python tests/cheating_shares.py COUNT
"""

import functools
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
from cheating import Tamper, kinds, play, release
from cheating_many import random_change, some_coalition

from dpmpc.errors import DpmpcError
from dpmpc.mpc.numbers.field import Words

SIZES = [(5, 2), (4, 1), (5, 2), (6, 2), (5, 2), (5, 1)]  # five parties with two corrupt ones half of the time
Place = tuple[int, int, int]  # sender, receiver, label


@functools.cache
def honest_run(sizes: tuple[int, int]) -> tuple[Words, tuple[Place, ...]]:
    """What is released when nobody cheats, and every message of that."""
    results, wires = play(release, seed=0, sizes=sizes)
    assert all((result == results[0]).all() for result in results)
    return results[0], tuple(place[:3] for place in wires.sent)


def places_of(sizes: tuple[int, int], corrupt: Sequence[int]) -> list[Place]:
    """All that corrupt parties send to others."""
    return [place for place in honest_run(sizes)[1] if place[0] in corrupt and place[1] not in corrupt]


def judge(sizes: tuple[int, int], corrupt: Sequence[int], change: Tamper) -> str:
    """What becomes of a cheat: "released" is the one that must not be. Honest parties may finish with the right vector
    where the cheat came after it was fixed, or changed nothing."""
    results, _ = play(release, change, seed=0, sizes=sizes)
    honest_ones = [result for i, result in enumerate(results) if i not in corrupt]
    finished = [result for result in honest_ones if not isinstance(result, DpmpcError)]
    due = honest_run(sizes)[0]
    if any(len(result) != len(due) or (result != due).any() for result in finished):
        return "released"
    return "stopped" if not finished else "right for all" if len(finished) == len(honest_ones) else "right for some"


def main(count: int) -> None:
    """Random cheats by one party and by t, and what became of them."""
    random, found, unchanged = np.random.default_rng(), Counter[tuple[str, str]](), 0
    for k in range(count):
        sizes = SIZES[k % len(SIZES)]
        corrupt = some_coalition(*sizes, random)
        change = random_change(places_of(sizes, corrupt), random)
        outcome = judge(sizes, corrupt, change)
        names = {_kinds(sizes)[label] for *_, label in change.places}
        unchanged += not change.made
        found["+".join(sorted(names)) if len(names) < 2 else "several", outcome] += 1
    for (kind, outcome), times in sorted(found.items()):
        print(f"{kind:22} {outcome:14} {times}")
    bad = sum(times for (_, outcome), times in found.items() if outcome == "released")
    print(f"{count} cheats ({unchanged} came to nothing, for the run had ended), {bad} released")


@functools.cache
def _kinds(sizes: tuple[int, int]) -> dict[int, str]:
    return kinds(*sizes)


if __name__ == "__main__":
    main(int(sys.argv[1]))
