"""What every backend must do: shares of vectors come in, add up, take noise and open, at the cost that was counted."""

from typing import Any

import numpy as np
import pytest

from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.errors import PeerError
from dpmpc.extend import check_backend
from dpmpc.mpc.contract.backend import BACKENDS, Holder
from dpmpc.mpc.numbers import field

CASES = [(name, n) for name in BACKENDS.names() for n in (1, 2, 3, 5) if BACKENDS[name].threshold(n) >= 0]
SAMPLER = discrete_gaussian(700.0)


@pytest.mark.parametrize(("name", "n"), CASES)
def test_a_backend_does_what_it_says_at_the_cost_it_counts(name: str, n: int) -> None:
    assert check_backend(name, (n,)) == 1


def test_shares_that_no_share_can_be_are_refused() -> None:
    backend = BACKENDS["sharing"]
    payload = np.zeros(4, dtype="<u8")
    collect = _collector().collect
    assert (collect(payload.tobytes(), 2, 2) == 0).all()
    for bad in (field.P, field.P + 1, (1 << 64) - 1):
        payload[3] = bad
        with pytest.raises(PeerError, match=r"^shares must be below p = 2\^61 - 1; larger ones came; [^;]+$"):
            collect(payload.tobytes(), 2, 2)
    assert backend.largest == (field.P - 1) // 2


def _collector() -> Any:
    import asyncio

    async def make() -> Holder:
        return BACKENDS["sharing"].holder(0, 1, 0, b"run")

    return asyncio.run(make())


@pytest.mark.parametrize(("n", "t"), [(3, 1), (5, 2)])
def test_noise_of_n_parties_has_the_distance_that_its_conversions_leave(n: int, t: int) -> None:
    """One field mask a subset but one: 2^-61 each, for every lane."""
    counts = BACKENDS["sharing"].count_noise(SAMPLER, 1000, n, t)
    masks = len(field.subsets(n, t)) - 1
    assert counts.distance == 1000 * 2.0 ** (-61 * masks)
