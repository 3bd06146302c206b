"""Why a run ends: the first cause, in words that may be public. Touches nothing.

A process that fails tells its peers in its last frame. Whoever hears it says the same cause, and who told it; whoever
is told by that one in turn says the cause, not the echo of an echo.
"""

import asyncio

from dpmpc.errors import CODES, CheatError, DpmpcError, PeerError, SpentError, UsageError

MOST_REASON = 500  # bytes of UTF-8
_REFUSAL = "stopped, for it was not used as it must be"
_STAYS_AWAY = "refuses to take part"
_WITHOUT_A_WORD = "left the run without a word"
UNHEARD = "nothing was heard of it for"
_LATER = "not yet: "
_SPENT = "the run cannot go on: "
_CODED = b"\x1f"  # ends a code; no printable character


class Reason(str):
    """Why a run ends, and the `code` of the rule that was broken (`errors.CODES`), which travels with the words."""

    code: str

    def __new__(cls, words: str, code: str = PeerError.code) -> "Reason":
        reason = super().__new__(cls, words)
        reason.code = code
        return reason


class Told(PeerError):
    """Another process said why the run ends: `cause`, as it was said."""

    def __init__(self, cause: str, teller: str, role: str = "") -> None:
        """`role`: of this process, where it has two; begins the message."""
        said = f"as {role}: {cause} (told by {teller})" if role else f"{cause} (told by {teller})"
        super().__init__(said, code=cause.code if isinstance(cause, Reason) else "")
        self.cause, self.teller = cause, teller


def reason_of(error: DpmpcError) -> Reason:
    """The message of an error that others may read, with its code."""
    return Reason(error.message, error.code)


def public_reason(me: str, error: BaseException) -> Reason:
    """What the process `me` may tell the others of its end. A PeerError speaks of processes alone; the message of any
    other could hold a path or a word of the records, and its code what is wrong with them: both stay here."""
    if isinstance(error, asyncio.CancelledError) and error.args and isinstance(error.args[0], PeerError):
        error = error.args[0]  # whoever cancelled says why
    if isinstance(error, Told):
        return Reason(error.cause, error.code)
    if isinstance(error, PeerError):
        return reason_of(error)  # whoever hears it spells settings in its own way
    if isinstance(error, SpentError):
        return Reason(f"{_SPENT}{error.message}")
    if isinstance(error, UsageError):
        return Reason(f"{me} {_REFUSAL}; its own log says how")
    if isinstance(error, DpmpcError):
        return Reason(f"{me} stopped; its own log says why")
    if isinstance(error, Exception):
        return Reason(f"{me} failed by a fault of its own; its own log says more")
    return Reason(f"{me} was stopped on its machine")


def refuses(error: PeerError) -> bool:
    """Whether this is the end of a process whose own rules forbid it to go on: nobody goes on without it."""
    return isinstance(error, Told) and any(said in error.cause for said in (_REFUSAL, _STAYS_AWAY, _SPENT))


def is_loss(error: DpmpcError) -> bool:
    """Whether a process has gone without a word: it was killed, or its machine or the network failed. It may come
    again, whoever noticed it first. One that its people stopped says so, which ends the meeting."""
    gone = any(said in error.message for said in (_WITHOUT_A_WORD, UNHEARD))
    return isinstance(error, PeerError) and type(error) in (PeerError, Told) and gone and not refuses(error)


def was_away(name: str, error: BaseException, seconds: float, stall: float) -> BaseException:
    """The error that ends the process `name`, which was away for so long (0: it was not): losses that it notices when
    it wakes are nobody's fault. Cheats and refusals stay what they are."""
    if not seconds or not isinstance(error, PeerError) or isinstance(error, CheatError) or refuses(error):
        return error
    return PeerError(
        f"{name} was away for {seconds:.0f} s, longer than the {stall:g} s of <<stall>>: it was stopped, or its "
        "machine slept or was too busy; the others have gone on without it, or have ended; start it again to hear which"
    )


def later(why: str) -> str:
    """What a caller is told that is to call again, for that reason."""
    return _LATER + why


def comes_later(cause: str) -> str:
    """Why one that was told so is to call again; empty where it was told something else."""
    return cause.removeprefix(_LATER) if cause.startswith(_LATER) else ""


def stays_away(name: str) -> Told:
    """What is said, here and to the others, when this process has told that it refuses to take part."""
    return Told(f"{name} {_STAYS_AWAY}; its own screen says why", name)


def because(error: BaseException) -> object:
    """What to cancel a task with, so that what it tells others as it ends is why this error ends it."""
    return error.args[0] if isinstance(error, asyncio.CancelledError) and error.args else error


def pack(reason: str) -> bytes:
    """The payload of a last frame: the words, and before them the code of a `Reason`, where it is another than that of
    every peer's error."""
    code = reason.code if isinstance(reason, Reason) else PeerError.code
    before = b"" if code == PeerError.code else code.encode() + _CODED
    cut = reason.encode()[: MOST_REASON - len(before)]
    begun, ended = cut.rfind(b"<<"), cut.rfind(b">>")
    half = ended < begun and len(cut) < len(reason.encode())
    return before + (cut[:begun] if half else cut)  # no half of a setting


def unpack(payload: bytes | bytearray) -> Reason:
    """The reason in a last frame, in one line of printable characters: whoever sent it may be anybody, and a code is
    one of those that are known."""
    before, coded, after = bytes(payload[:MOST_REASON]).partition(_CODED)
    code = before.decode(errors="replace") if coded else PeerError.code
    text = (after if coded else before).decode(errors="replace")
    words = "".join(c if c.isprintable() else " " for c in text).strip() or "no reason was given"
    return Reason(words, code if code in CODES else PeerError.code)


def without_a_word(name: str, how: str) -> str:
    """What to say of a peer whose connection ended before it said why."""
    return (
        f"{name} {_WITHOUT_A_WORD} ({how}): it has ended or was killed, or its machine or the network "
        "failed; ask whoever runs it"
    )
