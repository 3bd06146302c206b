"""The session over real processes: openings, channels, a port in use, a party that never comes, a wrong run."""

import asyncio
import contextlib

import numpy as np
import pytest

from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.mpyc.runtime import import_mpyc, make_runtime
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.parties.loopback import run_parties
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of, parse_endpoints
from dpmpc.mpc.transport.dial import TcpLink
from tests.refusals import refuses
from tests.runs import HANG


async def _open_sum(session: Session) -> list[int]:
    """Every party shares a public vector with a common stream; the parties open the sum."""
    prg = Prg(b"test", "shares")
    rows = [
        field.share(field.from_int64(np.array([5, -7, 1 << 40]) * (k + 1)), session.parties, session.threshold, prg)
        for k in range(4)
    ]
    mine = field.total(np.stack([r[session.party] for r in rows]))
    opened = await session.open_words(mine, session.channel(1))
    return [int(v) for v in field.to_int64(opened)]


@pytest.mark.parametrize(("n", "t"), [(1, 0), (3, 1), (4, 1), (5, 2)])
def test_parties_open_the_sum_of_shares(n: int, t: int) -> None:
    assert run_parties(_open_sum, n, t) == [[50, -70, 10 << 40]] * n


async def _streams(session: Session) -> list[list[int]]:
    return [[*s, int(session.stream(s, domains.RANDOM, 1).words((1,))[0])] for s in session.mine]


def test_prss_streams_agree_within_a_subset_and_differ_between_subsets_and_runs() -> None:
    first, second = run_parties(_streams, 3), run_parties(_streams, 3)
    seen: dict[tuple[int, ...], set[int]] = {}
    for party in first:
        for *subset, word in party:
            seen.setdefault(tuple(subset), set()).add(word)
    assert sorted(seen) == [(0, 1), (0, 2), (1, 2)]
    assert all(len(words) == 1 for words in seen.values())
    assert len(set.union(*seen.values())) == 3
    assert not set.union(*seen.values()) & {word for party in second for *_, word in party}


async def _big(session: Session) -> list[int]:
    channel = session.channel(7)
    n = session.parties
    sizes = []
    for size in (0, 1, 100_000, 3):
        data = np.arange(size, dtype=np.uint64) + np.uint64(session.party)
        (got,) = await channel.words({(session.party + 1) % n: data}, [(session.party - 1) % n], size)
        assert (got == np.arange(size) + (session.party - 1) % n).all()
        sizes.append(got.size)
    return [*sizes, channel.rounds, channel.bytes_sent]


def test_channels_carry_short_and_long_arrays() -> None:
    assert run_parties(_big, 3) == [[0, 1, 100_000, 3, 4, 8 * 100_004]] * 3


async def _dies(session: Session) -> None:
    if session.party == 2:
        raise UsageError("party 2 stops on purpose")
    await session.peers[2].receive(99)


def test_a_party_that_stops_ends_the_others() -> None:
    with refuses("usage", "party 2"):
        run_parties(_dies, 3)


def test_a_missing_party_is_named() -> None:
    async def alone() -> None:
        session = Session(0, 3, 1, b"run")
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(bound_socket()) for _ in range(3)]  # bound, but nobody listens
            await session.connect(TcpLink(0, [endpoint_of(s) for s in silent]), seconds=0.3)

    with refuses("peer", 1, 2, setting="addresses"):
        asyncio.run(alone())


def test_a_taken_port_is_named() -> None:
    with bound_socket() as taken:
        taken.listen()
        here = endpoint_of(taken)

        async def second() -> None:
            await Session(1, 3, 1, b"run").connect(TcpLink(1, [here] * 3), seconds=HANG)

        with refuses("not-yet", here, 1, setting="listen"):
            asyncio.run(second())


@pytest.mark.parametrize(
    ("other_run", "digest", "messages"),
    [
        (b"b", bytes(32), {"party 0 belongs to another run"}),
        (b"a", b"x" * 32, {"all parties must run with the same parameters"}),
    ],
)
def test_parties_of_different_runs_or_parameters_refuse_each_other(
    other_run: bytes, digest: bytes, messages: set[str]
) -> None:
    """The one that answers says why; with other parameters, so does the one that called."""

    async def both() -> list[str]:
        bound = [bound_socket() for _ in range(2)]
        where = [endpoint_of(s) for s in bound]
        sessions = [Session(0, 2, 0, b"a"), Session(1, 2, 0, other_run)]
        digests = [bytes(32), digest]
        calls = [
            asyncio.ensure_future(s.connect(TcpLink(i, where, bound=bound[i]), digests[i], seconds=HANG))
            for i, s in enumerate(sessions)
        ]
        done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_EXCEPTION)
        for call in waiting:
            call.cancel()
        for s in sessions:
            s.abandon()
        await asyncio.gather(*calls, return_exceptions=True)
        return [str(call.exception()) for call in done]

    told = asyncio.run(both())
    assert all(any(message in text for text in told) for message in messages), told


def test_bad_indices_and_thresholds_are_refused() -> None:
    async def make(party: int, n: int, t: int) -> Session:
        return Session(party, n, t, b"")

    for party, n, t in [(3, 3, 1), (-1, 3, 1), (0, 4, 2), (0, 2, 1)]:
        with pytest.raises(UsageError):
            asyncio.run(make(party, n, t))


def test_addresses() -> None:
    assert parse_endpoints(["[::1]:7", "h:1", ":5"]) == [
        Endpoint("::1", 7),
        Endpoint("h", 1),
        Endpoint("127.0.0.1", 5),
    ]
    assert parse_endpoints(["[::1]", "::1", "h"], 100) == [Endpoint("::1", 100)] * 2 + [Endpoint("h", 100)]
    for address in ("h:99999", "h:0", "h:x", "h:²", "h", "h:", "::1", "[::1]", ""):
        with refuses("addresses", setting="addresses"):
            parse_endpoints([address])


def test_importing_mpyc_leaves_argv_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["dpmpc", "-T", "7", "--help"])
    assert import_mpyc().Runtime
    import sys

    assert sys.argv == ["dpmpc", "-T", "7", "--help"]


class Liar:
    """A channel on which the others send words that no share has."""

    def __init__(self, word: int) -> None:
        self.word = word

    async def words(self, outgoing: object, incoming: list[int], size: int) -> list[np.ndarray]:
        return [np.full(size, self.word, dtype=np.uint64) for _ in incoming]


@pytest.mark.parametrize("word", [field.P, (1 << 64) - 1])
def test_words_that_no_share_has_are_refused(word: int) -> None:
    async def opened(sent: int) -> object:
        return await Session(0, 3, 1, b"run").open_words(np.zeros(4, dtype=np.uint64), Liar(sent))  # type: ignore[arg-type]

    assert asyncio.run(opened(field.P - 1)) is not None
    with refuses("message", 2, 61, 1, kind=PeerError):
        asyncio.run(opened(word))


def test_mpyc_does_not_pickle() -> None:
    """Neither by its transfer nor where it would marshal values without a fixed width."""

    async def body() -> None:
        runtime, module = make_runtime(0, 1, 0), import_mpyc()
        for call in (lambda: module.pickle.loads(b""), lambda: module.pickle.dumps(1)):
            with pytest.raises(AssertionError, match="pickle"):
                call()
        with pytest.raises(AssertionError, match="pickle"):
            await runtime.transfer(1)

    asyncio.run(body())
