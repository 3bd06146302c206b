"""The client's side of a Flower run: a mod that lets nothing of a client's update leave but sealed shares.

It goes first among a ClientApp's mods, so that it sees what all others make of a reply. What the ClientApp returns
stays here: of its arrays, the change against the arrays that came is clipped, rounded, shared and sealed for the
parties; its metrics are dropped. Evaluation and queries are refused unless they are allowed: their replies would go out
as they are.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.limits import NO_LIMITS, Limits
from dpmpc.aggregation.wire.frames import TOKEN_BYTES
from dpmpc.errors import DpmpcError, UsageError, public_text
from dpmpc.flower.client import Asked, Sealer
from dpmpc.flower.client_ledger import check_budget_has_data
from dpmpc.flower.heads import names_of
from dpmpc.flower.prepared import Prepared, read_prepared
from dpmpc.flower.sealing import Purpose
from dpmpc.flower.update import change, numpy_arrays
from dpmpc.flower.words import BOUND, OWNER, PLAN, RECORD, RELEASE, SEALED, SHARES, TOKEN, TOLD, needs_flower
from dpmpc.folders import said_path
from dpmpc.learning.adaptive_clipping import ClippingBound
from dpmpc.privacy.checks import check_positive

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, RecordDict
    from flwr.common.constant import ErrorCode
except ImportError as error:
    raise needs_flower(error) from None

CallNext = Callable[[Message, Context], Message]


def private_mod(
    prepared: Prepared | Path | str,
    *,
    limits: Limits = NO_LIMITS,
    evaluate: bool = False,
    account: Path | str | None = None,
) -> "PrivateMod":
    """A mod for `ClientApp(mods=[private_mod("flower.json")])`.

    `prepared`: what `prepare` wrote; this client trusts that file's keys and no word of the server's. `limits`: what
    the plan must keep, or this client takes no part; their budget counts all that the account remembers of the data.
    `evaluate`: whether replies to evaluation and queries may leave as they are, outside the promise. `account`: the
    folder that remembers for which releases this client has sealed, and what they spent, by default this user's account
    (docs/privacy.md). Errors: UsageError where the plan does not keep the limits.
    """
    return PrivateMod(prepared, limits, evaluate, None if account is None else said_path(account, "account"))


class Sealing:
    """What a client that seals shares does, whatever they are of."""

    def __init__(self, prepared: Prepared, limits: Limits, account: Path | None) -> None:
        self._prepared, self._sealer = prepared, Sealer(prepared, limits, account)
        check_budget_has_data(limits)
        _ = self._prepared.digest  # derived once: it goes with this object to a simulation's processes

    def answered(self, message: Message, context: Context, make: Callable[[int], Floats | Message]) -> Message:
        """Sealed shares of the vector that `make` gives for this client's number in the plan, or its own reply where it
        has one. Errors: none that a client can be at fault for: the reply is then Flower's error reply, which says why
        and nothing of a vector."""
        try:
            asked = self._asked(message, context)
            made = make(asked.purpose.owner)
            return made if isinstance(made, Message) else self._reply(message, made, asked)
        except DpmpcError as error:
            return refused(message, self._sealer.public(public_text(error)))

    def _reply(self, message: Message, vector: Floats, asked: Asked) -> Message:
        sealed, purpose = self._sealer.sealed(vector, asked), asked.purpose
        shares = {
            str(party): Array(dtype="uint8", shape=(len(share),), stype=SEALED, data=share)
            for party, share in enumerate(sealed)
        }
        about = ConfigRecord({PLAN: self._prepared.digest.hex(), RELEASE: purpose.release, OWNER: purpose.owner})
        return Message(RecordDict({RECORD: about, SHARES: ArrayRecord(shares)}), reply_to=message)

    def _asked(self, message: Message, context: Context) -> Asked:
        """What the server's message says; takes what dpmpc added out of it. Errors: UsageError for another plan, what
        no plan has, what was sealed before, and an account that was put back."""
        plan = self._prepared.plan
        asked = message.content.pop(RECORD, None)
        if asked is None:
            raise UsageError(
                "the server must ask for shares; its message does not; wrap its strategy in PrivateStrategy"
            )
        theirs, mine = str(asked.get(PLAN)), self._prepared.digest.hex()
        if theirs != mine:
            raise UsageError(
                f"server and clients must have the same plan and keys; the server has {theirs[:8]}, this client "
                f"{mine[:8]}; copy flower.json again"
            )
        release = asked.get(RELEASE)
        if not isinstance(release, int) or not 0 <= release < plan.releases:
            raise UsageError(f"the plan has {plan.releases} releases; the server asks for another; plan more rounds")
        bound = plan.adaptive
        if bound is not None:
            bound = ClippingBound(check_positive("the clipping bound", asked.get(BOUND)), bound.quantile, bound.rate)
        token = str(asked.get(TOKEN))
        if not re.fullmatch(f"[0-9a-f]{{{2 * TOKEN_BYTES}}}", token):
            raise UsageError("the server must carry the token that its parties drew; its message has none; update it")
        purpose = Purpose(self._prepared.digest, bytes.fromhex(token), release, self._owner(asked.get(OWNER), context))
        told = names_of(asked.get(TOLD), self._prepared, purpose.owner) if self._prepared.shows_heads else []
        found = Asked(purpose, bound, told, numbered="partition-id" in context.node_config)
        self._sealer.check(found)
        return found

    def _owner(self, offered: Any, context: Context) -> int:
        """This client's number in the plan: its partition's, where the node has one, else the one that the server
        offered first. It is one owner for the whole run, or the promise would count it once and it would send twice."""
        mine = context.node_config.get("partition-id", offered)
        owner = int(mine) if isinstance(mine, int | str) and str(mine).isdecimal() else -1
        owners = self._prepared.plan.owners
        if not 0 <= owner < owners:
            raise UsageError(f"the plan has {owners} owners, 0 to {owners - 1}; this client would be {mine}; plan more")
        known = context.state.get(RECORD)
        if known is not None and known.get(OWNER) != owner:
            raise UsageError(
                f"a client is one owner in a run; this one was {known.get(OWNER)}, and is asked as {owner}"
            )
        context.state[RECORD] = ConfigRecord({OWNER: owner})
        return owner


class PrivateMod(Sealing):
    """See `private_mod`."""

    def __init__(
        self, prepared: Prepared | Path | str, limits: Limits, evaluate: bool, account: Path | None = None
    ) -> None:
        super().__init__(read_prepared(prepared), limits, account)
        self._evaluate = evaluate
        limits.check_owner(self._prepared.plan, 0, vectors=True)  # any: which one it is the server says later

    def __call__(self, message: Message, context: Context, call_next: CallNext) -> Message:
        if not str(message.metadata.message_type).startswith("train"):
            if self._evaluate:
                return call_next(message, context)
            kind = str(message.metadata.message_type)
            return refused(
                message,
                f"what a client replies to {kind} leaves outside the promise; this client allows none; give its "
                "private_mod evaluate=True",
            )
        return self.answered(message, context, lambda owner: self._train(message, context, call_next))

    def _train(self, message: Message, context: Context, call_next: CallNext) -> Floats | Message:
        """The change of the model; the app's reply, where that is an error."""
        before = _arrays(message.content, "the server's message")
        reply = call_next(message, context)
        return reply if reply.has_error() else change(before, _arrays(reply.content, "the ClientApp's reply"))


def _arrays(content: Any, what: str) -> dict[str, Any]:
    """The arrays of the one ArrayRecord. Errors: UsageError for none or several."""
    records = list(content.array_records.values())
    if len(records) != 1:
        raise UsageError(f"{what} must hold one ArrayRecord, the model; it holds {len(records)}; mend the app")
    return numpy_arrays(records[0])


def refused(message: Message, why: str) -> Message:
    """Flower's error reply."""
    return Message(Error(code=ErrorCode.MOD_FAILED_PRECONDITION, reason=why), reply_to=message)
