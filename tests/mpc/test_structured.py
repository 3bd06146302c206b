"""Parties whose instances are well formed and not independent, against unmodified others; and with each mend taken out.
All of them, at full size: `python tests/structured.py`."""

import pytest
from structured import (
    ECHOES,
    KINDS,
    SHARED,
    Deviation,
    Outcome,
    decided,
    released,
    shared,
    structured,
    two_servers,
    without,
)  # fmt: skip

from dpmpc.mpc.two_servers.backend import GarbledHolder, OtHolder

BACKENDS = {"ot": (OtHolder, 0), "garbled": (GarbledHolder, 1)}  # and who deviates: who chooses, labels too
ROOT, HALVES = ("draws", "equal"), ("nodes 0", "halves")


def play(backend: str, where: str, kind: str, k: int = 4) -> Outcome:
    made_by, party = BACKENDS[backend]
    return two_servers(Deviation(party, where, kind), made_by, k)


def test_structures_are_what_they_are_called() -> None:
    fresh = bytes(range(64))
    made = {kind: structured(kind, fresh, bytes(64)) for kind in KINDS}
    assert all(len(each) == 64 for each in made.values()) and len(set(made.values())) == len(KINDS) - 2
    assert made["permuted"] == made["repeated"] == made["zeros"] == bytes(64)
    assert made["equal"] == fresh[:16] * 4 and made["halves"] == fresh[:32] * 2
    assert all(len(structured(kind, bytes(size), None)) == size for kind in KINDS for size in (1, 16, 17, 40))


# -- two servers -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("where", ["draws", "nodes 0", "trees 0", "trees 3", "messages 16"])
def test_no_structure_makes_two_instances_of_an_honest_server_alike(backend: str, where: str) -> None:
    """False alarm 2^-30: 63,000 strings of 64 bits."""
    found = [play(backend, where, kind) for kind in ("equal", "negated", "repeated")]
    assert all(not each.bad and each.instances > 500 for each in found), found
    assert {each.how for each in found} <= ({"held"} if where == "draws" else {"held", "ended"})


@pytest.mark.parametrize("k", [1, 8])
def test_nor_for_other_trees(k: int) -> None:
    for where, kind in (ROOT, HALVES):
        found = play("ot", where, kind, k)
        assert found.how == "held" and not found.bad


def test_without_places_and_tweaks_one_root_shows_strings_and_delta() -> None:
    """The attack that was: all trees from one root. Nothing ends, and nothing is to be seen."""
    with without("places", "transfers"):
        found = play("ot", *ROOT)
        assert found.how == "held" and found.bad["strings of transfers that come twice"] > 10_000
        assert found.bad["one output for two of: leaf"] > 500
    with without("places", "transfers", "lanes"):
        found = play("garbled", *ROOT)
        assert found.how == "held" and found.bad["lanes with one label"] > 5000
        assert found.bad["lanes that show Delta"] > 3000


def test_without_places_a_tree_with_equal_halves_has_every_key_twice() -> None:
    """Tags and digest hold whatever path the other has."""
    with without("places"):
        found = play("ot", *HALVES)
    assert found.how == "held" and found.bad["one output for two of: leaf"] == 512


@pytest.mark.parametrize("mends", [("places", "lanes"), ("transfers", "lanes")])
def test_either_wall_alone_keeps_strings_apart(mends: tuple[str, ...]) -> None:
    with without(*mends):
        found = [play(backend, *ROOT) for backend in BACKENDS]
    for each in found:
        assert each.how == "held"
        assert not {"strings of transfers that come twice", "lanes with one label", "lanes that show Delta"} & set(
            each.bad
        )


def test_lanes_have_a_wall_of_their_own() -> None:
    """With one label in two lanes Delta is not shown."""
    with without("places", "transfers"):
        found = play("garbled", *ROOT)
    assert found.bad["lanes with one label"] > 5000 and "lanes that show Delta" not in found.bad


# -- three and more ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", SHARED)
def test_no_structure_makes_two_instances_of_an_honest_party_alike(backend: str) -> None:
    """Keys, parts of coins, dealings, exponents that are alike, over batches and attempts."""
    for sizes in SHARED[backend][1]:
        for kind in ("equal", "repeated", "zeros"):
            found = shared(Deviation(0, "draws", kind), backend, sizes)
            assert found.how == "held" and not found.bad and found.instances > 50, (sizes, kind, found)


@pytest.mark.parametrize("backend", [name for name in SHARED if name.endswith("checked")])
def test_no_structure_of_messages_has_a_wrong_vector_released(backend: str) -> None:
    for party, kind in enumerate(("equal", "halves", "negated", "permuted", "repeated")):
        for size in (8, 32):
            found = released(Deviation(party % 3, f"messages {size}", kind), backend, (3, 1))
            assert not found.bad and found.how != "released"


def test_no_structure_of_messages_has_a_wrong_decision_opened() -> None:
    """Of words' votes; an honest network decides as the rule has it, and semi-honest parties would believe a cheat."""
    for k, where in enumerate(("messages 8", "messages 32")):
        for party, kind in enumerate(KINDS):
            found = decided(Deviation((party + k) % 3, where, kind), (3, 1))
            assert not found.bad and found.how == "ended", (where, kind)
    assert decided(Deviation(-1, "messages 8", "zeros"), (3, 1)) == Outcome("held", {}, 0)  # nobody deviates


# -- what others say, in place of one's own ----------------------------------------------------------------------------
def test_what_another_says_is_nobody_elses_word() -> None:
    """A party gives each other one its own messages back, or says what another says. Checked parties end the run, or
    open what is right; servers with transfers end it; no honest party has one output for two instances."""
    for kind in ECHOES:
        for party in range(3):
            for play_one in (lambda d: released(d, "checked", (3, 1)), lambda d: decided(d, (3, 1))):
                found = play_one(deviation := Deviation(party, "echoes", kind))
                assert not found.bad and (found.how == "ended" or not deviation.echoed), (kind, party)
        deviation = Deviation(2, "echoes", kind)  # who speaks last has heard all others
        assert not shared(deviation, "checked", (3, 1)).bad and deviation.echoed
    for party in (0, 1):
        deviation = Deviation(party, "echoes", "mirrored")
        found = two_servers(deviation, OtHolder, 4)
        assert not found.bad and found.how == "ended" and deviation.echoed


def test_without_the_subset_equal_keys_are_equal_streams() -> None:
    """Semi-honest parties among five: one deals all its keys alike."""
    deviation = ("draws", "equal")
    assert not shared(Deviation(0, *deviation), "sharing", (5, 2)).bad
    with without("subsets"):
        found = shared(Deviation(0, *deviation), "sharing", (5, 2))
    assert found.bad["a stream that begins twice: random"] > 5
