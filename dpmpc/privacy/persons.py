"""How far a person moves the aggregate, who has so many places at each of so many owners.

An owner keeps the first K records of each person, in its records' order, and fills the person's places up with zero
vectors, so that its number of places, K for each person, is public and does not move with the person's records. A
neighbour replaces the person: the contents of its places, at every owner where it has some.

Guarantees: let r_j bound how far one place moves the vector of owner j, whether it is filled on both neighbours or on
one. From one neighbour to the other, K places change one after another: owner j's vector moves by K r_j, in every norm,
and by no more than if all its records were replaced. The vectors of S owners move at the same time, so the mean by the
sum of the S largest w_j times that (triangle inequality; attained by records that are all alike). Rounding, which comes
on top, is of each of the S vectors.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, islice, repeat

from dpmpc.lazy import dataclass
from dpmpc.privacy.checks import check_count
from dpmpc.privacy.sensitivity import Sensitivity, Weights, owner_weights

Moves = Mapping[int, Sensitivity]  # by how many places an owner has: of its vector


@dataclass(frozen=True)
class Persons:
    """A person has at most `rows` records, in as many places, at each of at most `owners` owners."""

    rows: int
    owners: int

    def __post_init__(self) -> None:
        check_count("<<person_rows>>", self.rows)
        check_count("<<person_owners>>", self.owners)


def person_sensitivity(
    place: Moves, whole: Moves, sizes: Sequence[int], weights: Weights, persons: Persons
) -> Sensitivity:
    """The sensitivity of the weighted mean of the owners' vectors where a person is replaced; every norm.

    `place`: how far one place moves an owner's vector; `whole`: how far all records of an owner do."""
    each: dict[int, Sensitivity] = {}
    for size in set(sizes):
        some, most = place[size] * persons.rows, whole[size]
        each[size] = Sensitivity(min(some.l1, most.l1), min(some.l2, most.l2), min(some.linf, most.linf))
    weighted = Counter(zip(sizes, owner_weights(sizes, weights).tolist(), strict=True))  # many owners are alike
    moved = [(each[size] * weight, owners) for (size, weight), owners in weighted.items()]

    def most_of(norm: str) -> float:
        greatest = sorted(((getattr(part, norm), owners) for part, owners in moved), reverse=True)
        return math.fsum(islice(chain.from_iterable(repeat(*one) for one in greatest), persons.owners))

    l2 = most_of("l2")
    return Sensitivity(most_of("l1"), l2, most_of("linf"), {"loss": l2})


def larger(one: Sensitivity, other: Sensitivity) -> Sensitivity:
    """Of a vector that moves by one or by the other."""
    return Sensitivity(max(one.l1, other.l1), max(one.l2, other.l2), max(one.linf, other.linf), one.parts)
