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
from cheating_many import Place, random_change, some_coalition, tell

from dpmpc.errors import DpmpcError
from dpmpc.mpc.numbers.field import Words

SIZES = [(5, 2), (3, 1), (5, 2), (3, 1), (4, 1)] * 2 + [(5, 1), (6, 2)]  # mostly three, and five of whom two cheat


@functools.cache
def honest_run(sizes: tuple[int, int]) -> tuple[Words, tuple[Place, ...]]:
    """What is released when nobody cheats, and every message of that."""
    results, wires = play(release, seed=0, sizes=sizes)
    assert all((result == results[0]).all() for result in results)
    return results[0], tuple(place[:3] for place in wires.sent)


@functools.cache
def places_of(sizes: tuple[int, int], corrupt: tuple[int, ...]) -> dict[Place, bytes]:
    """All that corrupt parties send to others, and what they send there in another attempt, whose keys are others."""
    _, wires = play(release, seed=1, sizes=sizes)
    sent = {(s, r, label): payload for s, r, label, payload in wires.sent}
    return {place: sent[place] for place in honest_run(sizes)[1] if place[0] in corrupt and place[1] not in corrupt}


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
        try:
            outcome = judge(sizes, corrupt, change)
        except TimeoutError:
            outcome = "left waiting"
        names = {_kinds(sizes)[label] for *_, label in change.places}
        unchanged += not change.made
        found["+".join(sorted(names)) if len(names) < 2 else "several", outcome] += 1
        if (k + 1) % 1000 == 0 or k + 1 == count:
            tell(found, unchanged)


@functools.cache
def _kinds(sizes: tuple[int, int]) -> dict[int, str]:
    return kinds(*sizes)


if __name__ == "__main__":
    main(int(sys.argv[1]))
