"""A trial of one site before the day: whether all is here, whether everybody reaches everybody, whether clocks agree.

All sites do it at about the same time. Each calls every party at the ports and addresses of the run, with the run's
certificates; a party listens until all others have called. They exchange a greeting and the time, and no more: nothing
is computed, sent of records, or spent.
"""

import asyncio
import hashlib
import shutil
import struct
import time
from collections.abc import Callable
from dataclasses import field
from functools import partial
from pathlib import Path

from dpmpc.aggregation.plan.derivation import derivation
from dpmpc.aggregation.plan.fields import marks
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.errors import PeerError, UsageError
from dpmpc.folders import OUT, check_folder
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.addresses import Endpoint, owner_endpoints
from dpmpc.mpc.transport.channels import HELLO
from dpmpc.mpc.transport.dial import Call
from dpmpc.mpc.transport.listener import Listener, Refused
from dpmpc.mpc.transport.tls import Tls
from dpmpc.mpc.transport.wire import Peer

_GREETING = struct.Struct("<BI32sd")  # whether an owner, number, digest of the plan, Unix time
_PAUSE = 0.5  # seconds between two calls
_CLOCK = 30.0  # seconds that clocks may differ without a word
_SPARE = 1 << 28  # bytes that a disk should have left


@dataclass
class Trial:
    """One site's trial of a plan. `party`, `owner`: its numbers, where it is one; `heard` tells progress."""

    plan: Plan
    party: int | None
    owner: int | None
    addresses: list[Endpoint]
    listening: tuple[Endpoint, Endpoint] | None  # of a party: for parties, for owners
    tls: Path | None
    say: Callable[[str], None]
    clocks: dict[str, float] = field(default_factory=dict)  # by process: seconds that its clock is ahead
    problems: dict[str, str] = field(default_factory=dict)  # by party that was not reached
    called: set[str] = field(default_factory=set)  # who has called this party
    refused: dict[str, str] = field(default_factory=dict)  # who called as such, and why it was not taken for it
    loaded: dict[bool, Tls] = field(default_factory=dict)  # of this site's roles, as owner or not

    @property
    def name(self) -> str:
        return f"owner {self.owner}" if self.party is None else f"party {self.party}"

    @property
    def _mine(self) -> list[tuple[bool, int]]:
        """The roles of this site: (whether an owner, number)."""
        roles = ((False, self.party), (True, self.owner))
        return [(owns, number) for owns, number in roles if number is not None]

    @property
    def _digest(self) -> bytes:
        sites = next((each.digest for each in self.loaded.values()), b"")
        return hashlib.sha256(b"dpmpc trial\0" + sites + derivation(self.plan) + self.plan.to_text().encode()).digest()

    @property
    def _wanted(self) -> set[str]:
        """Who calls this party."""
        if self.party is None:
            return set()
        parties = {f"party {j}" for j in range(self.plan.parties) if j != self.party}
        return parties | {f"owner {j}" for j in range(self.plan.owners) if j != self.owner}

    @property
    def missing(self) -> list[str]:
        """What has not been reached, and who has not called, a line each."""
        lines = [f"{name}: not reached: {why}" for name, why in sorted(self.problems.items())]
        for name in sorted(self._wanted - self.called):
            why = self.refused.get(name)
            lines.append(f"{name}: {'has not called' if why is None else f'called, and was refused: {why}'}")
        return lines

    async def meet(self, seconds: float) -> None:
        """Returns when everybody who meets this site in the run has. Errors: PeerError with who is missing and why,
        when the seconds have passed; UsageError for a port that is taken."""
        if self.tls is not None:
            self.loaded |= {owns: Tls.load(self.tls, _certificate(owns, k)) for owns, k in self._mine}
        tls = self.loaded
        listeners = []
        try:
            if self.listening is not None:
                for owners, endpoint in enumerate(self.listening):
                    one = Listener(self._peer, partial(self._greeted, bool(owners)), self.say)
                    listeners.append(one)
                    whom = "owners" if owners else "parties"
                    await one.open(endpoint, None, tls.get(False), f"{self.name} must listen for {whom}")
            calls = [self._reach(owns, number, j, tls.get(owns)) for owns, number in self._mine for j in self._others()]
            async with asyncio.timeout(seconds):
                await asyncio.gather(*calls)
                while self._wanted - self.called:
                    await asyncio.sleep(_PAUSE / 10)
        except TimeoutError:
            raise PeerError(
                f"every site is reached by those that need it within {seconds:g} s; {'; '.join(self.missing)}; start "
                "the trial there too, or mend <<addresses>>, the network, or the certificates"
            ) from None
        finally:
            for each in listeners:
                each.close()

    def _others(self) -> list[int]:
        return [j for j in range(self.plan.parties) if j != self.party]

    def _peer(self) -> Peer:
        return Peer("a caller", self._digest)

    def _hello(self, owns: bool, number: int) -> bytes:
        return _GREETING.pack(owns, number, self._digest, time.time())

    async def _reach(self, owns: bool, number: int, party: int, tls: Tls | None) -> None:
        """Calls a party in one of this site's roles until it answers."""
        endpoint = (owner_endpoints(self.addresses) if owns else self.addresses)[party]
        call, there = Call(endpoint, f"party{party}", tls), f"party {party} ({endpoint})"
        self.problems[there], refused = call.problem, ""
        while True:
            peer = Peer(f"party {party}", self._digest)
            try:
                answer = await call.once(peer, self._hello(owns, number))
                if answer is not None:
                    self._learn(f"party {party}", answer)
                    del self.problems[there]
                    return
                self.problems[there] = refused or call.problem  # which tells more than that it has ended since
            except PeerError as error:
                self.problems[there] = refused = error.message
            finally:
                peer.abort("the trial of this connection is over")
            await asyncio.sleep(_PAUSE)

    def _greeted(self, owners: bool, peer: Peer, payload: bytearray) -> None:
        """Answers who calls. Errors: Refused."""
        name = ""
        try:
            if len(payload) != _GREETING.size:
                raise PeerError("this process tries its connections only; start the trial there too, or the run here")
            owns, number, digest, _ = _GREETING.unpack(payload)
            name = f"{'owner' if owns else 'party'} {number}"
            if digest != self._digest or bool(owns) != owners or name not in self._wanted:
                raise PeerError(
                    f"all sites must try the same plan, by their own addresses{marks(self.plan)}, and with one list of "
                    "keys; copy the kit again, accept the list again, or have one dpmpc"
                )
            if self.tls is not None:
                self.loaded[False].check(peer, (_certificate(bool(owns), number),))
            self._learn(name, payload)
        except PeerError as error:
            if name in self._wanted:
                self.refused[name] = error.message
            raise Refused(error.message) from None
        assert self.party is not None
        self.called.add(name)
        peer.send(HELLO, self._hello(False, self.party))
        peer.admit(0, 0)

    def _learn(self, name: str, payload: bytearray) -> None:
        if len(payload) != _GREETING.size or _GREETING.unpack(payload)[2] != self._digest:
            raise PeerError(f"{name} must try the same plan; it answers as a process of another; copy the kit again")
        self.clocks[name] = _GREETING.unpack(payload)[3] - time.time()

    def lines(self) -> list[str]:
        """What was found, a line each."""
        # what another process says may be no number: that is not in step
        off = {name: ahead for name, ahead in sorted(self.clocks.items()) if not abs(ahead) <= _CLOCK}
        clocks = "; ".join(f"that of {name} is {ahead:+.0f} s away" for name, ahead in off.items())
        whom = [f"party {j}" for j in self._others()]
        return [
            f"reached: {', '.join(whom) or 'nobody is to be'}",
            *([f"called by: {', '.join(sorted(self.called))}"] if self._wanted else []),
            f"warning: clocks: {clocks}; set them, certificates are held against them" if off else "clocks: agree",
        ]


def _certificate(owns: bool, number: int) -> str:
    return f"{'owner' if owns else 'party'}{number}"


def before_meeting(plan: Plan, addresses: list[Endpoint], folder: Path) -> list[str]:
    """What the run will be, and whether its files find room. Errors: UsageError where they do not."""
    coming = 3 * 8 * plan.dimension * plan.releases
    there = check_folder(folder, OUT)
    free = shutil.disk_usage(there).free
    if free < coming + _SPARE:
        raise UsageError(
            f"a run's files need some {(coming + _SPARE) / 1e6:,.0f} MB of disk; {there} has {free / 1e6:,.0f}; make "
            "room, or name another <<out>>",
            code="memory",
        )
    return [*taking_part(plan, [str(e) for e in addresses]), f"disk: {free / 1e9:.1f} GB are free at {there}"]
