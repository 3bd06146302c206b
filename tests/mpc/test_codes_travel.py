"""The code of an error travels with its words: whoever is told of it names the same rule."""

import asyncio

import pytest

from dpmpc.aggregation.party.beside_owner import named
from dpmpc.errors import CODES, CheatError, DpmpcError, OwnerError, PeerError, RecordError, UsageError
from dpmpc.mpc.transport.abort_reason import MOST_REASON, Reason, Told, pack, public_reason, reason_of, unpack
from dpmpc.mpc.transport.in_memory import InMemory
from dpmpc.processes.elsewhere import _opened, answering
from tests.refusals import refuses

WORDS = "party 1, release 3: a check failed; see <<out>>"


@pytest.mark.parametrize("code", CODES)
def test_code_and_words_come_through_a_last_frame(code: str) -> None:
    found = unpack(pack(Reason(WORDS, code)))
    assert (found, found.code) == (WORDS, code)
    long = pack(Reason("x" * 2 * MOST_REASON, code))
    assert len(long) <= MOST_REASON and unpack(long).code == code


@pytest.mark.parametrize("payload", [b"cheats\x1fwords", b"\xff\x1fwords", b"\x1fwords", b"words", b"peer\x1fwords"])
def test_a_code_that_is_none_is_that_of_a_peer(payload: bytes) -> None:
    assert (unpack(payload), unpack(payload).code) == ("words", PeerError.code)


@pytest.mark.parametrize("error", [CheatError("a"), OwnerError("b"), PeerError("c", code="plan"), PeerError("d")])
def test_who_is_told_and_who_is_told_of_that_names_the_same_rule(error: PeerError) -> None:
    async def body() -> PeerError:
        told: BaseException = error
        for _ in range(3):
            mine, theirs = InMemory.pair("party 1", "owner 1")
            theirs.farewell(unpack(pack(public_reason("party 1", told))))
            with pytest.raises(Told) as caught:
                await mine.receive(1)
            told = caught.value
        return caught.value

    found = asyncio.run(body())
    assert found.code == error.code == named("owner 1", found).code and found.cause == error.message
    assert reason_of(found).code == error.code


@pytest.mark.parametrize("error", [RecordError("row 7 is 'x'"), UsageError("no file", code="path"), ValueError("x")])
def test_a_code_that_tells_of_records_or_files_stays_here(error: Exception) -> None:
    """What is wrong with an owner's records is not for the others, be it one word."""
    assert public_reason("owner 0", error).code == PeerError.code


def test_a_workers_error_keeps_its_code() -> None:
    def fails() -> object:
        raise DpmpcError("files need room; none is left", code="path")

    with refuses("path", "none is left"):
        _opened((*answering(fails), b"mark"), b"mark")
    with refuses("worker"):
        _opened(("refused", ("words", "no code"), b"mark"), b"mark")
