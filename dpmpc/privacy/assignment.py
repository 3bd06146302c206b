"""Disjoint parts of one data set: which row is in which part, by a key that is stored and by the row's id alone.

A row's part is a keyed hash of its id, so it is the same in every run, whatever other rows there are, in whatever
order: adding, removing or changing a row moves no other. That is what parallel composition needs. Let two data sets
differ in one record (in its content, or in whether it is there), and let its id, or its person's, be in part A. Every
release on another part has the same rows in both, so given what was opened before its law is the same; only releases
on A and on the whole tell the two apart. So any rule that stops releases on each part, those on the whole counted with
it, at (epsilon, delta) keeps (epsilon, delta) for all of them together. An owner's rows lie in all parts: for whole
owners, and for units that a caller states, parts add up like any other releases.

The key is public; the law is over the noise, and the argument holds for every key. Two assignments with different keys
are not disjoint, and add up.

Source: McSherry 2009, Theorem 4 (parallel composition); Feldman and Zrnic 2021 (filters, one for each individual).
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass

Ints = NDArray[np.int64]
By = Literal["record", "person"]
Hashes = Callable[[bytes, Iterable[Any]], NDArray[np.uint64]]  # a key and texts, or the numbers of a range
_BITS = 64  # of the hash that a part is drawn by


def hashes(key: bytes, texts: Iterable[Any]) -> NDArray[np.uint64]:
    """(n,) the keyed BLAKE2b of each text, to 64 bits, as a big-endian number."""
    blank, digests = hashlib.blake2b(key=key, digest_size=_BITS // 8), bytearray()
    for text in texts:
        hashed = blank.copy()
        hashed.update(str(text).encode())
        digests += hashed.digest()
    return np.frombuffer(bytes(digests), dtype=">u8").astype(np.uint64)


@dataclass(frozen=True)
class Assignment:
    """Parts of one data set: their names with whole-number weights, what an id tells ("record": every row has one of
    its own; "person": all rows of a person have it), and the key (hex) that draws. Public."""

    parts: tuple[tuple[str, int], ...]
    by: By
    key: str

    def __post_init__(self) -> None:
        names = [name for name, _ in self.parts]
        good = all(name.isidentifier() and isinstance(weight, int) and weight > 0 for name, weight in self.parts)
        if len(set(names)) < max(2, len(names)) or not good:
            raise UsageError(
                "an assignment has two parts at least, each with a name of letters and a whole weight above 0; got "
                f"{dict(self.parts)!r}; give for example training 4, test 1"
            )
        if self.by not in ("record", "person"):
            raise UsageError(f"rows are assigned by record or by person; got {self.by!r}; choose one of them")

    @staticmethod
    def drawn(parts: Mapping[str, int], by: By = "record") -> "Assignment":
        """A new one, with a key of the operating system."""
        return Assignment(tuple(parts.items()), by, secrets.token_hex(16))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parts, in order."""
        return tuple(name for name, _ in self.parts)

    @property
    def identity(self) -> str:
        """What tells this assignment from all others, in a ledger's line."""
        text = json.dumps([self.key, self.by, self.parts], separators=(",", ":"))
        return hashlib.sha256(b"dpmpc parts\0" + text.encode()).hexdigest()[:16]

    def label(self, part: str) -> str:
        """What a ledger's line says of a release on this part alone. Errors: UsageError for another name."""
        if part not in self.names:
            raise UsageError(f"the parts are {', '.join(self.names)}; got {part!r}; name one of them")
        return f"{self.by}:{self.identity}/{part}"

    def parts_of(self, ids: Iterable[Any], hashed: Hashes = hashes) -> NDArray[np.int64]:
        """(n,) the number of each row's part, by the rows' ids: texts or whole numbers. `hashed`: `hashes`, or what
        gives the same sooner.

        Errors: UsageError for an id that is missing or no text or number, and by records for one that two rows have;
        none is quoted. Cost: a hash an id."""
        places = isinstance(ids, range)  # all different
        texts = ids if places else [id_text(each) for each in ids]
        if self.by == "record" and isinstance(texts, list) and len(set(texts)) < len(texts):
            raise UsageError(
                "parts by record need an id that each row has alone; two rows have the same; name another column, or "
                "assign by person",
                code="unique",
            )
        # a row is in the first part whose end, of so many in all, lies above hash * all / 2^64: above a bound that is
        # a whole number, so that no product is too long for a word
        ends = list(accumulate(weight for _, weight in self.parts))
        bounds = [-(-(end << _BITS) // ends[-1]) for end in ends[:-1]]
        found = hashed(bytes.fromhex(self.key), texts)
        return np.searchsorted(np.array(bounds, dtype=np.uint64), found, side="right")

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {"parts": [list(each) for each in self.parts], "by": self.by, "key": self.key}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Assignment":
        """What `to_json` gave."""
        return Assignment(
            tuple((str(name), int(weight)) for name, weight in value["parts"]), value["by"], str(value["key"])
        )


def in_places(
    drawn: Assignment, ids: Iterable[Any], places: Mapping[str, int], hashed: Hashes = hashes
) -> NDArray[np.int64]:
    """(n,) the number of the part in which each id has a place, -1 for one whose part is full. Ids that the smallest
    hashes belong to come first, so an id that comes or goes changes who has a place in its own part alone, and there
    for one other id at most. `places`: of each part. Errors: as `Assignment.parts_of`."""
    texts = list(ids)
    found = drawn.parts_of(texts, hashed)
    values = hashed(bytes.fromhex(drawn.key), [id_text(each) for each in texts])
    for part, name in enumerate(drawn.names):
        mine = np.flatnonzero(found == part)
        found[mine[np.argsort(values[mine], kind="stable")][places[name] :]] = -1
    return found


@dataclass(frozen=True)
class Parted:
    """Parts of exact, public sizes at every owner: `sizes` by the assignment's names, one number an owner. Public.

    Which rows they are every owner draws once, by a key of its own, and keeps (`stored_parts`): nobody else knows, and
    a row keeps its part whatever comes to it. Ids alone decide: where one record is replaced and keeps its id, two data
    sets differ in one part, as `Assignment` needs it, and where an id is new or gone they may differ in both. So this
    is for neighbours whose ids stay. `assignment` is what plans and ledgers call these parts: of the data's digest and
    of `draw`, which is the same for plans whose parts go on from each other's.

    `places`: sizes are of places, which may stay empty, and who has one is drawn by hashes (`in_places`), so that
    neighbours may come and go. Records are drawn by a key of their owner's, persons by that of `assignment`, which is
    public: a person is then in one part at all owners. No promise rests on the key; the draw has to look at no value.
    `column`: of persons; other persons have other parts, which no ledger takes for these.
    """

    assignment: Assignment
    sizes: Mapping[str, tuple[int, ...]]
    places: bool = False
    column: str = ""

    @staticmethod
    def of(data: str, draw: str, sizes: Mapping[str, tuple[int, ...]]) -> "Parted":
        """Those of the data of this digest. Errors: an owner has nobody in a part, or parts differ in their owners."""
        if len({len(each) for each in sizes.values()}) != 1 or min(map(min, sizes.values())) < 1:
            raise UsageError("each owner has at least one record in every part; one has none; hold out another share")
        key = _key(b"dpmpc exact parts\0", [data, draw, list(sizes)])
        return Parted(Assignment(tuple((name, 1) for name in sizes), "record", key), sizes)

    @staticmethod
    def into_places(
        data: str, draw: str, parts: Mapping[str, int], sizes: Mapping[str, tuple[int, ...]], column: str = ""
    ) -> "Parted":
        """Those whose sizes are of places, drawn with these weights: of the persons in a column, or of records. Errors:
        as `of`."""
        key = _key(b"dpmpc parts of places\0", [data, draw, column])
        by: By = "person" if column else "record"
        return Parted(Assignment(tuple(parts.items()), by, key), Parted.of(data, draw, sizes).sizes, True, column)

    @property
    def whole(self) -> tuple[int, ...]:
        """How many records, or places, each owner has in all."""
        return tuple(map(sum, zip(*self.sizes.values(), strict=True)))


def _key(domain: bytes, said: list[Any]) -> str:
    """What tells the parts of one plan from those of others."""
    return hashlib.blake2b(domain + json.dumps(said, separators=(",", ":")).encode(), digest_size=16).hexdigest()


def apart(label: str, neighbours: str) -> tuple[str, str] | None:
    """(assignment, part) of a line's label where releases on disjoint parts do not add up for these neighbours; None
    where they do."""
    by, _, rest = label.partition(":")
    assignment, _, part = rest.partition("/")
    alike = ("record", "presence") if by == "record" else ("record", "presence", "person")
    return (f"{by}:{assignment}", part) if part and neighbours in alike else None


def id_text(value: Any) -> str:
    """An id as a text. Errors: it is none."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Real) and not isinstance(value, bool) and float(value).is_integer():
        return str(int(float(value)))
    raise UsageError(
        "a row's id is a text or a whole number, the same in every run; a row has none; name a column that has one in "
        "every row",
        code="missing",
    )
