"""Which owner of a plan an account is: kept on disk, whoever says it, so that nobody makes one account several owners.

A promise counts every owner once. Its number in the plan is a word of others: of who made the kit, who starts the
process, a server that carries messages. Whoever says another number another time would have one owner's records in a
sum twice, in one release or in several, and every page would go on saying what was promised. So the first number that
an account takes part under is written into its folder, by the plan's digest, and it is that owner from then on. Where
several owners of a plan share one account, whoever started them says which (`owners`). Owners whose parties are all on
their own machine share it in any case: such a run is a trial, and nobody elsewhere has a sum of it.
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.folders import make_folder
from dpmpc.mpc.transport.addresses import Endpoint, is_loopback
from dpmpc.privacy.account import ENVIRONMENT, Account, account_folder
from dpmpc.privacy.ledger import sync_directory
from dpmpc.privacy.unnamed import process_folder
from dpmpc.processes.durable import write_whole

FOLDER = "seals"
_RULE = "an account remembers which owner of a plan it is"
_WAY = f"name another folder with <<account>>, or in {ENVIRONMENT}"
_LINE = re.compile(rb"^owner (\d{1,9})$", re.M)


class OwnFile:
    """A small file in an account's folder that only grows, for one process at a time. `rule`, `way`: what is said where
    it cannot be read or written."""

    def __init__(self, path: Path, rule: str, way: str) -> None:
        """Touches nothing."""
        self.path, self._rule, self._way = path, rule, way

    @contextlib.contextmanager
    def alone(self) -> Iterator[int]:
        """The file, for this process alone. Errors: UsageError where it cannot be had."""
        make_folder(self.path.parent, self._rule, self._way, private=True)
        try:
            created = not self.path.exists()
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise self.refused(error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if created:
                sync_directory(self.path.parent)
            yield descriptor
        finally:
            os.close(descriptor)

    def append(self, descriptor: int, line: bytes) -> None:
        """On disk when this returns, after what may be half a line. Errors: as `alone`."""
        try:
            write_whole(descriptor, b"\n" + line + b"\n")
        except OSError as error:
            raise self.refused(error) from None

    def refused(self, error: OSError) -> UsageError:
        return UsageError(f"{self._rule}; {self.path}: {error.strerror}; {self._way}", code="path")


def content(descriptor: int) -> bytes:
    """All of an open file."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


class Standing:
    """The owners that the account in `folder` is under the plan of this digest. `owners`: those that it may be, where
    they are several by its own word."""

    def __init__(self, folder: Path, digest: bytes, owners: Collection[int] = ()) -> None:
        """Touches nothing."""
        self._file = OwnFile(folder / FOLDER / f"{digest.hex()[:32]}.owner", _RULE, _WAY)
        self._owners = frozenset(owners)

    def known(self) -> frozenset[int]:
        """The owners that it has taken part as. Errors: UsageError where that cannot be read."""
        try:
            return _read(self._file.path.read_bytes())
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise self._file.refused(error) from None

    def check(self, owner: int) -> None:
        """Errors: UsageError for another owner than it is."""
        self._refuse_other(self.known(), owner)

    def keep(self, owner: int) -> None:
        """It is this owner from now on; on disk when this returns. Errors: as `check`, and UsageError where nothing can
        be written."""
        with self._file.alone() as descriptor:
            known = _read(content(descriptor))
            self._refuse_other(known, owner)
            if owner not in known:
                self._file.append(descriptor, b"owner %d" % owner)

    def _refuse_other(self, known: frozenset[int], owner: int) -> None:
        others = known - {owner}
        if self._owners and owner not in self._owners:
            said = ", ".join(map(str, sorted(self._owners)))
            raise UsageError(f"owners that share an account are named; {owner} is not among {said}; mend <<owners>>")
        if others and not others <= self._owners:
            raise UsageError(
                f"an account is one owner of a plan, or its records count more than once; this one is owner "
                f"{min(others)}, and would be owner {owner}; give each owner an <<account>> of its own, or name all "
                "that share it with <<owners>>",
                code="unique",
            )


def _read(lines: bytes) -> frozenset[int]:
    return frozenset(int(number) for number in _LINE.findall(lines))


def meets(plan: Plan, owners: tuple[int, int], addresses: Iterable[Endpoint], account: Account) -> None:
    """Before an owner meets the parties of a plan at these addresses: its account is that owner, on disk when this
    returns. Nothing where it plays all owners, or all parties are on this machine. Errors: UsageError for an account
    that is another owner of the plan."""
    first, end = owners
    if end != first + 1 or plan.owners == 1 or all(is_loopback(each.host) for each in addresses):
        return
    named = plan.of_named_data or account.folder != process_folder()
    Standing(account.folder if named else account_folder(), plan.digest(FIRST_ATTEMPT)).keep(first)
