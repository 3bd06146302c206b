"""Rounds, bytes and messages are those of commit d7b2672, at equal batches, but for what a promise of today's adds: the
check of transfers between two servers, their promise of an opened share, and the barrier.
"""

import pytest

from dpmpc.benchmarks.cell import BenchCell
from dpmpc.benchmarks.counts import opening_counts
from dpmpc.mpc.contract.backend import BACKENDS, Counts
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.privacy.law import LAWS

# What that commit's `count_noise` gives for one batch, 2^20 grid steps: rounds, bytes and messages of all parties.
# Checked parties were three then.
BEFORE = {
    ("sharing", "gaussian", "discrete", 3, 122): (26, 32_960, 77),
    ("sharing", "gaussian", "discrete", 3, 10_000): (26, 2_587_360, 77),
    ("sharing", "laplace", "discrete", 3, 122): (24, 59_456, 71),
    ("sharing", "laplace", "discrete", 3, 10_000): (24, 4_667_296, 71),
    ("sharing", "gaussian", "box-muller", 3, 122): (26, 143_124, 81),
    ("sharing", "gaussian", "box-muller", 3, 10_000): (114, 8_243_664, 345),
    ("sharing", "laplace", "log-laplace", 3, 122): (23, 247_456, 71),
    ("sharing", "laplace", "log-laplace", 3, 10_000): (113, 13_142_288, 341),
    ("sharing", "gaussian", "discrete", 5, 122): (26, 182_752, 261),
    ("sharing", "gaussian", "discrete", 5, 10_000): (26, 14_346_032, 261),
    ("checked", "gaussian", "discrete", 3, 122): (37, 74_688, 124),
    ("checked", "gaussian", "discrete", 3, 10_000): (41, 2_643_392, 136),
    ("checked", "laplace", "discrete", 3, 122): (35, 112_848, 118),
    ("checked", "laplace", "discrete", 3, 10_000): (39, 4_722_032, 130),
    ("shamir", "gaussian", "discrete", 5, 122): (21, 2_564_544, 320),
    ("shamir", "gaussian", "discrete", 5, 10_000): (86, 195_067_872, 1340),
    ("shamir", "gaussian", "discrete", 9, 122): (21, 5_254_976, 1152),
    ("shamir", "gaussian", "discrete", 9, 10_000): (86, 399_613_440, 4824),
    ("ot", "gaussian", "discrete", 2, 122): (12, 199_552, 24),
    ("ot", "gaussian", "discrete", 2, 10_000): (12, 15_664_832, 24),
    ("ot", "laplace", "discrete", 2, 122): (13, 502_272, 26),
    ("ot", "laplace", "discrete", 2, 10_000): (13, 39_428_352, 26),
    ("garbled", "gaussian", "discrete", 2, 122): (5, 1_046_800, 8),
    ("garbled", "gaussian", "discrete", 2, 10_000): (12, 82_172_672, 15),
    ("garbled", "laplace", "discrete", 2, 122): (5, 4_693_328, 8),
    ("garbled", "laplace", "discrete", 2, 10_000): (44, 368_425_632, 47),
}
ROUNDS_OF_A_CHECK = {"ot": 2, "garbled": 4}
BYTES_OF_A_CHECK = {"ot": 704, "garbled": 1056}  # of a batch, both ways, with headers
# `count_opening` of 122 numbers there: rounds, bytes and messages of each party.
OPENINGS = {
    ("sharing", 3): (1, 976, 1),
    ("sharing", 5): (1, 1_952, 2),
    ("checked", 3): (2, 2_016, 4),
    ("shamir", 5): (1, 3_904, 4),
    ("shamir", 9): (1, 7_808, 8),
    ("ot", 2): (1, 976, 1),
    ("garbled", 2): (1, 976, 1),
}
PROMISE = (1, 32 + 32, 1)  # of two servers: a digest as a message of its own, and a salt with the share


def _in_all(counts: Counts) -> tuple[int, int]:
    return counts.rounds, sum(counts.bytes_with_headers(HEADER.size))


@pytest.mark.parametrize("case", BEFORE, ids=lambda case: " ".join(map(str, case)))
def test_noise_costs_what_it_did_but_for_the_check_of_transfers(case: tuple[str, str, str, int, int]) -> None:
    name, law, sampler, parties, count = case
    backend = BACKENDS[name]
    now = backend.count_noise(LAWS[law].sampler(sampler, 2.0**20), count, parties, backend.threshold(parties))
    rounds, sent, messages = BEFORE[case]
    before = rounds, sent + HEADER.size * messages
    added = ROUNDS_OF_A_CHECK.get(name, 0), BYTES_OF_A_CHECK.get(name, 0)
    assert _in_all(now) == (before[0] + added[0], before[1] + added[1])
    if name in ("sharing", "checked", "shamir"):
        assert (sum(now.bytes_sent), sum(now.messages_sent)) == (sent, messages)


@pytest.mark.parametrize(("name", "parties"), OPENINGS)
def test_an_opening_costs_what_it_did_but_for_promises_and_the_barrier(name: str, parties: int) -> None:
    """The barrier is a round of 48 bytes to each other party; two servers have it in the opening, as the promise."""
    more = PROMISE if parties == 2 else (0, 0, 0)
    rounds, sent, messages = (a + b for a, b in zip(OPENINGS[name, parties], more, strict=True))
    barrier, opening = opening_counts(BenchCell(dimension=122, parties=parties, backend=name))
    assert opening.rounds == rounds
    assert opening.bytes_sent == (sent,) * parties and opening.messages_sent == (messages,) * parties
    assert barrier.bytes_with_headers(HEADER.size) == ([48 * (parties - 1)] * parties if parties > 2 else [])
    assert barrier.rounds == (parties > 2)
