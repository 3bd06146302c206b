"""What parties may do, and which backend holds against it: semi-honest ones follow the protocol and look at what they
see; an active cheat does what it likes."""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.mpc.contract.backend import BACKENDS, CHECKED, DEFAULT, FOR_MANY
from dpmpc.mpc.contract.default_backend import default_backend
from dpmpc.mpc.contract.levels import by_link
from dpmpc.mpc.contract.owner_checks import OwnerTest

Security = Literal["semi-honest", "active"]
MODES: tuple[Security, ...] = ("semi-honest", "active")


@dataclass(frozen=True)
class Verdict:
    """What all parties said of a batch: its channel, how many words of ANDs were checked, the digest of what the check
    opened, which is random and the same at all."""

    channel: int
    words: int
    digest: str


@runtime_checkable
class Judges(Protocol):
    """A holder that knows what was checked."""

    def verdicts(self) -> list[Verdict]:
        """Of batches that held, since this was asked last."""


@runtime_checkable
class Checks(Protocol):
    """A backend whose parties are checked: with a cheat among them, a run gives the right vectors, or ends."""

    most_attempts: int  # of a run

    def undetected(self, sampler: Sampler, sizes: Sequence[int], parties: int, threshold: int) -> float:
        """How likely a run, with all its attempts, uses noise that a cheat changed, at most; `sizes`: of the batches
        that an attempt makes."""

    def undetected_owners(self, test: OwnerTest, releases: int, parties: int, threshold: int) -> float:
        """How likely a run, with all its attempts, believes a check of owners in which a party has cheated, at most."""


def backend_for(
    security: str | None,
    backend: str | None,
    law: str,
    sampler: str,
    parties: int,
    threshold: int | None,
    link: str | None = None,
) -> str:
    """The backend's name: as given, else the one that computes less; with active security the one that checks. `link`:
    between two servers, whose transfers then take the bytes that suit it (`mpc.contract.levels`).

    `security` None: what the backend has, semi-honest by default. Errors: UsageError for another word, or a backend
    that does not go with it.
    """
    if security not in (None, *MODES):
        raise UsageError(f"<<security>> must be one of {', '.join(MODES)}; got {security!r}; choose one of them")
    chosen = checked_backend(security, backend, parties, threshold) or default_backend(law, sampler, parties, threshold)
    if parties == 2 and threshold is None and BACKENDS[chosen].threshold(2) == 0:
        raise UsageError(
            f"with <<backend={chosen}>> each of 2 parties can read everything (t = 0), which has to be asked for; "
            f"no <<threshold>> "
            "was given; add <<threshold=0>>, or leave <<backend>> out"
        )
    return chosen if link is None else by_link(link, chosen)


def checked_backend(
    security: str | None, backend: str | None, parties: int, threshold: int | None = None
) -> str | None:
    """The backend as given, or the one that checks its parties: replicated shares while they have few parts. Errors: as
    `backend_for`."""
    if security != "active":
        return backend
    if backend is None:
        return CHECKED[FOR_MANY if _too_many(parties, threshold) else DEFAULT]
    if backend in CHECKED.values():
        return backend
    if backend not in CHECKED:
        raise UsageError(
            f"<<security=active>> checks the parties of <<backend={' and '.join(CHECKED)}>>; got "
            f"<<backend={backend}>>; "
            "leave it out, or use <<security=semi-honest>>"
        )
    return CHECKED[backend]


def _too_many(parties: int, threshold: int | None) -> bool:
    """Whether replicated shares of these have too many parts to be checked, or none."""
    replicated = BACKENDS[CHECKED[DEFAULT]]
    try:
        replicated.check(parties, replicated.threshold(parties) if threshold is None else threshold)
    except UsageError:
        return True
    return False


def security_of(backend: str) -> Security:
    """What the backend holds against."""
    return "active" if isinstance(BACKENDS[backend], Checks) else "semi-honest"
