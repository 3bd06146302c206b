"""What a client has sealed for: it seals once for each release of a run, whatever the server asks again.

Sealed shares are bound to the attempt that the parties drew a token for, so those of one attempt open in no other. A
server that ends an attempt and begins another could still have clients seal their vectors anew for the same release,
and see one more sum of it in each. So a client writes down what it is about to seal for, before its vector is computed,
and refuses the second time: a release that was lost is lost. What was asked is remembered by plan and owner, in a file
that grows by one short line a release.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpmpc.aggregation.owner.standing import FOLDER, OwnFile, content
from dpmpc.errors import UsageError
from dpmpc.flower.sealing import Purpose
from dpmpc.privacy.account import ENVIRONMENT

_RULE = "a client remembers for which releases it has sealed"
_WAY = f"name another folder with private_mod(account=...), or in {ENVIRONMENT}"


class Seals:
    """The memory of all clients of one plan on this machine, in `folder`/seals."""

    def __init__(self, folder: Path, digest: bytes) -> None:
        """`digest`: of the plan and the parties' keys. Touches nothing."""
        self._file = OwnFile(folder / FOLDER / f"{digest.hex()[:32]}.txt", _RULE, _WAY)

    def check(self, purpose: Purpose) -> None:
        """Errors: UsageError for a release that this owner has sealed for, and where nothing can be remembered."""
        with self.turn(purpose):
            pass

    def remember(self, purpose: Purpose) -> None:
        """On disk when this returns. Errors: as `check`."""
        with self.turn(purpose) as remember:
            remember()

    @contextmanager
    def turn(self, purpose: Purpose) -> Iterator[Callable[[], None]]:
        """For one client at a time while inside: what is given remembers this release, on disk when it returns. Errors:
        as `check`."""
        with self._file.alone() as descriptor:
            _refuse_second(descriptor, purpose)
            yield lambda: self._file.append(descriptor, _line(purpose))


def _line(purpose: Purpose) -> bytes:
    return f"{purpose.owner:d} {purpose.release:d} {purpose.token.hex()}".encode()


def _refuse_second(descriptor: int, purpose: Purpose) -> None:
    mine = re.compile(rb"^%d %d " % (purpose.owner, purpose.release), re.M)
    if mine.search(content(descriptor)):
        raise UsageError(
            f"a client seals once for each release of a run; owner {purpose.owner} has for release {purpose.release}; "
            "skip that release, or prepare a new run",
            code="over",
        )
