"""Secure aggregation by pairwise masks: exact sums with drop-outs in every round, what is refused, and its cost."""

import secrets
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from cryptography.exceptions import InvalidTag

from dpmpc.benchmarks import pairwise_masking as pm
from tests.refusals import refuses


def vectors(clients: int, dimension: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 1 << 64, dimension, dtype=np.uint64) for _ in range(clients)]


def plain_sum(rows: list[np.ndarray], kept: set[int]) -> np.ndarray:
    total = np.zeros_like(rows[0])
    for u in kept:
        total = total + rows[u]
    return total


@pytest.mark.parametrize(("before", "after"), [((), ()), ((2,), ()), ((), (0,)), ((0, 5), (3,)), ((1, 2), ())], ids=str)
def test_the_sum_is_exact_whoever_drops_out(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    rows = vectors(6, 40)
    total, _, _ = pm.aggregate(rows, 3, gone_before_masks=before, gone_after=after)
    np.testing.assert_array_equal(total, plain_sum(rows, set(range(6)) - set(before)))


def test_a_client_that_vanishes_before_sharing_is_left_out_of_every_mask() -> None:
    rows, run = vectors(4, 10), b"run"
    clients = [pm.Client(u, 2, run) for u in range(4)]
    advertised = {c.number: c.advertise() for c in clients}
    sealed = {c.number: c.share(advertised) for c in clients[:3]}
    masked = {u: clients[u].mask(rows[u], {v: sealed[v][u] for v in sealed if v != u}) for u in sealed}
    opened = {u: clients[u].unmask(masked) for u in sealed}
    total = pm.Server(2, run).total(advertised, list(sealed), masked, opened)
    np.testing.assert_array_equal(total, plain_sum(rows, {0, 1, 2}))


def test_too_few_answers_are_refused() -> None:
    with refuses("enough", 4):
        pm.aggregate(vectors(5, 3), 4, gone_after=(0, 1))
    with refuses("enough", 4):
        pm.aggregate(vectors(5, 3), 4, gone_before_masks=(0, 1))
    with refuses("enough", 2):
        pm.aggregate(vectors(2, 3), 3)
    with refuses("enough", 2):
        pm.Client(0, 1, b"run")


def run_to_unmasking() -> tuple[list[pm.Client], dict[int, np.ndarray]]:
    rows, run = vectors(4, 6), secrets.token_bytes(16)
    clients = [pm.Client(u, 2, run) for u in range(4)]
    advertised = {c.number: c.advertise() for c in clients}
    sealed = {c.number: c.share(advertised) for c in clients}
    inbox = {u: {v: sealed[v][u] for v in sealed if v != u} for u in sealed}
    return clients, {c.number: c.mask(rows[c.number], inbox[c.number]) for c in clients}


def test_no_client_gives_both_shares_of_a_peer_or_masks_twice() -> None:
    clients, masked = run_to_unmasking()
    answer = clients[0].unmask({0, 1, 2})
    assert {peer: kind for peer, (kind, _) in answer.items()} == {0: True, 1: True, 2: True, 3: False}
    with refuses("over", 0):
        clients[0].unmask({0, 1, 3})
    with refuses("over", 0):
        clients[0].mask(masked[0], {})


def test_shares_for_another_are_not_readable() -> None:
    clients = [pm.Client(u, 2, b"run") for u in range(3)]
    advertised = {c.number: c.advertise() for c in clients}
    sent = clients[0].share(advertised)
    for c in clients[1:]:
        c.share(advertised)
    clients[2].mask(np.zeros(2, dtype=np.uint64), {0: sent[1], 1: sent[1]})  # what was sealed for client 1
    with pytest.raises(InvalidTag):
        clients[2].unmask({0, 1, 2})


def test_any_threshold_of_shares_opens_a_secret_and_fewer_do_not_determine_it() -> None:
    secret = secrets.token_bytes(pm.KEY)
    shares = pm._deal(secret, 5, 3)
    for holders in combinations(range(5), 3):
        assert pm._join([shares[h].tobytes() for h in holders], holders) == secret
    with refuses("peer", "shares of one secret"):  # by chance they would with probability 2^-25
        pm._join([shares[h].tobytes() for h in (0, 1)], (0, 1))
    assert not np.array_equal(shares[:2], pm._deal(secret, 5, 3)[:2])  # fresh polynomials


def test_a_masked_vector_of_zeros_looks_uniform_and_without_the_seed_it_is_another() -> None:
    """Bits of 4,000 masked words: 64 counts of ones within 7.5 standard errors (false alarm below 1e-11)."""
    zero = [np.zeros(4000, dtype=np.uint64) for _ in range(3)]
    run = secrets.token_bytes(16)
    clients = [pm.Client(u, 2, run) for u in range(3)]
    advertised = {c.number: c.advertise() for c in clients}
    sealed = {c.number: c.share(advertised) for c in clients}
    seen = clients[0].mask(zero[0], {1: sealed[1][0], 2: sealed[2][0]})
    ones = ((seen[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).sum(axis=0)
    assert (np.abs(ones - 2000.0) < 7.5 * np.sqrt(1000)).all()
    biased = seen | np.uint64(1 << 5) * (np.arange(4000) % 4 == 0).astype(np.uint64)
    ones = ((biased[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).sum(axis=0)
    assert not (np.abs(ones - 2000.0) < 7.5 * np.sqrt(1000)).all()  # an eighth of one bit set too often is seen


def payload(n: int, d: int, gone: int) -> dict[str, int]:
    """Bytes of all messages as they are, by counting them."""
    run = secrets.token_bytes(16)
    clients = [pm.Client(u, 2, run) for u in range(n)]
    advertised = {c.number: c.advertise() for c in clients}
    sealed = {c.number: c.share(advertised) for c in clients}
    inbox = {u: {v: sealed[v][u] for v in sealed if v != u} for u in sealed}
    left = clients[gone:]
    masked = {c.number: c.mask(np.zeros(d, dtype=np.uint64), inbox[c.number]) for c in left}
    opened = {c.number: c.unmask(masked) for c in left}
    keys = len(advertised[0].cipher) + len(advertised[0].mask)
    last = left[-1].number
    client = keys + sum(map(len, sealed[last].values())) + masked[last].nbytes
    client += sum(len(share) for _, share in opened[last].values())
    into = n * keys + sum(len(m) for sent in sealed.values() for m in sent.values())
    into += sum(m.nbytes for m in masked.values())
    into += sum(len(share) for answer in opened.values() for _, share in answer.values())
    received = (n - 1) * keys + sum(map(len, inbox[last].values()))
    return {"client": client, "client_receives": received, "server": into}


@pytest.mark.parametrize(("n", "d", "gone"), [(3, 10, 0), (6, 100, 0), (6, 100, 2)])
def test_traffic_is_what_the_messages_hold(n: int, d: int, gone: int) -> None:
    assert pm.traffic(n, d, n - gone) == payload(n, d, gone)


@pytest.mark.parametrize(("n", "gone"), [(4, 0), (6, 2), (7, 1)])
def test_masks_expanded(n: int, gone: int) -> None:
    _, server, clients = pm.aggregate(vectors(n, 3), 2, gone_before_masks=range(gone))
    want = pm.expansions(n, n - gone)
    assert (clients[-1].expanded, server.expanded) == (want["client"], want["server"])


def test_the_costs_of_the_docs() -> None:
    """docs/cost.md: bytes of an owner and into the server, and masks expanded."""
    text = (Path(__file__).parents[2] / "docs" / "cost.md").read_text(encoding="utf-8")
    for n, d, left in ((100, 122, 100), (100, 122, 90), (1000, 122, 1000), (100, 100_000, 100)):
        cost, work = pm.traffic(n, d, left), pm.expansions(n, left)
        sent = f"{cost['client'] / 1e3:.3g} kB"
        into = f"{cost['server'] / 1e6:.3g} MB"
        assert f"| {sent} | {into} | {work['client']:,} / {work['server']:,} |" in text, (n, d, left)
