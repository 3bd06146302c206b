"""The client's side of a Flower run: a mod that lets nothing of a client's update leave but sealed shares.

It goes first among a ClientApp's mods, so that it sees what all others make of a reply. What the ClientApp returns
stays here: of its arrays, the change against the arrays that came is clipped, rounded, shared and sealed for the
parties; its metrics are dropped, and so is what it fails with: `client` says in which order. Evaluation and queries are
refused unless they are allowed: their replies would go out as they are.
"""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from dpmpc.aggregation.owner.sites import check_named
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.limits import NO_LIMITS, Limits
from dpmpc.errors import UsageError
from dpmpc.flower.client import Sealer, log_refusal
from dpmpc.flower.prepared import Prepared, read_prepared
from dpmpc.flower.update import change, dimension_of, numpy_arrays
from dpmpc.flower.words import OWNER, PLAN, RECORD, REFUSED, RELEASE, SEALED, SHARES, needs_flower
from dpmpc.folders import said_path

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
    owners: int | Collection[int] | None = None,
) -> "PrivateMod":
    """A mod for `ClientApp(mods=[private_mod("flower.json")])`.

    `prepared`: what `prepare` wrote; this client trusts that file's keys and no word of the server's. `limits`: what
    the plan must keep, or this client takes no part; their budget counts all that the account remembers of the data.
    `evaluate`: whether replies to evaluation and queries may leave as they are, outside the promise. `account`: the
    folder that remembers which owner of the plan this client is, for which releases it has sealed, and what they spent,
    by default this user's account (docs/privacy.md). `owners`: which owner this client is, by its own word; or which
    clients share the account, each with a partition-id of its own, as in a simulation. Without it an account is one
    owner: of the number of the node's partition-id, else the first that the server offers. Errors: UsageError where the
    plan does not keep the limits.
    """
    folder = None if account is None else said_path(account, "account")
    return PrivateMod(prepared, limits, evaluate, folder, owners)


class Sealing:
    """What a client that seals shares does, whatever they are of."""

    def __init__(
        self, prepared: Prepared, limits: Limits, account: Path | None, owners: int | Collection[int] | None
    ) -> None:
        check_named(limits)
        self._prepared, self._sealer = prepared, Sealer(prepared, limits, account, owners)

    def answered(self, message: Message, context: Context, make: Callable[[int], Floats]) -> Message:
        """Sealed shares of the vector that `make` gives for this client's number in the plan, which it is asked for
        when the release is spent; or the one reply that says that this client takes no part. Takes what dpmpc added out
        of the message."""
        said = message.content.pop(RECORD, None)
        found = self._sealer.answered(said, context.node_config.get("partition-id"), make)
        if found is None:
            return refused(message)
        purpose, sealed = found
        shares = {
            str(party): Array(dtype="uint8", shape=(len(share),), stype=SEALED, data=share)
            for party, share in enumerate(sealed)
        }
        about = ConfigRecord({PLAN: self._prepared.digest.hex(), RELEASE: purpose.release, OWNER: purpose.owner})
        return Message(RecordDict({RECORD: about, SHARES: ArrayRecord(shares)}), reply_to=message)


class PrivateMod(Sealing):
    """See `private_mod`."""

    def __init__(
        self,
        prepared: Prepared | Path | str,
        limits: Limits,
        evaluate: bool,
        account: Path | None = None,
        owners: int | Collection[int] | None = None,
    ) -> None:
        super().__init__(read_prepared(prepared), limits, account, owners)
        self._evaluate = evaluate
        limits.check_owner(self._prepared.plan, 0, vectors=True)  # any: each is looked at when it is asked

    def __call__(self, message: Message, context: Context, call_next: CallNext) -> Message:
        if not str(message.metadata.message_type).startswith("train"):
            if self._evaluate:
                return call_next(message, context)
            log_refusal(
                UsageError(
                    f"what a client replies to {message.metadata.message_type} leaves outside the promise; this client "
                    "allows none; give its private_mod evaluate=True"
                )
            )
            return refused(message)
        try:
            before = self._model(message)
        except Exception as error:  # noqa: BLE001 (as in `Sealer.answered`)
            log_refusal(error)
            return refused(message)
        return self.answered(message, context, lambda owner: self._train(before, message, context, call_next))

    def _model(self, message: Message) -> dict[str, Any]:
        """The arrays that the server sends. Errors: UsageError for others than the plan is for."""
        before, d = _arrays(message.content, "the server's message"), self._prepared.model_dimension
        if (found := dimension_of(before)) != d:
            raise UsageError(
                f"the plan is for models of {d} numbers; the server sends {found}; prepare again", code="shape"
            )
        return before

    def _train(self, before: dict[str, Any], message: Message, context: Context, call_next: CallNext) -> Floats:
        """The change of the model. Secret, and so is every error."""
        reply = call_next(message, context)
        if reply.has_error():
            raise UsageError(f"the ClientApp must train; it replies with an error: {reply.error.reason}; mend the app")
        return change(before, _arrays(reply.content, "the ClientApp's reply"))


def _arrays(content: Any, what: str) -> dict[str, Any]:
    """The arrays of the one ArrayRecord. Errors: UsageError for none or several."""
    records = list(content.array_records.values())
    if len(records) != 1:
        raise UsageError(f"{what} must hold one ArrayRecord, the model; it holds {len(records)}; mend the app")
    return numpy_arrays(records[0])


def refused(message: Message) -> Message:
    """Flower's error reply, in the same words for every reason."""
    return Message(Error(code=ErrorCode.MOD_FAILED_PRECONDITION, reason=REFUSED), reply_to=message)
