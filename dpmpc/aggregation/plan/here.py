"""Where a process of a run is, and what it says for itself: the settings of a process, declared once.

A plan says what all processes of a run agree on; `Here` is what each says alone: where it writes, which one it is,
where the others are, how long it waits for them, what it may spend and where that is counted. It is made once, at the
surface (keywords, command line, a kit's site.toml), checked then, and handed on whole.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from dpmpc.aggregation.plan.keywords import OwnKeywords
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.settings import Accounting, Ledgers, Role
from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.addresses import (
    BASE_PORT,
    Endpoint,
    check_loopback,
    endpoints_here,
    owner_endpoints,
    parse_endpoints,
)
from dpmpc.mpc.transport.heartbeat import STALL, WAIT, WAIT_FOR_PEOPLE, check_stall
from dpmpc.privacy.checks import check_count
from dpmpc.settings import setting, within


def _index(name: str, value: str) -> None:
    if not re.fullmatch(r"\d{1,6}|owners|owner\d{1,6}", value):
        raise UsageError(
            f"{name} takes a party's number from 0, or owners, or owner0 and so on; got {value!r}", code="type"
        )


def _wait(name: str, value: float) -> None:
    if not 0 < value < 1e6:
        raise UsageError(
            f"{name} must be a positive number of seconds; got {value:g}; give for instance 60", code="range"
        )


@dataclass(frozen=True, kw_only=True)
class Here(Accounting, Ledgers):
    """What one process of a run says for itself.

    None: not said, and the rule of the declaration holds.

    One value from surface to connection: `Aggregator.of_plan`, `PartiesHere`, `PartyJob` and an engine of runs take it
    whole. What differs for a part of a run is said with `but`: `here.but(out=here.folder / "survey")` is a stage's; a
    process of a command that plays all owners has no index, and one of several machines has. What is no setting of a
    process (the plan, the request, the attempt, which stage it is, a test's double) is beside it, never in it.
    """

    SECTION: ClassVar[str] = "here"

    out: Path | None = setting(None, "Run directory for report, model, history and logs.", metavar="DIR")
    overwrite: bool = setting(False, "Replace an earlier run in the run directory.")
    index: str | None = setting(
        None,
        "Start one process here: party I (0 ... N-1), `owners` for all owners, `owner0` and so on for one.",
        metavar="I",
        flags=("-I",),
        check=_index,
        rule="all of them",
    )
    role: Role = setting("apart", "both: this process is an owner and the party of the same number.")
    addresses: tuple[str, ...] = setting(
        (),
        "Address of a party, once for each in order. Party I listens there, and for owners on PORT + N.",
        metavar="HOST:PORT",
        flags=("-P",),
    )
    listen: str | None = setting(
        None,
        "Of a party on a machine of its own: where it listens, if others call it at another address (NAT, a proxy); "
        "for owners on PORT + N. 0.0.0.0 and :: are all addresses.",
        metavar="HOST[:PORT]",
        rule="its own address",
    )
    base_port: int | None = setting(
        None,
        "Party I listens on PORT + I, and for owners on PORT + N + I.",
        metavar="PORT",
        flags=("-B",),
        check=within(1024, 65_000, "choose one between"),
        rule=f"free ports; {BASE_PORT} for processes that are started one by one",
    )
    tls: Path | None = setting(
        None,
        "Of one process on a machine of its own: folder with ca.crt and this process's own .crt and .key, as `dpmpc "
        "keys` makes them. Addresses off this machine need it.",
        metavar="DIR",
    )
    threads: int | None = setting(
        None,
        "Threads of a party that compute.",
        metavar="N",
        check=check_count,
        rule="the cores of its machine, shared by the parties on it",
    )
    wait: float | None = setting(
        None,
        "How long to wait for another process to come.",
        metavar="SECONDS",
        unit="seconds",
        check=_wait,
        rule=f"{WAIT:g}; {WAIT_FOR_PEOPLE:g} where processes are started one by one",
    )
    stall: float = setting(
        STALL,
        "A process of which nothing at all was heard for so long counts as lost. Long work is no silence.",
        metavar="SECONDS",
        unit="seconds",
        check=lambda name, value: check_stall(value),
    )
    limits: Limits | None = setting(
        None,
        "Of one process that is started alone: what it takes part in. On the command line a TOML file of limits "
        "(docs/settings.md).",
        metavar="FILE",
        flags=("--accept",),
        rule="what nobody has to be asked about",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.addresses and self.index is None:
            raise UsageError(
                "<<addresses>> says where the processes of several machines are; add <<index>> to say which of "
                "them to start here",
                code="together",
            )
        if self.tls is not None and self.index is None:
            raise UsageError(
                "<<tls>> is for processes on several machines; here all stay on loopback; add <<index>>, or leave "
                "<<tls>> out",
                code="together",
            )
        if self.limits is not None and self.index is None:
            raise UsageError(
                "<<limits>> is for processes started one by one; add <<index>>, or leave <<limits>> out",
                code="together",
            )
        if self.listen is not None and (self.party is None or not self.addresses):
            raise UsageError(
                f"<<listen>> says where a party listens that others call at its <<addresses>> address; got "
                f"{self.listen!r} without; "
                "add <<index>> with a party's number, and <<addresses>>",
                code="together",
            )

    def but(self, **changes: Any) -> Self:
        """The same with these settings said otherwise, checked again."""
        return replace(self, **changes)

    @property
    def folder(self) -> Path:
        """`out`. Errors: UsageError where none was said."""
        if self.out is None:
            raise UsageError(
                "a run needs a directory for its results; none was given; add <<out=DIRECTORY>>", code="missing"
            )
        return self.out

    @property
    def patience(self) -> float:
        """Seconds for the other processes to come."""
        if self.wait is not None:
            return self.wait
        return WAIT if self.index is None else WAIT_FOR_PEOPLE

    @property
    def party(self) -> int | None:
        """The number of the party to start here, if it is one."""
        return int(self.index) if self.index is not None and self.index.isdecimal() else None

    @property
    def owner(self) -> int | None:
        """The number of the only owner to play here, if it is one."""
        return int(self.index[5:]) if self.index is not None and self.index[5:].isdecimal() else None

    def endpoints(self, parties: int) -> list[Endpoint]:
        """Where the parties listen. Errors: not one address a party; one off this machine without TLS."""
        base = BASE_PORT if self.base_port is None else self.base_port
        if self.addresses and len(self.addresses) != parties:
            raise UsageError(
                f"<<addresses>> must be given once for each party; got {len(self.addresses)} for {parties} parties",
                code="addresses",
            )
        found = parse_endpoints(self.addresses) if self.addresses else endpoints_here(parties, base)
        if self.tls is None:
            check_loopback([e.host for e in found])
        return found

    def listening(self, index: int, addresses: Sequence[Endpoint]) -> tuple[list[Endpoint], list[Endpoint]]:
        """(where the parties are for parties, for owners) as party `index` has it: its own entries are where it
        listens. Errors: UsageError for an address off this machine without TLS."""
        parties, owners = list(addresses), owner_endpoints(addresses)
        if self.listen is not None:
            (here,) = parse_endpoints([self.listen], addresses[index].port)
            if self.tls is None:
                check_loopback([here.host])
            parties[index], owners[index] = here, Endpoint(here.host, here.port + len(addresses))
        return parties, owners


HERE = Here()  # this machine, nothing kept


class ServerKeywords(OwnKeywords, total=False):
    """Of a server of parties here or elsewhere."""

    tls: Path | str | None


class AloneKeywords(OwnKeywords, total=False):
    """Of one process that is started alone, for several machines."""

    tls: Path | str | None
    limits: Limits | None
    ledgers: Path | str | None
    account: Path | str | None


class PartyKeywords(AloneKeywords, total=False):
    """Of a party that is started alone."""

    listen: str | None
    threads: int | None
