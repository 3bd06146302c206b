"""Where the processes of a run are, and which of them is started here: what `dpmpc train` was told of machines."""

import re
from collections.abc import Sequence
from pathlib import Path

from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.settings import Role
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


@dataclass(frozen=True)
class Placement:
    """Where the processes of a run are. `index`: the one to start here, a party's number or "owners"; None for all of
    them."""

    out: Path
    base_port: int | None = None
    wait: float | None = None  # seconds; by default WAIT, or where processes are started one by one WAIT_FOR_PEOPLE
    stall: float = STALL
    listen: str | None = None  # where a party listens, if it is not the address that others call
    addresses: Sequence[str] = ()
    index: str | None = None
    plan_file: Path | None = None
    overwrite: bool = False
    tls: Path | None = None
    budget: str | None = None  # as given, where no plan was made before
    role: Role = "apart"
    ledgers: Path | None = None
    account: str | None = None
    limits: Limits | None = None  # what a process that is started alone takes part in
    threads: int | None = None  # of a party
    data_id: str | None = None  # which the budget is for
    own_records: bool = False  # whether an owner here has records of its own, whatever its plan calls them

    def __post_init__(self) -> None:
        if self.index is not None and not re.fullmatch(r"\d{1,6}|owners|owner\d{1,6}", self.index):
            raise UsageError(
                f"<<index>> takes a party's number from 0, or owners, or owner0 and so on; got {self.index!r}"
            )
        if self.owner is not None and self.plan_file is None:
            raise UsageError(
                f"<<index={self.index}>> plays one owner of a plan; there is none; add <<plan_file=FILE>>, as "
                f"<<plan_only>> makes it"
            )
        if self.role == "both" and self.index is not None and not (self.index.isdigit() and self.plan_file):
            raise UsageError(
                f"<<role=both>> starts one site of a plan, owner and party; got <<index={self.index}>>; give the "
                f"site's number "
                "and <<plan_file=FILE>>, as <<plan_only>> makes it"
            )
        if self.addresses and self.index is None:
            raise UsageError(
                "<<addresses>> says where the processes of several machines are; add <<index>> to say which of "
                "them to start here"
            )
        if self.plan_file is not None and self.index is None:
            raise UsageError(
                "<<plan_file>> is for processes started one by one; add <<index>>, or leave <<plan_file>> out"
            )
        if self.base_port is not None and not 1024 <= self.base_port <= 65_000:
            raise UsageError(f"<<base_port>> must lie in 1024..65000; got {self.base_port}; choose one between")
        if self.tls is not None and self.index is None:
            raise UsageError(
                "<<tls>> is for processes on several machines; here all stay on loopback; add <<index>>, or leave "
                "<<tls>> out"
            )
        if self.limits is not None and self.index is None:
            raise UsageError("<<accept>> is for processes started one by one; add <<index>>, or leave <<accept>> out")
        if self.wait is not None and not 0 < self.wait < 1e6:
            raise UsageError(f"<<wait>> must be a positive number of seconds; got {self.wait:g}; give for instance 60")
        check_stall(self.stall)
        if self.listen is not None and (self.party is None or not self.addresses):
            raise UsageError(
                f"<<listen>> says where a party listens that others call at its <<addresses>> address; got "
                f"{self.listen!r} without; "
                "add <<index>> with a party's number, and <<addresses>>"
            )

    @property
    def patience(self) -> float:
        """Seconds for the other processes to come."""
        if self.wait is not None:
            return self.wait
        return WAIT if self.index is None else WAIT_FOR_PEOPLE

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

    @property
    def party(self) -> int | None:
        """The number of the party to start here, if it is one."""
        return int(self.index) if self.index is not None and self.index.isdigit() else None

    @property
    def owner(self) -> int | None:
        """The number of the only owner to play here, if it is one."""
        return int(self.index[5:]) if self.index is not None and self.index[5:].isdigit() else None

    def endpoints(self, parties: int) -> list[Endpoint]:
        """Where the parties listen. Errors: not one address a party; one off this machine without TLS."""
        base = BASE_PORT if self.base_port is None else self.base_port
        if self.addresses and len(self.addresses) != parties:
            raise UsageError(
                f"<<addresses>> must be given once for each party; got {len(self.addresses)} for {parties} parties"
            )
        found = parse_endpoints(self.addresses) if self.addresses else endpoints_here(parties, base)
        if self.tls is None:
            check_loopback([e.host for e in found])
        return found
