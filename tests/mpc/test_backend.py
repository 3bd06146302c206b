"""What every backend must do: shares of vectors come in, add up, take noise and open, at the cost that was counted."""

from typing import Any

import numpy as np
import pytest

from dpmpc.circuits.sampler import discrete_gaussian, discrete_laplace
from dpmpc.errors import PeerError, UsageError
from dpmpc.extend import check_backend
from dpmpc.mpc.contract.backend import BACKENDS, Hides, Holder
from dpmpc.mpc.numbers import field
from dpmpc.privacy.law import LAWS
from tests.refusals import refuses

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
        with refuses("message", 2, 61, 1, kind=PeerError):
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


@pytest.mark.parametrize(("n", "t"), [(1, 0), (3, 1), (5, 2), (7, 3)])
@pytest.mark.parametrize("name", BACKENDS.names())
def test_what_is_left_unhidden_is_known_without_counting(
    name: str, n: int, t: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same number as counting gives, and no circuit is made for it."""
    backend = BACKENDS[name]
    try:
        backend.check(n, t)
    except UsageError:
        return
    if not isinstance(backend, Hides):
        return
    for sampler in (discrete_gaussian(3000.0), discrete_laplace(700.0)):
        drawn = backend.drawn(sampler, n, t, 1000, 1e-9)
        counted = [backend.count_noise(drawn, count, n, t).distance for count in (1, 1000)]
        with monkeypatch.context() as patch:
            patch.setattr(type(drawn), "circuit", None)
            assert [backend.hiding(drawn, count, n, t) for count in (1, 1000)] == counted
    if name == "sharing" and n < 7:  # circuits of fixed-point numbers take seconds to count among seven
        fixed = LAWS["gaussian"].sampler("box-muller", 3000.0)
        assert backend.hiding(fixed, 1, n, t) == backend.count_noise(fixed, 1, n, t).distance
