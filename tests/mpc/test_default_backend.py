"""Which backend is chosen where nobody names one, what its noise will take, and connections within a process."""

import asyncio
import math

import pytest
from fieldnoise import discrete

from dpmpc.aggregation.party.beside_owner import named
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.default_backend import default_backend, replicated_words
from dpmpc.mpc.replicated.layout import SharingLayout
from dpmpc.mpc.transport.abort_reason import Told, public_reason
from dpmpc.mpc.transport.in_memory import InMemory
from dpmpc.noise.forecast import forecast
from dpmpc.privacy.law import LAWS
from tests.refusals import refuses
from tests.runs import small


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_few_parties_share_bits_and_many_share_numbers(law: str) -> None:
    chosen = [default_backend(law, "discrete", n, None) for n in (1, 3, 4, 5, 6, 7, 8, 9, 16, 32)]
    assert chosen == ["sharing"] * 5 + ["shamir"] * 5
    assert default_backend(law, "discrete", 9, 1) == "sharing"  # nine parts only
    fixed = [name for name in LAWS[law].samplers if name != "discrete"]
    assert [default_backend(law, name, 16, None) for name in fixed] == ["sharing"] * len(fixed)


@pytest.mark.parametrize(("n", "t"), [(3, 1), (5, 2), (6, 2), (7, 3)])
def test_the_words_of_a_replicated_engine_are_those_of_its_plan(n: int, t: int) -> None:
    """Products of parts, as the engine lists them, and parts drawn."""
    layout, sampler = SharingLayout.of(n, t), LAWS["gaussian"].sampler("discrete", 2.0**20)
    gates = BACKENDS["sharing"].count_noise(sampler, 1 << 12, n, t).sample
    listed = sum(len(rights) for i in range(n) for _, rights in layout.products(i)) / n
    words = (gates["ands"] * listed + gates["random bits"] * len(layout.mine(0))) / 64
    assert math.isclose(replicated_words(sampler, n, t), words)


def test_plans_and_requests_take_it_unless_one_is_named() -> None:
    given = {"owners": 2, "dimension": 3, "clip": 1.0, "delta": 1e-5}
    assert Plan.create(parties=3, **given).backend == "sharing"
    many = Plan.create(parties=9, **given)
    assert (many.backend, many.threshold) == ("shamir", 4)
    assert Plan.create(parties=9, backend="sharing", **given).backend == "sharing"
    assert (
        small(parties=9).plan_settings["backend"] == "shamir"
        and small(parties=9, backend="sharing").plan_settings["backend"] == "sharing"
    )
    assert small(parties=9, sampler="box-muller").plan_settings["backend"] == "sharing"


def test_replicated_sharing_refuses_more_parts_than_it_can_list() -> None:
    BACKENDS["sharing"].check(11, 5)
    with refuses("range", 16, 7, "6,435", "backend=shamir", setting="backend"):
        small(parties=16, backend="sharing")


@pytest.mark.parametrize(("backend", "n"), [("sharing", 3), ("shamir", 5)])
def test_a_forecast_is_the_count_of_all_fillings(backend: str, n: int) -> None:
    sampler, chosen = discrete("gaussian", 700.0), BACKENDS[backend]
    found = forecast(chosen, sampler, 40, 50, n, (n - 1) // 2, here=True)
    counted = chosen.count_noise(sampler, 2000, n, (n - 1) // 2)
    assert (found.samples, found.exchanges) == (2000, counted.rounds)
    assert found.bytes == max(counted.bytes_with_headers(24))
    assert str(found).startswith(f"{n} parties, 2,000 samples: ") and str(found).endswith(f"{counted.rounds} exchanges")
    assert found.seconds is not None and found.seconds > 0 and ": about " in str(found)
    twice = forecast(chosen, sampler, 80, 50, n, (n - 1) // 2, here=True)
    assert 1.5 < twice.bytes / found.bytes < 2


def test_both_ends_within_a_process_hear_each_other_and_the_end() -> None:
    async def body() -> None:
        to_party, to_owner = InMemory.pair("party 3", "owner 3")
        told: list[str] = []
        to_owner.on_lost = lambda peer, error: told.append(f"{peer.name}: {error}")
        early = to_owner.receive(5)
        sent = bytearray(b"abc")
        to_party.send(5, sent)
        to_party.send(6, memoryview(b"later"))
        sent[:] = b"xyz"  # a frame is a copy
        assert bytes(await early) == b"abc" and bytes(await to_owner.receive(6)) == b"later"
        assert to_party.bytes_sent == to_owner.bytes_received == to_party.frames_sent == 0
        waiting = to_owner.receive(7)
        to_party.close()
        assert told == ["owner 3: owner 3 left the run (connection closed); see its log"]
        for future in (waiting, to_owner.receive(8)):
            with refuses("peer", 3):
                await future
        with refuses("peer", 3):
            to_owner.send(9, b"")

    asyncio.run(body())


def test_a_last_word_within_a_process_is_heard_as_such() -> None:
    async def body() -> None:
        to_party, to_owner = InMemory.pair("party 3", "owner 3")
        told: list[PeerError] = []
        to_owner.on_lost = lambda peer, error: told.append(error)
        to_party.on_lost = lambda peer, error: told.append(error)
        waiting = to_owner.receive(7)
        to_party.farewell("owner 3 stopped; its own log says why")
        to_party.farewell("a second word is not heard")
        await to_party.gone(1.0)
        assert [type(error) for error in told] == [Told]  # whoever says it knows it
        for future in (waiting, to_owner.receive(8)):
            with pytest.raises(Told) as found:
                await future
            assert found.value.cause == "owner 3 stopped; its own log says why" and found.value.teller == "owner 3"
        with pytest.raises(Told):
            to_owner.send(9, b"")

    asyncio.run(body())


def test_a_role_of_a_site_keeps_the_first_cause() -> None:
    error = named("party 1", Told("party 2 stopped; its own log says why", "party 0"))
    assert str(error) == "as party 1: party 2 stopped; its own log says why (told by party 0)"
    assert public_reason("owner 1", error) == "party 2 stopped; its own log says why"
