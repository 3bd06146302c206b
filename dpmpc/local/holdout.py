"""An owner's records in the parts of a plan over several machines: which of them a release or a stage is of.

The owner draws the parts once, by a key in its account, and keeps them there under the name that plans and ledgers have
for them (`privacy.stored_parts`). Records are known again by a column of ids, or by their place in a file that stays as
it is; a file that changed and has no ids is refused before anything is sent, for a record that moved would be in both
parts.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import RecordError, UsageError, number_of
from dpmpc.intake.files import files_digest
from dpmpc.intake.reading import count_where
from dpmpc.intake.spelling import canonical
from dpmpc.intake.table import Ints, Table
from dpmpc.lazy import dataclass
from dpmpc.mpc.native.hashes import keyed_hashes
from dpmpc.planning.request import Request
from dpmpc.privacy.account import Account
from dpmpc.privacy.assignment import Assignment, Parted, in_places
from dpmpc.privacy.stored_parts import by_id, by_place
from dpmpc.records.dataset import Rows, Split
from dpmpc.records.ownership import fitting
from dpmpc.records.persons import persons_of
from dpmpc.records.planned import OTHER_SIZES, other_sizes


def split_of(request: Request, plan: Plan, owner: int) -> Split | None:
    """What says which rows of an owner the plan's own releases are of, none for a test; None: all."""
    parted = plan.source.parted(plan.data_id)
    if parted is None:
        return None

    def by_plan(table: Table, groups: Ints | None, by_seed: Rows) -> Rows:
        mine = rows_of(request, plan, parted, plan.part, owner, table)
        return np.flatnonzero(mine).astype(np.int64), np.empty(0, dtype=np.int64)

    return by_plan


def rows_of(request: Request, whole: Plan, parted: Parted, label: str, owner: int, table: Table) -> NDArray[np.bool_]:
    """(n,) which rows of an owner's table are in the part of this label. Errors: they are not as many as planned; no
    ids, or others than an earlier run had, before anything is spent."""
    if parted.places:
        return _in_places(request, whole, parted, label.rpartition("/")[2], owner, table)
    planned = (parted.whole[owner],)
    if (table.n,) != planned:
        raise RecordError(other_sizes(planned, (table.n,)), OTHER_SIZES)
    known = _identified(request, whole, table)
    account = request.books().account(whole)
    assert account is not None  # records of the caller's own count somewhere
    _, second = parted.assignment.names
    held = _drawn(_Place(account, whole.data_id, parted, owner), known, table.n, parted.sizes[second][owner])
    return held if label.rpartition("/")[2] == second else ~held


def unplaced(request: Request, whole: Plan, owner: int, table: Table) -> str:
    """What an owner is told, on its own screen, of records or persons whose part has no place left for them; "" for
    none. `table`: as of `rows_of`. Errors: as `rows_of`."""
    parted = whole.source.parted(whole.data_id)
    if parted is None or not parted.places:
        return ""
    ids, _, drawn = _ids_of_places(request, whole, parted, owner, table)
    gone = np.flatnonzero(_places(drawn, whole, parted, owner, ids) < 0)
    if not len(gone):
        return ""
    full = np.bincount(drawn.parts_of([ids[k] for k in gone], keyed_hashes), minlength=len(drawn.names))
    where = " and ".join(f"{n} of the {name} part" for name, n in zip(drawn.names, full, strict=True) if n)
    what = number_of(len(gone), "person" if whole.persons is not None else "record")
    return f"{what} of {len(ids)} ({where}) {'is' if len(gone) == 1 else 'are'} not used: its places are full"


def _in_places(request: Request, whole: Plan, parted: Parted, part: str, owner: int, table: Table) -> NDArray[np.bool_]:
    """The same where parts have places. Of persons the table has what `persons.kept` kept. Errors: as `rows_of`; more
    than there are places for."""
    ids, unit, drawn = _ids_of_places(request, whole, parted, owner, table)
    there = parted.whole[owner] // _width(whole)
    if not whole.capacity and len(ids) != there:
        raise RecordError(other_sizes((there,), (len(ids),)), OTHER_SIZES)
    fitting((len(ids),), (there,))
    found = _places(drawn, whole, parted, owner, ids)
    return np.asarray(found[unit] == drawn.names.index(part))


def _places(drawn: Assignment, whole: Plan, parted: Parted, owner: int, ids: Sequence[str]) -> Ints:
    """(ids,) the number of the part in which each has a place, -1 for none."""
    with _for_its_owner():
        each = {name: sizes[owner] // _width(whole) for name, sizes in parted.sizes.items()}
        return in_places(drawn, ids, each, keyed_hashes)


def _width(whole: Plan) -> int:
    """How many rows a record, or a person, has places for."""
    return 1 if whole.persons is None else whole.persons.rows


def _ids_of_places(
    request: Request, whole: Plan, parted: Parted, owner: int, table: Table
) -> tuple[list[str], Ints, Assignment]:
    """The ids of an owner's records or persons, the number of each row's, and what draws them."""
    drawn = parted.assignment
    if whole.persons is not None:
        assert whole.person is not None
        _, first, unit = np.unique(persons_of(table), return_index=True, return_inverse=True)
        texts = ids_of(table, whole.person)
        return [texts[row] for row in first], unit, drawn
    check_named(request, whole)
    assert request.ids is not None
    ids, parts = ids_of(table, request.ids), dict(drawn.parts)
    account = request.books().account(whole)
    assert account is not None  # records of the caller's own count somewhere
    place = _Place(account, whole.data_id, parted, owner)
    with account.writing(whole.data_id) as file:
        name = _told_alike(dict(file.contents.assignments), place, _Known("", request.ids))
        secret = file.assignment(place.secret, parts)
        file.assignment(name, parts, "record", drawn)
    return ids, np.arange(table.n), replace(drawn, key=secret.key)


@contextmanager
def _for_its_owner() -> Iterator[None]:
    """Errors of an owner's ids are for its own screen: they depend on records."""
    try:
        yield
    except RecordError:
        raise
    except UsageError as error:
        raise RecordError(
            error.to_owner, "held-out records are known by their ids; some owner's are not; its own screen says why"
        ) from None


@dataclass(frozen=True)
class _Known:
    """What tells records: their ids, which a column has, or the digest of their file."""

    file: str
    column: str | None = None
    ids: Sequence[str] = ()


@dataclass(frozen=True)
class _Place:
    """Where an owner's parts are kept."""

    account: Account
    data: str
    parted: Parted
    owner: int

    @property
    def whose(self) -> str:
        """What the account's lines on them begin with."""
        return f"{self.parted.assignment.identity} of owner {self.owner}: "

    @property
    def secret(self) -> str:
        """What the account calls the key that draws them."""
        return f"{self.parted.assignment.identity}: key"

    @property
    def file(self) -> Path:
        """That has the parts of ids."""
        return self.account.folder / f"{self.data}.{self.parted.assignment.identity}.{self.owner}.npy"


def ids_wanted(plan: Plan) -> str:
    """Which owners of a plan name a column of ids: "database", those whose records lie in one, "all", or "", none."""
    parted = plan.source.parted(plan.data_id)
    if parted is None or plan.persons is not None:
        return ""
    return "all" if parted.places else "database"


def check_named(request: Request | None, plan: Plan) -> None:
    """Errors: an owner's request names no column of ids, and nothing else tells the records that its plan holds out
    from others. No record is read: so a run says it before its first meeting, not in a later one."""
    wanted = ids_wanted(plan)
    if request is None or not wanted or request.ids is not None:
        return
    if wanted == "all":
        raise UsageError(
            "where numbers of records are private they are held out by their ids, for places change as records come "
            "and go; none was named; name the column of ids with <<ids>>, or have all plan with a test_fraction of 0",
            code="missing",
        )
    if request.database or request.source is None:
        raise UsageError(
            "held-out records are known again by an id; rows of a database have no place; name the column of their ids "
            "with <<ids>>",
            code="missing",
        )


def check_parts(request: Request, plan: Plan, owner: int, table: Table) -> None:
    """What a run will ask of the records of which its plan holds some out, before the day; nothing is drawn or written.
    Errors: as `check_ids`; records that are others, or told otherwise, than an earlier run had."""
    check_ids(request, plan, table)
    parted = plan.source.parted(plan.data_id)
    if parted is None or plan.persons is not None:
        return
    account = request.books().account(plan)
    assert account is not None  # records of the caller's own count somewhere
    place, names = _Place(account, plan.data_id, parted, owner), account.assignments(plan.data_id)
    if parted.places:
        _told_alike(names, place, _Known("", request.ids))
        return
    known, held = _identified(request, plan, table), parted.sizes[parted.assignment.names[1]][owner]
    name = _told_alike(names, place, known, table.n, held)
    if known.column is not None and name in names:
        key = names[place.secret].key
        with _for_its_owner():
            by_id(place.file, key, known.ids, held, keep=False)


def check_ids(request: Request, plan: Plan, table: Table) -> None:
    """What a run will ask of the ids in an owner's table, before the day. Errors: as `check_named`, as `ids_of`; two
    rows have the same. They are for the owner's own screen."""
    check_named(request, plan)
    if request.ids is None or not ids_wanted(plan):
        return
    ids = ids_of(table, request.ids)
    if len(set(ids)) < len(ids) and ids_wanted(plan) == "database":
        raise UsageError(
            f"parts of exact sizes need an id that each row has alone; two rows have the same '{request.ids}'; name "
            "another column with <<ids>>",
            code="unique",
        )


def _identified(request: Request, whole: Plan, table: Table) -> _Known:
    """What tells the records. Errors: nothing does."""
    check_named(request, whole)
    if request.ids is not None:
        return _Known("", request.ids, ids_of(table, request.ids))
    assert request.source is not None
    return _Known(files_digest(request.source)[:32])


def _drawn(place: _Place, known: _Known, n: int, held: int) -> NDArray[np.bool_]:
    """(n,) which rows are held out. Errors: they are told otherwise than by an earlier run, or their file changed, or
    the account has lost their parts; as `by_id`."""
    drawn = place.parted.assignment
    parts = dict(drawn.parts)
    with place.account.writing(place.data) as file:  # alone: two runs at once would draw a new record's part twice
        name = _told_alike(dict(file.contents.assignments), place, known, n, held)
        key = file.assignment(place.secret, parts).key
        with _for_its_owner():
            alone = known.column is None
            found = by_place(key, known.file, n, held) if alone else by_id(place.file, key, known.ids, held)
        file.assignment(name, parts, "record", drawn)
    return found


def _told_alike(names: Collection[str], place: _Place, known: _Known, n: int = 0, held: int = 0) -> str:
    """What the account, which has assignments of these names, calls the way in which an owner's n records are told from
    each other, of which so many are held out. Errors: an earlier run told them otherwise, so a record could be in
    another part; the account has lost their parts."""
    told = f"{held} of {n} places in {known.file}" if known.column is None else f"ids of {known.column}"
    name = place.whose + told
    if any(each.startswith(place.whose) and each != name for each in names):
        raise UsageError(
            "records are held out by their place in a file that stays as it is, or by their ids; since an earlier run "
            "on this data id the file is another, or they are told apart otherwise; use the file as it was, or name "
            "the column of ids that it had with <<ids>>, or plan with another data_id",
            code="missing",
        )
    if n and known.column is not None and name in names and not place.file.exists():
        raise UsageError(
            f"which records are held out is kept in the account; {place.account.folder} has lost it; restore that "
            "folder, or plan with another data_id",
            code="file",
        )
    return name


def ids_of(table: Table, name: str) -> list[str]:
    """The id of each row, as text. Errors: a row has none."""
    if table.one(count_where(table.missing(name)))[0]:
        raise RecordError(
            f"every record has an id; '{name}' of {table.source} is empty in some; fill it in, or name another column",
            "every record has an id; some of an owner's have none",
        )
    return [canonical(str(row[0])) for row in table.rows(f"CAST({table.text(name)} AS VARCHAR)")]


def check_alone(plan: Plan, party: int | None, owner: int | None) -> None:
    """Errors: one process plays several owners of a plan that parts their records."""
    if party is None and owner is None and plan.source.parted(plan.data_id) is not None:
        raise UsageError(
            "each owner of this plan holds out records of its own, by a process of its own; got <<index=owners>>; "
            "start each with <<index=owner0>> and so on, or plan with <<test_fraction=0>>",
            code="together",
        )
