"""What the lines of a ledger say, as values and as bytes. Touches nothing.

There are three kinds. A *release* that is spent. The beginning of an *attempt*: with what all its parties drew
together (`token`), which its releases have too, so that the ledgers of one attempt, whoever wrote them, are told from
those of another attempt at the same plan; and with the price of its releases, so that half a line after it has one.
*elsewhere*: the run goes on without this party, and others have the rest. A release is a JSON object, the others are
lists: how a torn line begins tells whether it may have been a release.
"""

import hashlib
import json
import math
import re
import secrets
from collections.abc import Callable
from dataclasses import field, replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any, TypeVar, cast

from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property, dataclass
from dpmpc.privacy.data_names import canonical
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity

T = TypeVar("T")
GENESIS = "0" * 64
NEIGHBOURS = ("", "stated", "presence", "record", "person", "owner")  # "": in lines of before it was noted
FORMAT = 6
RELEASE, ATTEMPT, ELSEWHERE = "release", "attempt", "elsewhere"
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_MANY = 1 << 63  # more than there are of anything
_KEPT = 4096  # mechanisms and sensitivities that are not made anew
_OWN = {"v", "prev", "release", "salt", "torn", "by", "present", "lost", "parties"}
# A release at which nobody was missing, after a whole line: (prev, release, what others of its run have too).
_PLAIN = re.compile(
    rb'\{"v":%d,"prev":"([0-9a-f]{64})","release":(0|[1-9][0-9]{0,17}),(.+),"salt":"[0-9a-f]{32}"\}' % FORMAT, re.S
)
_MARKS = tuple(f'["{kind}",{{'.encode() for kind in (ATTEMPT, ELSEWHERE))


@dataclass(frozen=True)
class Entry:
    """One release that is spent.

    `data`: opaque digests given by the owners, never computed from records: one for each owner, or one for them all
    when they always take part together. `planned`, `epsilon`, `delta`: what the run as a whole set out to release and
    promised. `names`: the texts that `data` are digests of. `attempt`: of the run. `neighbours`: what the mechanism's
    sensitivity compares ("record", "presence", "owner", "stated"; "" in lines of before it was noted). `prices`: the
    sensitivity for others of these, in the mechanism's unit, by name, sorted; what is not there has no bound, but for
    what `composition.mechanism_for` concludes. `present`: the
    owners whose vectors are in it, where some may be missing; what is spent does not depend on it. `lost`: the parties
    without which the run went on, as the writer knew by then. `token`: of the attempt, the same in the ledgers of all
    its processes and in no other attempt's; "" where it was not noted or is not known. `part`: of the data,
    that it is of (`Assignment.label`); "" for all.
    """

    run: str
    release: int
    data: tuple[str, ...]
    mechanism: Mechanism
    planned: int
    epsilon: float
    delta: float
    names: tuple[str, ...] = ()
    attempt: int = field(default=0, compare=False)  # no two attempts make the same release
    neighbours: str = ""
    prices: tuple[tuple[str, Sensitivity], ...] = ()
    present: tuple[int, ...] | None = None
    lost: tuple[int, ...] = field(default=(), compare=False)  # two parties may hear of a loss one after the other
    token: str = ""
    part: str = ""

    def __post_init__(self) -> None:
        if not self.data or not all(self.data):
            raise UsageError(f"a release needs the digest of its data; got {self.data!r}; give one per owner")
        if self.names:  # lines of before names were folded count with those of after
            data = tuple(canonical(each, name) for each, name in zip_longest(self.data, self.names[: len(self.data)]))
            if data != self.data:
                object.__setattr__(self, "data", data)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        prices = {name: moved.to_json() for name, moved in self.prices}
        value = {**vars(self), "mechanism": self.mechanism.to_json(), "prices": prices}
        value.pop("_shared", None)
        return value

    def of(self, release: int, present: tuple[int, ...] | None, lost: tuple[int, ...]) -> "Entry":
        """The line of another release of the run, which has the rest of this one. Written once a release: it is not
        made, and checked, field by field."""
        other = object.__new__(Entry)
        vars(other).update(vars(self), release=release, present=present, lost=lost, _shared=self._shared)
        return other

    @cached_property
    def _shared(self) -> str:
        """What a line has in common with those of the run's other releases, as JSON without its braces."""
        value = self.to_json()
        for name in ("release", "present", "lost"):
            del value[name]
        for name in ("token", "part"):
            if not value[name]:
                del value[name]
        return _ENCODER.encode(value)[1:-1]

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Entry":
        """What `to_json` gave, or a line of an older format. Errors: as `Mechanism.from_json`, and for a value of
        another kind than it has there.

        Before format 5 a line had one other price, the owner's, as a number in the law's norm."""
        record = dict(value)
        prices = dict(record.pop("prices", {}))
        owner = record.pop("owner_sensitivity", None)
        if owner is not None:
            prices["owner"] = owner
        present = record.pop("present", None)
        entry = Entry(
            mechanism=_again(Mechanism.from_json, record.pop("mechanism")),
            data=tuple(record.pop("data")),
            names=tuple(record.pop("names", ())),
            present=None if present is None else tuple(int(owner) for owner in present),
            lost=tuple(int(party) for party in record.pop("lost", ())),
            prices=tuple(sorted((str(name), _again(Sensitivity.from_json, moved)) for name, moved in prices.items())),
            **record,
        )
        texts = (entry.run, *entry.data, *entry.names, entry.neighbours, entry.token, entry.part)
        counts = (entry.release, entry.planned, entry.attempt, *(entry.present or ()), *entry.lost)
        if not (
            all(type(text) is str for text in texts)
            and entry.neighbours in NEIGHBOURS
            and all(type(count) is int and abs(count) < _MANY for count in counts)
            and all(type(number) in (int, float) and math.isfinite(number) for number in (entry.epsilon, entry.delta))
        ):
            raise ValueError("a line of a ledger has a value of another kind")
        return entry


def after(entry: Entry) -> Entry:
    """What a torn line after `entry` counts as: the next release of its attempt, at its price."""
    return replace(entry, release=entry.release + 1, present=None if entry.token else entry.present)


def bare(entry: Entry) -> Entry:
    """The release without the attempt that it is of."""
    return replace(entry, token="", present=None)


@dataclass(frozen=True)
class LedgerLine:
    """A whole line. `prev`: the digest of the one before; `torn`: whether that is torn. `first`: whose ledger it
    begins, where it has a random number. `parties`: of `elsewhere`, those that have the rest. The entry of a line that
    is no release is the first one to come."""

    kind: str
    entry: Entry
    prev: str
    torn: bool
    first: str | None
    parties: tuple[int, ...] = ()


def packed(line: LedgerLine) -> bytes:
    """The bytes of a line, without a newline; no two are alike."""
    entry, rest = line.entry, dict[str, Any]()
    if entry.present is not None:
        rest["present"] = entry.present
    if entry.lost:
        rest["lost"] = entry.lost
    if line.first is not None:
        rest["by"] = line.first
    if line.torn:
        rest["torn"] = True
    if line.kind == ELSEWHERE:
        rest["parties"] = line.parties
    own = f'"v":{FORMAT},"prev":"{line.prev}","release":{entry.release:d}'
    more = f",{_ENCODER.encode(rest)[1:-1]}" if rest else ""
    record = f'{{{own},{entry._shared},"salt":"{secrets.token_hex(16)}"{more}}}'
    return (record if line.kind == RELEASE else f'["{line.kind}",{record}]').encode()


def parsed(line: bytes) -> LedgerLine | None:
    """A line's parts, or None if it is not a whole line of a ledger.

    What most lines share with others of their run is read once (`_alike`): a tenth of the time. What is not exactly as
    `packed` writes such a line is read as a whole.
    """
    if (own := _PLAIN.fullmatch(line)) is not None and (alike := _alike(own[3])) is not None:
        return LedgerLine(RELEASE, alike.of(int(own[2]), None, ()), own[1].decode(), False, None)
    try:
        value = loads(line)
        kind, record = value if isinstance(value, list) else (RELEASE, value)
        version = record.pop("v")
        if version not in (1, 2, 3, 4, 5, FORMAT) or kind not in (RELEASE, ATTEMPT, ELSEWHERE):
            return None
        prev, torn = record.pop("prev"), record.pop("torn", False)
        first = record.pop("by", None) if record.pop("salt", "") else None
        parties = tuple(int(party) for party in record.pop("parties", ()))
        if version == 1:  # a mechanism said both in one word
            law = record["mechanism"].pop("law")
            record["mechanism"] |= {"law": law.removeprefix("discrete-"), "discrete": law.startswith("discrete-")}
        if type(prev) is not str or type(torn) is not bool or not isinstance(first, str | None):
            return None
        return LedgerLine(kind, Entry.from_json(record), prev, torn, first, parties)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, UsageError):
        return None


@lru_cache(maxsize=_KEPT)
def _alike(shared: bytes) -> Entry | None:
    """The release 0 of which lines have this in common; None where that is not certain: it is no object's inside by
    itself, or has a name that a line has for itself."""
    try:
        record = loads(b"{%b}" % shared)
        return None if _OWN & record.keys() else Entry.from_json({**record, "release": 0})
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, UsageError):
        return None


def may_spend(torn: bytes) -> bool:
    """Whether a torn line may have been a release: whether it does not begin as the other kinds do."""
    return not any(torn.startswith(mark) or mark.startswith(torn) for mark in _MARKS)


def digest_of(line: bytes) -> str:
    """What the next line has of this one."""
    return hashlib.sha256(line).hexdigest()


_read: dict[tuple[Any, str], Any] = {}  # values are never changed


def _again(read: Callable[[Any], T], value: Any) -> T:
    """What `read` makes of JSON values, which it did before for most lines: a run's releases are alike. Told apart by
    their text, as 1, 1.0 and true are equal. Errors: those of `read`."""
    key = read, repr(value)
    if key not in _read:
        if len(_read) >= _KEPT:
            _read.clear()
        _read[key] = read(value)
    return cast(T, _read[key])
