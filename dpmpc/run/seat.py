"""The seat of one process in a run: what it says for itself, its books, and which owners and parties are with it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from dpmpc.aggregation.owner.accounts import NO_BOOKS, Books
from dpmpc.aggregation.owner.carrier import Frames
from dpmpc.aggregation.owner.company import Started
from dpmpc.aggregation.plan.here import HERE, Here
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.addresses import Endpoint


@dataclass(frozen=True)
class Carries:
    """How a process carries what owners elsewhere have sealed (`aggregation.owner.carrier`). `frames`: how that
    travels; `heads`: bytes of what each party tells clients that it remembers of their accounts, 0 for nothing."""

    frames: Frames
    heads: int = 0


@dataclass(frozen=True)
class Seat:
    """Where one process of a run is, as the engine is given it. `here`: what it says for itself. `books`: where all of
    its releases count. `parties`: those that were started here, by somebody who ends them, or the one of this process;
    None: they are started for each release's sake, or listen at `addresses`. `owners`: (first, end) of those whose
    records are here, by default all; `processes`: the same of each, where they are played as so many processes would
    play them, by default as one; `carries`: what they send comes sealed to this process. `own_ledger`: where this
    process writes its own, which it has where no party here does, and `called` whose it is. `say`: told who is waited
    for."""

    here: Here = HERE
    books: Books = NO_BOOKS
    parties: Started | None = None
    addresses: Sequence[Endpoint] | None = None
    owners: tuple[int, int] | None = None
    processes: Sequence[tuple[int, int]] = ()
    carries: Carries | None = None
    own_ledger: Path | None = None
    called: str = ""
    say: Callable[[str], None] = lambda text: None

    @property
    def out(self) -> Path | None:
        """Its folder, where it has one."""
        return self.here.out

    def inside(self, name: str) -> Self:
        """The same in the folder of a stage."""
        return self if self.out is None else replace(self, here=self.here.but(out=self.out / name))
