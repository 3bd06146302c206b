"""What a coalition of t parties sees is independent of what it must not learn: exactly, over all it does not know."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from inprocess import Network, Subset, Words

from dpmpc.circuits.engine import Bundle, Engine
from dpmpc.circuits.program import program_of
from dpmpc.mpc.contract.lanes import to_planes
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.replicated.layout import SharingLayout

WIRES = 3
BITS = 13  # lanes run through all values of at most so many bits
PLANES = to_planes(np.arange(1 << BITS, dtype=np.uint64), BITS)
LANES = 1 << BITS
CASES = [(3, 1), (4, 1), (5, 2)]


async def circuit(engine: Engine) -> Bundle:
    """Two rounds of ANDs on three secret bits: products of shared values and of a product."""
    x = engine.random_bits(WIRES)
    first = await engine.and_(x[:2], x[1:])
    return await engine.and_(first[0] ^ engine.not_(x[2]), first[1])


PROGRAM = program_of(circuit)


class Fixed:
    """A stream that is the same in every lane."""

    def __init__(self, prg: Prg) -> None:
        self._prg = prg

    def words(self, shape: tuple[int, ...]) -> Words:
        bits = self._prg.words((*shape[:-1], 1)) & np.uint64(1)
        return bits * np.full(shape, 0xFFFFFFFFFFFFFFFF, dtype=np.uint64)

    reserve = words


class Enumerated:
    """A stream of which every bit is one more digit of the lane's number; the same for all who hold it."""

    def __init__(self, places: dict[tuple[Any, ...], int], domain: tuple[Any, ...]) -> None:
        self._places, self._domain, self._position = places, domain, 0

    def words(self, shape: tuple[int, ...]) -> Words:
        rows = []
        for _ in range(int(np.prod(shape[:-1]))):
            rows.append(PLANES[self._places.setdefault((*self._domain, self._position), len(self._places))])
            self._position += 1
        return np.array(rows).reshape(shape)

    reserve = words


class Zeros:
    """A mask that was forgotten."""

    def words(self, shape: tuple[int, ...]) -> Words:
        return np.zeros(shape, dtype=np.uint64)

    reserve = words


def views_differ(n: int, t: int, coalition: tuple[int, ...], forgotten: tuple[int, ...] = (), seed: int = 0) -> bool:
    """Whether the law of what the coalition receives differs between two values of the components it lacks.

    All that it knows is fixed; all that it does not know, one component of each random bit and the AND masks of one
    subset, takes all values equally often. Given what the coalition knows, that component is the secret. `forgotten`:
    parties whose masks by that subset are left out.
    """
    missing: Subset = tuple(i for i in range(n) if i not in coalition)
    places: dict[tuple[Any, ...], int] = {("random", 1, k): k for k in range(WIRES)}

    def stream(subset: Subset, *domain: Any) -> Any:
        if subset != missing:
            return Fixed(Prg(bytes(subset), seed, *domain))
        if domain[0] == "and" and domain[2] in forgotten:
            return Zeros()
        return Enumerated(places, domain)

    network = Network(n, t, stream)
    network.run(lambda session: SharingBatch(session, 1, LANES).run(PROGRAM))
    assert (WIRES < len(places) or forgotten) and len(places) <= BITS
    lanes = 1 << len(places)
    seen = [
        np.unpackbits(payload.reshape(-1, LANES // 64).view(np.uint8), axis=1)
        for (sender, receiver), payloads in sorted(network.sent.items())
        if receiver in coalition and sender not in coalition
        for payload in payloads
    ]
    numbers = np.packbits(np.unpackbits(PLANES.view(np.uint8), axis=1), axis=0)  # of each lane, in the same order
    assert len(set(map(bytes, numbers.T))) == LANES
    index = _lane_numbers()
    view = np.packbits(np.concatenate(seen), axis=0)
    laws: dict[int, Counter[bytes]] = {}
    for position in np.flatnonzero(index < lanes):
        laws.setdefault(int(index[position]) % (1 << WIRES), Counter())[view[:, position].tobytes()] += 1
    assert len(laws) == 1 << WIRES
    return len({frozenset(law.items()) for law in laws.values()}) > 1


def _lane_numbers() -> np.ndarray:
    """The number that each column of the unpacked planes stands for."""
    bits = np.unpackbits(PLANES.view(np.uint8), axis=1).astype(np.int64)
    return np.tensordot(1 << np.arange(BITS), bits, 1)


def coalitions(n: int, t: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations(range(n), t))


@pytest.mark.parametrize(("n", "t"), CASES)
def test_views_of_every_coalition_have_one_law(n: int, t: int) -> None:
    for seed, coalition in enumerate(coalitions(n, t)):
        assert not views_differ(n, t, coalition, seed=seed)


@pytest.mark.parametrize(("n", "t"), CASES)
def test_a_forgotten_mask_is_seen(n: int, t: int) -> None:
    """For each coalition, and each party whose part of a product involves the component that the coalition lacks."""
    layout = SharingLayout.of(n, t)
    caught = 0
    for coalition in coalitions(n, t):
        missing = tuple(i for i in range(n) if i not in coalition)
        assert any(views_differ(n, t, coalition, missing, seed) for seed in range(4))
        for j in missing:
            parts = layout.products(j)
            place = layout.mine(j).index(missing)
            involved = any(k == place or place in others for k, others in parts)
            if involved and layout.target(j) != missing:
                assert any(views_differ(n, t, coalition, (j,), seed) for seed in range(4))
                caught += 1
    assert caught >= len(coalitions(n, t))
