"""What a client's process does for a release, in the one order that there is: `Sealer.answered`. Needs no Flower.

Everything that may be refused is looked at first, and none of it is a record: the plan, the release, who this account
is under the plan, what a party saw of the account, the budget. Then the release is spent: that this owner seals for it,
and its line, are on disk. Only then is the vector computed. So whatever comes of that, the release is spent, and is not
computed a second time.

What comes of it nobody else can tell: where no vector is had, because what computes it fails or its values are not
finite numbers of the right shape, zeros are sealed in its place. This process logs that; the shares look as any others.
Zeros lie in the ball that vectors are clipped to, so the promise is the same. (A server whose model decides when an
update overflows would else read from every refusal, exactly, what its question was about.) How long it takes, and
whether the process dies, is seen; docs/flower.md.
"""

import logging
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.owner.encoding import as_blocks, encode
from dpmpc.aggregation.owner.standing import Standing
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.grid import Floats, Ints
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import TOKEN_BYTES
from dpmpc.errors import DpmpcError, UsageError, public_text
from dpmpc.flower.client_ledger import spending
from dpmpc.flower.heads import check_names, names_of
from dpmpc.flower.prepared import Prepared
from dpmpc.flower.sealing import Purpose, seal
from dpmpc.flower.seals import Seals
from dpmpc.flower.words import BOUND, OWNER, PLAN, RELEASE, TOKEN, TOLD
from dpmpc.lazy import dataclass
from dpmpc.learning.adaptive_clipping import ClippingBound
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.privacy.account import account_folder
from dpmpc.privacy.heads import Head

LOG = logging.getLogger("flwr")
_TOKEN = re.compile(f"[0-9a-f]{{{2 * TOKEN_BYTES}}}")
Make = Callable[[], Floats]


@dataclass(frozen=True)
class SealRequest:
    """What a client is to seal for. `bound`: of clipping, if it adapts; `told`: the names that parties told it
    (`heads`), none where the plan's data has no name; `numbered`: whether its number is its own, so that it looks for
    them and shows the head of its account."""

    purpose: Purpose
    bound: ClippingBound | None
    told: list[bytes]
    numbered: bool


class Sealer:
    """All sealing of the clients that have one account. `account`: the folder, by default this user's; `owners`: which
    owners they are, where they are several, or where this client says itself which it is."""

    def __init__(
        self, prepared: Prepared, limits: Limits, account: Path | None, owners: int | Collection[int] | None = None
    ) -> None:
        self._prepared, self._limits, self._account = prepared, limits, account
        self._owner = owners if isinstance(owners, int) else None
        shared = () if owners is None or isinstance(owners, int) else owners
        self._shared = frozenset(shared)
        for owner in (*shared, *([] if self._owner is None else [self._owner])):
            if type(owner) is not int or not 0 <= owner < prepared.plan.owners:
                raise UsageError(
                    f"the plan's owners are numbered 0 to {prepared.plan.owners - 1}; got {owner!r} among <<owners>>; "
                    "mend it",
                    code="range",
                )
        self._plan_digest = prepared.plan.digest(FIRST_ATTEMPT)
        _ = prepared.digest  # both derived once: they go with this object to a simulation's processes
        self._kept: set[int] = set()  # the owners for whom the plan keeps the limits

    @property
    def _seals(self) -> Seals:
        return Seals(self._account or account_folder(), self._prepared.digest)

    @property
    def _standing(self) -> Standing:
        return Standing(self._account or account_folder(), self._plan_digest, self._shared)

    def owner(self, partition: object, offered: object) -> tuple[int, bool]:
        """(this client's number in the plan, whether it is its own word): what it was given as its own (`owners`), or
        its node's partition; else the one that it has taken part under, and before it has, the one that the server
        offers. Errors: UsageError for none of the plan's, for two of its own that differ, and for a server's among
        several that share an account."""
        mine = _number(partition) if self._owner is None else self._owner
        if self._owner is not None and partition is not None and _number(partition) != self._owner:
            raise UsageError(
                f"a client has one number in the plan; its mod says owner {self._owner}, its node's partition-id "
                f"{partition}; mend either"
            )
        if partition is None and self._owner is None:
            if self._shared:
                raise UsageError("clients that share an account have a partition-id each; this node has none; give one")
            known = self._standing.known()
            mine = min(known) if len(known) == 1 else _number(offered)
        if mine is None or not 0 <= mine < self._prepared.plan.owners:
            said = offered if partition is None else partition
            raise UsageError(
                f"the plan has {self._prepared.plan.owners} owners, 0 to {self._prepared.plan.owners - 1}; this client "
                f"would be {said!r:.40}; plan more"
            )
        return mine, self._owner is not None or partition is not None

    def answered(
        self, said: Mapping[str, Any] | None, partition: object, make: Callable[[int], Floats]
    ) -> tuple[Purpose, list[bytes]] | None:
        """What its shares are for, and the sealed shares of the vector that `make` gives when the release is spent, of
        this client's number in the plan. None where this client takes no part, whatever the reason is: its log has it.
        `said`: by the server; `partition`: of the node."""
        try:
            asked = self.asked(said, partition)
            return asked.purpose, self.sealed(lambda: make(asked.purpose.owner), asked)
        except Exception as error:  # noqa: BLE001 (Flower would send the text of any other to the server)
            log_refusal(error)
            return None

    def asked(self, said: Mapping[str, Any] | None, partition: object) -> SealRequest:
        """What the server's words ask. Errors: UsageError for another plan, and for what is not as the server of a run
        says it."""
        prepared, plan = self._prepared, self._prepared.plan
        if said is None:
            raise UsageError(
                "the server must ask for shares; its message does not; wrap its strategy in PrivateStrategy"
            )
        theirs, mine = str(said.get(PLAN)), prepared.digest.hex()
        if theirs != mine:
            raise UsageError(
                f"server and clients must have the same plan and keys; the server has {theirs[:8]}, this client "
                f"{mine[:8]}; copy flower.json again"
            )
        release = checked_release(plan, said.get(RELEASE))
        bound = None if plan.adaptive is None else plan.adaptive.at(said.get(BOUND), release)
        token = said.get(TOKEN)
        if type(token) is not str or not _TOKEN.fullmatch(token):
            raise UsageError("the server must carry the token that its parties drew; its message has none; update it")
        owner, own = self.owner(partition, said.get(OWNER))
        purpose = Purpose(prepared.digest, bytes.fromhex(token), release, owner)
        told = names_of(said.get(TOLD), prepared, owner) if prepared.shows_heads else []
        return SealRequest(purpose, bound, told, numbered=own)

    def check(self, asked: SealRequest) -> None:
        """Errors: UsageError for a release that this client takes no part in, but for its budget; nothing is spent."""
        self._check(asked)
        self._seals.check(asked.purpose)

    def sealed(self, vector: Floats | Make, asked: SealRequest) -> list[bytes]:
        """The shares of this client's vector, sealed. `vector`: or what computes it, which is called when the release
        is spent; zeros where it fails, or gives no vector. Errors: UsageError for a release that this client takes no
        part in, a budget that is passed, and where nothing can be remembered; nothing is computed then."""
        plan, prepared, purpose = self._prepared.plan, self._prepared, asked.purpose
        self._spend(asked)
        steps = self._steps(vector, asked)
        payloads = BACKENDS[plan.backend].dealer(plan.parties, plan.threshold).deal(steps)
        if prepared.shows_heads:
            head = (Head().after(self._digests()) if asked.numbered else Head()).pack()
            payloads = [head + bytes(payload) for payload in payloads]
        return seal(payloads, prepared.keys, purpose, asked.told)

    def _spend(self, asked: SealRequest) -> None:
        """On disk when this returns: who this account is, that this release is sealed for, and its line. Errors: as
        `sealed`; then nothing is spent."""
        purpose = asked.purpose
        self._check(asked)
        with self._seals.turn(purpose) as remember:
            self._check_account(asked)  # which others may have written to meanwhile
            with spending(self._prepared, purpose, self._limits, self._account) as spend:
                self._standing.keep(purpose.owner)
                remember()
                spend()

    def _check(self, asked: SealRequest) -> None:
        plan, purpose = self._prepared.plan, asked.purpose
        checked_release(plan, purpose.release)
        if purpose.digest != self._prepared.digest:
            raise UsageError("server and clients must have the same plan and keys; copy flower.json again")
        if plan.adaptive is None:
            if asked.bound is not None:
                raise UsageError("the plan's clipping bound does not adapt; the server gives one; plan again")
        else:
            plan.adaptive.at(None if asked.bound is None else asked.bound.value, purpose.release)
        if purpose.owner not in self._kept:
            self._limits.check_owner(plan, purpose.owner, vectors=not plan.source.OF_RECORDS)
            self._kept.add(purpose.owner)
        self._standing.check(purpose.owner)
        self._check_account(asked)

    def _steps(self, vector: Floats | Make, asked: SealRequest) -> Ints:
        """(1, d) what is shared. Secret. No errors: zeros in place of what is no vector."""
        try:
            return self._encoded(vector() if callable(vector) else vector, asked)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever it is, no reply may tell of it)
            LOG.error(
                "release %d is spent, and zeros are sealed as owner %d: no vector was had: %s: %s",
                asked.purpose.release, asked.purpose.owner, type(error).__name__,
                public_text(error) if isinstance(error, DpmpcError) else error,
            )  # fmt: skip
            return self._encoded(np.zeros(self._prepared.model_dimension), asked)

    def _encoded(self, vector: Floats, asked: SealRequest) -> Ints:
        plan, bound = self._prepared.plan, asked.bound
        (block,) = as_blocks(vector, 1, self._prepared.model_dimension, 1)
        return encode(plan, block if bound is None else bound.encode(block), asked.purpose.owner)

    def _digests(self) -> list[bytes]:
        """Of the lines of this client's account for the plan's data."""
        account = Books.kept(self._account).account(self._prepared.plan)
        assert account is not None
        return account.digests(self._prepared.plan.data_id)

    def _check_account(self, asked: SealRequest) -> None:
        if asked.told and asked.numbered:
            check_names(self._digests(), asked.told, asked.purpose)


def log_refusal(why: BaseException) -> None:
    """What a client says to itself alone."""
    LOG.warning("no part in this message: %s", why if isinstance(why, DpmpcError) else f"{type(why).__name__}: {why}")


def checked_release(plan: Plan, release: object) -> int:
    """The number of a release. Errors: UsageError for none of the plan's; True, which equals 1 and is written
    otherwise, is none."""
    if type(release) is not int or not 0 <= release < plan.releases:
        raise UsageError(f"the plan has {plan.releases} releases; the server asks for another; plan more rounds")
    return release


def _number(said: object) -> int | None:
    """The number that a node's partition or a server's word is; None for none."""
    text = str(said)
    if type(said) not in (int, str) or not (text.isascii() and text.isdecimal() and len(text) < 10):
        return None
    return int(text)
